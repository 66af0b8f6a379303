//===- record_examples.cpp - tf.Examples in TFRecord files ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/record_examples.h"

#include "core/error.h"

#include <string>
#include <utility>

namespace drt {

RecordExamples::RecordExamples(std::vector<std::string> paths, std::vector<Feature> features, bool inAnyOrder)
    : files_(std::move(paths)), features_(std::move(features)) {
  if (!inAnyOrder)
    return;
  if (!files_.isSeekable())
    throw Error("compressed records cannot be read in any order, which --shuffle does; say --shuffle-window W: each "
                "example is then one of the W that come next",
                2);
  int64_t examples = 0;
  for (Record record; files_.next(record); ++examples) {
    while (static_cast<int32_t>(firsts_.size()) <= record.file)
      firsts_.push_back(examples);
    index_.push_back({record.offset, static_cast<int32_t>(record.bytes), record.file});
  }
  count_ = examples;
}

Record RecordExamples::indexed(int64_t example) const {
  const Indexed &at = index_[example];
  return {at.file, example - firsts_[at.file], at.offset, at.bytes, nullptr};
}

// Reads on behind the example; false where the data end before.
bool RecordExamples::readTo(int64_t example) {
  for (; next_ <= example; ++next_) {
    Record record;
    if (!files_.next(record)) {
      count_ = next_;
      return false;
    }
    held_.emplace(next_, std::move(record));
  }
  return true;
}

bool RecordExamples::reaches(int64_t example) { return count_ ? example < *count_ : readTo(example); }

int64_t RecordExamples::count() {
  if (!count_) {
    files_.rewind();
    int64_t examples = 0;
    for (Record record; files_.next(record);)
      ++examples;
    count_ = examples;
    restart();
  }
  return *count_;
}

void RecordExamples::copy(int64_t example, char *const *rows) {
  Record record;
  if (!index_.empty()) {
    record = indexed(example);
  } else {
    if (!readTo(example))
      throw Error("the data have fewer examples than before: they were changed while they are read");
    const auto held = held_.find(example);
    if (held == held_.end())
      throw Error("example " + std::to_string(example) + " is read a second time: an internal error of the runtime",
                  70);
    record = std::move(held->second);
    held_.erase(held);
  }
  const std::string_view bytes = files_.read(record);
  parseExample(bytes, features_, rows, files_.describe(record));
}

void RecordExamples::pass(int64_t example) {
  if (index_.empty() && readTo(example))
    held_.erase(example);
}

void RecordExamples::skipTo(int64_t example) {
  if (!index_.empty())
    return;
  std::erase_if(held_, [example](const auto &held) { return held.first < example; });
  while (next_ < example && readTo(next_))
    held_.erase(next_ - 1);
}

void RecordExamples::restart() {
  files_.rewind();
  held_.clear();
  next_ = 0;
}

} // namespace drt
