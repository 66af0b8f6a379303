//===- feeder_test.cpp - Rows for replicas, and what is refused -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "data/feeder.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <numeric>
#include <set>
#include <unistd.h>

using namespace drt;
using Catch::Matchers::Contains;

namespace {

const int64_t shareShape[] = {2, 3}, rateShape[] = {4};
const drt_feed feeds[] = {{"x", {DRT_F32, 2, shareShape}, 1, 0}, {"rate", {DRT_I64, 1, rateShape}, 0, 0}};
const drt_entry entry = {"step", nullptr, 2, feeds, 0, nullptr, 0, nullptr, 0, nullptr};

// An .npz with x = 0, 1, 2, ... of `rows` rows; a test changes it before it is written.
struct Data {
  std::string path = (std::filesystem::temp_directory_path() / ("feeder" + std::to_string(getpid()) + ".npz")).string();
  std::vector<int64_t> shape;
  std::vector<float> x;
  std::vector<int64_t> rate = {1, 2, 3, 4};
  int32_t dtype = DRT_F32;
  std::string name = "x";

  explicit Data(int64_t rows) : shape{rows, 3}, x(rows * 3) { std::iota(x.begin(), x.end(), 0.0f); }
  ~Data() { std::filesystem::remove(path); }

  Dataset open() {
    NpzWriter writer(path);
    writer.add(name, dtype, shape, x.data());
    writer.add("rate", DRT_I64, {4}, rate.data());
    writer.finish();
    return Dataset::open(path);
  }
};

// First elements of the rows that the task's replicas are given in a step, in order.
std::vector<int> firstElements(Feeder &feeder, int64_t step, int32_t replicas) {
  std::vector<int> rows;
  feeder.feed(step, [&](int32_t feed, const void *share0, int64_t shareBytes) {
    if (feed != 0)
      return;
    REQUIRE(shareBytes == 2 * 3 * 4);
    for (int32_t i = 0; i < 2 * replicas; ++i)
      rows.push_back(static_cast<int>(static_cast<const float *>(share0)[i * 3]) / 3);
  });
  return rows;
}

FeederConfig configOf(int32_t first, int32_t local, int32_t all) {
  FeederConfig config;
  config.firstReplica = first;
  config.localReplicas = local;
  config.numReplicas = all;
  return config;
}

} // namespace

TEST_CASE("a step reads the next rows and starts over past the end") {
  Data data(10);
  const Dataset set = data.open();
  Feeder feeder(&set, entry, configOf(0, 2, 2));
  CHECK(feeder.examples() == 10);
  CHECK(feeder.batch() == 4);
  CHECK(firstElements(feeder, 0, 2) == std::vector<int>{0, 1, 2, 3});
  CHECK(firstElements(feeder, 2, 2) == std::vector<int>{8, 9, 0, 1});
  CHECK(firstElements(feeder, 3, 2) == std::vector<int>{2, 3, 4, 5});
}

TEST_CASE("what does not change is handed over once, or in every step where other entries run between") {
  Data data(10);
  const Dataset set = data.open();
  for (bool alternates : {false, true}) {
    FeederConfig config = configOf(0, 2, 2);
    config.alternates = alternates;
    Feeder feeder(&set, entry, config);
    for (int64_t step = 0; step < 2; ++step) {
      std::set<int32_t> given;
      feeder.feed(step, [&](int32_t feed, const void *, int64_t) { given.insert(feed); });
      CHECK(given.count(0) == 1);
      CHECK(given.count(1) == (step == 0 || alternates));
    }
  }
}

TEST_CASE("a task reads the rows of its own replicas") {
  Data data(10);
  const Dataset set = data.open();
  Feeder feeder(&set, entry, configOf(1, 1, 2));
  CHECK(firstElements(feeder, 0, 1) == std::vector<int>{2, 3});
  CHECK(firstElements(feeder, 2, 1) == std::vector<int>{0, 1});
}

TEST_CASE("what evaluates repeats the last row") {
  Data data(5);
  const Dataset set = data.open();
  FeederConfig config = configOf(0, 2, 2);
  config.lastBatch = LastBatch::Fill;
  Feeder feeder(&set, entry, config);
  CHECK(firstElements(feeder, 1, 2) == std::vector<int>{4, 4, 4, 4});
}

TEST_CASE("shuffled, every epoch has every example once, and another order") {
  Data data(8);
  const Dataset set = data.open();
  FeederConfig config = configOf(0, 2, 2);
  config.shuffleSeed = 7;
  Feeder feeder(&set, entry, config);
  std::vector<std::vector<int>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> rows = firstElements(feeder, 2 * epoch, 2);
    const std::vector<int> more = firstElements(feeder, 2 * epoch + 1, 2);
    rows.insert(rows.end(), more.begin(), more.end());
    CHECK(std::set<int>(rows.begin(), rows.end()).size() == 8);
    epochs.push_back(rows);
  }
  CHECK(epochs[0] != epochs[1]);
  Feeder second(&set, entry, [&] {
    FeederConfig task = configOf(1, 1, 2);
    task.shuffleSeed = 7;
    return task;
  }());
  CHECK(firstElements(second, 0, 1) == std::vector<int>{epochs[0][2], epochs[0][3]});
}

TEST_CASE("data that do not fit are refused") {
  Data data(10);
  auto refused = [&](auto change, const std::string &says) {
    change(data);
    const Dataset set = data.open();
    CHECK_THROWS_WITH(Feeder(&set, entry, configOf(0, 2, 2)), Contains(says));
  };
  SECTION("missing") {
    refused([](Data &d) { d.name = "images"; },
            "no array for the feed 'x' (float32 (examples, 3)); it has images, rate");
  }
  SECTION("type") {
    refused([](Data &d) { d.dtype = DRT_I32; }, "is int32, but the graph takes float32");
  }
  SECTION("shape") {
    refused([](Data &d) { d.shape = {5, 6}; }, "has shape (5, 6), but the graph takes (examples, 3)");
  }
  SECTION("too few") {
    refused([](Data &d) { d.shape = {3, 3}; }, "has 3 examples, fewer than the batch of 4");
  }
  SECTION("none") {
    refused([](Data &d) { d.shape = {0, 3}; }, "holds no example");
  }
}

TEST_CASE("an array that nothing reads is told, with the nearest feed") {
  Data data(10);
  drt_program program{};
  program.num_entries = 1;
  program.entries = &entry;
  CHECK_NOTHROW(checkAllRead(data.open(), program));
  data.name = "x:0";
  CHECK_NOTHROW(checkAllRead(data.open(), program));
  data.name = "rates";
  CHECK_THROWS_WITH(checkAllRead(data.open(), program), Contains("'rates'") && Contains("did you mean 'rate'"));
}

TEST_CASE("other data have another digest") {
  const auto digest = [](Data &data) {
    const Dataset set = data.open();
    return Feeder(&set, entry, configOf(0, 2, 2)).digest();
  };
  Data one(10), other(10), longer(11);
  CHECK(digest(one) == digest(other));
  CHECK(digest(one) != digest(longer));
  other.x[29] += 1;
  CHECK(digest(one) != digest(other));
}

TEST_CASE("what fills a batch up can be chosen") {
  Data data(5);
  const Dataset set = data.open();
  FeederConfig config = configOf(0, 2, 2);
  config.lastBatch = LastBatch::Fill;
  Feeder feeder(&set, entry, config);
  feeder.setFiller(1);
  CHECK(firstElements(feeder, 1, 2) == std::vector<int>{4, 1, 1, 1});
  CHECK(firstElements(feeder, 2, 2) == std::vector<int>{1, 1, 1, 1});
}

TEST_CASE("an epoch's last examples are a batch of their own, and a feed says which rows are there") {
  const int64_t validShape[] = {2};
  const drt_feed own[] = {feeds[0], feeds[1], {"valid", {DRT_BOOL, 1, validShape}, 1, 0, 1}};
  drt_entry padded = entry;
  padded.num_feeds = 3;
  padded.feeds = own;
  // Of each row of the task's: its first element, or -1 where it is not there. Such a row is another one again.
  const auto rowsOf = [&](Feeder &feeder, int64_t step, int32_t replicas) {
    std::vector<int> rows(2 * static_cast<size_t>(replicas));
    feeder.feed(step, [&](int32_t feed, const void *share0, int64_t shareBytes) {
      if (feed == 0)
        for (size_t i = 0; i < rows.size(); ++i)
          rows[i] = static_cast<int>(static_cast<const float *>(share0)[i * 3]) / 3;
      if (feed != 2)
        return;
      REQUIRE(shareBytes == 2);
      for (size_t i = 0; i < rows.size(); ++i)
        rows[i] = static_cast<const char *>(share0)[i] ? rows[i] : -1 - rows[i];
    });
    return rows;
  };
  Data data(9);
  const Dataset set = data.open();
  const auto make = [&](int32_t first, int32_t local, bool shuffled) {
    FeederConfig config = configOf(first, local, 2);
    config.lastBatch = LastBatch::Pad;
    if (shuffled)
      config.shuffleSeed = 3;
    return Feeder(&set, padded, config);
  };
  Feeder both = make(0, 2, false), second = make(1, 1, false), shuffled = make(0, 2, true);
  CHECK(both.batchesOf(2) == 6);
  CHECK(rowsOf(both, 0, 2) == std::vector<int>{0, 1, 2, 3});
  CHECK(rowsOf(both, 2, 2) == std::vector<int>{8, -9, -9, -9});
  CHECK(rowsOf(both, 3, 2) == std::vector<int>{0, 1, 2, 3});
  CHECK(rowsOf(second, 2, 1) == std::vector<int>{-9, -9});
  CHECK(rowsOf(second, 4, 1) == std::vector<int>{6, 7});
  std::set<int> seen;
  for (int64_t step = 0; step < 3; ++step)
    for (int row : rowsOf(shuffled, step, 2))
      if (row >= 0)
        CHECK(seen.insert(row).second);
  CHECK(seen.size() == 9);
  // All rows are there for who wants whole batches of such a program.
  FeederConfig mixed = configOf(0, 2, 2);
  Feeder mixing(&set, padded, mixed);
  CHECK(rowsOf(mixing, 2, 2) == std::vector<int>{8, 0, 1, 2});
}

TEST_CASE("a graph that is fed needs data") {
  CHECK_THROWS_WITH(Feeder(nullptr, entry, configOf(0, 2, 2)),
                    Contains("'x' float32 (examples, 3)") && Contains("--data"));
}

TEST_CASE("a folder of .npy files is a dataset") {
  const auto folder = std::filesystem::temp_directory_path() / ("dataset" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  CHECK_THROWS_WITH(Dataset::open(folder.string()), Contains("holds no .npy file"));
  std::filesystem::remove_all(folder);
  CHECK_THROWS_WITH(Dataset::open(folder.string()), Contains("there is no"));
}

TEST_CASE("a feed with a default is null where the data has nothing of its name") {
  Data data(4);
  const Dataset set = data.open();
  drt_feed own[] = {feeds[0], feeds[1], {"scale", {DRT_F32, 0, nullptr}, 0, 1}};
  drt_entry optional = entry;
  optional.num_feeds = 3;
  optional.feeds = own;
  const auto given = [&optional](const Dataset *from) {
    std::vector<const void *> pointers(3, &optional);
    Feeder(from, optional, configOf(0, 2, 2)).feed(0, [&](int32_t feed, const void *share0, int64_t) {
      pointers[feed] = share0;
    });
    return pointers;
  };
  CHECK(given(&set)[2] == nullptr);
  CHECK(given(&set)[1] != nullptr);
  // Without data, where nothing else is fed.
  own[0] = own[1] = own[2];
  CHECK(given(nullptr)[0] == nullptr);
}
