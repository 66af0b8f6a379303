//===- checkpoint_test.cpp - Writing checkpoints, and reading them back ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/checkpoint.h"
#include "drt/drt.h"
#include "test/unit/checkpoint/support.h"

#include <catch2/catch.hpp>
#include <numeric>

using namespace drt;
using namespace distc_test;

namespace {

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

std::vector<float> readAll(const std::string &prefix, const char *name, const Shape &shape, size_t count) {
  std::vector<float> values(count, -1);
  CheckpointReader(prefix).read(name, DRT_F32, shape, values.data());
  return values;
}

} // namespace

TEST_CASE("what is written is read") {
  Folder folder;
  std::string prefix = folder / "made/on/the/way/ckpt";
  std::vector<float> kernel = counting(6000 * 100); // more than one chunk
  int64_t step = 77;
  CheckpointWriter writer(prefix);
  writer.add("kernel", DRT_F32, {6000, 100}, kernel.data());
  writer.add("step", DRT_I64, {}, &step);
  writer.add("empty", DRT_F32, {0, 3}, nullptr);
  writer.add("a", DRT_I64, {1}, &step);
  writer.finish();

  CheckpointReader reader(prefix);
  CHECK(reader.tensors().size() == 4);
  CHECK(readAll(prefix, "kernel", {6000, 100}, kernel.size()) == kernel);
  int64_t read = 0;
  reader.read("step", DRT_I64, {}, &read);
  CHECK(read == 77);
  CHECK(reader.at("empty").bytes == 0);

  // A part of a whole that spans chunks.
  std::vector<float> part(5999 * 2);
  reader.readSlice("kernel", DRT_F32, {6000, 100}, {1, 50}, {5999, 2}, part.data());
  CHECK(part[0] == 150);
  CHECK(part[1] == 151);
  CHECK(part.back() == 599951);
}

TEST_CASE("a tensor in slices along any axis is read whole and in other slices") {
  Folder folder;
  Shape shape{5, 6, 4};
  std::vector<float> whole = counting(120);
  size_t axis = GENERATE(0, 1, 2);
  CheckpointWriter writer(folder / "c");
  for (int part = 0; part < 2; ++part) {
    Shape begin{0, 0, 0}, extent = shape;
    begin[axis] = part ? 3 : 0;
    extent[axis] = part ? shape[axis] - 3 : 3;
    std::vector<float> slice;
    for (int64_t i = 0; i < 120; ++i) {
      Shape at{i / 24, i / 4 % 6, i % 4};
      if (at[axis] >= begin[axis] && at[axis] < begin[axis] + extent[axis])
        slice.push_back(whole[size_t(i)]);
    }
    writer.addSlice("t", DRT_F32, shape, begin, extent, slice.data());
  }
  writer.finish();
  CHECK(CheckpointReader(folder / "c").at("t").slices == 2);
  CHECK(readAll(folder / "c", "t", shape, 120) == whole);
  std::vector<float> inner(8);
  CheckpointReader(folder / "c").readSlice("t", DRT_F32, shape, {2, 2, 2}, {2, 2, 2}, inner.data());
  CHECK(inner == std::vector<float>{58, 59, 62, 63, 82, 83, 86, 87});
}

TEST_CASE("a slice that is the whole is stored as the whole") {
  Folder folder;
  std::vector<float> whole = counting(6);
  CheckpointWriter writer(folder / "c");
  writer.addSlice("t", DRT_F32, {2, 3}, {0, 0}, {2, 3}, whole.data());
  writer.finish();
  CHECK(CheckpointReader(folder / "c").at("t").slices == 0);
}

TEST_CASE("slices that do not make a tensor are refused") {
  Folder folder;
  std::vector<float> data = counting(20);
  CheckpointWriter writer(folder / "c");
  writer.addSlice("t", DRT_F32, {4, 2}, {0, 0}, {2, 2}, data.data());
  CHECK(errorOf([&] { writer.addSlice("t", DRT_F32, {4, 2}, {1, 0}, {2, 2}, data.data()); }).find("overlap") !=
        std::string::npos);
  CHECK(errorOf([&] { writer.addSlice("t", DRT_F32, {5, 2}, {3, 0}, {1, 2}, data.data()); }) ==
        "slices of variable 't' disagree: float32[4,2] and float32[5,2]");
  CHECK(errorOf([&] { writer.addSlice("t", DRT_F32, {4, 2}, {3, 0}, {2, 2}, data.data()); }).find("leaves") !=
        std::string::npos);
  CHECK(errorOf([&] { writer.finish(); }).find("'t': 4 elements are in no slice") != std::string::npos);
  CHECK(errorOf([&] { writer.add("t", DRT_F32, {4, 2}, data.data()); }).find("twice") != std::string::npos);
}

TEST_CASE("without finish nothing is left") {
  Folder folder;
  {
    CheckpointWriter writer(folder / "c");
    writer.add("t", DRT_F32, {2}, counting(2).data());
    CHECK(errorOf([&] { writer.add("t", DRT_F32, {2}, counting(2).data()); }).find("twice") != std::string::npos);
    CHECK(folder.names().size() == 1);
  }
  CHECK(folder.names().empty());
}

TEST_CASE("several writers make one checkpoint, each a file of it") {
  Folder folder;
  const std::string prefix = folder / "c";
  writeFile(folder / "c.index", "of an older one");
  writeFile(folder / "c.data-00000-of-00001", "of an older one");
  const std::vector<float> values = counting(12), own = {7, 8};
  {
    CheckpointWriter first(prefix, {0, 3, 12345});
    first.add("own", DRT_F32, {2}, own.data());
    first.addSlice("t", DRT_F32, {6, 2}, {0, 0}, {2, 2}, values.data());
    auto write = [&](int part) {
      CheckpointWriter writer(prefix, {part, 3, 12345});
      writer.addSlice("t", DRT_F32, {6, 2}, {2 * part, 0}, {2, 2}, values.data() + 4 * part);
      writer.add("of" + std::to_string(part), DRT_F32, {1}, own.data());
      writer.finishPart();
    };
    write(2);
    int waited = 0;
    first.finish([&] {
      CHECK(readFile(folder / "c.index") == "of an older one"); // until all are there
      if (++waited == 3)
        write(1);
    });
    CHECK(waited == 3);
  }
  CHECK(folder.names() ==
        std::set<std::string>{"c.index", "c.data-00000-of-00003", "c.data-00001-of-00003", "c.data-00002-of-00003"});
  CHECK(readAll(prefix, "t", {6, 2}, 12) == values);
  CHECK(readAll(prefix, "own", {2}, 2) == own);
  for (const char *name : {"of1", "of2"})
    CHECK(readAll(prefix, name, {1}, 1) == std::vector<float>{7});
}

TEST_CASE("a checkpoint whose parts do not come, overlap, or are not whole, is none") {
  const std::vector<float> values = counting(8);
  auto slice = [&](CheckpointWriter &writer, int64_t begin) {
    writer.addSlice("t", DRT_F32, {4, 2}, {begin, 0}, {2, 2}, values.data());
  };
  for (const auto &[begin, expected] :
       {std::pair<int64_t, std::string>{-1, "a task is gone"}, {1, "overlap"}, {0, "overlap"}, {2, "is not whole"}}) {
    Folder folder;
    float old = 1;
    {
      CheckpointWriter writer(folder / "c");
      writer.add("t", DRT_F32, {1}, &old);
      writer.finish();
    }
    {
      CheckpointWriter first(folder / "c", {0, 2, 99});
      slice(first, 0);
      if (begin >= 0) {
        CheckpointWriter other(folder / "c", {1, 2, 99});
        slice(other, begin);
        other.finishPart();
      }
      if (begin == 2)
        std::filesystem::resize_file(folder / "c.tempstate99.data-1", 15);
      CHECK_THAT(errorOf([&] { first.finish([] { throw Error("a task is gone"); }); }), Catch::Contains(expected));
    }
    CHECK(readAll(folder / "c", "t", {1}, 1) == std::vector<float>{1});
  }
}

TEST_CASE("who takes a part away makes the whole checkpoint none") {
  Folder folder;
  const std::string prefix = folder / "c";
  const CheckpointPart part = {1, 3, 7};
  const float value = 1;
  {
    CheckpointWriter first(prefix, {0, 3, 7});
    first.add("t", DRT_F32, {1}, &value);
    auto write = [&](int number) {
      CheckpointWriter writer(prefix, {number, 3, 7});
      writer.add("of" + std::to_string(number), DRT_F32, {1}, &value);
      writer.finishPart();
    };
    write(1);
    int waited = 0;
    CHECK_THAT(errorOf([&] {
                 first.finish([&] { // for the second one, when the first one is taken
                   CheckpointWriter::removePart(prefix, part);
                   write(2);
                   ++waited;
                 });
               }),
               Catch::Contains("No such file"));
    CHECK(waited == 1);
  }
  CHECK(folder.names().empty());

  CheckpointWriter alone(prefix, part); // task 0 never comes
  alone.add("t", DRT_F32, {1}, &value);
  alone.finishPart();
  CHECK(folder.names().size() == 2);
  CheckpointWriter::removePart(prefix, part);
  CHECK(folder.names().empty());
}

TEST_CASE("a checkpoint is replaced") {
  Folder folder;
  for (float value : {1.f, 2.f}) {
    CheckpointWriter writer(folder / "c");
    writer.add("t", DRT_F32, {1}, &value);
    writer.finish();
  }
  writeFile(folder / "c.data-00001-of-00002", "of an older one");
  float value = 3;
  CheckpointWriter writer(folder / "c");
  writer.add("t", DRT_F32, {1}, &value);
  writer.finish();
  CHECK(readAll(folder / "c", "t", {1}, 1) == std::vector<float>{3});
  CHECK(folder.names() == std::set<std::string>{"c.index", "c.data-00000-of-00001"});
}
