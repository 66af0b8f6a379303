//===- values.h - Floating-point values of any type -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_VALUES_H
#define DRT_CORE_VALUES_H

#include "drt/drt.h"

#include <cstdint>
#include <cstring>

namespace drt {

inline bool isFloat(int32_t dtype) {
  return dtype == DRT_F32 || dtype == DRT_F64 || dtype == DRT_F16 || dtype == DRT_BF16;
}

/// Element `index` of an array of any type.
inline double valueAt(int32_t dtype, const void *data, int64_t index) {
  switch (dtype) {
  case DRT_F32:
    return static_cast<const float *>(data)[index];
  case DRT_F64:
    return static_cast<const double *>(data)[index];
  case DRT_F16:
    return static_cast<double>(static_cast<const _Float16 *>(data)[index]);
  case DRT_BF16: {
    const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t *>(data)[index]) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  case DRT_I64:
    return static_cast<double>(static_cast<const int64_t *>(data)[index]);
  case DRT_I32:
    return static_cast<const int32_t *>(data)[index];
  case DRT_I16:
    return static_cast<const int16_t *>(data)[index];
  case DRT_I8:
    return static_cast<const int8_t *>(data)[index];
  default:
    return static_cast<const uint8_t *>(data)[index];
  }
}

/// One number as each replica of a task has it.
class ReplicaValues {
public:
  void add(double value) {
    first_ = count_ == 0 ? value : first_;
    alike_ &= value == first_;
    sum_ += value;
    ++count_;
  }

  double getSum() const { return sum_; }
  /// What is to be added over all tasks, for the mean over all of their `replicas`: what all have alike (a maximum over
  /// the batch) is their mean, to the last bit where one task has all of them.
  double getShareOfMean(int32_t replicas) const {
    return alike_ ? first_ * (static_cast<double>(count_) / replicas) : sum_ / replicas;
  }

private:
  double sum_ = 0, first_ = 0;
  int32_t count_ = 0;
  bool alike_ = true;
};

/// `value` as element `index` of an array of a floating-point type, rounded to nearest, ties to even.
inline void setFloatAt(int32_t dtype, void *data, int64_t index, double value) {
  switch (dtype) {
  case DRT_F64:
    static_cast<double *>(data)[index] = value;
    return;
  case DRT_F16:
    static_cast<_Float16 *>(data)[index] = static_cast<_Float16>(static_cast<float>(value));
    return;
  case DRT_BF16: {
    const float single = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof bits);
    const bool isNan = single != single; // its payload must not round to infinity
    bits = isNan ? bits | 0x400000 : bits + 0x7fff + ((bits >> 16) & 1);
    static_cast<uint16_t *>(data)[index] = static_cast<uint16_t>(bits >> 16);
    return;
  }
  default:
    static_cast<float *>(data)[index] = static_cast<float>(value);
  }
}

} // namespace drt

#endif // DRT_CORE_VALUES_H
