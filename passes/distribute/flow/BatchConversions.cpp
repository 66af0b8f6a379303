//===- BatchConversions.cpp - Values in another form of the batch's flow ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/BatchConversions.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace distc {
namespace {

bool isFloat(Value value) { return llvm::isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// A tensor type with `sizes`; null where the element type is not known.
RankedTensorType getType(Value like, ArrayRef<dfg::Dim> sizes) {
  Type element = getElementTypeOrSelf(like.getType());
  if (!llvm::isa<FloatType, IntegerType>(element))
    return {};
  return llvm::cast<RankedTensorType>(dfg::getTensorType(sizes, element));
}

/// Whether `op` may be made again, or of other operands.
bool isFunction(Operation *op) {
  return op && isMemoryEffectFree(op) && !op->hasTrait<dfg::DrawsNumbers>() && op->getNumOperands() > 0;
}

} // namespace

BatchConversions::BatchConversions(dfg::GraphOp graph, BatchFlow &flow, int64_t replicas)
    : builder(graph.getContext()), flow(flow), replicas(replicas),
      scope(getFreeName(graph.getBody().front(), "coupling")) {
  // Conversions that were made before have the scope as well.
  for (Operation &op : graph.getBody().front())
    if (llvm::StringRef name = dfg::getNodeName(&op); name.starts_with(scope + "/"))
      names.insert(name);
  // What was reduced before.
  for (auto reduce : graph.getBody().front().getOps<dist::AllReduceOp>())
    if (reduce.getCoupling())
      for (auto [partial, result] : llvm::zip(reduce.getGradients(), reduce.getReduced()))
        if (flow.isWhole(result))
          whole[partial] = reduced[partial] = result;
}

LogicalResult BatchConversions::revisit(Operation *op) {
  ScopedDiagnosticHandler silent(op->getContext(), [](Diagnostic &) { return success(); });
  return flow.revisit(op);
}

Value BatchConversions::add(Operation *op) {
  made.push_back(op);
  if (failed(revisit(op)))
    return {};
  return op->getResult(0);
}

Location BatchConversions::locate(llvm::StringRef what, Value value) {
  // Names of what stands behind a conversion have the scope already.
  llvm::StringRef node = dfg::getNodeName(value.getDefiningOp());
  std::string name = ((node.starts_with(scope + "/") ? "" : scope + "/") + node + "/" + what).str();
  const std::string base = name;
  for (unsigned count = 1; !names.insert(name).second; ++count)
    name = base + "_" + std::to_string(count);
  return NameLoc::get(builder.getStringAttr(name));
}

llvm::StringRef BatchConversions::getSource(Value value) const {
  Operation *op = value.getDefiningOp();
  while (llvm::isa<dist::RescaleOp>(op) || (llvm::isa<dfg::TransposeOp>(op) && llvm::is_contained(made, op)))
    op = op->getOperand(0).getDefiningOp();
  return dfg::getNodeName(op);
}

Value BatchConversions::constant(Value before, ArrayRef<int32_t> values, bool scalar) {
  auto shape = scalar ? SmallVector<int64_t>() : SmallVector<int64_t>{static_cast<int64_t>(values.size())};
  auto type = RankedTensorType::get(shape, builder.getI32Type());
  return create<dfg::ConstOp>(before, scalar ? "axis" : "axes", type, DenseElementsAttr::get(type, values));
}

// ---- To the whole batch's value -----------------------------------------------------------------

Value BatchConversions::makeWhole(Value value) {
  if (flow.isWhole(value))
    return value;
  if (auto it = whole.find(value); it != whole.end())
    return it->second;
  if (dfg::isHandle(value.getType()) || !underWay.insert(value).second)
    return {};
  Value result = convert(value);
  underWay.erase(value);
  if (result && !flow.isWhole(result))
    result = {};
  // A function of sums is whole itself now; what is not may be where more is known of its operands.
  if (result && result != value)
    whole[value] = result;
  return result;
}

Value BatchConversions::convert(Value value) {
  const Flow at = flow.get(value);
  switch (at.kind) {
  case Flow::Replicated:
    if (Value size = makeSizeWhole(value))
      return size;
    return at.scale && isFloat(value) ? rescale(value) : recompute(value);
  case Flow::Partial:
    return reduce(value);
  case Flow::Sharded:
    return gather(value);
  case Flow::Local:
    if (flow.hasBatchSize(value) || !makeOperandsWhole(value.getDefiningOp()))
      return {};
    return value;
  }
  return {};
}

/// Whether a scalar is computed of sizes and constants alone, and is no multiple of a size.
bool BatchConversions::isComputedOfSizes(Value value) const {
  constexpr unsigned kMaxNodes = 16;
  auto isSize = [&](Value value) { return flow.getShapes().getElements(value).has_value(); };
  SmallVector<Value> pending = {value};
  for (size_t i = 0; i < pending.size(); ++i) {
    Operation *op = pending[i].getDefiningOp();
    auto shape = flow.getShapes().getShape(pending[i]);
    if (!op || !shape || !shape->empty() || pending.size() > kMaxNodes)
      return false;
    if (llvm::isa<dfg::ConstOp>(op) || (isSize(pending[i]) && !isFloat(pending[i])))
      continue;
    if (!llvm::isa<dfg::ScalarInterface>(op) || !isFunction(op))
      return false;
    llvm::append_range(pending, op->getOperands());
  }
  return !isSize(value);
}

Value BatchConversions::rescale(Value value) {
  const Flow at = flow.get(value);
  if (at.zero || at.scale == 0)
    return value;
  if (!at.scale || (!isFloat(value) && *at.scale < 0))
    return {};
  // Where the graph fixes its batch, rows of its size that all replicas have alike may be meant as the batch's own.
  if (flow.getFixedBatch() && at.kind == Flow::Replicated && !flow.getShapes().getElements(value) &&
      !value.getDefiningOp<dist::AllReduceOp>())
    return {};
  if (Value known = rescaled.lookup(value))
    return known;
  // What is rounded may be cut to an integer next: 0.3 times the whole batch's size, not N times 0.3 times a share's.
  Value result = isFloat(value) && !flow.getFixedBatch() && isComputedOfSizes(value) ? recompute(value) : Value();
  if (!result || !flow.isWhole(result))
    result = create<dist::RescaleOp>(value, "rescaled", value.getType(), value, static_cast<int64_t>(*at.scale));
  return rescaled[value] = result;
}

Value BatchConversions::rescaleBy(Value value, int64_t power) {
  return create<dist::RescaleOp>(value, "rescaled", value.getType(), value, power);
}

Value BatchConversions::reduce(Value value) {
  const Flow at = flow.get(value);
  Type element = getElementTypeOrSelf(value.getType());
  bool sums = at.scale == 1;
  // Where the graph fixes its batch, a number beside a sum may count its terms.
  if (flow.getFixedBatch() && at.scale > 0 && !flow.getGrowth(value))
    return {};
  // Rounded quotients are no mean, and truth values no sum.
  if (!llvm::isa<FloatType>(element) && (!sums || element.getIntOrFloatBitWidth() < 32))
    return {};
  builder.setInsertionPointAfterValue(value);
  auto op = dist::AllReduceOp::create(
      builder, locate("all_reduce", value), sums ? dist::Reduction::Sum : dist::Reduction::Mean, /*bucket=*/0,
      /*group=*/-1, ValueRange(value), builder.getStrArrayAttr(getSource(value)), dist::Spec::Auto,
      dist::CompressionAttr(), dist::AggregatorAttr(), /*coupling=*/true);
  Value result = rescale(add(op));
  if (result)
    reduced[value] = result;
  return result;
}

Value BatchConversions::transpose(Value value, ArrayRef<int64_t> permutation) {
  auto sizes = flow.getShapes().getShape(value);
  dfg::Dims moved;
  for (int64_t from : permutation)
    moved.push_back((*sizes)[from]);
  Value axes = constant(value, SmallVector<int32_t>(permutation.begin(), permutation.end()));
  // Behind the constant, which is behind the value.
  builder.setInsertionPointAfterValue(axes);
  return add(dfg::TransposeOp::create(builder, locate("transpose", value), getType(value, moved), value, axes));
}

Value BatchConversions::moveToFront(Value value, int64_t axis) {
  auto sizes = flow.getShapes().getShape(value);
  SmallVector<int64_t> permutation = {axis};
  for (int64_t i = 0; i < static_cast<int64_t>(sizes->size()); ++i)
    if (i != axis)
      permutation.push_back(i);
  return axis == 0 ? value : transpose(value, permutation);
}

Value BatchConversions::moveFromFront(Value value, int64_t axis) {
  auto sizes = flow.getShapes().getShape(value);
  SmallVector<int64_t> permutation;
  for (int64_t i = 1; i < static_cast<int64_t>(sizes->size()); ++i)
    permutation.push_back(i);
  permutation.insert(permutation.begin() + axis, 0);
  return axis == 0 ? value : transpose(value, permutation);
}

Value BatchConversions::gather(Value value) {
  const Flow at = flow.get(value);
  auto sizes = flow.getShapes().getShape(value);
  // A graph that fixes its batch has it in shapes too, as a number that would have to change.
  if (!sizes || flow.getFixedBatch())
    return {};
  // No collective takes complex numbers: what they are made of is gathered.
  if (!getType(value, *sizes))
    return recompute(value);
  int64_t axis = at.batch.axis;
  Value front = moveToFront(value, axis);
  Value joined = front ? gatherFirstAxis(front) : Value();
  Value back = joined ? moveFromFront(joined, axis) : Value();
  return back ? rescale(back) : Value();
}

/// Segment by segment: the whole batch's first segment is those of all replicas.
Value BatchConversions::gatherFirstAxis(Value value) {
  const BatchAxis batch = flow.get(value).batch;
  dfg::Dims sizes = *flow.getShapes().getShape(value);
  auto typeOf = [&](dfg::Dim first) {
    dfg::Dims part = sizes;
    part[0] = first;
    return getType(value, part);
  };
  auto gatherOne = [&](Value part) -> Value {
    return create<dist::AllGatherOp>(part, "all_gather", typeOf(dfg::Dim()), /*bucket=*/0, part, getSource(value),
                                     dist::Spec::Auto);
  };
  if (batch.uniform || batch.segments.size() == 1)
    return gatherOne(value);
  Operation *split = splitSegments(value, batch.segments, typeOf);
  if (!split)
    return {};
  SmallVector<Value> segments;
  Value last = split->getResults().front();
  for (Value own : split->getResults()) {
    Value joined = gatherOne(own);
    if (!joined)
      return {};
    // Behind each other: the last one that is made stands first.
    if (segments.empty() || last.getDefiningOp()->isBeforeInBlock(joined.getDefiningOp()))
      last = joined;
    segments.push_back(joined);
  }
  segments.push_back(constant(value, {0}, /*scalar=*/true));
  return create<dfg::ConcatV2Op>(last, "concat", TypeRange(typeOf(dfg::Dim())), segments);
}

/// A node whose results are the replica's parts of the segments.
Operation *BatchConversions::splitSegments(Value value, ArrayRef<int64_t> segments,
                                           llvm::function_ref<Type(dfg::Dim)> typeOf) {
  Value axis = constant(value, {0}, /*scalar=*/true);
  SmallVector<Type> types;
  int64_t total = 0;
  for (int64_t segment : segments) {
    types.push_back(typeOf(dfg::Dim::batch(segment)));
    total += segment;
  }
  Operation *split;
  if (llvm::all_equal(segments)) {
    builder.setInsertionPointAfterValue(axis);
    split = dfg::SplitOp::create(builder, locate("segments", value), types, axis, value);
  } else {
    auto vector = [&](int64_t size) -> Type { return RankedTensorType::get({size}, builder.getI32Type()); };
    const Type single = vector(1);
    auto rank = static_cast<int64_t>(flow.getShapes().getShape(value)->size());
    // Each in front of the one before it, so that all are there behind the axis.
    Value zero = constant(value, {0}), one = constant(value, {1}), all = constant(value, {static_cast<int32_t>(total)}),
          each = constant(value, SmallVector<int32_t>(segments.begin(), segments.end()));
    Value shape = create<dfg::ShapeOp>(axis, "shape", vector(rank), value);
    Value rows = shape ? create<dfg::SliceOp>(shape, "rows", TypeRange(single), ValueRange{shape, zero, one}) : Value();
    Value unit = rows ? create<dfg::FloorDivOp>(rows, "unit", TypeRange(single), ValueRange{rows, all}) : Value();
    Value sizes =
        unit ? create<dfg::MulOp>(unit, "sizes", vector(static_cast<int64_t>(segments.size())), unit, each) : Value();
    if (!sizes)
      return nullptr;
    builder.setInsertionPointAfterValue(sizes);
    split = dfg::SplitVOp::create(builder, locate("segments", value), types, value, sizes, axis);
  }
  return add(split) ? split : nullptr;
}

/// Sizes whose elements are known: each is the same in the whole batch, or N times as large.
Value BatchConversions::makeSizeWhole(Value value) {
  auto elements = flow.getShapes().getElements(value);
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  if (!elements || isFloat(value) || !type || !type.hasStaticShape() || !type.getElementType().isInteger() ||
      type.getElementTypeBitWidth() < 32)
    return {};
  SmallVector<int64_t> factors;
  for (dfg::Dim element : *elements) {
    if (!element.isKnown() || (element.dependsOnBatch() && !element.isMultipleOfBatch()))
      return {};
    factors.push_back(element.dependsOnBatch() ? replicas : 1);
  }
  return create<dist::WholeSizeOp>(value, "whole_size", type, value, builder.getDenseI64ArrayAttr(factors));
}

/// The same node, of whole operands.
Value BatchConversions::recompute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isFunction(op))
    return {};
  SmallVector<Value> operands;
  Operation *last = op;
  for (Value operand : op->getOperands()) {
    // A size as a float is the float of the whole batch's size: a number that is known wherever sizes are.
    const bool isFloatOfSize = llvm::isa_and_nonnull<dfg::CastOp>(operand.getDefiningOp()) && isFloat(operand) &&
                               !flow.isWhole(operand) && !isFloat(operand.getDefiningOp()->getOperand(0));
    operands.push_back(isFloatOfSize && isComputedOfSizes(op->getResult(0)) ? recompute(operand) : makeWhole(operand));
    if (!operands.back())
      return {};
    if (Operation *def = operands.back().getDefiningOp(); last->isBeforeInBlock(def))
      last = def;
  }
  builder.setInsertionPointAfter(last);
  Operation *copy = builder.clone(*op);
  copy->setLoc(locate("whole", value));
  copy->removeAttr(dfg::kControlAttr);
  copy->setOperands(operands);
  add(copy);
  return copy->getResult(llvm::cast<OpResult>(value).getResultNumber());
}

/// A function of sums over the batch has the whole batch's value where they have.
bool BatchConversions::makeOperandsWhole(Operation *op) {
  if (!isFunction(op))
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    Value wholeOperand = makeWhole(operand.get());
    if (!wholeOperand)
      return false;
    operand.set(wholeOperand);
  }
  return succeeded(revisit(op));
}

bool BatchConversions::joinReduction(Operation *op) {
  if (!op->hasTrait<dfg::Reduces>() || op->hasTrait<dfg::SumsRows>())
    return false;
  const Flow &at = flow.get(op->getOperand(0));
  auto sizes = flow.getShapes().getShape(op->getOperand(0)), reducedSizes = flow.getShapes().getShape(op->getResult(0));
  auto axes = flow.getShapes().getConstants(op->getOperand(1));
  if (at.kind != Flow::Sharded || (!at.zero && at.scale != 0) || !sizes || !axes || !reducedSizes ||
      !getType(op->getResult(0), *reducedSizes) || llvm::none_of(*axes, [&](int64_t axis) {
        return (axis < 0 ? axis + static_cast<int64_t>(sizes->size()) : axis) == at.batch.axis;
      }))
    return false;
  builder.setInsertionPoint(op);
  Operation *each = builder.clone(*op);
  each->setLoc(locate("own", op->getResult(0)));
  each->removeAttr(dfg::kControlAttr);
  Value own = add(each);
  Value axis = constant(own, {0}, /*scalar=*/true);
  dfg::Dims expanded = *reducedSizes;
  expanded.insert(expanded.begin(), dfg::Dim(1));
  builder.setInsertionPointAfterValue(axis);
  Value row = add(dfg::ExpandDimsOp::create(builder, locate("row", own), getType(own, expanded), own, axis));
  expanded[0] = dfg::Dim(replicas);
  Value all = create<dist::AllGatherOp>(row, "all_gather", getType(own, expanded), /*bucket=*/0, row,
                                        dfg::getNodeName(op), dist::Spec::Auto);
  op->setOperands({all, constant(own, {0})});
  op->setAttr("keep_dims", builder.getBoolAttr(false));
  return true;
}

// ---- And back ----------------------------------------------------------------------------------

Value BatchConversions::takeRows(Value value, int64_t axis) {
  auto sizes = flow.getShapes().getShape(value);
  if (!sizes || axis >= static_cast<int64_t>(sizes->size()) || !(*sizes)[axis].isMultipleOfWholeBatch() ||
      !getType(value, *sizes))
    return {};
  Value &result = rows[{value, axis}];
  if (result)
    return result;
  Value front = moveToFront(value, axis);
  dfg::Dims part = *flow.getShapes().getShape(front);
  part[0] = dfg::Dim();
  Value own = create<dist::TakeRowsOp>(front, "take_rows", getType(value, part), front);
  return result = moveFromFront(own, axis);
}

static bool isAnyOf(const llvm::DenseSet<Value> &values, Value first, Value second) {
  return values.contains(first) || values.contains(second);
}

bool BatchConversions::eraseUnused() {
  bool any = false;
  llvm::DenseSet<Operation *> gone;
  llvm::DenseSet<Value> goneValues;
  // Each stands behind what it uses, but not in the order in which they were made.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : llvm::reverse(made))
      if (!gone.contains(op) && op->use_empty()) {
        gone.insert(op);
        goneValues.insert(op->result_begin(), op->result_end());
        op->erase();
        changed = true;
      }
  }
  for (Operation *op : made)
    any |= !gone.contains(op);
  llvm::erase_if(made, [&](Operation *op) { return gone.contains(op); });
  // They are made anew where they are wanted again.
  reduced.remove_if([&](const auto &entry) { return isAnyOf(goneValues, entry.first, entry.second); });
  for (auto *known : {&whole, &rescaled})
    for (auto [from, to] : llvm::make_early_inc_range(*known))
      if (isAnyOf(goneValues, from, to))
        known->erase(from);
  for (auto [from, to] : llvm::make_early_inc_range(rows))
    if (isAnyOf(goneValues, from.first, to))
      rows.erase(from);
  return any;
}

DenseElementsAttr getWholeFactors(Operation *op, int64_t replicas) {
  Builder builder(op->getContext());
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (auto sizes = llvm::dyn_cast<dist::WholeSizeOp>(op)) {
    auto factors = llvm::map_to_vector(
        sizes.getFactors(), [&](int64_t factor) -> Attribute { return builder.getIntegerAttr(element, factor); });
    return DenseElementsAttr::get(llvm::cast<RankedTensorType>(op->getOperand(0).getType()), factors);
  }
  // The attribute's own accessor has no sign.
  int64_t power = llvm::cast<dist::RescaleOp>(op).getPowerAttr().getInt();
  double factor = std::pow(static_cast<double>(replicas), static_cast<double>(power));
  auto scalar = RankedTensorType::get({}, element);
  if (llvm::isa<FloatType>(element))
    return DenseElementsAttr::get(scalar, builder.getFloatAttr(element, factor));
  return DenseElementsAttr::get(scalar, builder.getIntegerAttr(element, std::llround(factor)));
}

} // namespace distc
