//===- Sequences.cpp - Losses of sequences -----------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"

using namespace mlir;

namespace distc::dfg::decompositions {

/// Operands: inputs [steps, example, class], the labels' places [n, 2] and values, lengths. Labels become a row an
/// example, behind its last -1.
Result ctcLoss(Operation *op, GraphBuilder &g) {
  FailureOr<Dims> sizes = g.getShape(op->getOperand(0));
  if (failed(sizes) || sizes->size() != 3)
    return failure();
  if (!sizes->front().isConstant() || !sizes->back().isConstant())
    return g.fail("how many steps or classes there are is not known");
  const int64_t steps = sizes->front().getConstant();
  Type wide = g.builder.getI64Type();
  Value inputs = g.transpose(op->getOperand(0), {1, 0, 2}), places = op->getOperand(1);
  // No path has more labels than steps: what more there is is one label too many.
  Value place = g.concat(
      {g.slice(places, 1, 0, 1), g.minimum(g.slice(places, 1, 1, 1), g.scalar(wide, static_cast<double>(steps)))}, 1);
  Value none =
      g.make<FillOp>({g.sizes({(*sizes)[1], Dim(steps + 1)}, inputs), g.integer(-1)}, {}, g.builder.getI32Type());
  Value labels = g.make<TensorScatterUpdateOp>({none, place, op->getOperand(2)});
  SmallVector<NamedAttribute> flags;
  for (StringRef name : {"preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs"})
    flags.push_back(g.flag(name, getFlag(op, name)));
  Type element = g.elementOf(inputs);
  auto results = g.makeAll<CtcLossRowsOp>({inputs, labels, op->getOperand(3)}, {element, element}, flags);
  if (results.empty())
    return failure();
  return SmallVector<Value>{results[0], g.transpose(results[1], {1, 0, 2})};
}

} // namespace distc::dfg::decompositions
