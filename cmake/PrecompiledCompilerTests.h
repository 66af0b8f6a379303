//===- PrecompiledCompilerTests.h - What unit tests of the compiler parse -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
// See test/unit/CMakeLists.txt.
#include "cmake/Precompiled.h"
#include "mlir/InitAllDialects.h"

#include <catch2/catch.hpp>
