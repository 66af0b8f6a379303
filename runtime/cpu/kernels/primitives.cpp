//===- primitives.cpp - What library call sites keep between steps -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/primitives.h"

#include <algorithm>
#include <sched.h>
#include <thread>

using namespace drt;

int drt::libraryThreads(int localReplicas) {
  cpu_set_t allowed;
  int cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                  ? CPU_COUNT(&allowed)
                  : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / std::max(1, localReplicas));
}

PrimitiveCache::PrimitiveCache(int32_t count, int threads) : CallSites(count), threadCount(std::max(1, threads)) {}
