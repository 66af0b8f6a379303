//===- shared_memory_channel.cpp - Two tasks of one host -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/shared_memory_channel.h"

#include "core/counter.h"
#include "core/error.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace drt {

Channel::~Channel() = default;

namespace {

constexpr int32_t most_parts = 512;
constexpr int64_t lane_bytes = 56 << 10;
// Below it a copy costs less than the wait until the other end has read.
constexpr int64_t small_piece_bytes = 4 << 10;

struct Part {
  int64_t offset; // in the file; -1: in the lane, behind those before it
  int64_t bytes;
};

struct Lane {
  Counter filled{Counter::Between::Processes}, taken{Counter::Between::Processes};
  int32_t parts = 0;
  Part part[most_parts];
  alignas(64) char data[lane_bytes];
};

/// Of the message that is read or written.
struct Position {
  uint32_t turn = 0; // lanes filled, or taken
  bool open = false; // whether the next one is being filled, or taken
  int32_t part = 0;
  int64_t in_part = 0, in_lane = 0;
};

class SharedMemoryChannel final : public Channel {
public:
  explicit SharedMemoryChannel(SharedMemoryChannelOptions what)
      : options_(std::move(what)), out_(lane(options_.first ? 0 : 1)), in_(lane(options_.first ? 1 : 0)) {}

  void send(const std::vector<Piece> &pieces) override {
    bool in_place = false;
    for (const Piece &piece : pieces) {
      const int64_t offset = piece.bytes > small_piece_bytes ? offset_of(piece) : -1;
      for (int64_t at = 0; at < piece.bytes;) {
        if (!writing_.open) {
          wait(out_.taken, writing_.turn);
          writing_ = {writing_.turn, true};
          out_.parts = 0;
        }
        const int64_t bytes = offset >= 0 ? piece.bytes : std::min(piece.bytes - at, lane_bytes - writing_.in_lane);
        if (out_.parts == most_parts || bytes == 0) {
          fill();
          continue;
        }
        out_.part[out_.parts++] = {offset, bytes};
        if (offset < 0) {
          std::memcpy(out_.data + writing_.in_lane, piece.data + at, static_cast<size_t>(bytes));
          writing_.in_lane += bytes;
        }
        in_place |= offset >= 0;
        at += bytes;
      }
    }
    if (writing_.open)
      fill();
    if (in_place)
      wait(out_.taken, writing_.turn);
  }

  void receive(const std::vector<Piece> &pieces) override {
    for (const Piece &piece : pieces)
      for (int64_t at = 0; at < piece.bytes;) {
        if (!reading_.open) {
          wait(in_.filled, reading_.turn + 1);
          reading_ = {reading_.turn, true};
        }
        const Part &part = in_.part[reading_.part];
        const int64_t bytes = std::min(piece.bytes - at, part.bytes - reading_.in_part);
        const char *from =
            part.offset < 0 ? in_.data + reading_.in_lane : address(part.offset, part.bytes) + reading_.in_part;
        std::memcpy(piece.data + at, from, static_cast<size_t>(bytes));
        at += bytes;
        reading_.in_part += bytes;
        reading_.in_lane += part.offset < 0 ? bytes : 0;
        if (reading_.in_part < part.bytes)
          continue;
        reading_.in_part = 0;
        if (++reading_.part < in_.parts)
          continue;
        reading_ = {reading_.turn + 1};
        in_.taken.add(1);
      }
  }

  bool reads_in_place() const override { return true; }

private:
  Lane &lane(int which) const { return std::launder(reinterpret_cast<Lane *>(options_.memory))[which]; }

  void fill() {
    writing_ = {writing_.turn + 1};
    out_.filled.add(1);
  }

  void wait(Counter &counter, uint32_t target) {
    options_.throw_if_aborted();
    if (!counter.wait(target, {*options_.aborted, 0}))
      options_.throw_if_aborted();
  }

  int64_t offset_of(const Piece &piece) const {
    for (const SharedBlock &block : options_.blocks)
      if (piece.data >= block.data && piece.data + piece.bytes <= block.data + block.bytes)
        return block.offset + (piece.data - block.data);
    return -1;
  }
  const char *address(int64_t offset, int64_t bytes) const {
    for (const SharedBlock &block : options_.blocks)
      if (offset >= block.offset && offset + bytes <= block.offset + block.bytes)
        return block.data + (offset - block.offset);
    throw Error("a task of this host sends memory that this one does not know", 70);
  }

  const SharedMemoryChannelOptions options_;
  Lane &out_, &in_;
  Position writing_, reading_;
};

} // namespace

int64_t shared_memory_channel_bytes() { return 2 * sizeof(Lane); }

void prepare_shared_memory_channel(char *memory) {
  for (int which = 0; which < 2; ++which)
    new (memory + static_cast<size_t>(which) * sizeof(Lane)) Lane;
}

std::unique_ptr<Channel> make_shared_memory_channel(SharedMemoryChannelOptions options) {
  return std::make_unique<SharedMemoryChannel>(std::move(options));
}

} // namespace drt
