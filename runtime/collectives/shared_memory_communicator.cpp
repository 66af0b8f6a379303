//===- shared_memory_communicator.cpp - Collectives between tasks of one host -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/shared_memory_communicator.h"

#include "collectives/shared_memory_channel.h"
#include "core/counter.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/ranges.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <new>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace drt {

namespace {

constexpr int64_t page = 4096;

// Up to here a sum goes through the stages wherever it lies: tasks meet once, and each adds up everything.
constexpr int64_t small_message_bytes = 8 << 10;

// What stays in the first-level cache between its sum and its copies.
constexpr int64_t block_bytes = 16 << 10;

/// What a task brings to a collective: written before it arrives, read by the others until they arrive again.
struct alignas(64) Brought {
  int64_t offset = -1; // in the file; -1: private memory
  int64_t stride = 0;
  int32_t parts = 0;
};

struct Header {
  Counter arrived{Counter::Between::Processes};
  alignas(64) std::atomic<bool> aborted{false};
  std::atomic<bool> has_reason{false};
  std::atomic_flag writes_reason = ATOMIC_FLAG_INIT;
  char reason[1000] = "";
  // Behind it: a Brought a task.
};
// Otherwise they would be locks of one process.
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

int64_t header_bytes(int size) {
  return roundUp(static_cast<int64_t>(sizeof(Header) + static_cast<size_t>(size) * sizeof(Brought)), page);
}
int64_t stages_bytes(int size, int64_t stage_bytes) { return roundUp(2 * size * stage_bytes, page); }

/// A mapped range of the file.
class Mapping {
public:
  Mapping(int file, int64_t offset, int64_t bytes) : offset_(offset), bytes_(bytes) {
    void *data =
        mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    if (data == MAP_FAILED)
      throw Error("out of memory: " + std::to_string(bytes) +
                  " bytes that the tasks of a host share cannot be mapped: " + std::strerror(errno));
    data_ = static_cast<char *>(data);
  }
  ~Mapping() {
    if (data_)
      munmap(data_, static_cast<size_t>(bytes_));
  }
  Mapping(Mapping &&other) noexcept
      : data_(std::exchange(other.data_, nullptr)), offset_(other.offset_), bytes_(other.bytes_) {}
  Mapping &operator=(Mapping &&) = delete;

  char *data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  /// Where an address lies in the file, -1 if not in this range; and back.
  int64_t offset_of(const char *address) const {
    return address >= data_ && address < data_ + bytes_ ? offset_ + (address - data_) : -1;
  }
  char *at(int64_t offset) const {
    return offset >= offset_ && offset < offset_ + bytes_ ? data_ + (offset - offset_) : nullptr;
  }

private:
  char *data_ = nullptr;
  int64_t offset_, bytes_;
};

class SharedMemoryCommunicator final : public Communicator {
public:
  SharedMemoryCommunicator(SharedMemoryOptions what, Progress &where)
      : options_(std::move(what)), progress_(where), file_(dup(options_.file)),
        common_(file_, 0, header_bytes(options_.size) + stages_bytes(options_.size, options_.stage_bytes)),
        header_(*std::launder(reinterpret_cast<Header *>(common_.data()))), file_bytes_(common_.bytes()) {}
  ~SharedMemoryCommunicator() override { close(file_); }

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }

  void describe(int64_t step, const char *name) override {
    progress_.step.store(step, std::memory_order_relaxed);
    progress_.name.store(name, std::memory_order_relaxed);
  }

  char *shared_memory(int64_t bytes) override { return shared_memory_of(rank(), bytes); }

  bool has_common_memory() const override { return true; }
  CommonMemory common_memory(int64_t bytes) override {
    return {shared_memory_of(0, rank() == 0 ? bytes : 0), &header_.aborted};
  }

  std::vector<std::unique_ptr<Channel>> open_channels(int root, const std::vector<int> &counts) override {
    const int64_t each = shared_memory_channel_bytes();
    const auto from = counts.begin(), own = from + rank();
    const int64_t all = std::accumulate(from, counts.end(), int64_t(0)) - counts[static_cast<size_t>(root)];
    const bool is_root = rank() == root;
    char *memory = shared_memory_of(root, is_root ? all * each : 0);
    if (is_root)
      for (int64_t i = 0; i < all; ++i)
        prepare_shared_memory_channel(memory + i * each);
    barrier();
    SharedMemoryChannelOptions channel;
    channel.first = is_root;
    for (const Mapping &block : blocks_)
      channel.blocks.push_back({block.data(), block.offset_of(block.data()), block.bytes()});
    channel.aborted = &header_.aborted;
    channel.throw_if_aborted = [this] { throw_if_aborted(); };
    // Those of the tasks before this one come first.
    int64_t begin = is_root ? 0 : std::accumulate(from, own, int64_t(0));
    if (rank() > root)
      begin -= counts[static_cast<size_t>(root)];
    std::vector<std::unique_ptr<Channel>> channels;
    for (int64_t i = 0; i < (is_root ? all : *own); ++i) {
      channel.memory = memory + (begin + i) * each;
      channels.push_back(make_shared_memory_channel(channel));
    }
    return channels;
  }

  void all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t algorithm) override {
    all_reduce(dtype, {static_cast<const char *>(data), 0, 1}, count, 1, algorithm);
  }

  void all_reduce(drt_dtype dtype, Contributions own, int64_t count, int64_t divisor, int32_t algorithm) override {
    if (count == 0)
      return;
    const InCollective mark(progress_);
    if (count * dtypeSize(dtype) > small_message_bytes) {
      bring(own);
      if (all_shared())
        return reduce_in_place(dtype, count, divisor);
      return reduce_staged(dtype, own, count, divisor, most_parts());
    }
    // How many contributions others have is not known yet, so there is room for a number that few exceed.
    if (own.parts > most_small_parts) {
      reduce(dtype, const_cast<char *>(own.first), own, count, 1);
      own.parts = 1;
    }
    reduce_small(dtype, own, count, divisor);
  }

  void reduce_scatter(drt_dtype dtype, Contributions own, int64_t count, int64_t divisor,
                      const Pieces &pieces) override {
    {
      const InCollective mark(progress_);
      bring(own);
      if (all_shared()) {
        std::vector<char *> sources = contributions_of_all();
        for (const Piece &piece : pieces[static_cast<size_t>(rank())])
          sum(dtype, sources, piece.data - own.first, piece.bytes / dtypeSize(dtype), divisor, {piece.data});
        return meet(); // the others may overwrite what has been read
      }
    }
    Communicator::reduce_scatter(dtype, own, count, divisor, pieces);
  }

  void all_gather_pieces(const Pieces &pieces) override {
    // All pieces lie in one block or none does: they are of one task's variables.
    const auto some = std::find_if(pieces.begin(), pieces.end(), [](const auto &task) { return !task.empty(); });
    if (some == pieces.end())
      return;
    const char *base = some->front().data;
    {
      const InCollective mark(progress_);
      bring({base, 0, 1});
      if (all_shared()) {
        for (int task = 0; task < size(); ++task) {
          if (task == rank())
            continue;
          const char *theirs = address(brought(task).offset);
          for (const Piece &piece : pieces[static_cast<size_t>(task)])
            std::memcpy(piece.data, theirs + (piece.data - base), static_cast<size_t>(piece.bytes));
        }
        return meet();
      }
    }
    Communicator::all_gather_pieces(pieces);
  }

  void broadcast(void *data, int64_t bytes, int root) override {
    if (bytes == 0)
      return;
    const InCollective mark(progress_);
    if (bytes > small_message_bytes) {
      bring({static_cast<const char *>(data), 0, 1});
      if (const int64_t from = brought(root).offset; from >= 0) {
        if (rank() != root)
          std::memcpy(data, address(from), static_cast<size_t>(bytes));
        return meet(); // the root may overwrite what has been read
      }
    }
    std::vector<int64_t> lengths(static_cast<size_t>(size()), 0);
    lengths[static_cast<size_t>(root)] = bytes;
    exchange(rank() == root ? data : nullptr, lengths, [&](int task, int64_t at, const char *chunk, int64_t length) {
      if (task == root && rank() != root)
        std::memcpy(static_cast<char *>(data) + at, chunk, static_cast<size_t>(length));
    });
  }

  void all_gather(const void *data, int64_t bytes, void *gathered) override {
    if (bytes == 0)
      return;
    const InCollective mark(progress_);
    gather(data, bytes, gathered);
  }

  void all_gather(void *gathered, const std::vector<int64_t> &bytes) override {
    const InCollective mark(progress_);
    std::vector<int64_t> begins(bytes.size(), 0);
    std::partial_sum(bytes.begin(), bytes.end() - 1, begins.begin() + 1);
    char *all = static_cast<char *>(gathered);
    exchange(all + begins[static_cast<size_t>(rank())], bytes,
             [&](int task, int64_t at, const char *chunk, int64_t length) {
               if (task != rank())
                 std::memcpy(all + begins[static_cast<size_t>(task)] + at, chunk, static_cast<size_t>(length));
             });
  }

  void all_to_all(const void *data, int64_t bytes, void *received) override {
    const std::vector<int64_t> blocks(static_cast<size_t>(size()), bytes);
    all_to_all(data, blocks, received, blocks);
  }

  void all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                  const std::vector<int64_t> &bytes_from) override {
    const InCollective mark(progress_);
    const size_t tasks = static_cast<size_t>(size());
    std::vector<int64_t> table(tasks * tasks); // row: who sends
    gather(bytes_to.data(), static_cast<int64_t>(tasks * sizeof(int64_t)), table.data());
    std::vector<int64_t> lengths(tasks), mine(tasks), to(tasks, 0);
    for (size_t task = 0; task < tasks; ++task) {
      const auto row = table.begin() + static_cast<std::ptrdiff_t>(task * tasks);
      lengths[task] = std::accumulate(row, row + size(), int64_t(0));
      mine[task] = std::accumulate(row, row + rank(), int64_t(0));
    }
    std::partial_sum(bytes_from.begin(), bytes_from.end() - 1, to.begin() + 1);
    exchange(data, lengths, [&](int sender, int64_t at, const char *chunk, int64_t length) {
      const size_t task = static_cast<size_t>(sender);
      const int64_t begin = std::max(at, mine[task]), end = std::min(at + length, mine[task] + bytes_from[task]);
      if (begin < end)
        std::memcpy(static_cast<char *>(received) + to[task] + (begin - mine[task]), chunk + (begin - at),
                    static_cast<size_t>(end - begin));
    });
  }

  void barrier() override {
    const InCollective mark(progress_);
    meet();
  }

  void throw_if_aborted() override {
    if (!header_.aborted.load(std::memory_order_acquire))
      return;
    std::string message = own_reason();
    if (message.empty()) {
      // Another task ended them. The control connection knows why.
      const std::string theirs = header_.has_reason.load(std::memory_order_acquire) ? header_.reason : "aborted";
      message = options_.explain ? options_.explain(theirs) : theirs;
      abort(message);
      message = own_reason(); // a cause that came meanwhile counts
    }
    throw Error(message);
  }

  void abort(const std::string &reason) noexcept override {
    try {
      std::lock_guard lock(mutex_);
      if (abort_reason_.empty())
        abort_reason_ = reason.empty() ? "aborted" : reason;
      if (!header_.writes_reason.test_and_set()) {
        const size_t length = std::min(abort_reason_.size(), sizeof header_.reason - 1);
        std::memcpy(header_.reason, abort_reason_.data(), length);
        header_.reason[length] = 0;
        header_.has_reason.store(true, std::memory_order_release);
      }
    } catch (const std::exception &) {
    }
    header_.aborted.store(true, std::memory_order_release);
  }

private:
  static constexpr int32_t most_small_parts = 8;

  /// Returns when every task has come here, so that what each wrote before is there for all.
  void meet() {
    throw_if_aborted();
    header_.arrived.add(1);
    meetings_ += static_cast<uint32_t>(size());
    if (!header_.arrived.wait(meetings_, {header_.aborted, 0}))
      throw_if_aborted();
  }

  std::string own_reason() {
    std::lock_guard lock(mutex_);
    return abort_reason_;
  }

  /// As many bytes as each task asks for. Returns where the part of task `whose` lies.
  char *shared_memory_of(int whose, int64_t bytes) {
    const InCollective mark(progress_);
    std::vector<int64_t> all(static_cast<size_t>(size()));
    gather(&bytes, sizeof bytes, all.data());
    for (int64_t &one : all)
      one = roundUp(std::max<int64_t>(one, 1), page);
    const int64_t begin = file_bytes_, total = std::accumulate(all.begin(), all.end(), int64_t(0));
    file_bytes_ += total;
    if (rank() == 0 && ftruncate(file_, static_cast<off_t>(file_bytes_)) != 0)
      throw Error("out of memory: " + std::to_string(total) +
                  " bytes for the tasks of a host: " + std::strerror(errno));
    meet();
    blocks_.emplace_back(file_, begin, total);
    madvise(blocks_.back().data(), static_cast<size_t>(total), MADV_HUGEPAGE); // a hint; small pages do as well
    return blocks_.back().data() + std::accumulate(all.begin(), all.begin() + whose, int64_t(0));
  }

  // ---- In place ------------------------------------------------------------------

  Brought &brought(int task) const { return reinterpret_cast<Brought *>(common_.data() + sizeof(Header))[task]; }

  /// Tells the others what this task has, and learns what they have.
  void bring(Contributions own) {
    Brought &mine = brought(rank());
    mine = {-1, own.stride, own.parts};
    for (const Mapping &block : blocks_)
      mine.offset = std::max(mine.offset, block.offset_of(own.first));
    meet();
  }

  bool all_shared() const {
    for (int task = 0; task < size(); ++task)
      if (brought(task).offset < 0)
        return false;
    return true;
  }

  int32_t most_parts() const {
    int32_t most = 1;
    for (int task = 0; task < size(); ++task)
      most = std::max(most, brought(task).parts);
    return most;
  }

  char *address(int64_t offset) const {
    for (const Mapping &block : blocks_)
      if (char *found = block.at(offset))
        return found;
    throw Error("a task of this host shares memory that this one does not know", 70);
  }

  /// In the order of tasks, and in each of its replicas.
  std::vector<char *> contributions_of_all() const {
    std::vector<char *> all;
    for (int task = 0; task < size(); ++task)
      for (int32_t part = 0; part < brought(task).parts; ++part)
        all.push_back(address(brought(task).offset) + part * brought(task).stride);
    return all;
  }

  /// The sum of `count` elements that begin `at` bytes into the sources, to each of the results.
  static void sum(drt_dtype dtype, const std::vector<char *> &sources, int64_t at, int64_t count, int64_t divisor,
                  const std::vector<char *> &results) {
    const int64_t size = dtypeSize(dtype), most = block_bytes / size;
    std::vector<const char *> from(sources.size());
    for (int64_t done = 0; done < count; done += most) {
      const int64_t now = std::min(most, count - done);
      for (size_t i = 0; i < sources.size(); ++i)
        from[i] = sources[i] + at + done * size;
      char *first = results[0] + done * size;
      reduce(dtype, first, from.data(), static_cast<int32_t>(from.size()), now, divisor);
      for (size_t i = 1; i < results.size(); ++i)
        std::memcpy(results[i] + done * size, first, static_cast<size_t>(now * size));
    }
  }

  void reduce_in_place(drt_dtype dtype, int64_t count, int64_t divisor) {
    const Range mine = rangeOf(count, size(), rank());
    const int64_t at = mine.begin * dtypeSize(dtype);
    std::vector<char *> results;
    for (int i = 0; i < size(); ++i) // this task's first: the others' are copies
      results.push_back(address(brought((rank() + i) % size()).offset) + at);
    if (!mine.empty())
      sum(dtype, contributions_of_all(), at, mine.size(), divisor, results);
    meet();
  }

  // ---- Through the stages ----------------------------------------------------------

  char *stage(int task) const {
    return common_.data() + header_bytes(size()) + (2 * task + turn_) * options_.stage_bytes;
  }

  /// `lengths[t]` bytes of each task to all, a stage at a time: visit(task, at, data, bytes) for each of them.
  template <class Visit> void exchange(const void *own, const std::vector<int64_t> &lengths, Visit visit) {
    const int64_t longest = *std::max_element(lengths.begin(), lengths.end()), each = options_.stage_bytes;
    const auto length_at = [&](int task, int64_t at) {
      return std::clamp<int64_t>(lengths[static_cast<size_t>(task)] - at, 0, each);
    };
    for (int64_t at = 0; at < longest; at += each) {
      if (const int64_t length = length_at(rank(), at); length > 0)
        std::memcpy(stage(rank()), static_cast<const char *>(own) + at, static_cast<size_t>(length));
      meet();
      for (int task = 0; task < size(); ++task)
        if (const int64_t length = length_at(task, at); length > 0)
          visit(task, at, static_cast<const char *>(stage(task)), length);
      turn_ ^= 1;
    }
  }

  void gather(const void *data, int64_t bytes, void *gathered) {
    exchange(data, std::vector<int64_t>(static_cast<size_t>(size()), bytes),
             [&](int task, int64_t at, const char *chunk, int64_t length) {
               std::memcpy(static_cast<char *>(gathered) + task * bytes + at, chunk, static_cast<size_t>(length));
             });
  }

  /// Everything in one stage: the number of contributions, then they.
  void reduce_small(drt_dtype dtype, Contributions own, int64_t count, int64_t divisor) {
    const int64_t bytes = count * dtypeSize(dtype);
    std::memcpy(stage(rank()), &own.parts, sizeof own.parts);
    for (int32_t part = 0; part < own.parts; ++part)
      std::memcpy(stage(rank()) + stage_head + part * bytes, own.first + part * own.stride, static_cast<size_t>(bytes));
    meet();
    sources_.clear();
    for (int task = 0; task < size(); ++task) {
      int32_t parts;
      std::memcpy(&parts, stage(task), sizeof parts);
      for (int32_t part = 0; part < parts; ++part)
        sources_.push_back(stage(task) + stage_head + part * bytes);
    }
    reduce(dtype, const_cast<char *>(own.first), sources_.data(), static_cast<int32_t>(sources_.size()), count,
           divisor);
    turn_ ^= 1;
  }

  /// As many elements at a time as fit for every contribution; brought() says how many those are.
  void reduce_staged(drt_dtype dtype, Contributions own, int64_t count, int64_t divisor, int32_t most_parts) {
    const int64_t size_of = dtypeSize(dtype), most = options_.stage_bytes / most_parts / size_of / 64 * 64;
    if (most == 0)
      throw Error("a task has " + std::to_string(most_parts) + " replicas, more than tasks of one host can reduce");
    std::vector<int32_t> parts_of;
    for (int task = 0; task < size(); ++task)
      parts_of.push_back(brought(task).parts);
    for (int64_t at = 0; at < count; at += most) {
      const int64_t bytes = std::min(most, count - at) * size_of;
      for (int32_t part = 0; part < own.parts; ++part)
        std::memcpy(stage(rank()) + part * bytes, own.first + part * own.stride + at * size_of,
                    static_cast<size_t>(bytes));
      meet();
      sources_.clear();
      for (int task = 0; task < size(); ++task)
        for (int32_t part = 0; part < parts_of[static_cast<size_t>(task)]; ++part)
          sources_.push_back(stage(task) + part * bytes);
      reduce(dtype, const_cast<char *>(own.first) + at * size_of, sources_.data(),
             static_cast<int32_t>(sources_.size()), bytes / size_of, divisor);
      turn_ ^= 1;
    }
  }

  static constexpr int64_t stage_head = 64;

  const SharedMemoryOptions options_;
  Progress &progress_;
  const int file_;
  const Mapping common_; // header and stages
  Header &header_;
  int64_t file_bytes_; // as all tasks have agreed
  std::vector<Mapping> blocks_;
  uint32_t meetings_ = 0; // arrivals that they took so far
  int turn_ = 0;          // which stage is filled next
  std::vector<const char *> sources_;
  std::mutex mutex_;
  std::string abort_reason_;
};

} // namespace

int make_shared_file(int size, int64_t stage_bytes) {
  const int file = memfd_create("distc-collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const int64_t bytes = header_bytes(size) + stages_bytes(size, stage_bytes);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    const int cause = errno;
    if (file >= 0)
      close(file);
    throw Error(std::string("cannot make memory for the tasks of this host: ") + std::strerror(cause));
  }
  // Nobody who has the descriptor can take memory away that others have mapped.
  fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK);
  const Mapping header(file, 0, header_bytes(size));
  new (header.data()) Header;
  for (int task = 0; task < size; ++task)
    new (header.data() + sizeof(Header) + static_cast<size_t>(task) * sizeof(Brought)) Brought;
  return file;
}

std::unique_ptr<Communicator> make_shared_memory_communicator(SharedMemoryOptions options, Progress &progress) {
  return std::make_unique<SharedMemoryCommunicator>(std::move(options), progress);
}

} // namespace drt
