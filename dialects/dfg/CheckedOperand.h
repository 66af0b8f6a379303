//===- CheckedOperand.h - Operands that can end the program -----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_CHECKEDOPERAND_H
#define DISTC_DIALECTS_DFG_CHECKEDOPERAND_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace distc::dfg {

/// An operand whose elements end the program where they are wrong: a divisor, indices, labels, what must be a number.
struct CheckedOperand {
  unsigned index;
  int64_t harmless; // an element that never is wrong
};

/// That of `op`; none where no element of its operands is an error. Who computes what is not asked for (a branch that
/// is not chosen, rows that a mask leaves out) gives it harmless elements.
std::optional<CheckedOperand> getCheckedOperand(mlir::Operation *op);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_CHECKEDOPERAND_H
