//===- primitives.h - What library call sites keep between steps -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_PRIMITIVES_H
#define DRT_CPU_KERNELS_PRIMITIVES_H

#include "core/call_sites.h"
#include "drt/drt.h"

#include <cstdint>

namespace drt {

/// Threads that one replica's library calls may use: the cores this process may
/// run on, shared equally by the task's replicas, at least one.
int libraryThreads(int localReplicas);

/// The call sites of one core of a replica, and the threads of a call.
class PrimitiveCache : public CallSites {
public:
  /// `threads` is what one library call may use, libraryThreads(local replicas).
  explicit PrimitiveCache(int32_t count, int threads = 1);

  int threads() const { return threadCount; }

private:
  int threadCount;
};

} // namespace drt

#endif // DRT_CPU_KERNELS_PRIMITIVES_H
