//===- BatchFlow.cpp - How the batch flows through a graph ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/BatchFlow.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace distc {
namespace {

/// A type that the graph does not say is taken for a float: nothing is computed with it elsewhere.
bool isFloat(Value value) { return llvm::isa<FloatType, dfg::UnknownType>(getElementTypeOrSelf(value.getType())); }

bool haveSameType(Value x, Value y) {
  Type typeX = getElementTypeOrSelf(x.getType()), typeY = getElementTypeOrSelf(y.getType());
  return typeX == typeY ||
         ((llvm::isa<dfg::UnknownType>(typeX) || llvm::isa<dfg::UnknownType>(typeY)) && isFloat(x) && isFloat(y));
}

dfg::Linearity getLinearity(Operation *op) {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  if (!node)
    return dfg::Linearity::None;
  // A cast to integers rounds.
  if (llvm::isa<dfg::CastOp>(op) && isFloat(op->getOperand(0)) && !isFloat(op->getResult(0)))
    return dfg::Linearity::None;
  return node.getLinearity();
}

/// The operands that the result depends on linearly, or might: not shapes, axes, indices and conditions.
SmallVector<Value> getData(Operation *op) {
  if (llvm::isa<dfg::CastOp>(op))
    return llvm::to_vector(op->getOperands());
  SmallVector<Value> data;
  if (op->getNumResults() == 0)
    return data;
  for (Value operand : op->getOperands())
    if (haveSameType(operand, op->getResult(0)))
      data.push_back(operand);
  // Of integers the others may be shapes and axes.
  if (!isFloat(op->getResult(0)) && !llvm::isa<dfg::ScalarInterface>(op) && data.size() > 1)
    data.resize(1);
  return data;
}

/// Whether a result without the batch's axis is a sum over it: reductions by sums, products, and gradients of
/// broadcasts.
bool sumsOverBatch(Operation *op) {
  if (llvm::isa<dfg::SumOp, dfg::MeanOp, dfg::L2LossOp, dfg::BiasAddGradOp, dfg::UnsortedSegmentSumOp, dfg::ScatterNdOp,
                dfg::FusedBatchNormGradOp, dfg::FusedBatchNormGradV2Op, dfg::FusedBatchNormGradV3Op>(op))
    return true;
  // Rows of the batch that are added where their indices say.
  if (llvm::isa<dfg::UnsortedSegmentSumOp, dfg::ScatterNdOp, dfg::TensorScatterAddOp, dfg::TensorScatterSubOp>(op))
    return true;
  return getLinearity(op) == dfg::Linearity::Each && !llvm::isa<dfg::ScalarInterface>(op);
}

bool isZeroConstant(Operation *op) {
  if (llvm::isa<dfg::ZerosLikeOp>(op))
    return true;
  auto constant = llvm::dyn_cast<dfg::ConstOp>(op);
  auto splat = constant ? llvm::dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  if (!splat)
    return false;
  if (llvm::isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().isZero();
  return splat.getElementType().isInteger() && splat.getSplatValue<APInt>().isZero();
}

std::optional<int> add(std::optional<int> x, std::optional<int> y) {
  return x && y ? std::optional<int>(*x + *y) : std::nullopt;
}

} // namespace

/// The scale of op's results and whether they are zero. `contracts`: they are sums over the batch.
Flow BatchFlow::getScale(Operation *op, bool contracts) const {
  Flow result;
  if (isZeroConstant(op)) {
    result.zero = true;
    return result;
  }
  SmallVector<Value> data = getData(op);
  dfg::Linearity linearity = getLinearity(op);
  auto estimate = [&](ArrayRef<Value> values) -> std::optional<int> {
    for (Value value : values)
      if (Flow flow = get(value); isFloat(value) && !flow.zero && flow.scale != 0)
        return std::nullopt;
    return 0;
  };
  switch (linearity) {
  case dfg::Linearity::Joint: {
    bool first = true;
    result.zero = !data.empty();
    for (Value operand : data) {
      Flow flow = get(operand);
      if (flow.zero)
        continue;
      result.zero = false;
      result.scale = first || result.scale == flow.scale ? flow.scale : std::nullopt;
      first = false;
    }
    break;
  }
  case dfg::Linearity::Each:
    for (Value operand : data) {
      result.scale = add(result.scale, get(operand).scale);
      result.zero |= get(operand).zero;
    }
    break;
  case dfg::Linearity::First:
  case dfg::Linearity::Last: {
    if (data.empty())
      break;
    bool first = linearity == dfg::Linearity::First;
    Value linear = first ? data.front() : data.back();
    ArrayRef<Value> others = first ? ArrayRef(data).drop_front() : ArrayRef(data).drop_back();
    result.zero = get(linear).zero;
    result.scale = get(linear).scale;
    if (llvm::isa<dfg::DivOp, dfg::RealDivOp, dfg::DivNoNanOp>(op) && others.size() == 1) {
      std::optional<int> divisor = get(others.front()).scale;
      result.scale = add(result.scale, divisor ? std::optional<int>(-*divisor) : std::nullopt);
    } else if (!estimate(others)) {
      result.scale = std::nullopt;
    }
    break;
  }
  case dfg::Linearity::None:
    if (llvm::isa<dfg::SquareOp, dfg::L2LossOp>(op))
      result.scale = add(get(data.front()).scale, get(data.front()).scale);
    else
      result.scale = estimate(llvm::to_vector(op->getOperands()));
    break;
  }
  if (!contracts)
    return result;
  // The sum has N times the terms; a mean divides by N times as many, if it divides by a multiple of b.
  if (!llvm::isa<dfg::MeanOp>(op)) {
    result.scale = add(result.scale, 1);
  } else if (auto sizes = shapes.getShape(op->getOperand(0))) {
    for (dfg::Dim size : *sizes)
      if (size.dependsOnBatch() && size.getOffset() != 0)
        result.scale = std::nullopt;
  }
  return result;
}

/// Whether op, none of whose operands is sharded, gives a partial value from partial ones.
bool BatchFlow::keepsPartial(Operation *op) const {
  SmallVector<Value> data = getData(op);
  for (Value operand : op->getOperands())
    if (Flow::Kind kind = get(operand).kind;
        kind == Flow::Local || (kind != Flow::Replicated && !llvm::is_contained(data, operand)))
      return false;
  auto isPartial = [&](Value value) { return get(value).kind == Flow::Partial; };
  switch (getLinearity(op)) {
  case dfg::Linearity::None:
    return false;
  case dfg::Linearity::Joint:
    return llvm::all_of(data, [&](Value value) { return isPartial(value) || get(value).zero; });
  case dfg::Linearity::Each:
    return llvm::count_if(data, isPartial) == 1;
  case dfg::Linearity::First:
    return isPartial(data.front()) && llvm::count_if(data, isPartial) == 1;
  case dfg::Linearity::Last:
    return isPartial(data.back()) && llvm::count_if(data, isPartial) == 1;
  }
  return false;
}

/// What synchronization gives: all replicas the same, or each its share; accumulated values are as one batch's.
bool BatchFlow::visitSynchronizer(Operation *op) {
  if (llvm::isa<dist::AllReduceOp, dist::AllGatherSlicesOp, dist::TakeOp, dist::PullOp>(op))
    return true;
  if (llvm::isa<dist::ReduceScatterOp, dist::TakeShareOp>(op)) {
    for (Value result : op->getResults())
      flows[result] = {Flow::Local, 0, 0, false};
    return true;
  }
  if (llvm::isa<dist::AccumulateOp>(op)) {
    for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults())) {
      flows[result] = get(operand);
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
    flows[pull.getRows()] = {get(pull.getIndices()).kind, get(pull.getIndices()).axis, 0, false};
    return true;
  }
  return false;
}

void BatchFlow::visit(Operation *op) {
  // Handles and what is read through them, and what updates give: the same everywhere.
  if (visitSynchronizer(op) ||
      llvm::isa<dfg::ReadVariableOp, dfg::VarHandleOp, dist::ShareHandleOp, dfg::IsInitializedOp, dfg::UpdateInterface>(
          op))
    return;
  bool sharded = false, other = false;
  for (Value operand : op->getOperands()) {
    Flow::Kind kind = get(operand).kind;
    sharded |= kind == Flow::Sharded;
    other |= kind == Flow::Partial || kind == Flow::Local;
  }
  bool modeled = llvm::isa<dfg::ShapeInterface>(op);
  for (Value result : op->getResults()) {
    if (std::optional<dfg::Dims> elements = shapes.getElements(result)) {
      // Shape arithmetic: its scale is that of its elements, if they have one in common.
      Flow flow;
      bool constant = llvm::all_of(*elements, [](dfg::Dim dim) { return dim.isConstant(); });
      bool multiple =
          llvm::all_of(*elements, [](dfg::Dim dim) { return dim.dependsOnBatch() && dim.getOffset() == 0; });
      flow.scale = constant ? std::optional<int>(0) : multiple ? std::optional<int>(1) : std::nullopt;
      flow.zero = isZeroConstant(op);
      flows[result] = flow;
      continue;
    }
    std::optional<dfg::Dims> sizes = shapes.getShape(result);
    bool known = sizes && llvm::all_of(*sizes, [](dfg::Dim size) { return size.isKnown(); });
    auto axis = sizes ? llvm::find_if(*sizes, [](dfg::Dim size) { return size.dependsOnBatch(); }) : nullptr;
    bool batched = sizes && axis != sizes->end();
    bool contracts = sharded && !batched && sumsOverBatch(op);
    Flow flow = getScale(op, contracts);
    if (fixedBatch && flow.scale)
      flow.scale = 0;
    if (batched) {
      flow.kind = Flow::Sharded;
      flow.axis = axis - sizes->begin();
    } else if (!modeled && (sharded || other)) {
      flow = {Flow::Local, 0, std::nullopt, false};
    } else if (sharded) {
      flow.kind = contracts && known && flow.scale ? Flow::Partial : Flow::Local;
    } else if (other) {
      flow.kind = keepsPartial(op) && flow.scale ? Flow::Partial : Flow::Local;
    }
    flows[result] = flow;
  }
}

/// Where no placeholder leaves the batch open: the first size that all have in common.
void BatchFlow::findBatch(Block &block) {
  SmallVector<dfg::PlaceholderOp> feeds;
  for (auto feed : block.getOps<dfg::PlaceholderOp>()) {
    auto type = llvm::dyn_cast<RankedTensorType>(feed.getResult().getType());
    if (!type || (type.getRank() > 0 && type.isDynamicDim(0)))
      return;
    if (type.getRank() == 0)
      continue;
    if (!feeds.empty() && type.getDimSize(0) != fixedBatch) {
      fixedBatch = 0;
      return;
    }
    fixedBatch = type.getDimSize(0);
    feeds.push_back(feed);
  }
  for (auto feed : feeds) {
    dfg::Dims sizes = *shapes.getShape(feed.getResult());
    sizes[0] = dfg::Dim::batch();
    shapes.setShape(feed.getResult(), std::move(sizes));
  }
}

/// A graph that fixes its batch has it as a number in shapes too ([32, -1]), which meets b and makes sizes unknown or
/// fixed: takes a first size that is a multiple of the batch as one of b, where a sharded operand says that it may be.
void BatchFlow::restoreBatchAxis(Operation *op) {
  if (llvm::none_of(op->getOperands(), [&](Value operand) { return get(operand).kind == Flow::Sharded; }))
    return;
  for (Value result : op->getResults()) {
    std::optional<dfg::Dims> sizes = shapes.getShape(result);
    auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
    if (!sizes || sizes->empty() || llvm::any_of(*sizes, [](dfg::Dim size) { return size.dependsOnBatch(); }))
      continue;
    dfg::Dim &first = sizes->front();
    bool lost = !first.isKnown();
    int64_t size = first.isConstant() ? first.getConstant() : type && !type.isDynamicDim(0) ? type.getDimSize(0) : -1;
    if (size <= 0 || size % fixedBatch || (!lost && sumsOverBatch(op)))
      continue;
    first = dfg::Dim::batch(size / fixedBatch);
    shapes.setShape(result, std::move(*sizes));
  }
}

llvm::FailureOr<BatchFlow> BatchFlow::compute(dfg::GraphOp graph) {
  BatchFlow flow;
  Block &block = graph.getBody().front();
  flow.findBatch(block);
  for (Operation &op : block) {
    if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op))
      if (failed(node.inferShapes(flow.shapes)))
        return failure();
    if (flow.fixedBatch)
      flow.restoreBatchAxis(&op);
    flow.visit(&op);
  }
  return flow;
}

std::string BatchFlow::explain(Value value) const {
  Flow flow = get(value);
  std::string text;
  llvm::raw_string_ostream os(text);
  int hidden = 0;
  switch (flow.kind) {
  case Flow::Replicated:
    os << "replicated";
    break;
  case Flow::Sharded:
    os << "sharded(" << flow.axis << ")";
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
  else if (!flow.scale)
    os << " * ?";
  else if (*flow.scale != hidden)
    os << " * N^" << *flow.scale;
  return text;
}

} // namespace distc
