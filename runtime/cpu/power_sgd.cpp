//===- power_sgd.cpp - Gradients as products of two thin matrices ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/power_sgd.h"
#include "core/ranges.h"

#include <algorithm>
#include <cmath>

namespace drt {
namespace {

// A number of (-1, 1), the same in every task (splitmix64, Steele, Lea and Flood 2014).
float draw(uint64_t index) {
  uint64_t z = (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  z ^= z >> 31;
  return static_cast<float>(static_cast<int64_t>(z >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
}

// What is left of a column besides the ones before it, once more where little is (Giraud, Langou and Rozloznik 2005).
// False where nothing is.
bool orthogonalizeColumn(float *p, int64_t rows, int64_t rank, int64_t column) {
  const auto normOf = [&](int64_t j) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i)
      sum += static_cast<double>(p[i * rank + j]) * p[i * rank + j];
    return std::sqrt(sum);
  };
  const double before = normOf(column);
  for (int round = 0; round < 2; ++round)
    for (int64_t j = 0; j < column; ++j) {
      double dot = 0;
      for (int64_t i = 0; i < rows; ++i)
        dot += static_cast<double>(p[i * rank + j]) * p[i * rank + column];
      for (int64_t i = 0; i < rows; ++i)
        p[i * rank + column] -= static_cast<float>(dot) * p[i * rank + j];
    }
  const double after = normOf(column);
  const bool isFull = after > 1e-5 * before; // false also for what is not a number
  const float scale = isFull ? static_cast<float>(1 / after) : 0;
  for (int64_t i = 0; i < rows; ++i)
    p[i * rank + column] = isFull ? p[i * rank + column] * scale : 0;
  return isFull;
}

} // namespace

PowerSgd::PowerSgd(const drt_bucket &bucket, int32_t localReplicas, int64_t divisor)
    : divisor_(divisor), replicas_(localReplicas) {
  int64_t left = 0, right = 0;
  for (int32_t m = 0; m < bucket.num_members; ++m) {
    const drt_member &member = bucket.members[m];
    const int64_t columns = member.columns, rows = columns > 0 ? member.count / columns : 0;
    const int64_t rank = std::min<int64_t>({bucket.exchange->rank, rows, columns});
    if ((rows + columns) * rank >= rows * columns) {
      plain_.push_back({member.offset, member.count});
      plainElements_ += member.count;
      continue;
    }
    matrices_.push_back({member.offset, rows, columns, rank, left, right});
    left += rows * rank;
    right += columns * rank;
  }
  left_.resize(left);
  right_.resize(right);
  for (float &element : right_)
    element = draw(drawn_++);
  for (PerReplica &replica : replicas_) {
    replica.errors.resize(bucket.count);
    replica.left.resize(left);
    replica.right.resize(right);
  }
}

void PowerSgd::encode(int32_t localReplica, float *contribution) {
  PerReplica &own = replicas_[localReplica];
  for (const Matrix &matrix : matrices_) {
    const float *q = right_.data() + matrix.right;
    for (int64_t i = 0; i < matrix.rows; ++i) {
      float *row = contribution + matrix.offset + i * matrix.columns;
      const float *errors = own.errors.data() + matrix.offset + i * matrix.columns;
      float *p = own.left.data() + matrix.left + i * matrix.rank;
      std::fill_n(p, matrix.rank, 0.0f);
      for (int64_t j = 0; j < matrix.columns; ++j) {
        row[j] += errors[j];
        for (int64_t k = 0; k < matrix.rank; ++k)
          p[k] += row[j] * q[j * matrix.rank + k];
      }
    }
  }
}

void PowerSgd::orthogonalize(Communicator *communicator, Contributions contributions) {
  std::fill(left_.begin(), left_.end(), 0.0f);
  for (const PerReplica &replica : replicas_)
    for (size_t i = 0; i < left_.size(); ++i)
      left_[i] += replica.left[i];
  if (communicator) {
    sent_ = left_;
    sent_.resize(left_.size() + plainElements_);
    float *plain = sent_.data() + left_.size();
    for (const Plain &member : plain_) {
      reduce(DRT_F32, plain, {contributions.first + member.offset * 4, contributions.stride, contributions.parts},
             member.count, divisor_);
      plain += member.count;
    }
    communicator->all_reduce_sum(sent_.data(), static_cast<int64_t>(sent_.size()), DRT_F32);
    std::copy_n(sent_.begin(), left_.size(), left_.begin());
  }
  lost_.clear();
  for (size_t m = 0; m < matrices_.size(); ++m)
    for (int64_t column = 0; column < matrices_[m].rank; ++column)
      if (!orthogonalizeColumn(left_.data() + matrices_[m].left, matrices_[m].rows, matrices_[m].rank, column))
        lost_.push_back({m, column});
}

void PowerSgd::project(int32_t localReplica, const float *contribution) {
  PerReplica &own = replicas_[localReplica];
  std::fill(own.right.begin(), own.right.end(), 0.0f);
  for (const Matrix &matrix : matrices_) {
    const float *p = left_.data() + matrix.left;
    float *q = own.right.data() + matrix.right;
    const float *whole = contribution + matrix.offset;
    for (int64_t i = 0; i < matrix.rows; ++i)
      for (int64_t j = 0; j < matrix.columns; ++j)
        for (int64_t k = 0; k < matrix.rank; ++k)
          q[j * matrix.rank + k] += whole[i * matrix.columns + j] * p[i * matrix.rank + k];
    float *errors = own.errors.data() + matrix.offset;
    for (int64_t i = 0; i < matrix.rows; ++i)
      for (int64_t j = 0; j < matrix.columns; ++j) {
        float seen = 0;
        for (int64_t k = 0; k < matrix.rank; ++k)
          seen += p[i * matrix.rank + k] * q[j * matrix.rank + k];
        errors[i * matrix.columns + j] = whole[i * matrix.columns + j] - seen;
      }
  }
}

void PowerSgd::sumFactors(Communicator *communicator) {
  const float scale = 1.0f / static_cast<float>(divisor_);
  for (size_t i = 0; i < right_.size(); ++i) {
    float sum = 0;
    for (const PerReplica &replica : replicas_)
      sum += replica.right[i];
    right_[i] = sum * scale;
  }
  if (communicator)
    communicator->all_reduce_sum(right_.data(), static_cast<int64_t>(right_.size()), DRT_F32);
  // A column of zeros would stay one. (P's is zero now, so the result does not see it.)
  for (const auto &[matrix, column] : lost_)
    for (int64_t j = 0; j < matrices_[matrix].columns; ++j)
      right_[matrices_[matrix].right + j * matrices_[matrix].rank + column] = draw(drawn_++);
}

void PowerSgd::decode(Contributions contributions, int32_t index, int32_t parts) {
  float *result = reinterpret_cast<float *>(const_cast<char *>(contributions.first));
  for (const Matrix &matrix : matrices_) {
    const Range rows = rangeOf(matrix.rows, parts, index, 1);
    const float *p = left_.data() + matrix.left, *q = right_.data() + matrix.right;
    for (int64_t i = rows.begin; i < rows.end; ++i)
      for (int64_t j = 0; j < matrix.columns; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < matrix.rank; ++k)
          sum += p[i * matrix.rank + k] * q[j * matrix.rank + k];
        result[matrix.offset + i * matrix.columns + j] = sum;
      }
  }
  const float *received = sent_.empty() ? nullptr : sent_.data() + left_.size();
  for (const Plain &member : plain_) {
    const Range range = rangeOf(member.count, parts, index);
    float *to = result + member.offset + range.begin;
    if (received)
      std::copy_n(received + range.begin, range.size(), to);
    else
      reduce(DRT_F32, to, {reinterpret_cast<const char *>(to), contributions.stride, contributions.parts}, range.size(),
             divisor_);
    received += received ? member.count : 0;
  }
}

} // namespace drt
