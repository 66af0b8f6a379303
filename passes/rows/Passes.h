//===- Passes.h - Passes on rows whose number data decide ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_ROWS_PASSES_H
#define DISTC_PASSES_ROWS_PASSES_H

#include "dialects/dfg/Dfg.h"
#include "mlir/Pass/Pass.h"

namespace distc::rows {

#define GEN_PASS_DECL
#include "passes/rows/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/rows/Passes.h.inc"

} // namespace distc::rows

#endif // DISTC_PASSES_ROWS_PASSES_H
