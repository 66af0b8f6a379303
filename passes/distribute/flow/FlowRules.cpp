//===- FlowRules.cpp - What is proven of a node's result --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/SameValues.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/flow/OperandRoles.h"
#include "passes/distribute/synchronize/SparseGradients.h"

using namespace mlir;

namespace distc {

/// Whether op, none of whose operands is sharded, gives a partial value from partial ones.
bool BatchFlow::keepsPartial(Operation *op) const {
  if (leavesModulus(op))
    return false;
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

/// Shape arithmetic: what its elements are says what they are of the whole batch. None where `result` is none.
std::optional<Flow> BatchFlow::followElements(Operation *op, Value result) const {
  std::optional<dfg::Dims> elements = shapes.getElements(result);
  // Rows without elements are rows of the batch's examples still.
  if (!elements || (elements->empty() && hasBatchSize(result)))
    return std::nullopt;
  // Nor do the numbers of rows that the graph has as constants say what the rows of the whole batch are.
  if (fixed && !op->hasTrait<dfg::AsksShapes>() &&
      llvm::any_of(op->getOperands(), [&](Value operand) { return get(operand).kind == Flow::Sharded; }))
    return std::nullopt;
  bool known = llvm::all_of(*elements, [](dfg::Dim dim) { return dim.isKnown(); });
  bool constant = llvm::none_of(*elements, [](dfg::Dim dim) { return dim.dependsOnBatch(); });
  bool multiple = llvm::all_of(*elements, [](dfg::Dim dim) { return dim.isMultipleOfBatch(); });
  auto seeElements = [&](bool (dfg::Dim::*is)() const) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      auto of = shapes.getElements(operand);
      return of && llvm::any_of(*of, [&](dfg::Dim dim) { return (dim.*is)(); });
    });
  };
  // Sizes of a share compared with sizes of the whole batch, or with one of which nothing is known (half of the whole
  // batch's, rounded up) and which is no share's.
  auto isOfNoShare = [&](Value operand) {
    auto of = shapes.getElements(operand);
    return of && !get(operand).ofShare && llvm::any_of(*of, [](dfg::Dim dim) { return !dim.isKnown(); });
  };
  if (llvm::isa<dfg::BroadcastGradientArgsOp, dfg::ConcatOffsetOp>(op) && seeElements(&dfg::Dim::dependsOnBatch) &&
      (seeElements(&dfg::Dim::dependsOnWholeBatch) || llvm::any_of(op->getOperands(), isOfNoShare)))
    return getUnproven(op);
  // A size that nothing is known of is the whole batch's where that of an operand is.
  if (!known && llvm::any_of(op->getOperands(), [&](Value operand) { return get(operand).kind == Flow::Local; }))
    return getUnproven(op);
  // Nor are elements that are not known the whole batch's where they are computed from what replicas have of their own,
  // or from others that are not known, of which all that is known is by how much they are larger of the whole batch.
  const bool isOfShapes = op->hasTrait<dfg::AsksShapes>() || llvm::isa<dfg::VariableShapeOp>(op);
  auto isOwn = [&](Value operand) {
    const Flow &at = get(operand);
    if (at.kind != Flow::Replicated)
      return true;
    return !at.zero && at.scale != 0 && (!shapes.getElements(operand) || (at.scale && hasUnknownElements(operand)));
  };
  if (!known && !isOfShapes && llvm::any_of(op->getOperands(), isOwn))
    return std::nullopt;
  // The rows of a share are among sizes that are not known, too.
  const bool asksRows = isOfShapes && constant && llvm::any_of(op->getOperands(), [&](Value operand) {
                          return get(operand).kind == Flow::Sharded;
                        });
  Flow flow;
  flow.ofShare = !known && (asksRows || (!choosesElements(op) && seeElements(&dfg::Dim::dependsOnBatch)) ||
                            llvm::any_of(op->getOperands(), [&](Value operand) { return get(operand).ofShare; }));
  if (flow.ofShare)
    constant = multiple = false;
  flow.scale = constant ? std::optional<int>(0) : multiple ? std::optional<int>(1) : std::nullopt;
  flow.zero = isZeroConstant(op);
  return flow;
}

Flow BatchFlow::getUnproven(Operation *op) const {
  Flow flow;
  flow.kind = Flow::Local;
  flow.scale = std::nullopt;
  flow.cause = op;
  for (Value operand : op->getOperands())
    if (const Flow &at = get(operand); at.kind == Flow::Local && at.cause)
      flow.cause = at.cause;
  return flow;
}

/// The Unique whose distinct values the rows of `value` are made of, each by itself; null where there is none.
static Operation *findDistinctRows(Value value, const BatchFlow &flow) {
  while (Operation *op = value.getDefiningOp()) {
    if (isUnique(op) && op->getNumOperands() == 1)
      return value == op->getResult(0) ? op : nullptr;
    Value rows;
    bool isGather = llvm::isa<dfg::GatherOp, dfg::GatherV2Op, dfg::ResourceGatherOp>(op);
    if (!isGather && !llvm::isa<dfg::ScalarInterface>(op))
      return nullptr;
    auto batchDims = op->getAttrOfType<IntegerAttr>("batch_dims");
    if (isGather && ((batchDims && batchDims.getInt() != 0) ||
                     (op->getNumOperands() > 2 && flow.getShapes().getConstant(op->getOperand(2)) != 0)))
      return nullptr;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      const Flow &at = flow.get(operand);
      auto sizes = flow.getShapes().getShape(operand);
      bool isRows = at.kind == Flow::Local && (!isGather || i == 1);
      if (isRows && !rows)
        rows = operand;
      else if (at.kind != Flow::Replicated || at.scale != 0 || (!isGather && (!sizes || !sizes->empty())))
        return nullptr;
    }
    if (!rows)
      return nullptr;
    value = rows;
  }
  return nullptr;
}

/// Whether `op` makes of each replica's maximum over its rows (minimum, product, norm, ...), which are gathered, that
/// of all rows: max(gather(expand(max(x)))).
bool BatchFlow::isJoinedReduction(Operation *op) const {
  if (!op->hasTrait<dfg::Reduces>() || op->hasTrait<dfg::SumsRows>())
    return false;
  auto gather = op->getOperand(0).getDefiningOp<dist::AllGatherOp>();
  auto expand = gather ? gather.getRows().getDefiningOp<dfg::ExpandDimsOp>() : dfg::ExpandDimsOp();
  Operation *each = expand ? expand->getOperand(0).getDefiningOp() : nullptr;
  if (!each || each->getName() != op->getName() || shapes.getConstant(expand->getOperand(1)) != 0 ||
      shapes.getConstant(op->getOperand(1)) != 0)
    return false;
  auto keeps = op->getAttrOfType<BoolAttr>("keep_dims");
  const Flow &rows = get(each->getOperand(0));
  auto sizes = shapes.getShape(each->getOperand(0));
  auto axes = shapes.getConstants(each->getOperand(1));
  if ((keeps && keeps.getValue()) || rows.kind != Flow::Sharded || (rows.scale != 0 && !rows.zero) || !sizes || !axes)
    return false;
  return llvm::any_of(*axes, [&](int64_t axis) {
    return (axis < 0 ? axis + static_cast<int64_t>(sizes->size()) : axis) == rows.batch.axis;
  });
}

Flow BatchFlow::prove(Operation *op, OpResult result) const {
  Flow flow = proveByRules(op, result);
  if (flow.kind != Flow::Local)
    return flow;
  if (isJoinedReduction(op))
    return Flow();
  // What every replica computes from the whole batch's values is the whole batch's, whatever it does with its rows.
  bool isWholes = !fixed && !op->hasTrait<dfg::DrawsNumbers>() &&
                  llvm::all_of(op->getOperands(), [&](Value operand) { return isWhole(operand); });
  return isWholes ? Flow() : flow;
}

Flow BatchFlow::proveByRules(Operation *op, OpResult result) const {
  const Flow unproven = getUnproven(op);
  // Distinct values of each share, looked up by the positions that go with them: those of the rows themselves.
  if (llvm::isa<dfg::GatherOp, dfg::GatherV2Op>(op)) {
    Operation *unique = findDistinctRows(op->getOperand(0), *this);
    auto batchDims = op->getAttrOfType<IntegerAttr>("batch_dims");
    if (unique && dfg::areSame(op->getOperand(1), unique->getResult(1)) && (!batchDims || batchDims.getInt() == 0) &&
        (op->getNumOperands() < 3 || shapes.getConstant(op->getOperand(2)) == 0))
      if (const Flow &rows = get(unique->getOperand(0)); rows.kind == Flow::Sharded && rows.scale == 0)
        return rows;
  }
  // What it prints besides is each replica's own.
  if (llvm::isa<dfg::PrintOp>(op))
    return get(op->getOperand(0));
  // Of its operands these give the shape alone.
  if (llvm::isa<dfg::ZerosLikeOp, dfg::OnesLikeOp>(op)) {
    Flow flow = get(op->getOperand(0));
    if (flow.kind == Flow::Local && (hasBatchSize(result) || !shapes.getShape(result)))
      return unproven;
    flow.kind = flow.kind == Flow::Sharded ? Flow::Sharded : Flow::Replicated;
    flow.batch.uniform = true;
    flow.scale = 0;
    flow.zero = llvm::isa<dfg::ZerosLikeOp>(op);
    return flow;
  }
  if (leavesModulus(op) && get(op->getOperand(0)).kind == Flow::Partial)
    return unproven;
  if (!llvm::isa<dfg::ShapeInterface>(op))
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) {
                          const Flow &at = get(operand);
                          return at.kind == Flow::Replicated && (at.zero || at.scale == 0);
                        })
               ? Flow()
               : unproven;

  SmallVector<std::optional<BatchAxis>> axes;
  unsigned numSharded = 0, numUniform = 0, numPartial = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    const Flow &at = get(operand.get());
    axes.push_back(std::nullopt);
    if (isParameterOperand(op, operand.getOperandNumber())) {
      std::optional<dfg::Dims> elements = shapes.getElements(operand.get());
      bool isConstant = elements && llvm::all_of(*elements, [](dfg::Dim dim) { return dim.isConstant(); });
      // Also where its elements are known: they are not those that a program would compute.
      if (at.ofShare || at.kind == Flow::Local)
        return unproven;
      bool isWhole = at.kind == Flow::Replicated && at.scale == 0;
      if (!isConstant && !isWhole && !(elements && at.kind == Flow::Replicated))
        return unproven;
      // The gradient of a slice has the rows of what was sliced.
      auto shape = operand.get().getDefiningOp<dfg::ShapeOp>();
      if (shape && llvm::isa<dfg::StridedSliceGradOp>(op) && operand.getOperandNumber() == 0)
        if (const Flow &sliced = get(shape->getOperand(0)); sliced.kind == Flow::Sharded)
          axes.back() = sliced.batch;
      continue;
    }
    if (at.kind == Flow::Local || (!at.scale && !at.zero))
      return unproven;
    if (at.kind == Flow::Sharded) {
      axes.back() = at.batch;
      ++numSharded;
      numUniform += at.batch.uniform;
    }
    // A part of nothing is nothing, in all replicas.
    numPartial += at.kind == Flow::Partial && !at.zero;
  }
  // The batch's size in a parameter: what it does must be seen. Where a slice began its gradient's sizes do not show,
  // nor does it show in a size that is not known (rows of all replicas, repeated as often as a share has rows).
  auto isSeen = [&](OpOperand &operand) {
    if (!showsParametersInSizes(op) || (llvm::isa<dfg::StridedSliceGradOp>(op) && operand.getOperandNumber() != 0))
      return false;
    auto elements = shapes.getElements(operand.get()), sizes = shapes.getShape(result);
    return !llvm::isa<dfg::TileOp>(op) || !elements || !sizes || elements->size() != sizes->size() ||
           llvm::none_of(llvm::zip(*elements, *sizes),
                         [](auto pair) { return std::get<0>(pair).dependsOnBatch() && !std::get<1>(pair).isKnown(); });
  };
  if (numSharded == 0)
    for (OpOperand &operand : op->getOpOperands())
      if (isParameterOperand(op, operand.getOperandNumber()) && !isSeen(operand) && get(operand.get()).scale != 0)
        return unproven;

  SmallVector<Value> linear, others;
  sortOperands(op, linear, others);
  Flow flow;
  flow.zero = false;
  std::optional<int> scale = getScale(op, linear, others, flow.zero);
  if (isZeroConstant(op)) {
    flow.zero = true;
    scale = 0;
  }
  if (!scale)
    return unproven;
  flow.scale = scale;

  BatchPlacement placement = findBatchPlacement(op, result.getResultNumber(), axes, shapes, fixed ? &fixed : nullptr);
  auto isPartial = [&](Value value) { return get(value).kind == Flow::Partial && !get(value).zero; };
  // Rows that are added to what is no zero: added once a replica, unless that is a sum over the batch too.
  if (placement.kind == BatchPlacement::Summed && op->hasTrait<dfg::AddsSlices>()) {
    const Flow &base = get(op->getOperand(0)), &rows = get(op->getOperand(2));
    if (!base.zero && (base.kind != Flow::Partial || (!rows.zero && base.scale != addScales(rows.scale, 1))))
      return unproven;
    flow.kind = Flow::Partial;
    flow.scale = rows.zero ? base.scale : addScales(rows.scale, 1);
    return flow;
  }
  if (numPartial > 0) {
    if (numSharded > 0 || placement.kind != BatchPlacement::Without || llvm::any_of(others, isPartial))
      return unproven;
    bool isLinear = getLinearity(op) == dfg::Linearity::Joint
                        ? llvm::all_of(linear, [&](Value value) { return isPartial(value) || get(value).zero; })
                        : llvm::count_if(linear, isPartial) == 1;
    if (!isLinear)
      return unproven;
    flow.kind = Flow::Partial;
    return flow;
  }
  switch (placement.kind) {
  case BatchPlacement::Unknown:
    return unproven;
  case BatchPlacement::Without:
    flow.kind = Flow::Replicated;
    break;
  case BatchPlacement::Along:
    flow.kind = Flow::Sharded;
    flow.batch = placement.axis;
    break;
  case BatchPlacement::Summed:
    // Rounded quotients do not add up.
    if (llvm::isa<dfg::MeanOp>(op) && !isFloatOrUnknown(result))
      return unproven;
    flow.kind = numUniform == numSharded ? Flow::Replicated : Flow::Partial;
    // The sum has N times the terms; a mean is divided by N times as many.
    if (!llvm::isa<dfg::MeanOp>(op))
      flow.scale = addScales(flow.scale, 1);
    break;
  }
  return flow;
}

/// Whether the examples of a mask are named by their positions in the batch and a number that was computed, as the one
/// of the largest loss: how many they are need not grow with the batch.
bool BatchFlow::namesByPosition(Value mask) const {
  bool positions = false, computed = false;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist = {mask};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second || isFloatOrUnknown(value))
      continue;
    if (llvm::isa<dfg::RangeOp>(op)) // of a share, or of the whole batch
      positions |= !shapes.getShape(value) || !shapes.getShape(value)->front().isConstant();
    else if (!hasBatchSize(value) && llvm::any_of(op->getOperands(), isFloatOrUnknown))
      computed = true;
    else if (llvm::isa<dfg::ScalarInterface, dist::TakeRowsOp>(op) || op->hasTrait<dfg::Fills>() ||
             op->hasTrait<dfg::Reshapes>())
      llvm::append_range(worklist, op->getOperands());
    else
      computed |= get(value).kind == Flow::Local;
  }
  return positions && computed;
}

/// Whether a mask is of one example, by its position in the batch.
bool BatchFlow::namesOneExample(Value mask) const {
  auto getReshaped = [](Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!op->hasTrait<dfg::Reshapes>() && !op->hasTrait<dfg::Forwards>())
        break;
      value = op->getOperand(0);
    }
    return value;
  };
  auto equal = getReshaped(mask).getDefiningOp<dfg::EqualOp>();
  return equal && llvm::any_of(ArrayRef<unsigned>{0, 1}, [&](unsigned side) {
           Value positions = equal->getOperand(side);
           auto number = shapes.getShape(equal->getOperand(1 - side));
           return hasBatchSize(positions) && getReshaped(positions).getDefiningOp<dfg::RangeOp>() && number &&
                  llvm::all_of(*number, [](dfg::Dim size) { return size == dfg::Dim(1); });
         });
}

/// Whether integers are positions, a range from which a number is taken that all replicas have.
static bool arePositions(Value value, const BatchFlow &flow, bool &any) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  any |= llvm::isa<dfg::RangeOp>(op);
  if (llvm::isa<dfg::RangeOp, dfg::ConstOp>(op))
    return true;
  if (op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Forwards>())
    return arePositions(op->getOperand(0), flow, any);
  return llvm::isa<dfg::SubOp, dfg::AddV2Op>(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return arePositions(operand, flow, any) || flow.get(operand).kind == Flow::Replicated;
         });
}

/// Whether a mask is true from one position on, for a constant number of them.
static bool isWindow(Value mask, const BatchFlow &flow) {
  Operation *op = mask.getDefiningOp();
  while (op && (op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Forwards>()))
    op = op->getOperand(0).getDefiningOp();
  return llvm::isa_and_nonnull<dfg::LogicalAndOp>(op) && llvm::all_of(op->getOperands(), [&](Value side) {
           Operation *compare = side.getDefiningOp();
           bool any = false;
           return compare && compare->hasTrait<dfg::Compares>() &&
                  llvm::all_of(compare->getOperands(),
                               [&](Value operand) { return arePositions(operand, flow, any); }) &&
                  any;
         });
}

/// Whether op's rows are zero but for as many as do not depend on the batch: of a number of updates, each is added to
/// its row.
bool BatchFlow::fillsFewRows(Operation *op) const {
  auto isFew = [&](Value value) {
    auto sizes = shapes.getShape(value);
    return sizes && llvm::none_of(*sizes, [](dfg::Dim size) { return !size.isKnown() || size.dependsOnBatch(); });
  };
  if (llvm::isa<dfg::UnsortedSegmentSumOp, dfg::PadOp>(op) ||
      (llvm::isa<dfg::PadV2Op>(op) && get(op->getOperand(2)).zero))
    return isFew(op->getOperand(0));
  if (auto grad = llvm::dyn_cast<dfg::StridedSliceGradOp>(op))
    return isFew(grad->getOperand(4));
  if (llvm::isa<dfg::ScatterNdOp>(op))
    return isFew(op->getOperand(1));
  if (llvm::isa<dfg::TensorScatterAddOp>(op))
    return get(op->getOperand(0)).zero && isFew(op->getOperand(2));
  if (llvm::isa<dfg::SelectOp, dfg::SelectV2Op>(op))
    return get(op->getOperand(2)).zero && (namesOneExample(op->getOperand(0)) || isWindow(op->getOperand(0), *this));
  return llvm::isa<dfg::OneHotOp>(op) && isFew(op->getOperand(0));
}

} // namespace distc
