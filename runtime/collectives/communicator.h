//===- communicator.h - Collectives between the tasks of a plan -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What one task needs of the others. Inside a task the replicas reduce over
// shared memory (runtime/cpu); what is between tasks is done here: through memory
// that tasks of one host share, or over the network.
//
// Threads: a communicator's collectives are called by one thread at a time, the
// task's communication thread, and by every task in the same order with the same
// sizes. abort() may be called by any thread at any time.
//
// Errors: a collective that cannot complete throws drt::Error, which names the
// task at fault where that is known; the buffers' contents are then undefined and
// every later collective throws the same.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_COMMUNICATOR_H
#define DRT_COLLECTIVES_COMMUNICATOR_H

#include "collectives/channel.h"
#include "collectives/reduce.h"
#include "drt/drt.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace drt {

/// The pieces of each task, in the order of ranks: the same list in every task, of its own memory.
using Pieces = std::vector<std::vector<Piece>>;

/// Memory that all tasks reach.
struct CommonMemory {
  char *data = nullptr;                       // of this process; zeroed at first, page aligned
  const std::atomic<bool> *aborted = nullptr; // set where collectives are aborted, by whichever task
};

class Communicator {
public:
  virtual ~Communicator();

  /// This task's number in the plan, and how many tasks there are.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Names the collectives that follow, for errors and stall warnings: the step
  /// and, say, the bucket ("group 3"). `name` must outlive the communicator.
  virtual void describe(int64_t step, const char *name) = 0;

  /// Zeroed memory, page aligned, that collectives read and write in place, without copies; null where there is none
  /// such. Every task calls it at the same time, each for as many bytes as it likes. It belongs to the communicator.
  virtual char *shared_memory(int64_t bytes);

  /// Whether common_memory gives any: all tasks are on one host.
  virtual bool has_common_memory() const { return false; }
  /// `bytes` bytes, the same number in every task, which calls it at the same time. They belong to the communicator.
  virtual CommonMemory common_memory(int64_t bytes);

  /// Whether what goes to a task and what comes from it are on their way at once, over a connection that carries as
  /// much each way: it is then worth while to send what has come so far back before the rest has come. The same in
  /// every task.
  virtual bool carries_both_ways() const { return false; }

  /// Throws what aborted the collectives, where anything did. Any thread.
  virtual void throw_if_aborted() {}

  /// Channels between task `root` and each of the others, counts[t] of them with task t. Every task calls it at the
  /// same time. The root has those of all tasks, in the order of ranks, the others their own. They end before the
  /// communicator.
  virtual std::vector<std::unique_ptr<Channel>> open_channels(int root, const std::vector<int> &counts);

  /// data[i] becomes the sum over all tasks of data[i], the same bits in every
  /// task. `data` is element-aligned and has `count` elements (0 is allowed) of
  /// DRT_F32, DRT_F64, DRT_I32 or DRT_I64. `algorithm`: DRT_ALL_REDUCE_*, heeded over a network.
  virtual void all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t algorithm = DRT_ALL_REDUCE_AUTO) = 0;

  /// Of `count` elements of every task's contributions, the first contribution becomes (the sum of all) / divisor, the
  /// same bits in every task. What the other contributions hold afterwards is undefined.
  virtual void all_reduce(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                          int32_t algorithm = DRT_ALL_REDUCE_AUTO);

  /// As all_reduce, but task t alone has the result, of pieces[t], which are elements of the first contribution.
  /// Nothing else of it is defined afterwards.
  virtual void reduce_scatter(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                              const Pieces &pieces);

  /// Every task's own pieces to all others.
  virtual void all_gather_pieces(const Pieces &pieces);

  /// `bytes` bytes of `root`'s data to every task.
  virtual void broadcast(void *data, int64_t bytes, int root) = 0;

  /// Every task's `bytes` bytes, in the order of ranks, into `gathered`
  /// (size() * bytes), which does not overlap `data`.
  virtual void all_gather(const void *data, int64_t bytes, void *gathered) = 0;

  /// Block i of `data`, `bytes` bytes, to task i; block i of `received` is task i's. They do not overlap.
  virtual void all_to_all(const void *data, int64_t bytes, void *received) = 0;

  /// As all_to_all with blocks of different sizes: `bytes_to[i]` bytes to task i, `bytes_from[i]` of task i; blocks lie
  /// one behind the other. What one task sends to another is what that one receives.
  virtual void all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                          const std::vector<int64_t> &bytes_from) = 0;

  /// As all_gather with `bytes[i]` bytes of task i, and in place: this task's are there already.
  virtual void all_gather(void *gathered, const std::vector<int64_t> &bytes) = 0;

  /// Returns when every task has come here.
  virtual void barrier() = 0;

  /// Makes the collective that is under way, here and in the tasks connected to
  /// it, and every later one fail with `reason`. Only the first reason counts.
  virtual void abort(const std::string &reason) noexcept = 0;

private:
  std::vector<char> sent_, received_; // pieces on their way
};

/// The communicator of a plan with one task: nothing to wait for, nothing to send.
std::unique_ptr<Communicator> make_sole_communicator();

} // namespace drt

#endif // DRT_COLLECTIVES_COMMUNICATOR_H
