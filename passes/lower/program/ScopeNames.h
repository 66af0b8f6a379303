//===- ScopeNames.h - What a timeline calls a piece of generated code -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_SCOPENAMES_H
#define DISTC_PASSES_LOWER_PROGRAM_SCOPENAMES_H

#include "mlir/IR/Operation.h"
#include <string>

namespace distc {

/// The nodes that an operation stands for, from its location, each once.
llvm::SmallVector<llvm::StringRef> listNodes(mlir::Location loc);

/// Their names as one: "hidden1/MatMul+BiasAdd+Relu". Names behind the first leave
/// out the scopes that they share with it.
std::string getNodeNames(mlir::Location loc);

/// The scope of an operation of an entry: its nodes' names, or what it does where it has none.
std::string getScopeName(mlir::Operation *op);

/// "kernel", "matmul", "conv", "pool", "copy", "all_reduce", "update", "random"; empty for what is no work (addresses,
/// fetches).
llvm::StringRef getScopeCategory(mlir::Operation *op);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_SCOPENAMES_H
