//===- order.h - Which example comes when ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_ORDER_H
#define DRT_DATA_ORDER_H

#include <cstdint>
#include <vector>

namespace drt {

/// The examples of epoch after epoch as one endless sequence, each epoch a
/// permutation of its own: the same in every task with the same seed.
class ShuffledOrder {
public:
  ShuffledOrder(int64_t examples, uint64_t seed) : examples_(examples), seed_(seed) {}

  /// The example at a position. Cheap where positions ascend.
  int64_t at(int64_t position);

private:
  int64_t examples_;
  uint64_t seed_;
  int64_t epoch_ = -1; // that permutation_ is of
  std::vector<int64_t> permutation_;
};

} // namespace drt

#endif // DRT_DATA_ORDER_H
