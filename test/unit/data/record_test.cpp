//===- record_test.cpp - tf.Examples in TFRecord files --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/crc32c.h"
#include "core/error.h"
#include "data/feeder.h"
#include "data/record_examples.h"
#include "data/tfrecord.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <unistd.h>
#include <zlib.h>

using namespace drt;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

// ---- Files as TensorFlow writes them ------------------------------------------------

template <typename T> std::string raw(T value) { return {reinterpret_cast<const char *>(&value), sizeof value}; }

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7)
    text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

std::string message(int number, const std::string &contents) {
  return varint(number << 3 | 2) + varint(contents.size()) + contents;
}

std::string floats(const std::vector<float> &values, bool packed = true) {
  std::string all, each;
  for (float value : values) {
    all += raw(value);
    each += varint(1 << 3 | 5) + raw(value);
  }
  return message(2, packed ? message(1, all) : each);
}

std::string integers(const std::vector<int64_t> &values, bool packed = true) {
  std::string all, each;
  for (int64_t value : values) {
    all += varint(static_cast<uint64_t>(value));
    each += varint(1 << 3) + varint(static_cast<uint64_t>(value));
  }
  return message(3, packed ? message(1, all) : each);
}

std::string bytes(const std::string &value) { return message(1, message(1, value)); }

std::string example(const std::vector<std::pair<std::string, std::string>> &features) {
  std::string all;
  for (const auto &[name, feature] : features)
    all += message(1, message(1, name) + message(2, feature));
  return message(1, all);
}

std::string record(const std::string &contents) {
  const std::string length = raw(static_cast<uint64_t>(contents.size()));
  return length + raw(maskCrc32c(crc32c(0, length.data(), length.size()))) + contents +
         raw(maskCrc32c(crc32c(0, contents.data(), contents.size())));
}

// ---- A folder of them ----------------------------------------------------------------

const int64_t shareShape[] = {2, 3};
const drt_feed feeds[] = {{"x", {DRT_F32, 2, shareShape}, 1, 0}};
const drt_entry entry = {"step", nullptr, 1, feeds, 0, nullptr, 0, nullptr, 0, nullptr};

enum class Packing { None, Gzip, Zlib };

struct Files {
  fs::path folder = fs::temp_directory_path() / ("records" + std::to_string(getpid()));

  Files() { fs::create_directories(folder); }
  ~Files() { fs::remove_all(folder); }

  std::string pattern() const { return (folder / "part-*").string(); }

  std::string write(const std::string &name, const std::string &contents, Packing packing = Packing::None) const {
    const std::string path = (folder / name).string();
    if (packing == Packing::Gzip) {
      gzFile file = gzopen(path.c_str(), "wb");
      gzwrite(file, contents.data(), static_cast<unsigned>(contents.size()));
      gzclose(file);
      return path;
    }
    std::string packed = contents;
    if (packing == Packing::Zlib) {
      uLongf size = compressBound(contents.size());
      packed.resize(size);
      compress(reinterpret_cast<Bytef *>(packed.data()), &size, reinterpret_cast<const Bytef *>(contents.data()),
               contents.size());
      packed.resize(size);
    }
    std::ofstream(path, std::ios::binary) << packed;
    return path;
  }

  // Rows first, first + 1, ... with x = (3 row, 3 row + 1, 3 row + 2).
  std::string writeRows(const std::string &name, int first, int count, Packing packing = Packing::None) const {
    std::string all;
    for (int row = first; row < first + count; ++row)
      all += record(example({{"x", floats({3.0f * row, 3.0f * row + 1, 3.0f * row + 2})}}));
    return write(name, all, packing);
  }
};

FeederConfig configOf(int32_t first, int32_t local, int32_t all) {
  FeederConfig config;
  config.firstReplica = first;
  config.localReplicas = local;
  config.numReplicas = all;
  return config;
}

std::vector<int> rowsOf(Feeder &feeder, int64_t step, int32_t replicas) {
  std::vector<int> rows;
  feeder.feed(step, [&](int32_t, const void *share0, int64_t shareBytes) {
    REQUIRE(shareBytes == 2 * 3 * 4);
    for (int32_t i = 0; i < 2 * replicas; ++i) {
      const float *row = static_cast<const float *>(share0) + i * 3;
      CHECK(row[2] == row[0] + 2);
      rows.push_back(static_cast<int>(row[0]) / 3);
    }
  });
  return rows;
}

std::vector<int> rowsOfSteps(Feeder &feeder, int64_t first, int64_t count, int32_t replicas) {
  std::vector<int> rows;
  for (int64_t step = first; step < first + count; ++step) {
    const std::vector<int> more = rowsOf(feeder, step, replicas);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

std::vector<int> range(int first, int count) {
  std::vector<int> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

} // namespace

TEST_CASE("records of several files are one sequence that starts over, compressed or not") {
  Files files;
  files.writeRows("part-0", 0, 3);
  files.writeRows("part-1", 3, 0); // empty
  files.writeRows("part-2", 3, 4, Packing::Gzip);
  files.writeRows("part-3", 7, 3, Packing::Zlib);
  const Dataset data = Dataset::open(files.pattern());
  CHECK(data.holdsRecords());
  Feeder feeder(&data, entry, configOf(0, 2, 2));
  CHECK(rowsOfSteps(feeder, 0, 2, 2) == range(0, 8));
  CHECK(rowsOf(feeder, 2, 2) == std::vector<int>{8, 9, 0, 1});
  CHECK(rowsOf(feeder, 12, 2) == std::vector<int>{8, 9, 0, 1}); // far ahead
  CHECK(rowsOf(feeder, 5, 2) == std::vector<int>{0, 1, 2, 3});  // and back
  CHECK(feeder.batch() == 4);
}

TEST_CASE("what goes on in the middle reads what the whole run would") {
  Files files;
  files.writeRows("part-0", 0, 7, Packing::Gzip);
  files.writeRows("part-1", 7, 6);
  const Dataset data = Dataset::open(files.pattern());
  for (int64_t window : {0, 1, 4, 100}) {
    FeederConfig config = configOf(0, 2, 2);
    if (window)
      config.shuffleSeed = 11;
    config.shuffleWindow = window;
    Feeder whole(&data, entry, config);
    const std::vector<int> all = rowsOfSteps(whole, 0, 12, 2);
    for (int64_t from : {1, 4, 7}) {
      Feeder later(&data, entry, config);
      CHECK(rowsOfSteps(later, from, 12 - from, 2) == std::vector<int>(all.begin() + from * 4, all.end()));
    }
    // Tasks of one replica each.
    std::vector<int> together;
    Feeder first(&data, entry, [&] {
      FeederConfig c = config;
      c.localReplicas = 1;
      return c;
    }());
    Feeder second(&data, entry, [&] {
      FeederConfig c = config;
      c.localReplicas = 1;
      c.firstReplica = 1;
      return c;
    }());
    for (int64_t step = 0; step < 12; ++step)
      for (Feeder *feeder : {&first, &second})
        for (int row : rowsOf(*feeder, step, 1))
          together.push_back(row);
    CHECK(together == all);
    // Each epoch has every example once.
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<int> rows(all.begin() + epoch * 13, all.begin() + (epoch + 1) * 13);
      if (window == 4)
        CHECK(rows != range(0, 13));
      std::sort(rows.begin(), rows.end());
      CHECK(rows == range(0, 13));
    }
  }
}

TEST_CASE("a window takes an example no sooner than it is reached") {
  Files files;
  files.writeRows("part-0", 0, 200);
  const Dataset data = Dataset::open(files.pattern());
  FeederConfig config = configOf(0, 2, 2);
  config.shuffleSeed = 3;
  config.shuffleWindow = 8;
  Feeder feeder(&data, entry, config);
  const std::vector<int> rows = rowsOfSteps(feeder, 0, 50, 2);
  for (int i = 0; i < 200; ++i)
    CHECK(rows[i] < i + 8);
}

TEST_CASE("arrays and records of the same examples come in the same order") {
  Files files;
  files.writeRows("part-0", 0, 23);
  std::vector<float> x(23 * 3);
  std::iota(x.begin(), x.end(), 0.0f);
  // In two parts, too.
  for (const auto &[name, first, rows] : {std::tuple("a-0.npz", 0, 9), std::tuple("a-1.npz", 9, 14)}) {
    NpzWriter writer((files.folder / name).string());
    writer.add("x", DRT_F32, {rows, 3}, x.data() + first * 3);
    writer.finish();
  }
  const Dataset records = Dataset::open(files.pattern()), arrays = Dataset::open((files.folder / "a-*.npz").string());
  for (int64_t window : {0, 5, 23}) {
    FeederConfig config = configOf(0, 2, 2);
    config.shuffleSeed = 11;
    config.shuffleWindow = window;
    Feeder one(&records, entry, config), other(&arrays, entry, config);
    CHECK(rowsOfSteps(one, 0, 20, 2) == rowsOfSteps(other, 0, 20, 2));
  }
  Feeder stored(&arrays, entry, configOf(0, 2, 2));
  CHECK(stored.examples() == 23);
  CHECK(rowsOfSteps(stored, 0, 5, 2) == range(0, 20)); // one batch reaches over both parts
  CHECK(rowsOf(stored, 5, 2) == std::vector<int>{20, 21, 22, 0});
}

TEST_CASE("the last examples of an epoch may be left out") {
  Files files;
  files.writeRows("part-0", 0, 10);
  const Dataset data = Dataset::open(files.pattern());
  FeederConfig config = configOf(0, 2, 2);
  config.lastBatch = LastBatch::Drop;
  Feeder feeder(&data, entry, config);
  CHECK(rowsOfSteps(feeder, 0, 2, 2) == range(0, 8));
  CHECK(rowsOf(feeder, 2, 2) == range(0, 4));
  CHECK(feeder.batchesOf(3) == 6);
  config.lastBatch = LastBatch::Mix;
  CHECK(Feeder(&data, entry, config).batchesOf(3) == 8);
}

TEST_CASE("evaluation reads all records once, and fills the last batch up") {
  Files files;
  files.writeRows("part-0", 0, 6, Packing::Gzip);
  const Dataset data = Dataset::open(files.pattern());
  FeederConfig config = configOf(0, 2, 2);
  config.lastBatch = LastBatch::Fill;
  Feeder feeder(&data, entry, config);
  for (int twice = 0; twice < 2; ++twice) {
    CHECK(feeder.examples() == 6);
    CHECK(rowsOf(feeder, 0, 2) == range(0, 4));
    for (int filler : {5, 0}) {
      feeder.setFiller(filler);
      CHECK(rowsOf(feeder, 1, 2) == std::vector<int>{4, 5, filler, filler});
      CHECK(rowsOf(feeder, 2, 2) == std::vector<int>{filler, filler, filler, filler});
    }
  }
}

TEST_CASE("a run goes on at the position that is said, whatever its steps are called") {
  Files files;
  files.writeRows("part-0", 0, 10);
  const Dataset data = Dataset::open(files.pattern());
  Feeder feeder(&data, entry, configOf(0, 2, 2));
  feeder.startAt(100, 6, std::nullopt);
  CHECK(rowsOf(feeder, 100, 2) == std::vector<int>{6, 7, 8, 9});
  CHECK(rowsOf(feeder, 101, 2) == range(0, 4));
  CHECK(feeder.position(102) == 14);
}

TEST_CASE("features become a feed's numbers") {
  const auto parse = [](const std::string &feature, int32_t dtype, int64_t count) {
    const int64_t size = dtype == DRT_F64 || dtype == DRT_I64 ? 8 : dtype == DRT_F32 || dtype == DRT_I32 ? 4 : 1;
    std::vector<char> row(count * size);
    char *rows[] = {row.data()};
    parseExample(example({{"other", integers({1})}, {"f", feature}}), {{"f", "feed", dtype, count, count * size}}, rows,
                 "FILE: record 7");
    return row;
  };
  const auto bytesOf = [](const auto &values) {
    const char *data = reinterpret_cast<const char *>(values.data());
    return std::vector<char>(data, data + values.size() * sizeof(values[0]));
  };
  for (bool packed : {true, false}) {
    CHECK(parse(floats({1.5f, -2}, packed), DRT_F32, 2) == bytesOf(std::vector<float>{1.5f, -2}));
    CHECK(parse(floats({1.5f, -2}, packed), DRT_F64, 2) == bytesOf(std::vector<double>{1.5, -2}));
    CHECK(parse(integers({-1, INT64_MIN}, packed), DRT_I64, 2) == bytesOf(std::vector<int64_t>{-1, INT64_MIN}));
    CHECK(parse(integers({-1, 70000}, packed), DRT_I32, 2) == bytesOf(std::vector<int32_t>{-1, 70000}));
  }
  CHECK(parse(integers({0, 255}), DRT_U8, 2) == bytesOf(std::string("\0\xff", 2)));
  CHECK(parse(integers({0, 1}), DRT_BOOL, 2) == bytesOf(std::string("\0\1", 2)));
  CHECK(parse(bytes("abc"), DRT_U8, 3) == bytesOf(std::string("abc")));
  CHECK(parse(bytes(raw(2.5f)), DRT_F32, 1) == bytesOf(std::vector<float>{2.5f}));

  const auto refuses = [&](const std::string &feature, int32_t dtype, int64_t count, const std::string &says) {
    CHECK_THROWS_WITH(parse(feature, dtype, count), Contains("FILE: record 7") && Contains(says));
  };
  refuses(floats({1, 2}), DRT_F32, 3, "the feature 'f' holds 2 floats, but the feed 'feed' takes 3 float32");
  refuses(floats({1}), DRT_I32, 1, "holds floats, but");
  refuses(integers({1}), DRT_F32, 1, "holds integers, but");
  refuses(integers({256}), DRT_U8, 1, "holds the integer 256");
  refuses(integers({2}), DRT_BOOL, 1, "holds the integer 2");
  refuses(bytes("abcd"), DRT_U8, 3, "holds a string of 4 bytes, not the 3");
  refuses(bytes("\2"), DRT_BOOL, 1, "neither 0 nor 1");
  refuses(message(1, message(1, "a") + message(1, "b")), DRT_U8, 1, "holds 2 strings");
  refuses("", DRT_F32, 1, "holds nothing");
  refuses("\xff", DRT_F32, 1, "is no tf.Example");
  char *none[] = {nullptr};
  CHECK_THROWS_WITH(parseExample(example({{"a", floats({1})}, {"b", floats({1})}}), {{"x", "feed", DRT_F32, 1, 4}},
                                 none, "FILE: record 7"),
                    Contains("FILE: record 7 has no feature 'x' for the feed 'feed'; it has a, b") &&
                        Contains("--feature feed=NAME"));
}

TEST_CASE("a feed takes the feature that a flag names, and a number from the command line") {
  Files files;
  files.write("part-0",
              record(example({{"pixels", floats({0, 1, 2})}})) + record(example({{"pixels", floats({3, 4, 5})}})));
  const Dataset data = Dataset::open(files.pattern());
  const int64_t shape[] = {2, 3};
  const drt_feed own[] = {{"x", {DRT_F32, 2, shape}, 1, 0}, {"rate", {DRT_F32, 0, nullptr}, 0, 0}};
  const drt_entry both = {"step", nullptr, 2, own, 0, nullptr, 0, nullptr, 0, nullptr};
  FeederConfig config = configOf(0, 1, 1);
  config.features = {{"x", "pixels"}};
  CHECK_THROWS_WITH(Feeder(&data, both, config), Contains("--value rate=NUMBER"));
  config.values = {{"rate:0", 0.5}};
  Feeder feeder(&data, both, config);
  feeder.feed(0, [](int32_t feed, const void *data, int64_t) {
    CHECK(static_cast<const float *>(data)[0] == (feed == 1 ? 0.5f : 0.0f));
  });
  drt_program program{};
  program.num_entries = 1;
  program.entries = &both;
  CHECK_NOTHROW(checkFeedFlags(config, program));
  config.values = {{"rates", 0.5}};
  CHECK_THROWS_WITH(checkFeedFlags(config, program), Contains("--value rates") && Contains("'rate'"));
  config.values = {{"x", 0.5}};
  CHECK_THROWS_WITH(Feeder(&data, both, config), Contains("not one number"));
}

TEST_CASE("damaged and truncated files are told by file and record") {
  Files files;
  const std::string one = record(example({{"x", floats({0, 1, 2})}})), whole = one + one + one + one;
  const auto fails = [&](const std::string &contents, const std::string &says, Packing packing = Packing::None,
                         size_t cut = 0) {
    const std::string path = files.write("part-0", contents, packing);
    if (cut)
      fs::resize_file(path, fs::file_size(path) - cut);
    CHECK_THROWS_WITH(
        [&] {
          const Dataset data = Dataset::open(path);
          Feeder feeder(&data, entry, configOf(0, 2, 2));
          feeder.feed(0, [](int32_t, const void *, int64_t) {});
        }(),
        Contains("part-0") && Contains(says));
  };
  const auto flipped = [&](size_t at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    return damaged;
  };
  for (Packing packing : {Packing::None, Packing::Gzip, Packing::Zlib}) {
    fails(flipped(2 * one.size() + 20), "record 2 is damaged: its checksum is wrong", packing);
    fails(flipped(one.size() + 2), "record 1 is damaged: the checksum of its length", packing);
    fails(whole.substr(0, whole.size() - 5), "record 3 is truncated", packing);
    fails(whole.substr(0, 3 * one.size() + 6), "record 3 is truncated", packing);
    fails(one + one + one, "has 3 examples, fewer than the batch of 4", packing);
  }
  fails(flipped(2), "is not an .npz file, nor .npy or TFRecord");
  fails(whole, "break off", Packing::Gzip, 12);
  fails("", "holds no example");
}

TEST_CASE("compressed records are shuffled in a window only") {
  Files files;
  files.writeRows("part-0", 0, 8, Packing::Gzip);
  const Dataset data = Dataset::open(files.pattern());
  FeederConfig config = configOf(0, 2, 2);
  config.shuffleSeed = 1;
  CHECK_THROWS_WITH(Feeder(&data, entry, config), Contains("--shuffle-window"));
}

TEST_CASE("a pattern names files of one kind") {
  Files files;
  CHECK_THROWS_WITH(Dataset::open(files.pattern()), Contains("no file is named like"));
  files.writeRows("part-0", 0, 8);
  NpzWriter writer((files.folder / "part-1.npz").string());
  const float x[3] = {};
  writer.add("x", DRT_F32, {1, 3}, x);
  writer.finish();
  CHECK_THROWS_WITH(Dataset::open(files.pattern()), Contains("several kinds"));
}

TEST_CASE("records of other files have another digest") {
  Files files;
  const auto digest = [&] {
    const Dataset data = Dataset::open(files.pattern());
    return Feeder(&data, entry, configOf(0, 2, 2)).digest();
  };
  files.writeRows("part-0", 0, 8);
  const uint32_t one = digest();
  CHECK(digest() == one);
  files.writeRows("part-0", 1, 8);
  CHECK(digest() != one);
}

// By hand: unit-data '[.rate]', beside a copy of as many bytes (docs/benchmarks.md).
TEST_CASE("the rate of reading", "[.rate]") {
  constexpr int64_t columns = 784, examples = 100000, batch = 128;
  const int64_t shape[] = {batch, columns};
  const drt_feed wide[] = {{"x", {DRT_F32, 2, shape}, 1, 0}};
  const drt_entry reading = {"step", nullptr, 1, wide, 0, nullptr, 0, nullptr, 0, nullptr};
  Files files;
  std::string all;
  for (int64_t i = 0; i < examples; ++i)
    all += record(example({{"x", floats(std::vector<float>(columns, static_cast<float>(i)))}}));
  files.write("part-plain", all);
  files.write("packed", all, Packing::Gzip);
  const auto seconds = [](auto work) {
    const std::clock_t begin = std::clock(); // of the process: the machine may be busy
    work();
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double bytes = examples * columns * 4.0;
  std::vector<char> from(batch * columns * 4 * 64), to(batch * columns * 4);
  const double copied = seconds([&] {
    for (int64_t i = 0; i < examples / batch; ++i) {
      std::memcpy(to.data(), from.data() + i % 64 * static_cast<int64_t>(to.size()), to.size());
      asm volatile("" : : "r"(to.data()) : "memory"); // is not left out
    }
  });
  std::printf("copy: %.2f GB/s\n", bytes / copied * 1e-9);
  for (const auto &[path, window] : {std::pair(files.pattern(), 0), std::pair(files.pattern(), 10000),
                                     std::pair((files.folder / "packed").string(), 0)})
    for (const bool ahead : {false, true}) {
      const Dataset data = Dataset::open(path);
      FeederConfig config = configOf(0, 1, 1);
      config.readAhead = ahead;
      config.shuffleWindow = window;
      if (window)
        config.shuffleSeed = 1;
      Feeder feeder(&data, reading, config);
      const double read = seconds([&] {
        for (int64_t step = 0; step < examples / batch; ++step)
          feeder.feed(step, [](int32_t, const void *, int64_t) {});
      });
      std::printf("%s, window %d%s: %.2f GB/s\n", path.c_str(), window, ahead ? ", read ahead" : "",
                  bytes / read * 1e-9);
    }
}
