//===- primitives.h - What library call sites keep between steps -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A call site of drt_matmul, drt_conv2d or drt_pool prepares its oneDNN
// primitive, its reorders and its scratch memory at its first execution and
// keeps them here, so that later steps allocate nothing.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_PRIMITIVES_H
#define DRT_CPU_PRIMITIVES_H

#include "drt/drt.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace drt {

/// Threads that one replica's library calls may use: the cores this process may
/// run on, shared equally by the task's replicas, at least one.
int libraryThreads(int localReplicas);

/// What one call site keeps. Each kind of call derives its own.
class Prepared {
public:
  virtual ~Prepared();
};

/// The call sites of one replica: one slot a number in drt_program's
/// num_primitives. Belongs to the replica; used by its thread alone.
class PrimitiveCache {
public:
  /// `threads` is what one library call may use, libraryThreads(local replicas).
  explicit PrimitiveCache(int32_t count, int threads = 1);
  ~PrimitiveCache();
  PrimitiveCache(const PrimitiveCache &) = delete;
  PrimitiveCache &operator=(const PrimitiveCache &) = delete;

  int threads() const { return threadCount; }

  /// The slot of a call site, made by `make` (returning std::unique_ptr<Site>) at
  /// the first call. A call site is always of one kind, so the type is known.
  template <class Site, class Make> Site &get(int32_t site, Make &&make) {
    std::unique_ptr<Prepared> &slot = slots[static_cast<size_t>(site)];
    if (!slot) [[unlikely]]
      slot = std::forward<Make>(make)();
    return static_cast<Site &>(*slot);
  }

private:
  std::vector<std::unique_ptr<Prepared>> slots;
  int threadCount;
};

/// The cache that belongs to a replica. Defined beside the replica class in
/// runtime/core, so that this library need not know it.
PrimitiveCache &primitivesOf(drt_replica &replica);

} // namespace drt

#endif // DRT_CPU_PRIMITIVES_H
