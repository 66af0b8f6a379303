//===- Passes.h - Passes on what code knows no operation or type for --*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_REWRITE_PASSES_H
#define DISTC_PASSES_REWRITE_PASSES_H

#include "dialects/dfg/Dfg.h"
#include "mlir/Pass/Pass.h"

namespace distc::rewrite {

#define GEN_PASS_DECL
#include "passes/rewrite/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/rewrite/Passes.h.inc"

} // namespace distc::rewrite

#endif // DISTC_PASSES_REWRITE_PASSES_H
