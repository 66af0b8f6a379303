//===- nccl_rank.h - A replica's part in NCCL's collectives ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_NCCL_RANK_H
#define DRT_CUDA_NCCL_RANK_H

#include "cuda/api/tables.h"
#include "drt/drt.h"

#include <atomic>
#include <memory>
#include <vector>

namespace drt::cuda {

/// A rank is a replica's global number. In the replica's thread, with its device current; everything throws drt::Error.
class NcclRank {
public:
  NcclRank() = default;
  ~NcclRank(); // aborts what was not closed
  NcclRank(const NcclRank &) = delete;
  NcclRank &operator=(const NcclRank &) = delete;

  /// What all ranks join with; made by one of them, for all.
  static ncclUniqueId makeId();

  /// Returns when all `ranks` have come.
  void join(const ncclUniqueId &id, int rank, int ranks);
  bool joined() const { return comm_->load() != nullptr; }
  ncclComm_t handle() const { return comm_->load(); }

  /// Enqueues the sum or mean over all ranks, in place.
  void allReduce(void *data, int64_t count, int32_t dtype, int32_t reduction, CUstream stream);
  /// Enqueues the sum or mean over all ranks of this rank's share, in place: rank r's begins at r * `share`. What lies
  /// in the others' is not defined then.
  void reduceScatter(void *data, int64_t share, int32_t dtype, int32_t reduction, CUstream stream);
  /// Enqueues the copy of each rank's share to all, in place.
  void allGather(void *data, int64_t shareBytes, CUstream stream);
  /// Enqueues the copy of each rank's bytes, at `own`, to all: rank r's go to `all` + r * `bytes`.
  void gather(const void *own, void *all, int64_t bytes, CUstream stream);
  /// Enqueues rank 0's bytes to all.
  void broadcast(void *data, int64_t bytes, CUstream stream);

  /// Throws what went wrong in a collective since.
  void checkErrors();

  /// When nothing is under way; all ranks of the process at the same time.
  void close();
  /// Ends what is under way, here alone. No graph may hold a collective: NCCL waits for its end.
  void abort() noexcept { abort({leave()}); }
  /// Leaves everything to the process's end, or to who ends it.
  ncclComm_t leave() noexcept { return comm_->exchange(nullptr); }
  /// Ends those of several ranks together: NCCL may wait in one's abort for the others'. Returns after some seconds
  /// even if it does not. Null: there is none.
  static void abort(const std::vector<ncclComm_t> &ranks) noexcept;

private:
  // Shared with a thread that joins: where another rank fails, it may be left behind and write here later.
  const std::shared_ptr<std::atomic<ncclComm_t>> comm_ = std::make_shared<std::atomic<ncclComm_t>>(nullptr);
  int rank_ = 0;
};

/// What is enqueued in its lifetime, up to end, is one operation of NCCL.
class NcclGroup {
public:
  NcclGroup();
  ~NcclGroup();
  NcclGroup(const NcclGroup &) = delete;
  NcclGroup &operator=(const NcclGroup &) = delete;
  void end();

private:
  bool open_ = true;
};

} // namespace drt::cuda

#endif // DRT_CUDA_NCCL_RANK_H
