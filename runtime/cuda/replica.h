//===- replica.h - What library calls see of a replica on a device --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// An entry's host code is run more than once, in the replica's thread, with the device's context current:
//   1. to prepare: nothing may be enqueued. Library calls make their descriptors, choose an algorithm and ask for
//      workspace; the states of random operations become known. Afterwards the rest of the device's memory is
//      allocated.
//   2. to rehearse: library calls, and nothing else, are enqueued as in every step, on memory that holds zeros. So what
//   a
//      library does at a call's first time is done.
//   3. to be captured into a graph, once a set of feed buffers.
// No call may allocate, free or synchronize in the third: the capture would end.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_REPLICA_H
#define DRT_CUDA_REPLICA_H

#include "core/call_sites.h"
#include "cuda/api/tables.h"
#include "drt/drt.h"

#include <csetjmp>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

namespace drt::cuda {

/// The handles of cuBLASLt and cuDNN that a replica's library calls share; see libraries.h.
class Libraries;
/// What is kept of algorithms that were timed; see tuning.h.
class Tuning;

/// The part of a replica that needs no task. Generated code sees its head, drt_replica.
class Replica : public drt_replica {
public:
  static Replica &of(drt_replica *replica) { return *static_cast<Replica *>(replica); }

  explicit Replica(int32_t callSites) : drt_replica{}, callSites(callSites) {}
  Replica(const Replica &) = delete;
  Replica &operator=(const Replica &) = delete;

  /// Where everything is enqueued.
  CUstream stream = nullptr;

  /// Whether the entry runs to prepare.
  bool preparing = false;

  /// While preparing: a call will need so much workspace. The calls of a replica use it one after the other.
  void needWorkspace(int64_t bytes) {
    if (bytes > workspaceBytes)
      workspaceBytes = bytes;
  }
  /// Device memory, 256-byte aligned; null while preparing.
  void *workspace = nullptr;
  int64_t workspaceBytes = 0;

  CallSites callSites;
  std::shared_ptr<Libraries> libraries; // null until a call makes them
  Tuning *tuning = nullptr;             // the task's; null: the libraries' own choice is taken
  std::string chip;                     // the device's name, by which times are kept

  const drt_entry *entry = nullptr; // that runs
  int32_t scope = -1;               // begun last

  /// Leaves the entry's host code from anywhere in it, with what it fails with: generated code has no exceptions to
  /// unwind it. No destructor may be pending between.
  [[noreturn]] void escape() { std::longjmp(wayOut, 1); }
  void keepFailure(const char *message);
  std::string failure;
  std::jmp_buf wayOut;
};

/// A function of drt.h: call(replica); what it throws ends the entry. No exception crosses the C interface.
template <class Call> void guarded(drt_replica *replica, Call call) {
  try {
    call(Replica::of(replica));
    return;
  } catch (const std::exception &error) {
    Replica::of(replica).keepFailure(error.what());
  }
  Replica::of(replica).escape();
}

} // namespace drt::cuda

#endif // DRT_CUDA_REPLICA_H
