//===- nccl_rank.cpp - A replica's part in NCCL's collectives -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/nccl_rank.h"
#include "core/dtype.h"
#include "core/error.h"
#include "cuda/errors.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace drt::cuda {
namespace {

// An abort that takes longer is left behind: the process is about to end.
constexpr std::chrono::seconds abortPatience(5);

ncclDataType_t ncclTypeOf(int32_t dtype) {
  switch (dtype) {
  case DRT_F32:
    return ncclFloat32;
  case DRT_F64:
    return ncclFloat64;
  case DRT_F16:
    return ncclFloat16;
  case DRT_BF16:
    return ncclBfloat16;
  case DRT_I32:
    return ncclInt32;
  case DRT_I64:
    return ncclInt64;
  case DRT_I8:
    return ncclInt8;
  case DRT_U8:
  case DRT_BOOL: // rows are joined by adding zeros
    return ncclUint8;
  default:
    throw Error("NCCL reduces no " + dtypeName(dtype) + ": an internal error of the compiler", 70);
  }
}

ncclRedOp_t operationOf(int32_t reduction) { return reduction == DRT_REDUCE_MEAN ? ncclAvg : ncclSum; }

} // namespace

NcclRank::~NcclRank() { abort(); }

ncclUniqueId NcclRank::makeId() {
  ncclUniqueId id;
  check(nccl().ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

void NcclRank::join(const ncclUniqueId &id, int rank, int ranks) {
  const auto comm = comm_;
  rank_ = rank;
  ncclComm_t made = nullptr;
  check(nccl().ncclCommInitRank(&made, ranks, id, rank), "ncclCommInitRank");
  comm->store(made);
}

void NcclRank::allReduce(void *data, int64_t count, int32_t dtype, int32_t reduction, CUstream stream) {
  check(nccl().ncclAllReduce(data, data, static_cast<size_t>(count), ncclTypeOf(dtype), operationOf(reduction),
                             handle(), stream),
        "ncclAllReduce");
}

NcclGroup::NcclGroup() { check(nccl().ncclGroupStart(), "ncclGroupStart"); }

NcclGroup::~NcclGroup() {
  if (open_)
    nccl().ncclGroupEnd(); // after a failure, which has been reported
}

void NcclGroup::end() {
  open_ = false;
  check(nccl().ncclGroupEnd(), "ncclGroupEnd");
}

void NcclRank::reduceScatter(void *data, int64_t share, int32_t dtype, int32_t reduction, CUstream stream) {
  char *const own = static_cast<char *>(data) + rank_ * share * dtypeSize(dtype);
  check(nccl().ncclReduceScatter(data, own, static_cast<size_t>(share), ncclTypeOf(dtype), operationOf(reduction),
                                 handle(), stream),
        "ncclReduceScatter");
}

void NcclRank::allGather(void *data, int64_t shareBytes, CUstream stream) {
  gather(static_cast<char *>(data) + rank_ * shareBytes, data, shareBytes, stream);
}

void NcclRank::gather(const void *own, void *all, int64_t bytes, CUstream stream) {
  check(nccl().ncclAllGather(own, all, static_cast<size_t>(bytes), ncclInt8, handle(), stream), "ncclAllGather");
}

void NcclRank::broadcast(void *data, int64_t bytes, CUstream stream) {
  check(nccl().ncclBroadcast(data, data, static_cast<size_t>(bytes), ncclInt8, 0, handle(), stream), "ncclBroadcast");
}

void NcclRank::checkErrors() {
  ncclResult_t error = ncclSuccess;
  if (!joined())
    return;
  check(nccl().ncclCommGetAsyncError(handle(), &error), "ncclCommGetAsyncError");
  if (error != ncclInProgress)
    check(error, "NCCL");
}

void NcclRank::close() {
  if (ncclComm_t comm = comm_->exchange(nullptr))
    check(nccl().ncclCommDestroy(comm), "ncclCommDestroy");
}

void NcclRank::abort(const std::vector<ncclComm_t> &ranks) noexcept {
  // Shared with threads that are left behind where an abort hangs.
  struct Ends {
    std::mutex mutex;
    std::condition_variable changed;
    size_t left = 0;
  };
  const auto ends = std::make_shared<Ends>();
  std::unique_lock lock(ends->mutex);
  for (ncclComm_t comm : ranks) {
    if (!comm)
      continue;
    ++ends->left;
    std::thread([comm, ends] {
      nccl().ncclCommAbort(comm);
      std::lock_guard done(ends->mutex);
      --ends->left;
      ends->changed.notify_all();
    }).detach();
  }
  ends->changed.wait_for(lock, abortPatience, [&] { return ends->left == 0; });
}

} // namespace drt::cuda
