//===- array_examples.cpp - The rows of arrays ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/array_examples.h"

#include "data/mapped_file.h"

#include <algorithm>
#include <cstring>

namespace drt {
namespace {

// Files up to this size may stay in memory, as far as the process is concerned.
constexpr int64_t smallBytes = int64_t{256} << 20;
// What is touched of larger ones before all of their pages are forgotten.
constexpr int64_t keptBytes = int64_t{64} << 20;
// The system maps the pages around the one that is touched, where it has them.
constexpr int64_t faultBytes = 64 << 10;

} // namespace

ArrayExamples::ArrayExamples(std::vector<std::vector<NpyArray>> feeds)
    : feeds_(std::move(feeds)), firsts_{0}, prefetched_(feeds_.size()) {
  for (const NpyArray &part : feeds_.front())
    firsts_.push_back(firsts_.back() + part.rows());
  int64_t mapped = 0;
  for (const std::vector<NpyArray> &parts : feeds_)
    for (const NpyArray &part : parts)
      mapped += part.mapped ? part.bytes : 0;
  isLarge_ = mapped > smallBytes;
}

size_t ArrayExamples::partOf(int64_t example) const {
  return std::upper_bound(firsts_.begin(), firsts_.end(), example) - firsts_.begin() - 1;
}

void ArrayExamples::touched(int64_t bytes) {
  touched_ += bytes;
  if (touched_ < keptBytes)
    return;
  touched_ = 0;
  for (const std::vector<NpyArray> &parts : feeds_)
    for (const NpyArray &part : parts)
      if (part.mapped)
        forgetPages(part.data, static_cast<size_t>(part.bytes));
}

void ArrayExamples::copy(int64_t example, char *const *rows) {
  const size_t index = partOf(example);
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const NpyArray &part = feeds_[i][index];
    const int64_t bytes = part.rowBytes();
    std::memcpy(rows[i], static_cast<const char *>(part.data) + (example - firsts_[index]) * bytes, bytes);
    if (isLarge_ && part.mapped)
      touched(std::max(bytes, faultBytes));
  }
}

const char *ArrayExamples::find(size_t feed, int64_t first, int64_t count) const {
  if (first + count > firsts_.back())
    return nullptr;
  const size_t index = partOf(first);
  const NpyArray &part = feeds_[feed][index];
  if (first + count > firsts_[index + 1] || !part.aligned)
    return nullptr;
  return static_cast<const char *>(part.data) + (first - firsts_[index]) * part.rowBytes();
}

void ArrayExamples::readOn(size_t feed, int64_t first, int64_t count) {
  if (!isLarge_)
    return;
  const int64_t rowBytes = feeds_[feed].front().rowBytes();
  touched(count * rowBytes);
  // Two batches and some megabytes ahead, in steps of half of that.
  const int64_t ahead = 2 * count + keptBytes / 4 / std::max<int64_t>(rowBytes, 1);
  int64_t &prefetched = prefetched_[feed];
  if (prefetched >= first + ahead / 2 && prefetched <= first + ahead)
    return;
  const int64_t from = first + count;
  prefetched = first + ahead;
  if (from >= firsts_.back())
    return;
  const size_t index = partOf(from);
  const NpyArray &part = feeds_[feed][index];
  const int64_t rows = std::min(prefetched, firsts_[index + 1]) - from;
  if (part.mapped && rows > 0)
    prefetchPages(static_cast<const char *>(part.data) + (from - firsts_[index]) * rowBytes,
                  static_cast<size_t>(rows * rowBytes));
}

} // namespace drt
