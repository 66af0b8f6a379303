//===- primitives.h - What library call sites keep between steps -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_PRIMITIVES_H
#define DRT_CPU_KERNELS_PRIMITIVES_H

#include "core/call_sites.h"
#include "cpu/kernels/scratch.h"
#include "drt/drt.h"

#include <cstdint>
#include <memory>

namespace drt {

/// Threads that one replica's library calls may use: the cores this process may
/// run on, shared equally by the task's replicas, at least one.
int libraryThreads(int localReplicas);

/// The call sites of one core of a replica, their scratch memory, and the threads of a call.
class PrimitiveCache : public CallSites {
public:
  /// `threads` is what one library call may use, libraryThreads(local replicas).
  explicit PrimitiveCache(int32_t count, int threads = 1);

  int threads() const { return threadCount; }

  /// Where a call site that is being made takes its buffers.
  Scratch &scratchOfNewSite() {
    scratch->begin();
    return *scratch;
  }

private:
  int threadCount;
  std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
};

} // namespace drt

#endif // DRT_CPU_KERNELS_PRIMITIVES_H
