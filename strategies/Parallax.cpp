//===- Parallax.cpp - Dense gradients are all-reduced, sparse ones go to servers ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makeParallax() {
  return {"Parallax",
          "dense gradients are all-reduced, variables with sparse ones are on the servers with fewest bytes",
          join(getAllReduceParameters(), getServerParameters()), [](BuildState &build) -> llvm::Error {
            Entries entries(build, makeGreedyPlacement(build.resources.getReductionDevices().size()));
            for (const VariableFacts &variable : build.facts.variables) {
              if (!variable.needsStrategy())
                continue;
              if (variable.gradient == Gradient::Sparse)
                entries.addToServers(variable);
              else
                entries.addAllReduced(variable);
            }
            entries.finish();
            return llvm::Error::success();
          }};
}

} // namespace distc::strategies
