//===- AllReduce.cpp - Every gradient is all-reduced, in groups -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"

namespace distc::strategies {

Builder makeAllReduce() {
  return {"AllReduce", "every gradient is all-reduced, in groups of chunk_size variables or bucket_mb MiB",
          getAllReduceParameters(), [](BuildState &build) { return allReduceAll(build, keepWhole); }};
}

} // namespace distc::strategies
