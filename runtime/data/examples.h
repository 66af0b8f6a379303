//===- examples.h - The examples of a data set, one by one ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_EXAMPLES_H
#define DRT_DATA_EXAMPLES_H

#include <cstdint>
#include <optional>

namespace drt {

/// What is read of a data set: for each example a row of each batched feed. Examples are numbered from 0 in the order
/// of the data. One thread at a time. Everything throws drt::Error.
///
/// Records that can only be read from the first one on (compressed ones) are kept from when they are reached until they
/// are copied or passed over, so whoever reads in another order (order.h) decides how many are in memory.
class Examples {
public:
  virtual ~Examples() = default;

  /// Whether there is an example of that number. Where it is not known how many there are, the data are read up to it.
  virtual bool reaches(int64_t example) = 0;
  /// How many there are, if that is known without reading on.
  virtual std::optional<int64_t> known() const = 0;
  /// How many there are; may read all of the data once.
  virtual int64_t count() = 0;

  /// Writes the example's row of each batched feed to `rows`, one pointer a feed.
  virtual void copy(int64_t example, char *const *rows) = 0;
  /// The example, which has been reached, is not needed before the next restart.
  virtual void pass(int64_t example) {}
  /// No example before this one is needed before the next restart.
  virtual void skipTo(int64_t example) {}
  /// From the first example on again.
  virtual void restart() {}
};

} // namespace drt

#endif // DRT_DATA_EXAMPLES_H
