//===- Colocations.h - What nodes ask to be placed with -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_COLOCATIONS_H
#define DISTC_DIALECTS_DFG_COLOCATIONS_H

#include "dialects/dfg/Dfg.h"

namespace distc::dfg {

/// What becomes of one colocation: the names of nodes to be placed with instead, none to ask for nothing.
using ColocationMap = llvm::function_ref<llvm::SmallVector<std::string>(llvm::StringRef)>;

/// Replaces each node that `op`'s attribute `_class` of TensorFlow names ("loc:@NAME") by what `map` says. TensorFlow
/// refuses a graph in which a node is colocated with one that is not there.
void mapColocations(mlir::Operation *op, ColocationMap map);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_COLOCATIONS_H
