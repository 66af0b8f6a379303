//===- PrecompiledTests.h - What every unit test parses ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
// See test/unit/CMakeLists.txt.
#include "cmake/PrecompiledRuntime.h"

#include <catch2/catch.hpp>
