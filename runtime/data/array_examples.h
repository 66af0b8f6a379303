//===- array_examples.h - The rows of arrays ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_ARRAY_EXAMPLES_H
#define DRT_DATA_ARRAY_EXAMPLES_H

#include "data/examples.h"
#include "data/npz.h"

#include <vector>

namespace drt {

/// An example is a row of each of several arrays, which may be in parts (one a file), with the same rows in each.
/// What was read of mapped files does not stay in the process's memory where they are large.
class ArrayExamples final : public Examples {
public:
  /// The parts of each feed's array: as many for each, of as many rows.
  explicit ArrayExamples(std::vector<std::vector<NpyArray>> feeds);

  bool reaches(int64_t example) override { return example < firsts_.back(); }
  std::optional<int64_t> known() const override { return firsts_.back(); }
  int64_t count() override { return firsts_.back(); }
  void copy(int64_t example, char *const *rows) override;

  /// Where `count` rows of a feed from `first` on are side by side and aligned; null where they are not, or not there.
  const char *find(size_t feed, int64_t first, int64_t count) const;
  /// The rows have been read, and those that follow will be.
  void readOn(size_t feed, int64_t first, int64_t count);

private:
  size_t partOf(int64_t example) const;
  void touched(int64_t bytes);

  std::vector<std::vector<NpyArray>> feeds_;
  std::vector<int64_t> firsts_;     // the first row of each part, and behind the last
  bool isLarge_ = false;            // what is mapped
  int64_t touched_ = 0;             // bytes since pages were forgotten
  std::vector<int64_t> prefetched_; // of each feed: the example before which all were
};

} // namespace drt

#endif // DRT_DATA_ARRAY_EXAMPLES_H
