//===- Import.h - TensorFlow's graphs into dfg ----------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A module of `dfg.variable`s, library functions (`dfg.func`) and one `dfg.graph`.
// The graph's attributes:
//
//   train_op, init_op   node names      from the collections of the same names;
//   loss                tensor name     a name with several candidates is not set,
//   candidates          dictionary      they stand here: {train_op = ["a", "b"]}
//   feeds               tensor names    of all placeholders
//   saver               dictionary      filename, save (tensor names), restore (node name)
//   versions            dictionary      producer, min_consumer
//   objects             dictionary      of a SavedModel of TensorFlow 2: `graph`, what its checkpoints say of the
//   objects that
//                                       own the variables (a serialized TrackableObjectGraph), and `keys`, under which
//                                       its checkpoints have the variables
//   slices              dictionary      variable -> {of, shape, at, sizes}: of variables that checkpoints have as a
//   slice of one
//                                       tensor (SavedSlices.h)
//   collections         #dfg.raw        the MetaGraphDef without its graph's nodes and functions, for
//                                       export; absent where the file was a bare GraphDef
//
// Without such collections, the endpoints are those of the SavedModel's signatures that update variables, or the
// results of the concrete function whose graph this is. Variables that it captured have the kind "captured": in the
// graph they are placeholders.
//
// A node's unmodelled attributes are in its `tf`; there, names that begin with `$`
// (NodeTable.h) say how the node was written.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_IMPORT_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace distc::tf {

/// The graph in `path`: MetaGraphDef or GraphDef, binary or text, or a SavedModel's folder; "-" is standard input. What
/// it is is told by content. Null after a diagnostic that names the file and the node.
mlir::OwningOpRef<mlir::ModuleOp> importGraph(llvm::StringRef path, mlir::MLIRContext *context);
mlir::OwningOpRef<mlir::ModuleOp> importGraph(llvm::MemoryBufferRef buffer, mlir::MLIRContext *context);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_IMPORT_H
