//===- records.cpp - TFRecords of tf.Example ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The first byte says whether the rest is an example, or a file of records.
//
//===----------------------------------------------------------------------===//
#include "fuzz_target.h"
#include "input_file.h"

#include "checkpoint/crc32c.h"
#include "data/example_parser.h"
#include "data/tfrecord.h"
#include "drt/drt.h"

#include <array>

using namespace drt;

namespace {

void parse(std::string_view example) {
  const std::vector<Feature> features = {
      {"x", "x", DRT_F32, 2, 8}, {"label", "label", DRT_I32, 1, 4}, {"image", "image", DRT_U8, 3, 3}};
  std::array<std::array<char, 8>, 3> rows;
  char *const pointers[] = {rows[0].data(), rows[1].data(), rows[2].data()};
  parseExample(example, features, pointers, "the input");
}

std::string field(int number, const std::string &bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string feature(const std::string &name, int kind, const std::string &list) {
  return field(1, field(1, name) + field(2, field(kind, list)));
}

/// x: two floats, packed; label: 5; image: three bytes.
std::string soundExample() {
  return field(1, feature("x", 2, field(1, std::string("\0\0\x80\x3f\0\0\0\x40", 8))) +
                      feature("label", 3, field(1, "\x05")) + feature("image", 1, field(1, "abc")));
}

std::string checked(const std::string &bytes) {
  const uint32_t crc = maskCrc32c(crc32c(0, bytes.data(), bytes.size()));
  std::string all = bytes;
  all.append(reinterpret_cast<const char *>(&crc), sizeof crc);
  return all;
}

std::string record(const std::string &bytes) {
  const uint64_t size = bytes.size();
  return checked({reinterpret_cast<const char *>(&size), sizeof size}) + checked(bytes);
}

} // namespace

std::vector<std::string> seeds() {
  const std::string example = soundExample();
  return {std::string("\0", 1) + example, "\x01" + record(example) + record(example)};
}

void readBytes(std::string_view bytes) {
  if (bytes.empty())
    return;
  const bool isFile = bytes[0] & 1;
  bytes.remove_prefix(1);
  if (!isFile)
    return parse(bytes);
  const InputFile file(bytes);
  if (recordFormat(file.path()) == RecordFormat::None)
    return;
  RecordFiles files({file.path()});
  files.digest();
  Record record;
  for (int i = 0; i < 64 && files.next(record); ++i)
    parse(files.read(record));
}
