//===- ExportNode.h - Operations as NodeDefs -------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_EXPORTNODE_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_EXPORTNODE_H

#include "dialects/dfg/tensorflow/NodeTable.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace distc::tf {

/// What all blocks of one module share.
struct ExportContext {
  explicit ExportContext(mlir::ModuleOp module);

  mlir::ModuleOp module;
  NodeTable table;
  llvm::StringMap<dfg::VariableOp> variables;
  /// Whether variables that a function captured are placeholders, as they were; a session needs handles.
  bool keepsCaptures = true;
};

class BlockExporter {
public:
  /// `arguments`: names of the block's arguments in a function.
  BlockExporter(ExportContext &shared, mlir::Block &block, llvm::ArrayRef<std::string> arguments, bool isFunction);

  mlir::LogicalResult run(google::protobuf::RepeatedPtrField<NodeDef> &nodes);
  /// How a node names `value` as its input.
  std::string getInput(mlir::Value value);

private:
  mlir::LogicalResult exportNode(mlir::Operation *op, NodeDef &node);
  mlir::LogicalResult exportAttributes(mlir::Operation *op, NodeDef &node);
  llvm::StringRef getName(mlir::Operation *op);

  ExportContext &shared;
  mlir::Block &block;
  llvm::ArrayRef<std::string> arguments;
  bool isFunction;
  llvm::DenseMap<mlir::Operation *, std::string> names;
};

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_EXPORTNODE_H
