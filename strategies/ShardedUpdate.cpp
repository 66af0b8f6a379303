//===- ShardedUpdate.cpp - Each replica updates its share of the variables ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"
#include "llvm/ADT/StringExtras.h"

namespace distc::strategies {

Builder makeShardedUpdate() {
  return {
      "ShardedUpdate", "each replica updates its share of every group of variables, and alone holds its slots (ZeRO)",
      join({Parameter::choice("stage", "2", "1: gradients are all-reduced; 2: they are reduce-scattered", {"1", "2"})},
           getAllReduceParameters(/*bucketMb=*/"25")),
      [](BuildState &build) -> llvm::Error {
        int stage = build.arguments.getInteger("stage");
        Entries entries(build);
        llvm::SmallVector<llvm::StringRef> sparse;
        for (const VariableFacts &variable : build.facts.variables) {
          if (!variable.needsStrategy())
            continue;
          // A share is a range of elements of a group; rows that are gathered are not in any order.
          bool isSparse = variable.gradient == Gradient::Sparse;
          if (isSparse)
            sparse.push_back(variable.name);
          entries.addAllReduced(variable, Split::whole(), isSparse ? 0 : stage);
        }
        entries.finish();
        if (!sparse.empty())
          build.remarks.push_back("updated whole by every replica, as their gradients are of rows: " +
                                  llvm::join(sparse, ", "));
        return llvm::Error::success();
      }};
}

} // namespace distc::strategies
