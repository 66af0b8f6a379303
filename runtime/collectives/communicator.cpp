//===- communicator.cpp - What collectives are made of others, and the sole task's -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/communicator.h"

#include "core/dtype.h"
#include "core/error.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace drt {

Communicator::~Communicator() = default;

char *Communicator::shared_memory(int64_t) { return nullptr; }

CommonMemory Communicator::common_memory(int64_t) { return {}; }

std::vector<std::unique_ptr<Channel>> Communicator::open_channels(int, const std::vector<int> &) {
  throw Error("tasks cannot be connected two by two here", 70);
}

void Communicator::all_reduce(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                              int32_t algorithm) {
  char *result = const_cast<char *>(contributions.first);
  if (contributions.parts > 1 || divisor > 1)
    reduce(dtype, result, contributions, count, divisor);
  all_reduce_sum(result, count, dtype, algorithm);
}

// Each task's pieces to that task, which adds its own to what the others sent, in the order of tasks: (T-1)/T of the
// bytes, as much as any reduce-scatter sends. What stays here is copied once, beside what arrives.
void Communicator::reduce_scatter(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                                  const Pieces &pieces) {
  const size_t self = static_cast<size_t>(rank());
  if (contributions.parts > 1 || divisor > 1)
    reduce(dtype, const_cast<char *>(contributions.first), contributions, count, divisor);
  std::vector<int64_t> to(pieces.size()), from(pieces.size(), bytes_of(pieces[self]));
  from[self] = 0;
  sent_.clear();
  for (size_t task = 0; task < pieces.size(); ++task)
    if (task != self) {
      to[task] = bytes_of(pieces[task]);
      for (const Piece &piece : pieces[task])
        sent_.insert(sent_.end(), piece.data, piece.data + piece.bytes);
    }
  const int64_t own = bytes_of(pieces[self]), tasks = size();
  received_.resize(static_cast<size_t>(own * tasks));
  char *last = received_.data() + own * (tasks - 1);
  for (const Piece &piece : pieces[self])
    last = std::copy_n(piece.data, piece.bytes, last);
  all_to_all(sent_.data(), to, received_.data(), from);
  int64_t at = 0;
  for (const Piece &piece : pieces[self]) {
    reduce(dtype, piece.data, {received_.data() + at, own, static_cast<int32_t>(tasks)}, piece.bytes / dtypeSize(dtype),
           1);
    at += piece.bytes;
  }
}

/// Whether the pieces lie one behind the other, in the order of tasks.
static bool are_adjacent(const Pieces &pieces) {
  const char *end = nullptr;
  for (const std::vector<Piece> &ofTask : pieces)
    for (const Piece &piece : ofTask) {
      if (end && piece.data != end)
        return false;
      end = piece.data + piece.bytes;
    }
  return end != nullptr;
}

void Communicator::all_gather_pieces(const Pieces &pieces) {
  std::vector<int64_t> bytes;
  for (const std::vector<Piece> &ofTask : pieces)
    bytes.push_back(bytes_of(ofTask));
  if (are_adjacent(pieces)) {
    const auto first = std::find_if(pieces.begin(), pieces.end(), [](const auto &task) { return !task.empty(); });
    return all_gather(first->front().data, bytes);
  }
  const auto self = bytes.begin() + rank();
  received_.resize(static_cast<size_t>(std::accumulate(bytes.begin(), bytes.end(), int64_t(0))));
  char *own = received_.data() + std::accumulate(bytes.begin(), self, int64_t(0));
  for (const Piece &piece : pieces[static_cast<size_t>(rank())])
    own = std::copy_n(piece.data, piece.bytes, own);
  all_gather(received_.data(), bytes);
  const char *from = received_.data();
  for (size_t task = 0; task < pieces.size(); ++task)
    for (const Piece &piece : pieces[task]) {
      if (task != static_cast<size_t>(rank()))
        std::memcpy(piece.data, from, static_cast<size_t>(piece.bytes));
      from += piece.bytes;
    }
}

int64_t bytes_of(const std::vector<Piece> &pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), int64_t(0),
                         [](int64_t sum, const Piece &piece) { return sum + piece.bytes; });
}

namespace {
class SoleCommunicator final : public Communicator {
public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void describe(int64_t step, const char *name) override {}
  void all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t algorithm) override {}
  void broadcast(void *data, int64_t bytes, int root) override {}
  void all_gather(const void *data, int64_t bytes, void *gathered) override {
    if (bytes > 0)
      std::memcpy(gathered, data, static_cast<size_t>(bytes));
  }
  void all_to_all(const void *data, int64_t bytes, void *received) override { all_gather(data, bytes, received); }
  void all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                  const std::vector<int64_t> &) override {
    all_gather(data, bytes_to.front(), received);
  }
  void all_gather(void *, const std::vector<int64_t> &) override {}
  void barrier() override {}
  void abort(const std::string &reason) noexcept override {}
};
} // namespace

std::unique_ptr<Communicator> make_sole_communicator() { return std::make_unique<SoleCommunicator>(); }

} // namespace drt
