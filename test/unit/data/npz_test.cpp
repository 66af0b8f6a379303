//===- npz_test.cpp - NumPy's files ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/npz.h"
#include "drt/drt.h"
#include "test/unit/checkpoint/support.h"
#include "test/unit/data/numpy_files.h"
#include "test/unit/support/mutants.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <numeric>

using namespace drt;
using namespace distc_test;
using Catch::Contains;

namespace {

template <size_t N> std::string bytesOf(const unsigned char (&bytes)[N]) {
  return std::string(reinterpret_cast<const char *>(bytes), N);
}

template <typename T> std::vector<T> values(const NpyArray &array) {
  std::vector<T> result(size_t(array.bytes) / sizeof(T));
  if (!result.empty())
    memcpy(result.data(), array.data, size_t(array.bytes));
  return result;
}

const std::vector<float> kMatrix{0, 1, 2, 3, 4, 5};

std::string npyError(const Folder &folder, const std::string &bytes) {
  writeFile(folder / "a.npy", bytes);
  return errorOf([&] { readNpy(folder / "a.npy"); });
}

} // namespace

TEST_CASE("stored arrays that numpy wrote are mapped") {
  Folder folder;
  writeFile(folder / "a.npz", bytesOf(kStored));
  NpyArray kernel, step;
  {
    NpzReader reader(folder / "a.npz");
    CHECK(reader.names() == std::vector<std::string>{"hidden1/kernel", "step"});
    CHECK(reader.has("step"));
    CHECK_FALSE(reader.has("step.npy"));
    kernel = reader.read("hidden1/kernel");
    step = reader.read("step");
  } // arrays outlive what they were read with
  CHECK(kernel.dtype == DRT_F32);
  CHECK(kernel.shape == std::vector<int64_t>{2, 3});
  CHECK(kernel.rows() == 2);
  CHECK(kernel.rowBytes() == 12);
  CHECK(values<float>(kernel) == kMatrix);
  CHECK(step.dtype == DRT_I64);
  CHECK(step.shape.empty());
  CHECK(values<int64_t>(step) == std::vector<int64_t>{7});
}

TEST_CASE("deflated arrays are unpacked") {
  Folder folder;
  writeFile(folder / "a.npz", bytesOf(kDeflated));
  NpzReader reader(folder / "a.npz");
  NpyArray matrix = reader.read("matrix");
  CHECK(matrix.shape == std::vector<int64_t>{80, 3});
  CHECK(matrix.aligned);
  std::vector<float> all = values<float>(matrix);
  CHECK(std::vector<float>(all.end() - 6, all.end()) == kMatrix);
  CHECK(reader.read("flags").dtype == DRT_BOOL);
  CHECK(values<uint8_t>(reader.read("flags")) == std::vector<uint8_t>{1, 0});
}

TEST_CASE("every version of .npy is read, and Fortran's order is turned") {
  Folder folder;
  writeFile(folder / "a.npy", bytesOf(kFortran));
  NpyArray cube = readNpy(folder / "a.npy");
  std::vector<int32_t> counting(24);
  std::iota(counting.begin(), counting.end(), 0);
  CHECK(cube.shape == std::vector<int64_t>{2, 3, 4});
  CHECK(values<int32_t>(cube) == counting);
  writeFile(folder / "a.npy", bytesOf(kVersion2));
  CHECK(values<float>(readNpy(folder / "a.npy")) == kMatrix);
  writeFile(folder / "b.npy", bytesOf(kVersion3));
  CHECK(values<uint16_t>(readNpy(folder / "b.npy")) ==
        std::vector<uint16_t>{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500});
}

TEST_CASE("what is written is read, of every type") {
  Folder folder;
  std::vector<char> bytes(64);
  std::iota(bytes.begin(), bytes.end(), char(1));
  const int32_t types[] = {DRT_F32, DRT_F64, DRT_I32, DRT_U8, DRT_I16, DRT_I8, DRT_I64, DRT_BOOL, DRT_BF16, DRT_F16};
  {
    NpzWriter writer(folder / "a.npz");
    for (int32_t type : types)
      writer.add("scope/" + std::to_string(type), type, {2, 4}, bytes.data());
    writer.add("scalar", DRT_F64, {}, bytes.data());
    writer.add("empty", DRT_F32, {0, 5}, nullptr);
    CHECK_THAT(errorOf([&] { writer.add("scalar", DRT_F64, {}, bytes.data()); }),
               Contains("'scalar' is written twice"));
    CHECK_THAT(errorOf([&] { writer.add("text", 7, {1}, bytes.data()); }), Contains("no type for string"));
    CHECK_FALSE(std::filesystem::exists(folder / "a.npz"));
    writer.finish();
  }
  CHECK(folder.names() == std::set<std::string>{"a.npz"});
  NpzReader reader(folder / "a.npz");
  for (int32_t type : types) {
    NpyArray array = reader.read("scope/" + std::to_string(type));
    CHECK(array.dtype == type);
    CHECK(array.shape == std::vector<int64_t>{2, 4});
    CHECK(reinterpret_cast<uintptr_t>(array.data) % 64 == 0);
    CHECK(memcmp(array.data, bytes.data(), size_t(array.bytes)) == 0);
  }
  CHECK(reader.read("scalar").shape.empty());
  CHECK(reader.read("empty").bytes == 0);
  CHECK(reader.read("empty").rows() == 0);
}

TEST_CASE("an array that is not there is named with those that are") {
  Folder folder;
  writeFile(folder / "a.npz", bytesOf(kStored));
  CHECK(errorOf([&] { NpzReader(folder / "a.npz").read("kernel"); }) ==
        (folder / "a.npz") + " has no array 'kernel'; it has 'hidden1/kernel', 'step'");
  CHECK_THAT(errorOf([&] { NpzReader(folder / "b.npz"); }), Contains("b.npz: No such file"));
}

TEST_CASE("types that a program cannot take are told with the way out") {
  Folder folder;
  CHECK_THAT(npyError(folder, bytesOf(kBigEndian)), Contains("'>f4'") && Contains("little-endian"));
  CHECK_THAT(npyError(folder, bytesOf(kText)), Contains("'<U3'"));
  CHECK_THAT(npyError(folder, bytesOf(kFields)), Contains("structured"));
  CHECK_THAT(npyError(folder, "no array at all"), Contains("a.npy is not an .npy array"));
  CHECK_THAT(npyError(folder, ""), Contains("it is empty"));
}

TEST_CASE("a .npy whose data are shifted is told") {
  Folder folder;
  const std::string bytes = bytesOf(kFortran);
  const size_t padding = bytes.find("}") + 1, newline = bytes.find("\n");
  for (const std::string &put : {std::string(3, '\0'), std::string(16, ' '), std::string("x")}) {
    std::string changed = bytes;
    changed.insert(padding + 5, put);
    CHECK_THAT(npyError(folder, changed), Contains(folder / "a.npy is damaged"));
  }
  for (size_t at = padding; at <= newline; ++at) {
    std::string changed = bytes;
    changed[at] ^= 1;
    CHECK_THAT(npyError(folder, changed), Contains(folder / "a.npy is damaged"));
  }
  CHECK_THAT(npyError(folder, bytes + "x"), Contains("but 97 follow its header"));
  std::string shorter = bytes;
  shorter[8] = char(shorter[8] - 1);
  CHECK_THAT(npyError(folder, shorter), Contains("is damaged"));
  std::string twice = bytes;
  twice.replace(twice.find("'descr'"), 16, "'shape': (1,),  ");
  CHECK_THAT(npyError(folder, twice), Contains("is damaged"));
}

TEST_CASE("a truncated .npy is told at every length") {
  Folder folder;
  std::string bytes = bytesOf(kVersion2);
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    REQUIRE_THAT(npyError(folder, bytes.substr(0, length)), Contains(folder / "a.npy"));
  }
}

TEST_CASE("a truncated or changed .npz never goes unnoticed") {
  Folder folder;
  std::string path = folder / "a.npz", bytes = GENERATE(bytesOf(kStored), bytesOf(kDeflated));
  auto readEverything = [&] {
    NpzReader reader(path);
    for (const std::string &name : reader.names())
      reader.read(name);
  };
  for (size_t length = 0; length < bytes.size(); ++length) {
    writeFile(path, bytes.substr(0, length));
    CAPTURE(length);
    REQUIRE_THAT(errorOf(readEverything), Contains(path));
  }
  for (size_t at = 0; at < bytes.size(); ++at)
    for (char change : {'\x01', '\x55', '\xff'}) {
      std::string changed = bytes;
      changed[at] ^= change;
      writeFile(path, changed);
      CAPTURE(at);
      REQUIRE_NOTHROW(errorOf(readEverything)); // drt::Error, or a change of what does not matter
    }
}

TEST_CASE("damaged .npz files are refused, or read as they were") {
  Folder folder;
  const std::string path = folder / "a.npz", whole = GENERATE(bytesOf(kStored), bytesOf(kDeflated));
  const auto contents = [&] {
    std::map<std::string, std::string> arrays;
    const NpzReader reader(path);
    for (const std::string &name : reader.names()) {
      const NpyArray array = reader.read(name);
      arrays[name] = std::string(static_cast<const char *>(array.data), size_t(array.bytes));
    }
    return arrays;
  };
  writeFile(path, whole);
  const auto before = contents();
  for (int seed = 0; seed < mutantCount(); ++seed) {
    writeFile(path, mutant(whole, uint32_t(seed)));
    CAPTURE(seed);
    std::map<std::string, std::string> after;
    if (errorOf([&] { after = contents(); }).empty())
      for (const auto &[name, bytes] : after) // a name is not under the checksum, and the feed that misses it says so
        REQUIRE((before.count(name) == 0 || before.at(name) == bytes));
  }
}

TEST_CASE("damaged .npy files are refused, or are as large as they say") {
  Folder folder;
  const std::string path = folder / "a.npy", whole = GENERATE(bytesOf(kFortran), bytesOf(kVersion2));
  for (int seed = 0; seed < mutantCount(); ++seed) {
    const std::string bytes = mutant(whole, uint32_t(seed));
    writeFile(path, bytes);
    CAPTURE(seed);
    NpyArray array;
    if (!errorOf([&] { array = readNpy(path); }).empty())
      continue;
    REQUIRE(array.bytes <= int64_t(bytes.size()));
    const std::string read(static_cast<const char *>(array.data), size_t(array.bytes));
    REQUIRE(read.size() == size_t(array.rows() * array.rowBytes()));
  }
}

TEST_CASE("a changed byte of the data names the file and the member") {
  Folder folder;
  std::string bytes = bytesOf(kStored);
  size_t at = bytes.find(std::string("\x00\x00\x80\x40", 4)); // 4.0f
  bytes[at + 2] ^= 1;
  writeFile(folder / "a.npz", bytes);
  CHECK(errorOf([&] { NpzReader(folder / "a.npz").read("hidden1/kernel"); }) ==
        (folder / "a.npz") + ": member 'hidden1/kernel.npy' is damaged: wrong checksum");
  CHECK_NOTHROW(NpzReader(folder / "a.npz", false).read("hidden1/kernel"));
}

TEST_CASE("a full disk leaves no .npz, and the old one stays") {
  Folder folder;
  writeFile(folder / "a.npz", bytesOf(kStored));
  std::vector<float> large(5000);
  FileSizeLimit limit(4096);
  auto write = [&] {
    NpzWriter writer(folder / "a.npz");
    writer.add("large", DRT_F32, {5000}, large.data());
    writer.finish();
  };
  CHECK_THAT(errorOf(write), Contains("cannot write " + (folder / "a.npz")));
  CHECK(folder.names() == std::set<std::string>{"a.npz"});
  CHECK(readFile(folder / "a.npz") == bytesOf(kStored));
}
