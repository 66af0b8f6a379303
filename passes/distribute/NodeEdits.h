//===- NodeEdits.h - Names and results of nodes that a pass adds or moves -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_NODEEDITS_H
#define DISTC_PASSES_DISTRIBUTE_NODEEDITS_H

#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace distc {

/// The result of `node` that a tensor's name means, "NODE:OUTPUT" or "NODE" for the first; null where there is none, or
/// only a handle.
mlir::Value getTensor(mlir::Operation *node, llvm::StringRef tensor);
/// The loss of `graph`; null where it names none.
mlir::Value getLoss(dfg::GraphOp graph);
/// `wanted`, or that with a number behind it, which no node of the block has.
std::string getFreeName(mlir::Block &block, const llvm::Twine &wanted);

/// The names of a block's nodes: where many are to be made, they are collected once.
class NodeNames {
public:
  explicit NodeNames(mlir::Block &block);

  /// `wanted`, with a number behind it where a node has that name; it is taken from now on.
  std::string take(const llvm::Twine &wanted);

private:
  llvm::StringSet<> taken;
};

/// Leaves the name of `node`, of which a replica has its share, to the node of the whole batch's value: it is
/// NAME/share from now on, and who waits for it goes on to wait for it.
void leaveName(mlir::Operation *node);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_NODEEDITS_H
