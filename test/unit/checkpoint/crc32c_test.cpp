//===- crc32c_test.cpp ----------------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/crc32c.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace drt;

TEST_CASE("crc32c gives the values of RFC 3720, B.4") {
  std::vector<unsigned char> bytes(32, 0);
  CHECK(crc32c(0, bytes.data(), 32) == 0x8a9136aa);
  bytes.assign(32, 0xff);
  CHECK(crc32c(0, bytes.data(), 32) == 0x62a8ab43);
  std::iota(bytes.begin(), bytes.end(), 0);
  CHECK(crc32c(0, bytes.data(), 32) == 0x46dd794e);
  CHECK(crc32c(0, "123456789", 9) == 0xe3069283);
  CHECK(crc32cPortable(0, "123456789", 9) == 0xe3069283);
  CHECK(crc32c(0, nullptr, 0) == 0);
}

TEST_CASE("crc32c is the same with the machine's instructions and without, at any length and address") {
  std::mt19937 random(1);
  std::vector<unsigned char> bytes(60000);
  for (auto &byte : bytes)
    byte = static_cast<unsigned char>(random());
  for (size_t length : {0, 1, 7, 8, 9, 63, 4096, 12287, 12288, 12289, 24576, 24577, 49160, 59990})
    for (size_t start : {0, 1, 5}) {
      CAPTURE(length, start);
      REQUIRE(crc32c(0, bytes.data() + start, length) == crc32cPortable(0, bytes.data() + start, length));
    }
}

TEST_CASE("crc32c of parts one after the other is that of the whole") {
  std::string text(30000, 'x');
  text[17] = 'y';
  uint32_t whole = crc32c(0, text.data(), text.size());
  for (size_t cut : {size_t(1), size_t(100), size_t(12288), size_t(29999)})
    CHECK(crc32c(crc32c(0, text.data(), cut), text.data() + cut, text.size() - cut) == whole);
}
