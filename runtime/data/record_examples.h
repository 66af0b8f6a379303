//===- record_examples.h - tf.Examples in TFRecord files ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_RECORD_EXAMPLES_H
#define DRT_DATA_RECORD_EXAMPLES_H

#include "data/example_parser.h"
#include "data/examples.h"
#include "data/tfrecord.h"

#include <unordered_map>

namespace drt {

/// One example a record. Read from the first to the last one, or, where all files are seekable and `inAnyOrder`, at
/// once by an index of all records, 16 bytes each.
class RecordExamples final : public Examples {
public:
  RecordExamples(std::vector<std::string> paths, std::vector<Feature> features, bool inAnyOrder);

  bool reaches(int64_t example) override;
  std::optional<int64_t> known() const override { return count_; }
  int64_t count() override;
  void copy(int64_t example, char *const *rows) override;
  void pass(int64_t example) override;
  void skipTo(int64_t example) override;
  void restart() override;

  uint32_t digest() const { return files_.digest(); }

private:
  /// The place of every record, if they can be read in any order.
  struct Indexed {
    int64_t offset;
    int32_t bytes, file;
  };
  Record indexed(int64_t example) const;
  bool readTo(int64_t example);

  RecordFiles files_;
  std::vector<Feature> features_;
  std::optional<int64_t> count_;
  int64_t next_ = 0;                         // the example that is read next
  std::unordered_map<int64_t, Record> held_; // reached, and neither copied nor passed
  std::vector<Indexed> index_;
  std::vector<int64_t> firsts_; // of each file, with the index
};

} // namespace drt

#endif // DRT_DATA_RECORD_EXAMPLES_H
