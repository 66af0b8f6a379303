//===- BatchFlow.cpp - How the batch flows through a graph ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/BatchFlow.h"
#include "dialects/dfg/Numbers.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/SameValues.h"
#include "passes/distribute/synchronize/SparseGradients.h"
#include <cmath>

using namespace mlir;

namespace distc {
namespace {

/// A type that the graph does not say is taken for a float: nothing is computed with it elsewhere.
bool isFloatOrUnknown(Value value) {
  return llvm::isa<FloatType, dfg::UnknownType>(getElementTypeOrSelf(value.getType()));
}

bool haveSameType(Value x, Value y) {
  Type typeX = getElementTypeOrSelf(x.getType()), typeY = getElementTypeOrSelf(y.getType());
  return typeX == typeY || ((llvm::isa<dfg::UnknownType>(typeX) || llvm::isa<dfg::UnknownType>(typeY)) &&
                            isFloatOrUnknown(x) && isFloatOrUnknown(y));
}

dfg::Linearity getLinearity(Operation *op) {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  if (!node)
    return dfg::Linearity::None;
  // Quotients of integers are rounded.
  if (op->getNumResults() > 0 && !isFloatOrUnknown(op->getResult(0)) &&
      (llvm::isa<dfg::MeanOp>(op) || op->hasTrait<dfg::Divides>()))
    return dfg::Linearity::None;
  // A cast to integers rounds; one to booleans compares with zero.
  if (llvm::isa<dfg::CastOp>(op) && ((isFloatOrUnknown(op->getOperand(0)) && !isFloatOrUnknown(op->getResult(0))) ||
                                     getElementTypeOrSelf(op->getResult(0)).isInteger(1)))
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
  if (!isFloatOrUnknown(op->getResult(0)) && !llvm::isa<dfg::ScalarInterface>(op) && data.size() > 1)
    data.resize(1);
  return data;
}

/// Whether a result without the batch's axis is a sum over it: reductions by sums, products, and gradients of
/// broadcasts.
bool sumsOverBatch(Operation *op) {
  return op->hasTrait<dfg::SumsRows>() ||
         (getLinearity(op) == dfg::Linearity::Each && !llvm::isa<dfg::ScalarInterface>(op));
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

/// As far as it is known, the scale of op's results and whether they are zero. `contracts`: they are sums over the
/// batch.
Flow BatchFlow::estimateScale(Operation *op, bool contracts) const {
  Flow result;
  if (isZeroConstant(op)) {
    result.zero = true;
    return result;
  }
  SmallVector<Value> data = getData(op);
  dfg::Linearity linearity = getLinearity(op);
  // Integers may be sizes and axes, but sums over the batch are none.
  auto estimate = [&](ArrayRef<Value> values) -> std::optional<int> {
    for (Value value : values)
      if (const Flow &flow = get(value);
          (isFloatOrUnknown(value) || flow.kind == Flow::Partial) && !flow.zero && flow.scale != 0)
        return std::nullopt;
    return 0;
  };
  auto hasOneElement = [&](Value value) {
    auto sizes = shapes.getShape(value);
    return sizes && llvm::all_of(*sizes, [](dfg::Dim size) { return size == dfg::Dim(1); });
  };
  switch (linearity) {
  case dfg::Linearity::Joint: {
    bool first = true;
    result.zero = !data.empty();
    for (Value operand : data) {
      const Flow &flow = get(operand);
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
    if (op->hasTrait<dfg::Divides>() && others.size() == 1) {
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
    else if (op->hasTrait<dfg::Reduces>() && hasOneElement(op->getOperand(0)))
      result.scale = get(op->getOperand(0)).scale; // of one element
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
      if (size.dependsOnBatch() && !size.isMultipleOfBatch())
        result.scale = std::nullopt;
  }
  return result;
}

/// Whether integers are numbers of truth values: of 32 bits and more no sum of them wraps around.
static bool countsTruthValues(Value value, int depth = 16) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (llvm::isa<dfg::CastOp>(op)) {
    auto from = llvm::dyn_cast<IntegerType>(getElementTypeOrSelf(op->getOperand(0)));
    return from && (from.getWidth() == 1 || countsTruthValues(op->getOperand(0), depth - 1));
  }
  if (llvm::isa<dfg::SumOp>(op) || op->hasTrait<dfg::Forwards>() || op->hasTrait<dfg::Reshapes>())
    return countsTruthValues(op->getOperand(0), depth - 1);
  return llvm::isa<dfg::MulOp, dfg::AddOp, dfg::AddV2Op>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return countsTruthValues(operand, depth - 1); });
}

/// Whether op makes a float or a wider integer of an integer. A sum over the batch is one modulo a power of two: of the
/// replicas' parts, the sum of what is made of each is another number.
static bool leavesModulus(Operation *op) {
  if (!llvm::isa<dfg::CastOp>(op))
    return false;
  Type from = getElementTypeOrSelf(op->getOperand(0)), to = getElementTypeOrSelf(op->getResult(0));
  if (!from.isInteger() || from.isInteger(1) ||
      (to.isInteger() && to.getIntOrFloatBitWidth() <= from.getIntOrFloatBitWidth()))
    return false;
  return from.getIntOrFloatBitWidth() < 32 || !countsTruthValues(op->getOperand(0));
}

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
      flow.scale = at.zero ? 0 : add(at.scale, reduce.getReduction() == dist::Reduction::Sum ? -1 : 0);
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

/// Whether op's elements are some of its operands', unchanged.
static bool choosesElements(Operation *op) {
  return op->hasTrait<dfg::Forwards>() || op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::TakesPart>() ||
         op->hasTrait<dfg::Joins>() || llvm::isa<dfg::CastOp>(op);
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
  // Nor are elements that are not known the whole batch's where they are computed from what replicas have of their own.
  const bool isOfShapes = op->hasTrait<dfg::AsksShapes>() || llvm::isa<dfg::VariableShapeOp>(op);
  auto isOwn = [&](Value operand) {
    const Flow &at = get(operand);
    return at.kind != Flow::Replicated || (!shapes.getElements(operand) && !at.zero && at.scale != 0);
  };
  if (!known && !isOfShapes && llvm::any_of(op->getOperands(), isOwn))
    return std::nullopt;
  Flow flow;
  flow.ofShare = !known && ((!choosesElements(op) && seeElements(&dfg::Dim::dependsOnBatch)) ||
                            llvm::any_of(op->getOperands(), [&](Value operand) { return get(operand).ofShare; }));
  if (flow.ofShare)
    constant = multiple = false;
  flow.scale = constant ? std::optional<int>(0) : multiple ? std::optional<int>(1) : std::nullopt;
  flow.zero = isZeroConstant(op);
  return flow;
}

/// The operands that the result is linear in, as the declaration says, and the others that it is computed from.
static void sortOperands(Operation *op, SmallVectorImpl<Value> &linear, SmallVectorImpl<Value> &others) {
  SmallVector<Value> values;
  for (OpOperand &operand : op->getOpOperands())
    if (!isParameterOperand(op, operand.getOperandNumber()) && !dfg::isHandle(operand.get().getType()))
      values.push_back(operand.get());
  auto isLinear = [&](size_t i) {
    if (llvm::isa<dfg::SelectOp, dfg::SelectV2Op>(op))
      return i > 0;
    if (llvm::isa<dfg::ScatterNdOp>(op))
      return i == 1;
    if (op->hasTrait<dfg::AddsSlices>() || llvm::isa<dfg::TensorScatterUpdateOp>(op))
      return i != 1;
    switch (getLinearity(op)) {
    case dfg::Linearity::None:
      return false;
    case dfg::Linearity::Joint:
    case dfg::Linearity::Each:
      return true;
    case dfg::Linearity::First:
      return i == 0;
    case dfg::Linearity::Last:
      return i + 1 == values.size();
    }
    return false;
  };
  for (auto [i, value] : llvm::enumerate(values))
    (isLinear(i) ? linear : others).push_back(value);
}

/// The scale that all of `values` but the zeros have; none where they differ.
static std::optional<int> getCommonScale(ArrayRef<Value> values, const BatchFlow &flow, bool &zero) {
  std::optional<int> common;
  bool first = true;
  for (Value value : values) {
    const Flow &at = flow.get(value);
    if (at.zero)
      continue;
    if (!at.scale || (!first && at.scale != common))
      return std::nullopt;
    common = at.scale;
    first = false;
  }
  zero = first && !values.empty();
  return first ? std::optional<int>(0) : common;
}

/// What a function of values N^s times as large is: N^(degree * s) times as large. None: it is no power of N. Of all
/// operands together.
static std::optional<double> getDegree(Operation *op) {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  return node ? node.getDegree() : std::nullopt;
}

/// Whether op gives constants on as they are, or some of their elements: they are numbers of the same sizes still.
static bool keepsConstants(Operation *op) {
  return choosesElements(op) || op->hasTrait<dfg::Fills>() || op->hasTrait<dfg::Repeats>();
}

/// The scale of op's result, before a sum over the batch; none where it has none.
std::optional<int> BatchFlow::getScale(Operation *op, ArrayRef<Value> linear, ArrayRef<Value> others,
                                       bool &zero) const {
  bool zeroOthers = false;
  dfg::Linearity linearity = getLinearity(op);
  // A number that counts somewhere is larger of the whole batch: a product is as well; of what else is made of it, but
  // for another constant, nothing is known.
  auto isOfCounts = [&](Value value) { return fixed && get(value).scale == 0 && fixed.getScale(value) != 0; };
  // What divides rows that differ is a number of its own, but where their gradients are copies that it counts.
  auto isRows = [&](Value value) { return get(value).kind == Flow::Sharded && !get(value).batch.uniform; };
  if (op->hasTrait<dfg::Divides>() && linear.size() == 1) {
    const Flow &dividend = get(linear.front()), &divisor = get(others.front());
    zero = dividend.zero;
    if (!divisor.scale || (!zero && !dividend.scale) || (fixed && fixed.isAmbiguous(others.front())))
      return std::nullopt;
    const bool counts =
        fixed && fixed.counts(others.front()) && (!isRows(linear.front()) || fixed.countsCopies(others.front()));
    // What is made of a number that counts, and counts nothing itself.
    if (isOfCounts(others.front()) && !fixed.getScale(others.front()))
      return std::nullopt;
    std::optional<int> power = isOfCounts(linear.front()) ? fixed.getScale(linear.front()) : 0;
    int count = counts && *divisor.scale == 0 ? 1 : *divisor.scale;
    return zero ? 0 : add(power, *dividend.scale - count);
  }
  if (!llvm::isa<dfg::MulOp>(op) && !keepsConstants(op) && !(fixed && fixed.isComputed(op)) &&
      (llvm::any_of(linear, isOfCounts) || llvm::any_of(others, isOfCounts)))
    return std::nullopt;
  std::optional<int> otherScale = getCommonScale(others, *this, zeroOthers);
  if (linearity == dfg::Linearity::None) {
    std::optional<double> degree = getDegree(op);
    if (!otherScale || (!degree && *otherScale != 0))
      return std::nullopt;
    double scale = degree ? *degree * *otherScale : 0;
    return scale == std::floor(scale) ? std::optional<int>(scale) : std::nullopt;
  }
  if (otherScale != 0)
    return std::nullopt;
  if (linearity == dfg::Linearity::Joint)
    return getCommonScale(linear, *this, zero);
  // Linear in each of them: their product.
  std::optional<int> scale = 0;
  for (Value value : linear) {
    zero |= get(value).zero;
    scale = add(scale, get(value).scale);
    if (!llvm::isa<dfg::MulOp>(op) || !isOfCounts(value))
      continue;
    if (std::optional<int> power = fixed.getScale(value); power != -1)
      scale = add(scale, power);
    else if (llvm::none_of(linear, isRows))
      scale = add(scale, -1);
  }
  return zero ? std::optional<int>(0) : scale;
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

bool areSame(Value x, Value y, int depth) {
  Operation *left = x.getDefiningOp(), *right = y.getDefiningOp();
  if (x == y)
    return true;
  if (depth == 0 || !left || !right || !isMemoryEffectFree(left) || left->hasTrait<dfg::DrawsNumbers>() ||
      llvm::cast<OpResult>(x).getResultNumber() != llvm::cast<OpResult>(y).getResultNumber() ||
      left->getName() != right->getName() || left->getNumOperands() != right->getNumOperands() ||
      left->getPropertiesAsAttribute() != right->getPropertiesAsAttribute())
    return false;
  return llvm::all_of(llvm::zip(left->getOperands(), right->getOperands()),
                      [&](auto operands) { return areSame(std::get<0>(operands), std::get<1>(operands), depth - 1); });
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
    if (unique && areSame(op->getOperand(1), unique->getResult(1)) && (!batchDims || batchDims.getInt() == 0) &&
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
  // The batch's size in a parameter: what it does must be seen. Where a slice began its gradient's sizes do not show.
  auto isSeen = [&](OpOperand &operand) {
    return showsParametersInSizes(op) && (!llvm::isa<dfg::StridedSliceGradOp>(op) || operand.getOperandNumber() == 0);
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
    if (!base.zero && (base.kind != Flow::Partial || (!rows.zero && base.scale != add(rows.scale, 1))))
      return unproven;
    flow.kind = Flow::Partial;
    flow.scale = rows.zero ? base.scale : add(rows.scale, 1);
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
      flow.scale = add(flow.scale, 1);
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
          flow->scale = add(flow->scale, -1);
        else if ((llvm::isa<dfg::SelectOp, dfg::SelectV2Op>(op) && namesByPosition(op->getOperand(0))) ||
                 (llvm::isa<dfg::StridedSliceGradOp>(op) && !hasKnownSizes(op->getOperand(4))))
          flow->scale = std::nullopt;
      }
      if (fixed && estimates && !ofOneReplica && flow->scale)
        flow->scale = 0;
    }
    flows[result] = std::move(*flow);
  }
}

bool BatchFlow::hasKnownSizes(Value value) const {
  auto sizes = shapes.getShape(value);
  return sizes && llvm::all_of(*sizes, [](dfg::Dim size) { return size.isKnown(); });
}

bool BatchFlow::hasBatchSize(Value value) const {
  auto sizes = shapes.getShape(value);
  return sizes && llvm::any_of(*sizes, [](dfg::Dim size) { return size.dependsOnBatch(); });
}

/// Gives the placeholders the batch where the graph fixes it.
void BatchFlow::setFixedBatch(dfg::GraphOp graph) {
  fixed.size = dfg::findFixedBatch(graph);
  if (!fixed)
    return;
  for (auto feed : graph.getOps<dfg::PlaceholderOp>())
    if (dfg::Dims sizes = *shapes.getShape(feed.getResult()); !sizes.empty()) {
      sizes[0] = dfg::Dim::batch();
      shapes.setShape(feed.getResult(), std::move(sizes));
    }
}

/// The shape that a reshape to [32, -1], or [1, 32, 10], gives rows of a batch that the graph fixes to 32: as many as
/// there were. By itself -1 would be a multiple of b.
std::optional<dfg::Dims> BatchFlow::findReshapedRows(Operation *op) const {
  if (!llvm::isa<dfg::ReshapeOp>(op))
    return std::nullopt;
  auto sizes = shapes.getShape(op->getOperand(0));
  auto target = shapes.getConstants(op->getOperand(1));
  if (!sizes || sizes->empty() || !sizes->front().isMultipleOfBatch() || !target)
    return std::nullopt;
  const auto *rows = llvm::find_if(*target, [](int64_t size) { return size != 1; });
  if (rows == target->end() || *rows <= 0 || *rows % fixed.size)
    return std::nullopt;
  int64_t count = sizes->front().getScale(), rest = *rows / fixed.size;
  for (dfg::Dim size : ArrayRef(*sizes).drop_front()) {
    if (!size.isConstant())
      return std::nullopt;
    count *= size.getConstant();
  }
  dfg::Dims given(target->begin(), target->end());
  given[rows - target->begin()] = dfg::Dim::batch(rest);
  dfg::Dim *open = nullptr;
  for (auto [axis, size] : llvm::enumerate(*target)) {
    if (size == -1)
      open = &given[axis];
    else if (target->begin() + axis != rows)
      rest *= size;
  }
  if (rest <= 0 || count % rest || (!open && count != rest))
    return std::nullopt;
  if (open)
    *open = dfg::Dim(count / rest);
  return given;
}

/// A graph that fixes its batch has it as a number in shapes too ([32, -1]), which meets b and makes sizes unknown or
/// fixed: takes a first size that is a multiple of the batch as one of b, where a sharded operand says that it may be,
/// or what it was found to be combined with. Returns what the sizes were.
SmallVector<dfg::Dims> BatchFlow::restoreBatchAxis(Operation *op) {
  SmallVector<dfg::Dims> old;
  for (Value result : op->getResults())
    old.push_back(shapes.getShape(result).value_or(dfg::Dims()));
  bool isSharded = llvm::any_of(op->getOperands(), [&](Value operand) { return get(operand).kind == Flow::Sharded; });
  if (!isSharded && !fixed.makesRows(op))
    return old;
  for (Value result : op->getResults()) {
    std::optional<dfg::Dims> sizes = shapes.getShape(result);
    auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
    if (auto rows = isSharded ? findReshapedRows(op) : std::nullopt) {
      shapes.setShape(result, std::move(*rows));
      continue;
    }
    if (!sizes || sizes->empty())
      continue;
    dfg::Dim &first = sizes->front();
    // What a slice leaves of 2b rows, or a padding adds to them: 2b - 32.
    if (first.isKnown() && first.dependsOnBatch() && !first.isMultipleOfBatch() && isSharded &&
        llvm::none_of(ArrayRef(*sizes).drop_front(), [](dfg::Dim size) { return size.dependsOnBatch(); }))
      if (dfg::Dim rows = fixed.asRows(first); rows.isKnown() && rows.getScale() > 0) {
        first = rows;
        shapes.setShape(result, std::move(*sizes));
        continue;
      }
    if (llvm::any_of(*sizes, [](dfg::Dim size) { return size.dependsOnBatch(); }))
      continue;
    bool lost = !first.isKnown();
    int64_t size = first.isConstant() ? first.getConstant() : type && !type.isDynamicDim(0) ? type.getDimSize(0) : -1;
    if (size <= 0 || size % fixed.size || (!lost && isSharded && sumsOverBatch(op)))
      continue;
    first = dfg::Dim::batch(size / fixed.size);
    shapes.setShape(result, std::move(*sizes));
  }
  return old;
}

/// Visits a node of a graph that fixes its batch.
void BatchFlow::visitFixed(Operation *op, bool learns) {
  SmallVector<dfg::Dims> old = restoreBatchAxis(op);
  fixed.noteComputed(op, shapes);
  visit(op);
  if (llvm::isa<dfg::ConstOp>(op) && fixed.makesRows(op)) {
    Flow flow;
    flow.kind = Flow::Sharded;
    flow.batch = {0, {(*shapes.getShape(op->getResult(0)))[0].getScale()}, true};
    if (ArrayRef<int64_t> segments = fixed.getSegments(op); !segments.empty())
      flow.batch = {0, {segments.begin(), segments.end()}, false};
    flow.zero = isZeroConstant(op);
    flows[op->getResult(0)] = std::move(flow);
  }
  // A size was no row's after all. What is made for the rows has them also where nothing is known of it yet.
  for (auto [result, sizes] : llvm::zip(op->getResults(), old))
    if (const Flow &at = get(result); at.kind != Flow::Sharded && !fixed.makesRows(op) && !sizes.empty())
      shapes.setShape(result, std::move(sizes));
  for (OpResult result : op->getResults())
    if (std::optional<int> growth = findGrowth(op, result.getResultNumber()); growth != 0)
      growths[result] = growth;
  if (learns && (!estimates || ofOneReplica))
    learn(op);
}

/// What `op` says of the numbers that it combines with the batch's rows and sums.
void BatchFlow::learn(Operation *op) {
  if ((llvm::isa<dfg::ScalarInterface, dfg::SoftmaxCrossEntropyWithLogitsOp>(op) || op->hasTrait<dfg::Joins>()) &&
      op->getNumResults() > 0) {
    auto rankOf = [&](Value value) {
      auto sizes = shapes.getShape(value);
      return sizes ? static_cast<int64_t>(sizes->size()) : -1;
    };
    const int64_t rank = rankOf(llvm::isa<dfg::PackOp>(op) ? op->getOperand(0) : op->getResult(0));
    // Also where they are no proven ones yet, but will be once replicas are coupled.
    auto hasRows = [&](Value value) {
      auto sizes = shapes.getShape(value);
      return rankOf(value) == rank &&
             (get(value).isSharded(0) || (get(value).kind == Flow::Local && sizes->front().isMultipleOfBatch()));
    };
    if (rank > 0 && llvm::any_of(op->getOperands(), hasRows)) {
      SmallVector<int64_t> segments;
      for (Value operand : op->getOperands())
        if (const Flow &at = get(operand); rankOf(operand) == rank && at.isSharded(0) && !at.batch.uniform)
          segments.assign(at.batch.segments.begin(), at.batch.segments.end());
      // What is joined along the batch's axis lies behind the batch's rows, not beside them.
      if (llvm::isa<dfg::ConcatV2Op>(op))
        segments.clear();
      for (Value operand : op->getOperands())
        if (rankOf(operand) == rank && get(operand).kind != Flow::Sharded)
          fixed.noteRows(operand, shapes, segments);
    }
  }
  // Of each row of logits the class, or classes, of one example.
  if (llvm::isa<dfg::SparseSoftmaxCrossEntropyWithLogitsOp, dfg::SoftmaxCrossEntropyWithLogitsOp>(op))
    for (unsigned operand : {0u, 1u})
      if (const Flow &rows = get(op->getOperand(operand));
          rows.isSharded(0) && get(op->getOperand(1 - operand)).kind != Flow::Sharded)
        fixed.noteRows(op->getOperand(1 - operand), shapes,
                       rows.batch.uniform ? ArrayRef<int64_t>() : ArrayRef<int64_t>(rows.batch.segments));
  auto isSum = [&](Value value) {
    const Flow &at = get(value);
    return !at.zero && at.scale && *at.scale >= 1 && (at.kind != Flow::Sharded || at.batch.uniform);
  };
  auto axisOf = [&](Value value) {
    const Flow &at = get(value);
    return at.kind == Flow::Sharded ? std::optional<int64_t>(at.batch.axis) : std::nullopt;
  };
  const bool divides = op->hasTrait<dfg::Divides>() && op->getNumOperands() == 2;
  if (divides && fixed.question == FixedBatch::Rows) {
    fixed.noteCopies(op->getOperand(0), op->getOperand(1), shapes);
    // `sum(loss * weight) / sum(ones)`, as tf.losses have it: the ones are rows of the batch that the graph has as
    // numbers.
    if (isSum(op->getOperand(0)))
      fixed.noteSummedRows(op->getOperand(1), shapes);
  }
  if (divides && get(op->getOperand(0)).kind == Flow::Sharded && !get(op->getOperand(0)).batch.uniform &&
      fixed.countsCopies(op->getOperand(1)))
    fixed.noteOtherTerms(op->getOperand(0), op->getOperand(1), axisOf);
  if (fixed.learned)
    return;
  if (divides && fixed.question == FixedBatch::Counts && isSum(op->getOperand(0)) && get(op->getOperand(1)).scale == 0)
    fixed.noteCount(op->getOperand(0), op->getOperand(1), axisOf);
  if (llvm::isa<dfg::MulOp>(op) && fixed.question == FixedBatch::Shares)
    for (unsigned operand : {0u, 1u})
      if (isSum(op->getOperand(operand)) && get(op->getOperand(1 - operand)).scale == 0)
        fixed.noteShare(op->getOperand(operand), op->getOperand(1 - operand), axisOf);
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

/// Whether the constant that `factor` is scales rows of the examples elsewhere, which nothing made larger than a
/// replica's: there it is a number of its own, whatever the batch is (`x + 0.1 * f(x)`), and being one node it is the
/// same number beside the gradients of these rows.
bool BatchFlow::isNumberOfRows(Operation *op, Value factor) const {
  auto areRows = [&](Value value) {
    const Flow &at = get(value);
    return at.kind == Flow::Sharded && !at.batch.uniform && !at.zero;
  };
  if (op->getNumOperands() != 2 || fixed.isOfBatch(factor) ||
      !areRows(op->getOperand(op->getOperand(0) == factor ? 1 : 0)))
    return false;
  return llvm::any_of(factor.getUsers(), [&](Operation *user) {
    if (user == op || user->getNumOperands() != 2 || user->getNumResults() != 1 ||
        (!llvm::isa<dfg::MulOp>(user) && !(user->hasTrait<dfg::Divides>() && user->getOperand(1) == factor)))
      return false;
    Value rows = user->getOperand(user->getOperand(0) == factor ? 1 : 0);
    return areRows(rows) && areRows(user->getResult(0)) && get(rows).scale == 0 && getGrowth(rows) == 0;
  });
}

std::optional<int> BatchFlow::findGrowth(Operation *op, unsigned result) const {
  if (llvm::isa<dfg::UpdateInterface>(op))
    return 0;
  if (auto rescale = llvm::dyn_cast<dist::RescaleOp>(op)) {
    std::optional<int> growth = getGrowth(rescale.getShare());
    return growth ? std::optional(*growth + static_cast<int>(rescale.getPowerAttr().getInt())) : growth;
  }
  if (auto size = llvm::dyn_cast<dist::WholeSizeOp>(op))
    return llvm::any_of(size.getFactors(), [](int64_t factor) { return factor != 1; }) ? 1 : 0;
  auto isConstant = [&](Value value) { return fixed.getConstant(value) != nullptr; };
  if (auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op); reduce && reduce.getCoupling()) {
    std::optional<int> growth = getGrowth(reduce.getGradients()[result]);
    return growth && reduce.getReduction() == dist::Reduction::Sum ? std::optional(*growth + 1) : growth;
  }
  // Numbers beside what grows: also of what no collective has changed yet.
  auto grows = [&](Value value) {
    const Flow &at = get(value);
    return getGrowth(value) != 0 || (at.kind == Flow::Partial && !at.zero && at.scale != 0);
  };
  if ((llvm::isa<dfg::MulOp>(op) || op->hasTrait<dfg::Divides>()) && llvm::any_of(op->getOperands(), grows))
    for (Value operand : op->getOperands())
      if (fixed.mayCount(op, operand) && !isNumberOfRows(op, operand))
        return std::nullopt;
  if (llvm::all_of(op->getOperands(), [&](Value operand) { return getGrowth(operand) == 0; }))
    return 0;
  SmallVector<Value> linear, others;
  sortOperands(op, linear, others);
  auto add = [&](ArrayRef<Value> values, int sign, std::optional<int> sum) {
    for (Value value : values) {
      std::optional<int> growth = getGrowth(value);
      sum = sum && growth ? std::optional(*sum + sign * *growth) : std::nullopt;
    }
    return sum;
  };
  auto common = [&](ArrayRef<Value> values) {
    std::optional<int> growth = 0;
    bool first = true;
    for (Value value : values) {
      if (get(value).zero || isConstant(value))
        continue;
      growth = first || growth == getGrowth(value) ? getGrowth(value) : std::nullopt;
      first = false;
    }
    return growth;
  };
  const dfg::Linearity linearity = getLinearity(op);
  if (op->hasTrait<dfg::Divides>() && linear.size() == 1)
    return add(others, -1, add(linear, 1, 0));
  if (linearity == dfg::Linearity::None) {
    std::optional<double> degree = getDegree(op);
    std::optional<int> growth = common(others);
    if (!degree || !growth)
      return std::nullopt;
    const double power = *degree * *growth;
    return power == std::floor(power) ? std::optional(static_cast<int>(power)) : std::nullopt;
  }
  if (llvm::any_of(others, [&](Value value) { return getGrowth(value) != 0; }))
    return std::nullopt;
  return linearity == dfg::Linearity::Joint ? common(linear) : add(linear, 1, 0);
}

Operation *BatchFlow::findSampleSize(Operation *op) const {
  if (!llvm::isa<dfg::MulOp>(op) && !op->hasTrait<dfg::Divides>())
    return nullptr;
  Operation *number = nullptr;
  for (Value operand : op->getOperands())
    if (Operation *found = fixed.findSampleSize(operand))
      number = found;
  if (!number)
    return nullptr;
  SmallVector<Value> worklist(op->getOperands());
  llvm::DenseSet<Operation *> seen;
  while (!worklist.empty()) {
    Operation *made = worklist.pop_back_val().getDefiningOp();
    if (!made || !seen.insert(made).second)
      continue;
    auto reduce = llvm::dyn_cast<dist::AllReduceOp>(made);
    if (reduce && reduce.getCoupling())
      return number;
    if (llvm::isa<dfg::ScalarInterface, dfg::CastOp>(made) || made->hasTrait<dfg::Forwards>() ||
        made->hasTrait<dfg::Reshapes>())
      llvm::append_range(worklist, made->getOperands());
  }
  return nullptr;
}

bool BatchFlow::mayCountRows(Operation *op) const {
  if (op->getNumResults() != 1 || get(op->getResult(0)).zero)
    return false;
  auto isOne = [&](Value value) { return !get(value).zero && get(value).kind != Flow::Sharded; };
  if (llvm::isa<dfg::SumOp>(op))
    return isOne(op->getOperand(0)) && fixed.addsCopies(op, shapes);
  auto isMean = [&](Value value) { return isOne(value) && get(value).kind == Flow::Partial && get(value).scale == 0; };
  if (op->getNumOperands() != 2)
    return false;
  Value x = op->getOperand(0), y = op->getOperand(1);
  if (op->hasTrait<dfg::Divides>())
    return isMean(x) && fixed.findRows(op, y);
  return llvm::isa<dfg::MulOp>(op) && ((isMean(x) && fixed.findRows(op, y)) || (isMean(y) && fixed.findRows(op, x)));
}

Operation *BatchFlow::findDecision(Operation *op) const {
  // What is computed of predicates alone is one, or a number that one makes.
  if (fixed.isComputed(op) && !llvm::isa<dfg::SelectOp, dfg::SelectV2Op, dfg::CastOp>(op))
    return nullptr;
  for (Value operand : op->getOperands())
    if (getElementTypeOrSelf(operand.getType()).isInteger(1))
      if (Operation *number = fixed.findDecision(operand))
        return number;
  return nullptr;
}

Operation *BatchFlow::findFixedSize(Operation *op) const {
  // A choice by a number, too.
  if (!llvm::isa<dfg::ScalarInterface, dfg::AssignAddOp, dfg::AssignSubOp>(op) && op->getNumRegions() == 0)
    return nullptr;
  // What is computed of sizes follows from them; what of constants is a number of another one.
  if (fixed.isComputed(op) ||
      llvm::any_of(op->getResults(), [&](Value result) { return shapes.getElements(result).has_value(); }))
    return nullptr;
  for (Value operand : op->getOperands()) {
    if (Operation *number = fixed.findSize(operand))
      return number;
    if (Operation *number = fixed.findTaken(operand))
      return number;
    // What adds up examples adds those of a share.
    if (Operation *number = llvm::isa<dfg::AssignAddOp, dfg::AssignSubOp>(op) ? fixed.findCount(operand) : nullptr)
      return number;
  }
  return nullptr;
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
