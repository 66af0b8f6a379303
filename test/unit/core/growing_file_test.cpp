//===- growing_file_test.cpp - Files that grow while a program runs -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "core/growing_file.h"

#include <catch2/catch.hpp>

using namespace drt;

TEST_CASE("a full disk is an error that names the file") {
  GrowingFile file("/dev/full");
  file.write("x");
  CHECK_THROWS_WITH(file.flush(), "cannot write /dev/full: No space left on device");
}

TEST_CASE("text becomes a JSON string") { CHECK(jsonString("a\"b\\\n") == "\"a\\\"b\\\\\\u000a\""); }
