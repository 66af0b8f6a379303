//===- DescribeUnproven.h - What stands in the way of a proof, in words ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_DESCRIBEUNPROVEN_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_DESCRIBEUNPROVEN_H

#include "passes/distribute/flow/BatchFlow.h"

#include <string>

namespace distc {

/// Why nothing is proven of the results of `cause` (Flow::cause), for errors: "which ...".
std::string describeUnproven(mlir::Operation *cause, const BatchFlow &flow);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_DESCRIBEUNPROVEN_H
