//===- WholeValues.h - Values instead of handles, in functions ----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_PARTITION_WHOLEVALUES_H
#define DISTC_PASSES_DISTRIBUTE_PARTITION_WHOLEVALUES_H

#include "dialects/dfg/Dfg.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace distc {

/// Loops, conditions and calls that take a variable's handle and do nothing but read it can take its value. The
/// functions they run are copied for that, once for the same arguments.
class WholeValues {
public:
  explicit WholeValues(mlir::ModuleOp module);

  /// Whether `op` runs functions of the library on its operands, or lets one into a branch or a loop of version 1.
  static bool handsOn(mlir::Operation *op);

  /// Whether what takes the handle by `operand`, and what that hands it on to, only reads the variable. Another use is
  /// an error of `pass`.
  bool onlyReads(mlir::OpOperand &operand) const;

  /// Gives `op` values instead of handles, by operand. Fails with a diagnostic where a function does more than reading.
  llvm::LogicalResult pass(mlir::Operation *op, const llvm::MapVector<unsigned, mlir::Value> &values);

  /// Whether there was an operation here that values have made needless. It is not to be looked at.
  bool isGone(mlir::Operation *op) const { return gone.contains(op); }

private:
  using Seen = llvm::DenseSet<mlir::Value>;
  bool isOnlyRead(mlir::Value handle, Seen &seen) const;
  bool onlyReads(mlir::OpOperand &operand, Seen &seen) const;

  using Arguments = llvm::SmallVector<std::pair<unsigned, mlir::TensorType>>;

  llvm::LogicalResult letIn(mlir::Operation *op, mlir::Value value);
  llvm::LogicalResult useValue(mlir::Value value);
  llvm::FailureOr<mlir::FlatSymbolRefAttr> specialize(mlir::Operation *user, mlir::FlatSymbolRefAttr function,
                                                      const Arguments &arguments, bool isLoop);

  llvm::DenseSet<mlir::Operation *> gone;
  mlir::SymbolTable symbols;
  mlir::OpBuilder builder;
  std::map<std::pair<void *, llvm::SmallVector<std::pair<unsigned, void *>>>, mlir::FlatSymbolRefAttr> known;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_PARTITION_WHOLEVALUES_H
