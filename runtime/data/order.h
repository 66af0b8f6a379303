//===- order.h - Which example comes when ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_ORDER_H
#define DRT_DATA_ORDER_H

#include "data/examples.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace drt {

/// In which order an epoch takes the examples: a function of the number of examples, the seed and the epoch alone, so
/// that it is the same in every task, and in a run that was resumed.
class ExampleOrder {
public:
  virtual ~ExampleOrder() = default;

  /// The example that comes at `offset` of an epoch; nothing where the epoch has no more. Cheap where epochs and
  /// offsets ascend. What lies between two offsets that are asked for is passed over (Examples::pass).
  virtual std::optional<int64_t> at(int64_t epoch, int64_t offset) = 0;
};

/// As the data have them.
class StoredOrder final : public ExampleOrder {
public:
  explicit StoredOrder(Examples &examples) : examples_(examples) {}
  std::optional<int64_t> at(int64_t epoch, int64_t offset) override;

private:
  Examples &examples_;
  int64_t epoch_ = 0, next_ = 0;
};

/// Each epoch a permutation of its own. Reads any example at any time, and takes eight bytes for each.
class ShuffledOrder final : public ExampleOrder {
public:
  ShuffledOrder(int64_t examples, uint64_t seed) : examples_(examples), seed_(seed) {}
  std::optional<int64_t> at(int64_t epoch, int64_t offset) override;

private:
  int64_t examples_;
  uint64_t seed_;
  int64_t epoch_ = -1; // that permutation_ is of
  std::vector<int64_t> permutation_;
};

/// Each time one of the next `window` examples that have not been taken, as tf.data's shuffle(window) does: reads from
/// the first example to the last one, and keeps no more than the window.
class WindowOrder final : public ExampleOrder {
public:
  WindowOrder(Examples &examples, int64_t window, uint64_t seed) : examples_(examples), size_(window), seed_(seed) {}
  std::optional<int64_t> at(int64_t epoch, int64_t offset) override;

private:
  Examples &examples_;
  int64_t size_;
  uint64_t seed_, state_ = 0;
  int64_t epoch_ = -1, next_ = 0; // next_: the first example that has not been in the window
  int64_t drawn_ = 0, last_ = 0;  // examples drawn in this epoch; the last of them
  std::vector<int64_t> window_;
};

} // namespace drt

#endif // DRT_DATA_ORDER_H
