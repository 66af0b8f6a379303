//===- FunctionUpdates.h - Updates in functions that a graph runs -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_FUNCTIONUPDATES_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_FUNCTIONUPDATES_H

#include "dialects/dfg/Dfg.h"
#include "mlir/IR/SymbolTable.h"

namespace distc {

/// The kind of an operation without semantics that may update the variable whose handle it takes.
enum class UnknownUpdate { None, Dense, Sparse };
UnknownUpdate getUnknownUpdate(mlir::Operation *op);

/// Which operations run functions (calls, conditions, loops) that may update a variable. Each function is looked at
/// once.
class FunctionUpdates {
public:
  explicit FunctionUpdates(mlir::ModuleOp module) : symbols(module) {}

  /// A node inside of such a function that updates a variable; null where there is none, or `op` runs no function.
  mlir::Operation *find(mlir::Operation *op);

private:
  mlir::Operation *findIn(mlir::FlatSymbolRefAttr function);

  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Attribute, mlir::Operation *> known;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_FUNCTIONUPDATES_H
