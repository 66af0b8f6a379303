//===- FixedLoss.cpp - The loss of a graph that fixes its batch ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/FixedLoss.h"
#include "dialects/dfg/NodeNames.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>

using namespace mlir;

namespace distc {

namespace {

/// In a graph that fixes its batch the sum over it that a loss is made of, where nothing divides that by a number of
/// rows. What divides by the batch's size is a number among others there, so that the replicas' gradients are averaged:
/// right of a mean, and not of a sum.
class FixedSums {
public:
  explicit FixedSums(const BatchFlow &flow) : flow(flow) {}

  Operation *find(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || flow.get(value).kind != Flow::Partial || !seen.insert(op).second)
      return nullptr;
    if (op->hasTrait<dfg::Divides>() && mayCountRows(op->getOperand(1)))
      return nullptr;
    if (llvm::isa<dfg::MulOp>(op) && llvm::any_of(op->getOperands(), [&](Value x) { return isShareOfRows(x); }))
      return nullptr;
    if (llvm::any_of(op->getOperands(), [&](Value x) { return flow.get(x).kind == Flow::Sharded; }))
      return llvm::isa<dfg::MeanOp>(op) ? nullptr : op;
    for (Value operand : op->getOperands())
      if (Operation *sum = find(operand))
        return sum;
    return nullptr;
  }

private:
  static std::optional<double> getNumber(Value value) {
    Operation *op = value.getDefiningOp();
    while (op && (op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::CastOp>(op)))
      op = op->getOperand(0).getDefiningOp();
    auto constant = llvm::dyn_cast_if_present<dfg::ConstOp>(op);
    auto splat = constant ? llvm::dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
    if (!splat)
      return std::nullopt;
    if (llvm::isa<FloatType>(splat.getElementType()))
      return splat.getSplatValue<APFloat>().convertToDouble();
    if (splat.getElementType().isInteger())
      return static_cast<double>(splat.getSplatValue<APInt>().getSExtValue());
    return std::nullopt;
  }

  bool isMultiple(double number) const {
    const double rows = number / static_cast<double>(flow.getFixedBatch());
    return rows > 0.5 && std::abs(rows - std::round(rows)) < 1e-5 * rows;
  }

  /// A number that is a multiple of the batch, or one that is computed: of sizes, of weights.
  bool mayCountRows(Value value) const {
    std::optional<double> number = getNumber(value);
    return !number || isMultiple(*number);
  }

  bool isShareOfRows(Value value) const {
    std::optional<double> number = getNumber(value);
    return number && *number > 0 && isMultiple(1 / *number);
  }

  const BatchFlow &flow;
  llvm::DenseSet<Operation *> seen;
};

} // namespace

LogicalResult checkFixedLoss(dfg::GraphOp graph, const BatchFlow &flow) {
  StringAttr loss = graph.getLossAttr();
  if (!loss || !flow.getFixedBatch() || flow.isEstimated())
    return success();
  auto [name, output] = loss.getValue().split(':');
  unsigned number = 0;
  for (Operation &op : graph.getBody().front()) {
    if (dfg::getNodeName(&op) != name)
      continue;
    if (!output.empty() && output.getAsInteger(10, number))
      return success();
    Operation *sum = number < op.getNumResults() ? FixedSums(flow).find(op.getResult(number)) : nullptr;
    if (!sum)
      return success();
    return sum->emitError() << "the loss '" << loss.getValue() << "' is a sum over the batch, node '"
                            << dfg::getNodeName(sum) << "' (" << sum->getName().stripDialect()
                            << "), which the graph fixes to the " << flow.getFixedBatch()
                            << " rows of each replica: gradients of sums are not told from those of means there; leave "
                               "the placeholders' first size open (None), divide the loss by the number of rows, or "
                               "name an aggregator, mean or sum, in the strategy";
  }
  return success();
}

} // namespace distc
