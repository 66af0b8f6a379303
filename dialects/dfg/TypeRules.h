//===- TypeRules.h - How a node's types follow --------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What an operation's declaration says in `types` (NodeInterface::getTypeAttributes): which of its operands and results
// give the type attributes of the node, and what type its other results have.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TYPERULES_H
#define DISTC_DIALECTS_DFG_TYPERULES_H

#include "mlir/IR/Operation.h"

namespace distc::dfg {

/// One entry of NodeInterface::getTypeAttributes().
struct TypeRule {
  enum Source { OperandType, ResultType, OperandCount, ResultCount, OperandTypes, ResultTypes, FixedType };
  static constexpr int kAllResults = -1;

  /// The attribute's name with reference and with resource variables; the type's, where it is fixed.
  llvm::StringRef names[2];
  Source source;
  /// Of the operand (negative from the end) or result; added to a count.
  int index = 0;
  /// What a count is divided by.
  int divisor = 1;
};

llvm::SmallVector<TypeRule, 4> parseTypeRules(llvm::StringRef text);

/// Whether `control`, `device` and `tf` of a node are what the dialect's description says; fails with an error at `op`.
llvm::LogicalResult verifyCarried(mlir::Operation *op);

/// Whether the node's types are those of its rules: the operands that they name are there, a fixed result has its type,
/// every other one without a rule the first named operand's, and an element-wise node's operands agree. What is not
/// known (`!dfg.unknown`, resources) agrees with all. Fails with a diagnostic that names the result or operand.
llvm::LogicalResult verifyTypes(mlir::Operation *op, llvm::ArrayRef<TypeRule> rules);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_TYPERULES_H
