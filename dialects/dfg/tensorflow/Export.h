//===- Export.h - dfg to TensorFlow's graphs -------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_EXPORT_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_EXPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"

namespace distc::tf {

class MetaGraphDef;

/// The module's graph and library into `meta`; `isMetaGraph`: whether it was imported from a MetaGraphDef, so that more
/// than its graph_def is there. `keepsCaptures`: variables that a function captured are placeholders, as they were, and
/// not handles, which a session needs. Fails with a diagnostic at what TensorFlow has no form for.
mlir::LogicalResult exportGraph(mlir::ModuleOp module, MetaGraphDef &meta, bool &isMetaGraph,
                                bool keepsCaptures = true);

/// The same, written as what was imported: a MetaGraphDef or a GraphDef, binary or `text`.
mlir::LogicalResult exportGraph(mlir::ModuleOp module, llvm::raw_ostream &os, bool text = false);

/// As a MetaGraphDef, binary, whatever was imported: endpoints that no collection names are added to the collections,
/// and the graph's `more_collections`.
mlir::LogicalResult exportMetaGraph(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_EXPORT_H
