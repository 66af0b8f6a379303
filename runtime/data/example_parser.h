//===- example_parser.h - Features of a tf.Example ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_EXAMPLE_PARSER_H
#define DRT_DATA_EXAMPLE_PARSER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

/// A feature of fixed length that a feed takes.
struct Feature {
  std::string name; // the key in the example
  std::string feed; // for messages: the feed that takes it
  int32_t dtype;    // drt_dtype, of the feed
  int64_t count;    // elements of a row
  int64_t bytes;    // of a row
};

/// Reads the features of one tensorflow.Example (tensorflow/core/example/example.proto) into `rows`, one pointer a
/// feature. A float feed takes a list of floats, an integer feed one of integers that its type can hold, and every feed
/// one string of bytes that is its row as it lies in memory. Of features of one name the last one counts, as in
/// TensorFlow. Throws drt::Error that begins with `what`: the file and the record.
void parseExample(std::string_view bytes, const std::vector<Feature> &features, char *const *rows,
                  const std::string &what);

} // namespace drt

#endif // DRT_DATA_EXAMPLE_PARSER_H
