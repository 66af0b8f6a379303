//===- CollectiveFlow.cpp - How the batch flows through what replicas exchange ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/flow/OperandRoles.h"

using namespace mlir;

namespace distc {

bool isCoupling(Operation *op) {
  if (auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op))
    return reduce.getCoupling();
  return op->hasTrait<dist::Couples>();
}

/// What the step's own values are computed from: the whole batch's only where the replicas' values make it.
bool BatchFlow::visitCoupling(Operation *op) {
  auto set = [&](Value result, std::optional<Flow> flow) { flows[result] = flow ? std::move(*flow) : getUnproven(op); };
  if (ofOneReplica && isCoupling(op)) {
    for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults())) {
      Flow flow = get(operand);
      flows[result] = std::move(flow);
    }
    return true;
  }
  if (auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op); reduce && reduce.getCoupling()) {
    for (auto [operand, result] : llvm::zip(reduce.getGradients(), reduce.getReduced())) {
      const Flow &at = get(operand);
      Flow flow;
      flow.zero = at.zero;
      flow.scale = at.zero ? 0 : addScales(at.scale, reduce.getReduction() == dist::Reduction::Sum ? -1 : 0);
      bool adds = at.kind == Flow::Partial || at.kind == Flow::Replicated;
      set(result, adds && flow.scale ? std::optional(std::move(flow)) : std::nullopt);
    }
    return true;
  }
  if (auto gather = llvm::dyn_cast<dist::AllGatherOp>(op)) {
    const Flow &at = get(gather.getRows());
    Flow flow;
    flow.zero = at.zero;
    flow.scale = at.scale;
    bool joins = at.isSharded(0) && (at.batch.uniform || at.batch.segments.size() == 1);
    set(gather.getAllRows(), joins ? std::optional(std::move(flow)) : std::nullopt);
    return true;
  }
  if (auto rows = llvm::dyn_cast<dist::TakeRowsOp>(op)) {
    Flow flow = get(rows.getAllRows());
    auto sizes = shapes.getShape(rows.getRows());
    bool hasRows = flow.kind == Flow::Replicated && flow.scale && sizes && !sizes->empty() &&
                   sizes->front().isMultipleOfBatch() && sizes->front().getScale() > 0;
    flow.kind = Flow::Sharded;
    if (hasRows)
      flow.batch = {0, {sizes->front().getScale()}, false};
    set(rows.getRows(), hasRows ? std::optional(std::move(flow)) : std::nullopt);
    return true;
  }
  if (auto rescale = llvm::dyn_cast<dist::RescaleOp>(op)) {
    Flow flow = get(rescale.getShare());
    if (flow.scale)
      *flow.scale -= static_cast<int>(rescale.getPowerAttr().getInt());
    set(rescale.getWhole(), std::move(flow));
    return true;
  }
  if (auto size = llvm::dyn_cast<dist::WholeSizeOp>(op)) {
    auto elements = shapes.getElements(size.getShare());
    bool isSize = elements && elements->size() == size.getFactors().size() &&
                  llvm::all_of(llvm::zip(*elements, size.getFactors()), [&](auto both) {
                    auto [element, factor] = both;
                    return factor == 1 ? element.isKnown() && !element.dependsOnBatch()
                                       : element.isMultipleOfBatch() && factor == shapes.getReplicas();
                  });
    set(size.getWhole(), isSize ? std::optional(Flow()) : std::nullopt);
    return true;
  }
  return false;
}

/// What synchronization gives: all replicas the same, or each its share; accumulated values are as one batch's.
bool BatchFlow::visitSynchronizer(Operation *op) {
  if (visitCoupling(op))
    return true;
  if (op->hasTrait<dist::GivesAll>() || llvm::isa<dist::TakeOp, dist::PullOp>(op))
    return true;
  if (llvm::isa<dist::ReduceScatterOp, dist::TakeShareOp>(op)) {
    for (Value result : op->getResults())
      flows[result].kind = Flow::Local;
    return true;
  }
  if (llvm::isa<dist::AccumulateOp>(op)) {
    for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults())) {
      Flow flow = get(operand);
      flows[result] = std::move(flow);
      if (auto sizes = shapes.getShape(operand))
        shapes.setShape(result, std::move(*sizes));
    }
    return true;
  }
  if (auto pull = llvm::dyn_cast<dist::PullRowsOp>(op)) {
    auto type = llvm::dyn_cast<RankedTensorType>(pull.getRows().getType());
    auto sizes = shapes.getShape(pull.getIndices());
    if (type && sizes) {
      for (int64_t size : type.getShape().drop_front(sizes->size()))
        sizes->push_back(ShapedType::isDynamic(size) ? dfg::Dim() : dfg::Dim(size));
      shapes.setShape(pull.getRows(), std::move(*sizes));
    }
    Flow flow = get(pull.getIndices());
    flow.scale = 0;
    flow.zero = false;
    flows[pull.getRows()] = std::move(flow);
    return true;
  }
  return false;
}

} // namespace distc
