//===- growing_file_test.cpp - Files that grow while a program runs -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "core/growing_file.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace drt;

TEST_CASE("a full disk is an error that names the file") {
  GrowingFile file("/dev/full");
  file.write("x");
  CHECK_THROWS_WITH(file.flush(), "cannot write /dev/full: No space left on device");
}

TEST_CASE("a file goes on behind what is kept of it") {
  const auto path = std::filesystem::temp_directory_path() / ("growing" + std::to_string(getpid()));
  std::ofstream(path) << "one\ntwo\nthr";
  {
    GrowingFile file(path.string(), 4);
    CHECK(file.written() == 4);
    file.write("three\n");
    file.sync();
    CHECK(file.written() == 10);
  }
  std::ifstream in(path);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "one\nthree\n");
  std::filesystem::remove(path);
}

TEST_CASE("text becomes a JSON string") { CHECK(jsonString("a\"b\\\n") == "\"a\\\"b\\\\\\u000a\""); }
