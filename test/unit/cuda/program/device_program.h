//===- device_program.h - A device's program, written by hand -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// One variable w and a step that moves it to the mean of the batch:
//   loss = mean over rows and columns of (w - x)^2 / 2,  gradient = mean over rows of (w - x)
//   w -= rate * gradient
// `rate` is a feed that is given whole. init sets w[j] = j. Each step also fetches the state of a random operation.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_CUDA_PROGRAM_DEVICE_PROGRAM_H
#define DISTC_TEST_UNIT_CUDA_PROGRAM_DEVICE_PROGRAM_H

#include "drt/drt.h"
#include "test/unit/cuda/program/shapes.h"

#include <cstdint>
#include <string>
#include <vector>

namespace device_program {

/// Lives until the end of the process.
const drt_program &program(int32_t replicas, int32_t tasks);

/// Rows of examples, the same in every run.
std::vector<float> examples(int64_t count);

/// What steps on one device give: w behind them, and the loss of each.
struct Expected {
  std::vector<float> w;
  std::vector<double> losses;
};
Expected expected(const std::vector<float> &x, int32_t replicas, int64_t steps, float rate);

/// Whether the host code of "step" fails; for tests of failures.
extern bool failing;

} // namespace device_program

#endif // DISTC_TEST_UNIT_CUDA_PROGRAM_DEVICE_PROGRAM_H
