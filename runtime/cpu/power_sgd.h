//===- power_sgd.h - Gradients as products of two thin matrices -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// PowerSGD (Vogels, Karimireddy and Jaggi 2019, algorithms 1 and 2). A gradient of rank
// 2 or more is a matrix M with its last extent as columns. One step of the power
// iteration from the last step's Q (warm start):
//   P = sum over replicas of M_r Q, orthogonalized;  Q = the sum or mean of M_r^T P
// and the result is P Q^T. Each M_r is the replica's gradient plus the error of
// earlier steps, which is then M_r - P Q_r^T. Matrices that the factors would not be
// smaller than, vectors and scalars are summed as they are.
//
// Only sums of factors travel; by linearity the result is, to rounding, the same wherever the
// replicas run. The first Q is drawn from a fixed seed.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_POWER_SGD_H
#define DRT_CPU_POWER_SGD_H

#include "collectives/communicator.h"
#include "collectives/reduce.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace drt {

class PowerSgd {
public:
  /// For a bucket of float32.
  PowerSgd(const drt_bucket &bucket, int32_t localReplicas, int64_t divisor);

  /// Adds the replica's errors to its contribution and computes its part of every P. Replicas may do so at once.
  void encode(int32_t localReplica, float *contribution);

  /// Every P from the replicas' parts. One thread. `communicator`: null without other tasks.
  void orthogonalize(Communicator *communicator, Contributions contributions);

  /// The replica's part of every Q, and its errors. Replicas may do so at once.
  void project(int32_t localReplica, const float *contribution);

  /// Sums every Q. One thread.
  void sumFactors(Communicator *communicator);

  /// Writes rows of the result, and its part of what is not compressed, over the first contribution: the part
  /// `index` of `parts`. Afterwards nobody needs the contributions.
  void decode(Contributions contributions, int32_t index, int32_t parts);

private:
  struct Matrix {
    int64_t offset, rows, columns, rank; // in the bucket
    int64_t left, right;                 // of P and Q among the factors
  };
  struct PerReplica {
    std::vector<float> errors, left, right;
  };
  struct Plain {
    int64_t offset, count;
  };

  const int64_t divisor_;
  std::vector<Matrix> matrices_;
  std::vector<Plain> plain_; // members that are not compressed
  int64_t plainElements_ = 0;
  std::vector<float> left_, right_; // every P; every Q, kept from step to step
  std::vector<float> sent_;         // P and what is not compressed, in one collective
  std::vector<PerReplica> replicas_;
  std::vector<std::pair<size_t, int64_t>> lost_; // columns that the gradients did not fill: matrix, column
  uint64_t drawn_ = 0;
};

} // namespace drt

#endif // DRT_CPU_POWER_SGD_H
