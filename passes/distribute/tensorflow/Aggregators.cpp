//===- Aggregators.cpp - Rules that outvote wrong gradients, in TensorFlow --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"

using namespace mlir;

namespace distc {

FailureOr<Value> aggregate(WorkerGraph &worker, Operation *op, dist::AggregatorAttr rule, Value stacked, int64_t count,
                           Type result) {
  return op->emitOpError() << "has aggregator '" << dist::stringifyAggregatorKind(rule.getKind())
                           << "', which export to TensorFlow does not have yet; use mean or sum";
}

} // namespace distc
