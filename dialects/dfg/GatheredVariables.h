//===- GatheredVariables.h - Rows of variables -------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_GATHEREDVARIABLES_H
#define DISTC_DIALECTS_DFG_GATHEREDVARIABLES_H

#include "dialects/dfg/Dfg.h"

namespace distc::dfg {

/// Makes of each node that takes rows of a variable (ResourceGather, ResourceGatherNd) a read of the variable, and one
/// that takes rows of its value, which has the node's name.
void readGatheredVariables(mlir::Block &block);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_GATHEREDVARIABLES_H
