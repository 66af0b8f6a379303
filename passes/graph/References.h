//===- References.h - Reference variables ------------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_REFERENCES_H
#define DISTC_PASSES_GRAPH_REFERENCES_H

#include "dialects/dfg/Dfg.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace distc {

/// The names of the module's reference variables, those of version 1: what is read of one is its memory, where the
/// value is used.
inline llvm::StringSet<> getReferences(mlir::ModuleOp module) {
  llvm::StringSet<> references;
  for (auto variable : module.getOps<dfg::VariableOp>())
    if (variable.getKind() == "ref")
      references.insert(variable.getSymName());
  return references;
}

} // namespace distc

#endif // DISTC_PASSES_GRAPH_REFERENCES_H
