//===- memory_test.cpp - What a process has, and could have ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/memory.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace drt;

TEST_CASE("memory that is written is resident, and no longer available") {
  constexpr int64_t bytes = int64_t{64} << 20, others = int64_t{16} << 20; // what else changes meanwhile
  const int64_t before = residentBytes();
  REQUIRE(before > 0);
  Memory memory(bytes);
  std::memset(memory.data(), 1, bytes);
  CHECK(residentBytes() - before > bytes - others);
  CHECK(residentBytes() - before < bytes + others);
  const auto available = availableBytes();
  REQUIRE(available);
  CHECK(*available > 0);
}
