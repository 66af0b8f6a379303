//===- affinity.h - Which cores a thread runs on --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_AFFINITY_H
#define DRT_CPU_AFFINITY_H

#include <vector>

namespace drt {

/// Cores that the calling thread may run on, in ascending order.
std::vector<int> allowedCores();

/// Keeps the calling thread on `cores`, as far as the system allows it.
void stayOn(const std::vector<int> &cores);

/// The part `index` of `parts` of `cores`; all of them where there are fewer cores than parts.
std::vector<int> coresOf(const std::vector<int> &cores, int parts, int index);

/// Denormal numbers count as zero in the calling thread, as in TensorFlow's kernels.
void flushDenormals();

} // namespace drt

#endif // DRT_CPU_AFFINITY_H
