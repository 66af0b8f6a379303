//===- DrtDialect.cpp - The runtime's dialect ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "dialects/drt/DrtDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/drt/DrtOps.cpp.inc"

void distc::drt::DRTDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/drt/DrtOps.cpp.inc"
      >();
}
