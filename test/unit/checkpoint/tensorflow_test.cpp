//===- tensorflow_test.cpp - A checkpoint that TensorFlow wrote -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/checkpoint.h"
#include "drt/drt.h"

#include <catch2/catch.hpp>

using namespace drt;

namespace {

// make_tensorflow_checkpoint.py
const std::string kPrefix = DISTC_TEST_DATA "/tensorflow";

template <typename T>
std::vector<T> read(const CheckpointReader &reader, const char *name, int32_t dtype, const Shape &shape, size_t count) {
  std::vector<T> values(count, T(99));
  reader.read(name, dtype, shape, values.data());
  return values;
}

std::vector<float> counting(size_t count, float step = 1) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = step * float(i);
  return values;
}

} // namespace

TEST_CASE("what TensorFlow saved is listed") {
  CheckpointReader reader(kPrefix);
  std::vector<std::string> names;
  for (const CheckpointTensor &tensor : reader.tensors()) {
    names.push_back(tensor.name);
    CHECK_NOTHROW(reader.verify(tensor.name));
  }
  CHECK(names == std::vector<std::string>{"brain", "columns", "dense/double", "dense/kernel", "empty", "flags",
                                          "global_step", "half", "inner", "rows", "scalar", "small", "text"});
  CHECK(reader.at("rows").slices == 3);
  CHECK(reader.at("rows").bytes == 84);
  CHECK(reader.at("dense/kernel").slices == 0);
  CHECK(reader.at("text").dtype == 7);
  CHECK(reader.find("dense") == nullptr);
}

TEST_CASE("what TensorFlow saved is read") {
  CheckpointReader reader(kPrefix);
  CHECK(read<float>(reader, "scalar", DRT_F32, {}, 1) == std::vector<float>{41.5});
  CHECK(read<int64_t>(reader, "global_step", DRT_I64, {}, 1) == std::vector<int64_t>{123456789012});
  CHECK(read<float>(reader, "dense/kernel", DRT_F32, {3, 4}, 12) == counting(12, 0.25f));
  CHECK(read<double>(reader, "dense/double", DRT_F64, {5}, 5) == std::vector<double>{0, 0.125, 0.25, 0.375, 0.5});
  CHECK(read<uint8_t>(reader, "flags", DRT_BOOL, {5}, 5) == std::vector<uint8_t>{1, 0, 1, 1, 0});
  CHECK(read<uint16_t>(reader, "half", DRT_F16, {2}, 2) == std::vector<uint16_t>{0x3e00, 0xc000});
  CHECK(read<uint16_t>(reader, "brain", DRT_BF16, {2}, 2) == std::vector<uint16_t>{0x3fc0, 0xc000});
  CHECK(read<int8_t>(reader, "small", DRT_I8, {3}, 3) == std::vector<int8_t>{-1, 2, -3});
  CHECK(read<float>(reader, "empty", DRT_F32, {0, 3}, 0).empty());
}

TEST_CASE("slices that TensorFlow saved are put together") {
  CheckpointReader reader(kPrefix);
  CHECK(read<float>(reader, "rows", DRT_F32, {7, 3}, 21) == counting(21));
  CHECK(read<float>(reader, "columns", DRT_F32, {3, 7}, 21) == counting(21));
  CHECK(read<float>(reader, "inner", DRT_F32, {2, 70, 2}, 280) == counting(280));

  std::vector<float> part(4);
  reader.readSlice("columns", DRT_F32, {3, 7}, {1, 3}, {2, 2}, part.data()); // over the border of two slices
  CHECK(part == std::vector<float>{10, 11, 17, 18});
  reader.readSlice("dense/kernel", DRT_F32, {3, 4}, {1, 1}, {2, 2}, part.data()); // of a whole
  CHECK(part == std::vector<float>{1.25, 1.5, 2.25, 2.5});
}
