//===- partition_test.cpp - What a partitioner means ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Partition.h"
#include <catch2/catch.hpp>

using namespace distc::strategies;

static std::string error(llvm::StringRef partitioner, std::vector<int64_t> shape) {
  llvm::Expected<Partition> partition = parsePartitioner(partitioner, shape);
  return partition ? "" : llvm::toString(partition.takeError());
}

TEST_CASE("the first shards are larger by one, as TensorFlow's") {
  Partition partition = llvm::cantFail(parsePartitioner("1,4,1", {3, 10, 2}));
  CHECK(partition.axis == 1);
  CHECK(partition.sizes == std::vector<int64_t>{3, 3, 2, 2});
  CHECK(partition.offsets == std::vector<int64_t>{0, 3, 6, 8});
  CHECK(partition.print(3) == "1,4,1");
  CHECK(llvm::cantFail(parsePartitioner("2", {4})).sizes == std::vector<int64_t>{2, 2});
  CHECK(getShardName("dense/kernel", 3) == "dense/kernel/part_3");
}

TEST_CASE("a partitioner that does not fit says why") {
  CHECK(error("1,2", {4}) == "partitioner \"1,2\" is for 2 axes, but the variable has 1; give one number an axis");
  CHECK(error("2", {}).find("is for 1 axes, but the variable has 0") != std::string::npos);
  CHECK(error("2,2", {4, 4}) == "partitioner \"2,2\" splits axes 0 and 1; one axis can be split");
  CHECK(error("1,1", {4, 4}) == "partitioner \"1,1\" splits no axis; leave it out");
  CHECK(error("5,1", {4, 4}) == "partitioner \"5,1\" makes 5 shards of axis 0, which has only 4 entries");
  CHECK(error("2,1", {-1, 4}) == "partitioner \"2,1\" makes 2 shards of axis 0, which has an unknown size");
  for (const char *text : {"", "0", "-1", "a", "99999999999999999999"})
    CHECK(error(text, {4}).find("not a number of shards") != std::string::npos);
}
