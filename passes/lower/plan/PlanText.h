//===- PlanText.h - The schedule as --plan prints it --------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_PLANTEXT_H
#define DISTC_PASSES_LOWER_PLAN_PLANTEXT_H

#include "dialects/drt/Drt.h"
#include <string>

namespace distc {

/// One line an operation of the entry: what it does, for which nodes, the bytes that it writes and where.
std::string getPlanText(drt::EntryOp entry);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_PLANTEXT_H
