//===- nccl.cpp - The emulated NCCL ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/api/tables.h"

#include "cuda/emulator/communicator.h"
#include "cuda/emulator/table.h"
#include "cuda/emulator/testing.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

namespace drt::cuda::emulated {

template <> ncclResult_t statusOf(const Failure &failure) {
  switch (failure.code) {
  case CUDA_ERROR_INVALID_VALUE:
  case CUDA_ERROR_NOT_SUPPORTED:
    return ncclInvalidArgument;
  case CUDA_ERROR_OPERATING_SYSTEM:
    return ncclSystemError;
  default:
    return ncclUnhandledCudaError;
  }
}

namespace {
// A handle is the communicator's address; ncclCommDestroy and ncclCommAbort end it.
std::map<ncclComm_t, std::shared_ptr<Communicator>> &communicators() {
  static auto *all = new std::map<ncclComm_t, std::shared_ptr<Communicator>>();
  return *all;
}
std::string &lastError() {
  static auto *words = new std::string();
  return *words;
}

Communicator &at(ncclComm_t handle) {
  auto found = communicators().find(handle);
  require(found != communicators().end(), CUDA_ERROR_INVALID_VALUE, "no communicator");
  return *found->second;
}

ncclResult_t end(ncclComm_t handle, void (Communicator::*how)()) {
  Lock lock(Machine::get().mutex);
  const std::shared_ptr<Communicator> ended = at(handle).shared_from_this();
  (ended.get()->*how)();
  communicators().erase(handle);
  ended->waitForGraphs(lock);
  return ncclSuccess;
}

// What a thread has begun between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  std::vector<std::shared_ptr<Communicator>> joining;
  std::vector<std::function<void()>> collectives;
};
thread_local Group group;

ncclResult_t finishJoining(Lock &lock, const std::vector<std::shared_ptr<Communicator>> &joining) {
  for (auto &communicator : joining) {
    communicator->waitJoined(lock);
    if (communicator->error() != ncclSuccess) {
      lastError() = communicator->message();
      return communicator->error();
    }
  }
  return ncclSuccess;
}

void requireReduction(ncclDataType_t type, ncclRedOp_t op) {
  bool known = op == ncclSum || op == ncclAvg || op == ncclMax || op == ncclMin;
  bool reduced =
      type == ncclFloat32 || type == ncclFloat64 || type == ncclInt32 || type == ncclInt64 || type == ncclUint8;
  require(known && reduced, CUDA_ERROR_NOT_SUPPORTED, "the emulator has no such reduction");
}

ncclResult_t collective(Request request, const void *send, void *receive, ncclComm_t handle, cudaStream_t stream) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  Communicator &communicator = at(handle);
  size_t size = sizeOf(static_cast<ncclDataType_t>(request.type));
  require(send && receive && size > 0, CUDA_ERROR_INVALID_VALUE, "no data, or an unknown type");
  if (communicator.error() == ncclInProgress)
    return ncclInvalidUsage;
  auto enqueue = [=, &machine, &communicator] {
    communicator.enqueue(*machine.streams.at(reinterpret_cast<CUstream>(stream)), request, send, receive);
  };
  if (group.depth == 0)
    enqueue();
  else
    group.collectives.push_back(enqueue);
  return ncclSuccess;
}
} // namespace

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t status) {
  switch (status) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclSystemError:
    return "unhandled system error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  default:
    return "internal error";
  }
}

const char *ncclGetLastError(ncclComm_t handle) {
  Lock lock(Machine::get().mutex);
  thread_local std::string words;
  auto found = communicators().find(handle);
  words = found == communicators().end() ? lastError() : found->second->message();
  return words.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  require(id != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the id");
  std::string name = openHub();
  *id = {};
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  require(made && ranks > 0 && rank >= 0 && rank < ranks, CUDA_ERROR_INVALID_VALUE, "a rank that is none");
  auto communicator = std::make_shared<Communicator>(rank, ranks, machine.device());
  *made = reinterpret_cast<ncclComm_t>(communicator.get());
  communicators()[*made] = communicator;
  communicator->start(std::string(id.internal));
  if (config && config->blocking == 0)
    return ncclInProgress;
  if (group.depth > 0) {
    group.joining.push_back(communicator);
    return ncclSuccess;
  }
  return finishJoining(lock, {communicator});
}

ncclResult_t ncclCommInitRank(ncclComm_t *made, int ranks, ncclUniqueId id, int rank) {
  return emulated::ncclCommInitRankConfig(made, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  Lock lock(Machine::get().mutex);
  return at(handle).error();
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) { return end(handle, &Communicator::close); }

// Some versions wait until all ranks of the process that joined with one id abort.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const std::string hub = [&] {
    Lock lock(Machine::get().mutex);
    return at(handle).hub();
  }();
  const ncclResult_t status = end(handle, &Communicator::abort);
  const auto othersAreThere = [&] {
    Lock lock(Machine::get().mutex);
    return std::any_of(communicators().begin(), communicators().end(),
                       [&](const auto &entry) { return entry.second->hub() == hub; });
  };
  while (othersAreThere())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return status;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error) {
  Lock lock(Machine::get().mutex);
  require(error != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the error");
  *error = at(handle).error();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0)
    return ncclInvalidUsage;
  if (--group.depth > 0)
    return ncclSuccess;
  Group ended = std::exchange(group, {});
  Lock lock(Machine::get().mutex);
  ncclResult_t status = finishJoining(lock, ended.joining);
  for (auto &enqueue : ended.collectives)
    enqueue();
  return status;
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return collective({Collective::Broadcast, type, 0, root, count}, send, receive, communicator, stream);
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t communicator, cudaStream_t stream) {
  requireReduction(type, op);
  return collective({Collective::AllReduce, type, op, 0, count}, send, receive, communicator, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t share, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t communicator, cudaStream_t stream) {
  requireReduction(type, op);
  return collective({Collective::ReduceScatter, type, op, 0, share}, send, receive, communicator, stream);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t share, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  return collective({Collective::AllGather, type, 0, 0, share}, send, receive, communicator, stream);
}

void failCommunicator(ncclComm_t handle, ncclResult_t status) {
  Lock lock(Machine::get().mutex);
  at(handle).fail(status, "a test wants it");
}

} // namespace drt::cuda::emulated

const drt::cuda::NcclTable &drt::cuda::nccl() {
  static const NcclTable made = [] {
    using namespace emulated;
    NcclTable table;
    DRT_NCCL_FUNCTIONS(DRT_EMULATED_ENTRY)
    return table;
  }();
  return made;
}
