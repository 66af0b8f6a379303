//===- main.cpp - Catch2's runner, once for every unit test ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#define CATCH_CONFIG_RUNNER
#include "test/unit/support/main.h"

#include <catch2/catch.hpp>

int runTests(int argc, char **argv) { return Catch::Session().run(argc, argv); }

/// A program with one of its own, which skips where it cannot run, takes that instead.
[[gnu::weak]] int main(int argc, char **argv) { return runTests(argc, argv); }
