//===- fake_program.h - What generated code would be, written by hand -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// One variable w and a step that moves it to the mean of the batch:
//   loss = mean over rows and columns of (w - x)^2 / 2,  gradient = mean over rows of (w - x)
//   w -= rate * gradient
// `rate` is a feed that is given whole. init sets w[j] = j.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_SUPPORT_FAKE_PROGRAM_H
#define DISTC_TEST_UNIT_SUPPORT_FAKE_PROGRAM_H

#include "drt/drt.h"

#include <cstdint>
#include <vector>

namespace fake {

inline constexpr int64_t columns = 5000; // more than a block of an update

/// The program for `replicas` replicas in `tasks` equal tasks, a global batch of
/// `batch` rows. Lives until the end of the process.
const drt_program &program(int32_t replicas, int32_t tasks, int64_t batch);

/// What `steps` steps of rate `rate` on one device give; rows wrap around.
std::vector<float> expected(const std::vector<float> &x, int64_t batch, int64_t steps, float rate);

/// Steps in which the replica of this global number fails, or -1; for tests of failures.
extern int32_t failing_replica;
/// The same of the replica that computes for ever.
extern int32_t hanging_replica;

} // namespace fake

#endif // DISTC_TEST_UNIT_SUPPORT_FAKE_PROGRAM_H
