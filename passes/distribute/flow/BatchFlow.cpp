//===- BatchFlow.cpp - How the batch flows through a graph ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/BatchFlow.h"
#include "dialects/dfg/Numbers.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/OperandRoles.h"

using namespace mlir;

namespace distc {

/// As prove, where a replica's own values may take the place of the whole batch's.
Flow BatchFlow::estimate(Operation *op, Value result) const {
  bool sharded = false, other = false;
  for (Value operand : op->getOperands()) {
    Flow::Kind kind = get(operand).kind;
    sharded |= kind == Flow::Sharded;
    other |= kind == Flow::Partial || kind == Flow::Local;
  }
  std::optional<dfg::Dims> sizes = shapes.getShape(result);
  bool known = sizes && llvm::all_of(*sizes, [](dfg::Dim size) { return size.isKnown(); });
  auto axis = sizes ? llvm::find_if(*sizes, [](dfg::Dim size) { return size.dependsOnBatch(); }) : nullptr;
  bool batched = sizes && axis != sizes->end();
  bool contracts = sharded && !batched && sumsOverBatch(op);
  Flow flow = estimateScale(op, contracts);
  // Of sizes that are not known it is open whether the batch is among those that were added up.
  if (sharded && !known && !batched && sumsOverBatch(op) && !flow.zero)
    flow.scale = std::nullopt;
  flow.cause = op;
  if (batched) {
    flow.kind = Flow::Sharded;
    flow.batch = {axis - sizes->begin(), {axis->getScale()}, false};
  } else if (!llvm::isa<dfg::ShapeInterface>(op) && (sharded || other)) {
    flow = getUnproven(op);
  } else if (sharded) {
    flow.kind = contracts && known && flow.scale ? Flow::Partial : Flow::Local;
  } else if (other) {
    flow.kind = keepsPartial(op) && flow.scale ? Flow::Partial : Flow::Local;
  }
  return flow;
}

void BatchFlow::visit(Operation *op) {
  // Handles and what is read through them, and what updates give: the same everywhere.
  if (visitSynchronizer(op) ||
      llvm::isa<dfg::ReadVariableOp, dfg::VarHandleOp, dist::ShareHandleOp, dfg::IsInitializedOp, dfg::UpdateInterface>(
          op))
    return;
  if (llvm::isa<dfg::PlaceholderOp>(op)) {
    Flow &flow = flows[op->getResult(0)];
    auto sizes = shapes.getShape(op->getResult(0));
    if (sizes && !sizes->empty() && sizes->front().isMultipleOfBatch()) {
      flow.kind = Flow::Sharded;
      flow.batch.segments = {sizes->front().getScale()};
    }
    return;
  }
  for (OpResult result : op->getResults()) {
    std::optional<Flow> flow = followElements(op, result);
    if (!flow) {
      flow = prove(op, result);
      if (flow->kind == Flow::Local && estimates)
        flow = estimate(op, result);
      // What few rows of many say does not grow with their number, as a sum over all of them would.
      if (estimates && flow->kind == Flow::Sharded) {
        if (fillsFewRows(op))
          flow->scale = addScales(flow->scale, -1);
        else if ((llvm::isa<dfg::SelectOp, dfg::SelectV2Op>(op) && namesByPosition(op->getOperand(0))) ||
                 (llvm::isa<dfg::StridedSliceGradOp>(op) && !hasKnownSizes(op->getOperand(4))))
          flow->scale = std::nullopt;
      }
      if (fixed && estimates && !ofOneReplica && flow->scale)
        flow->scale = 0;
      // A scale is all that is known of these.
      flow->ofShare |= flow->kind == Flow::Replicated && !flow->zero && flow->scale != 0 && hasUnknownElements(result);
      if (!fixed && flow->kind == Flow::Sharded)
        noteRows(result, flow->batch);
    }
    flows[result] = std::move(*flow);
  }
}

/// Where rows are proven to be and their number is not known by the shapes, it is from now on: who asks for the shape
/// is told a size of the share.
void BatchFlow::noteRows(Value value, const BatchAxis &batch) {
  std::optional<dfg::Dims> sizes = shapes.getShape(value);
  if (!sizes || batch.axis >= static_cast<int64_t>(sizes->size()) || (*sizes)[batch.axis].isKnown() ||
      (*sizes)[batch.axis].isBound())
    return;
  int64_t rows = 0;
  for (int64_t segment : batch.segments)
    rows += segment;
  (*sizes)[batch.axis] = dfg::Dim::batch(rows);
  shapes.setShape(value, *sizes);
}

bool BatchFlow::hasUnknownElements(Value value) const {
  auto elements = shapes.getElements(value);
  return elements && llvm::any_of(*elements, [](dfg::Dim element) { return !element.isKnown(); });
}

bool BatchFlow::hasKnownSizes(Value value) const {
  auto sizes = shapes.getShape(value);
  return sizes && llvm::all_of(*sizes, [](dfg::Dim size) { return size.isKnown(); });
}

bool BatchFlow::hasBatchSize(Value value) const {
  auto sizes = shapes.getShape(value);
  return sizes && llvm::any_of(*sizes, [](dfg::Dim size) { return size.dependsOnBatch(); });
}

LogicalResult BatchFlow::revisit(Operation *op) {
  // What its rows are, its type does not say where the graph fixes its batch.
  if (fixed && llvm::isa<dfg::PlaceholderOp>(op))
    return success();
  for (Value result : op->getResults()) {
    shapes.forget(result);
    flows.erase(result);
    growths.erase(result);
  }
  if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op))
    if (failed(node.inferShapes(shapes)))
      return failure();
  // What numbers count was found of the whole graph, before anything in it changed.
  if (fixed)
    visitFixed(op, /*learns=*/false);
  else
    visit(op);
  return success();
}

llvm::FailureOr<BatchFlow> BatchFlow::compute(dfg::GraphOp graph) {
  BatchFlow flow;
  auto module = graph->getParentOfType<ModuleOp>();
  if (module)
    flow.shapes.setReplicas(dist::getReplicas(module));
  flow.estimates = module && module->hasAttr(dist::kCouplingAttr);
  if (failed(flow.follow(graph)))
    return failure();
  return flow;
}

llvm::FailureOr<BatchFlow> BatchFlow::computeOfOneReplica(dfg::GraphOp graph) {
  BatchFlow flow;
  flow.estimates = flow.ofOneReplica = true;
  if (failed(flow.follow(graph)))
    return failure();
  return flow;
}

LogicalResult BatchFlow::follow(dfg::GraphOp graph) {
  Block &block = graph.getBody().front();
  const dfg::ShapeContext unknown = shapes;
  while (true) {
    fixed.learned = false;
    shapes = unknown;
    flows.clear();
    growths.clear();
    setFixedBatch(graph);
    for (Operation &op : block) {
      if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op))
        if (failed(node.inferShapes(shapes)))
          return failure();
      if (fixed)
        visitFixed(&op, /*learns=*/true);
      else
        visit(&op);
    }
    if (!fixed || (!fixed.learned && fixed.question == FixedBatch::Shares))
      return success();
    // What was learned of a number holds where it is made, too.
    fixed.question = fixed.learned ? FixedBatch::Rows : FixedBatch::Question(fixed.question + 1);
  }
}

std::string BatchFlow::explain(Value value) const {
  const Flow &flow = get(value);
  std::string text;
  llvm::raw_string_ostream os(text);
  int hidden = 0;
  switch (flow.kind) {
  case Flow::Replicated:
    os << "replicated";
    break;
  case Flow::Sharded:
    os << "sharded(" << flow.batch.axis;
    if (flow.batch.segments.size() > 1 && !flow.batch.uniform) {
      os << " in segments ";
      llvm::interleave(flow.batch.segments, os, "+");
    }
    os << ")" << (flow.batch.uniform ? ", uniform" : "");
    break;
  case Flow::Partial:
    hidden = flow.scale == 1 ? 1 : 0;
    os << (hidden ? "partial sum" : "partial mean");
    break;
  case Flow::Local:
    os << "local";
    break;
  }
  if (flow.zero)
    os << ", zero";
  else if (flow.kind == Flow::Local)
    return text;
  else if (!flow.scale)
    os << " * ?";
  else if (*flow.scale != hidden)
    os << " * N^" << *flow.scale;
  return text;
}

} // namespace distc
