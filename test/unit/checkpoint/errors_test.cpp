//===- errors_test.cpp - Damaged checkpoints, and full disks --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/checkpoint.h"
#include "drt/drt.h"
#include "test/unit/checkpoint/support.h"
#include "test/unit/support/mutants.h"

#include <catch2/catch.hpp>

#include <map>
#include <unistd.h>

using namespace drt;
using namespace distc_test;
using Catch::Contains;

namespace {

const std::vector<float> kValues(5000, 1.5f);

void write(const std::string &prefix) {
  CheckpointWriter writer(prefix);
  writer.add("dense/kernel", DRT_F32, {100, 50}, kValues.data());
  writer.add("dense/bias", DRT_F32, {50}, kValues.data());
  writer.addSlice("table", DRT_F32, {8, 2}, {0, 0}, {5, 2}, kValues.data());
  writer.addSlice("table", DRT_F32, {8, 2}, {5, 0}, {3, 2}, kValues.data());
  writer.finish();
}

std::string readError(const std::string &prefix, const char *name, int32_t dtype, const Shape &shape) {
  std::vector<char> destination(100000);
  return errorOf([&] { CheckpointReader(prefix).read(name, dtype, shape, destination.data()); });
}

struct Written {
  Folder folder;
  std::string prefix = folder / "c", data = prefix + ".data-00000-of-00001", index = prefix + ".index";
  Written() { write(prefix); }
};

} // namespace

TEST_CASE("a checkpoint that is not there is named") {
  Written c;
  CHECK_THAT(readError(c.folder / "other", "dense/bias", DRT_F32, {50}), Contains("other.index: No such file"));
  std::filesystem::remove(c.data);
  CHECK_THAT(readError(c.prefix, "dense/bias", DRT_F32, {50}), Contains(c.data + ": No such file"));
}

TEST_CASE("a variable that is missing is named, with near names") {
  Written c;
  CHECK_THAT(readError(c.prefix, "dense/biass", DRT_F32, {50}),
             Contains("checkpoint " + c.prefix + " has no variable 'dense/biass'; did you mean 'dense/bias'"));
  CHECK_THAT(readError(c.prefix, "kernel", DRT_F32, {50}), Contains("did you mean 'dense/kernel'"));
}

TEST_CASE("another type or shape says both") {
  Written c;
  CHECK_THAT(readError(c.prefix, "dense/bias", DRT_F64, {50}),
             Contains("'dense/bias' is float32[50] in checkpoint") && Contains("but float64[50] in the program"));
  CHECK_THAT(readError(c.prefix, "dense/kernel", DRT_F32, {50, 100}),
             Contains("float32[100,50]") && Contains("float32[50,100]"));
}

TEST_CASE("a changed byte is found, and the tensor and the file are named") {
  Written c;
  std::string bytes = readFile(c.data);
  bytes[4001] ^= 1;
  writeFile(c.data, bytes);
  CHECK_THAT(readError(c.prefix, "dense/kernel", DRT_F32, {100, 50}),
             Contains(c.data + ": wrong checksum of variable 'dense/kernel'"));
  CHECK(readError(c.prefix, "dense/bias", DRT_F32, {50}).empty());
  // Even where only another part of it is wanted.
  CheckpointReader reader(c.prefix);
  float one;
  CHECK_THAT(errorOf([&] { reader.readSlice("dense/kernel", DRT_F32, {100, 50}, {0, 0}, {1, 1}, &one); }),
             Contains("wrong checksum"));
  CHECK_THAT(errorOf([&] { reader.verify("dense/kernel"); }), Contains("wrong checksum"));
  bytes[4001] ^= 1;
  bytes.back() ^= 1;
  writeFile(c.data, bytes);
  CHECK_THAT(readError(c.prefix, "table", DRT_F32, {8, 2}), Contains("'table' slice [5:8,0:2]"));
}

TEST_CASE("truncated data are found when a checkpoint is opened") {
  Written c;
  std::filesystem::resize_file(c.data, 20100);
  CHECK_THAT(readError(c.prefix, "dense/kernel", DRT_F32, {100, 50}),
             Contains(c.data + " is truncated: it has 20100 bytes"));
}

TEST_CASE("a truncated or changed index never goes unnoticed") {
  Written c;
  std::string bytes = readFile(c.index);
  std::vector<char> sink(100000);
  auto readEverything = [&] {
    CheckpointReader reader(c.prefix);
    for (const CheckpointTensor &tensor : reader.tensors())
      reader.read(tensor.name, tensor.dtype, tensor.shape, sink.data());
    // What LevelDB does not look at is not a change of what was read.
    if (reader.tensors().size() != 3 || reader.at("dense/kernel").shape != Shape{100, 50})
      throw std::logic_error("another checkpoint");
  };
  for (size_t length = 0; length < bytes.size(); ++length) {
    writeFile(c.index, bytes.substr(0, length));
    CAPTURE(length);
    REQUIRE_THAT(errorOf(readEverything), Contains(c.index));
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] ^= 0x55;
    writeFile(c.index, changed);
    CAPTURE(at);
    REQUIRE_NOTHROW(errorOf(readEverything)); // drt::Error or as it was
  }
}

TEST_CASE("damaged checkpoints are refused, or read as they were") {
  Written c;
  const bool damagesIndex = GENERATE(true, false);
  const std::string path = damagesIndex ? c.index : c.data, whole = readFile(path);
  const auto contents = [&] {
    std::map<std::string, std::string> tensors;
    const CheckpointReader reader(c.prefix);
    for (const CheckpointTensor &tensor : reader.tensors()) {
      std::string bytes(size_t(std::min<int64_t>(tensor.bytes, 1 << 20)), '\0');
      if (tensor.bytes <= 1 << 20)
        reader.read(tensor.name, tensor.dtype, tensor.shape, bytes.data());
      tensors[tensor.name] = bytes;
    }
    return tensors;
  };
  const auto before = contents();
  for (int seed = 0; seed < mutantCount(); ++seed) {
    writeFile(path, mutant(whole, uint32_t(seed)));
    CAPTURE(seed, damagesIndex);
    std::map<std::string, std::string> after;
    if (errorOf([&] { after = contents(); }).empty())
      REQUIRE(after == before);
  }
}

TEST_CASE("a file that is no index is told") {
  Folder folder;
  writeFile(folder / "c.index", std::string(1000, 'x'));
  CHECK_THAT(errorOf([&] { CheckpointReader reader(folder / "c"); }), Contains("c.index is damaged"));
  writeFile(folder / "c.index", "");
  CHECK_THAT(errorOf([&] { CheckpointReader reader(folder / "c"); }), Contains("c.index is damaged"));
}

TEST_CASE("an index whose footer names more bytes than there are takes no memory for them") {
  Written c;
  std::string bytes = readFile(c.index);
  const std::string block("\x00\xff\xff\xff\xff\x7f", 6); // at 0, 34 GB
  bytes.replace(bytes.size() - 48, block.size(), block);
  writeFile(c.index, bytes);
  CHECK_THAT(errorOf([&] { CheckpointReader reader(c.prefix); }), Contains("a part of it would lie behind its end"));
}

TEST_CASE("a full disk leaves nothing, and what was there stays") {
  Folder folder;
  write(folder / "old");
  auto before = folder.names();
  {
    FileSizeLimit limit(4096);
    CHECK_THAT(errorOf([&] { write(folder / "c"); }), Contains("cannot write " + (folder / "c.data-00000-of-00001")));
    CHECK_THAT(errorOf([&] { write(folder / "old"); }), Contains("cannot write"));
  }
  CHECK(folder.names() == before);
  CHECK(readError(folder / "old", "dense/bias", DRT_F32, {50}).empty());
}

TEST_CASE("no space left is told with what is free") {
  Folder folder;
  // The file that the writer makes aside leads to a device that is always full.
  std::filesystem::create_symlink("/dev/full", folder / ("c.tempstate" + std::to_string(getpid()) + ".data"));
  CHECK_THAT(errorOf([&] { write(folder / "c"); }), Contains("No space left on device (") && Contains("free some"));
  CHECK(folder.names().empty());
}

TEST_CASE("a full disk at the index leaves nothing, too") {
  Folder folder;
  std::filesystem::create_symlink("/dev/full", folder / ("c.tempstate" + std::to_string(getpid()) + ".index"));
  CHECK_THAT(errorOf([&] { write(folder / "c"); }), Contains("No space left on device"));
  CHECK(folder.names().empty());
}
