//===- affinity.cpp - Which cores a thread runs on ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/affinity.h"

#include <sched.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace drt {

std::vector<int> allowedCores() {
  std::vector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set))
        cores.push_back(core);
  return cores;
}

void stayOn(const std::vector<int> &cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores)
    CPU_SET(core, &set);
  if (!cores.empty())
    sched_setaffinity(0, sizeof set, &set); // refused in some containers; then the system decides
}

std::vector<int> coresOf(const std::vector<int> &cores, int parts, int index) {
  const int count = static_cast<int>(cores.size());
  if (count < parts)
    return cores;
  return {cores.begin() + count * index / parts, cores.begin() + count * (index + 1) / parts};
}

void flushDenormals() {
#if defined(__x86_64__)
  constexpr unsigned flushToZero = 1u << 15, denormalsAreZero = 1u << 6;
  _mm_setcsr(_mm_getcsr() | flushToZero | denormalsAreZero);
#endif
}

} // namespace drt
