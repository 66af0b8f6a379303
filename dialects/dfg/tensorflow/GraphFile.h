//===- GraphFile.h - A graph's file, whatever its form ------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_GRAPHFILE_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_GRAPHFILE_H

#include "dialects/dfg/tensorflow/meta_graph.pb.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBufferRef.h"
#include <google/protobuf/arena.h>
#include <memory>

namespace distc::tf {

/// A MetaGraphDef in an arena of its own. A bare GraphDef is one with nothing around it.
struct GraphFile {
  std::string name;
  google::protobuf::Arena arena;
  MetaGraphDef *meta = nullptr;
  bool isMetaGraph = false;
};

/// Tells MetaGraphDef, GraphDef and SavedModel, binary and text, apart by what is in `buffer`. Null after a diagnostic
/// at the buffer's name.
std::unique_ptr<GraphFile> parseGraph(llvm::MemoryBufferRef buffer, mlir::MLIRContext *context);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_GRAPHFILE_H
