//===- ShapeFunctions.cpp - How results' shapes follow, by kind of node -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/ShapeFunctions.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/Numbers.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc::dfg {

int64_t findFixedBatch(GraphOp graph) {
  std::optional<int64_t> size;
  for (auto feed : graph.getOps<PlaceholderOp>()) {
    auto type = llvm::dyn_cast<RankedTensorType>(feed.getResult().getType());
    if (!type || (type.getRank() > 0 && type.isDynamicDim(0)))
      return 0;
    if (type.getRank() == 0)
      continue;
    if (size && type.getDimSize(0) != *size)
      return 0;
    size = type.getDimSize(0);
  }
  return size.value_or(0);
}

std::optional<double> evaluateNumber(Value value, const ShapeContext &context, int depth) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || !type || !type.hasStaticShape() || type.getNumElements() != 1)
    return std::nullopt;
  const bool isSingle = type.getElementType().isF32();
  auto round = [&](double x) { return isSingle ? static_cast<double>(static_cast<float>(x)) : x; };
  auto elements = context.getElements(value);
  if (elements && elements->size() == 1 && elements->front().isConstant() && !elements->front().isBound())
    return round(static_cast<double>(elements->front().getConstant()));
  if ((!isSingle && !type.getElementType().isF64()) || op->getNumResults() != 1)
    return std::nullopt;
  if (auto constant = llvm::dyn_cast<ConstOp>(op)) {
    auto known = llvm::dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!known)
      return std::nullopt;
    return (*known.value_begin<APFloat>()).convertToDouble();
  }
  SmallVector<double, 2> x;
  const bool isMoved = op->hasTrait<Reshapes>();
  for (Value operand : isMoved ? op->getOperands().take_front(1) : op->getOperands()) {
    std::optional<double> next = evaluateNumber(operand, context, depth - 1);
    if (!next)
      return std::nullopt;
    x.push_back(*next);
  }
  if ((op->hasTrait<Forwards>() || isMoved) && !x.empty())
    return x[0];
  // One operation in float64 on what float32 holds, rounded, is the operation in float32.
  return llvm::TypeSwitch<Operation *, std::optional<double>>(op)
      .Case<CastOp>([&](auto) { return round(x[0]); })
      .Case<AddOp, AddV2Op>([&](auto) { return round(x[0] + x[1]); })
      .Case<SubOp>([&](auto) { return round(x[0] - x[1]); })
      .Case<MulOp>([&](auto) { return round(x[0] * x[1]); })
      .Case<RealDivOp, DivOp, DivNoNanOp>(
          [&](auto) { return x[1] == 0 ? std::nullopt : std::optional(round(x[0] / x[1])); })
      .Case<ReciprocalOp, InvOp>([&](auto) { return x[0] == 0 ? std::nullopt : std::optional(round(1 / x[0])); })
      .Case<NegOp>([&](auto) { return -x[0]; })
      .Case<SquareOp>([&](auto) { return round(x[0] * x[0]); })
      .Case<SqrtOp>([&](auto) { return x[0] < 0 ? std::nullopt : std::optional(round(std::sqrt(x[0]))); })
      .Case<MaximumOp>([&](auto) { return std::max(x[0], x[1]); })
      .Case<MinimumOp>([&](auto) { return std::min(x[0], x[1]); })
      .Case<FloorOp>([&](auto) { return std::floor(x[0]); })
      .Case<CeilOp>([&](auto) { return std::ceil(x[0]); })
      .Case<RoundOp, RintOp>([&](auto) { return std::nearbyint(x[0]); })
      .Default([](Operation *) { return std::nullopt; });
}

namespace shapes {

// ---- Helpers ------------------------------------------------------------------------

std::string print(ArrayRef<Dim> sizes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(sizes, os, [&](Dim size) {
    if (!size.isKnown())
      os << "?";
    else if (size.isConstant())
      os << size.getConstant();
    else if (size.dependsOnWholeBatch())
      os << size.getScale() << "b+" << size.getWholeScale() << "B+" << size.getOffset();
    else
      os << size.getScale() << "b+" << size.getOffset();
  });
  os << "]";
  return text;
}

static bool isInteger(Value value) {
  auto type = llvm::dyn_cast<TensorType>(value.getType());
  return type && type.getElementType().isInteger();
}

FailureOr<int64_t> normalizeAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return op->emitOpError() << "axis " << axis << " is outside of a tensor of rank " << rank;
  return axis < 0 ? axis + rank : axis;
}

/// Whether two sizes, or all of two shapes, may be equal.
bool fits(Dim x, Dim y) { return !x.isConstant() || !y.isConstant() || x == y; }
bool fits(ArrayRef<Dim> x, ArrayRef<Dim> y) {
  return x.size() == y.size() &&
         llvm::all_of(llvm::zip(x, y), [](auto both) { return fits(std::get<0>(both), std::get<1>(both)); });
}

/// Fails with a diagnostic where an operand is known to be no scalar (a tensor of one element will do where `orOne`).
static LogicalResult checkScalar(Operation *op, ShapeContext &context, unsigned operand, bool orOne = false) {
  auto shape = context.getShape(op->getOperand(operand));
  if (!shape || shape->empty() || (orOne && llvm::all_of(*shape, [](Dim size) { return fits(size, 1); })))
    return success();
  return op->emitOpError() << "takes operand " << operand << " of shape " << print(*shape)
                           << ", which must be a scalar";
}

/// The sizes that a vector of them names, checked; none where they are not known.
static FailureOr<std::optional<Dims>> getSizes(Operation *op, ShapeContext &context, unsigned operand) {
  auto shape = context.getShape(op->getOperand(operand));
  if (shape && shape->size() != 1)
    return op->emitOpError() << "takes operand " << operand << " of shape " << print(*shape)
                             << ", which must be a vector of sizes";
  std::optional<Dims> sizes = context.getElements(op->getOperand(operand));
  if (sizes && failed(checkSizes(op, *sizes)))
    return failure();
  return sizes;
}

static Dim product(ArrayRef<Dim> sizes) {
  Dim result = 1;
  for (Dim size : sizes)
    result = result * size;
  return result;
}

/// The size of two broadcast axes; fails where both are constants other than 1 and differ.
static std::optional<Dim> broadcastSize(Dim x, Dim y) {
  if (x.isConstant() && x.getConstant() == 1)
    return y.with(x);
  if (y.isConstant() && y.getConstant() == 1)
    return x.with(y);
  if (x.isConstant() && y.isConstant())
    return x == y ? std::optional<Dim>(x.with(y)) : std::nullopt;
  // An unknown size broadcasts against a known one other than 1: it is that, or 1.
  if (x.isKnown() && y.isKnown())
    return x == y ? x.with(y) : Dim();
  return x.isKnown() ? x : y;
}

static FailureOr<Dims> broadcastShapes(Operation *op, ArrayRef<Dim> x, ArrayRef<Dim> y) {
  if (x.size() < y.size())
    std::swap(x, y);
  Dims result(x.begin(), x.end());
  size_t lead = x.size() - y.size();
  for (size_t i = 0; i < y.size(); ++i) {
    std::optional<Dim> size = broadcastSize(x[lead + i], y[i]);
    if (!size)
      return op->emitOpError() << "operands of shapes " << print(x) << " and " << print(y) << " do not broadcast";
    result[lead + i] = *size;
  }
  return result;
}

// ---- Simple ones ------------------------------------------------------------------------

LogicalResult unknown(Operation *, ShapeContext &) { return success(); }

/// Other elements in the shape of the first operand.
LogicalResult sameShape(Operation *op, ShapeContext &context) {
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setShape(op->getResult(0), *shape);
  return success();
}

/// The first operand itself.
LogicalResult same(Operation *op, ShapeContext &context) {
  if (failed(sameShape(op, context)))
    return failure();
  if (auto elements = context.getElements(op->getOperand(0)))
    context.setElements(op->getResult(0), *elements);
  return success();
}

LogicalResult loop(Operation *op, ShapeContext &context) {
  auto loop = llvm::cast<WhileOp>(op);
  for (Region *region : {&loop.getCondition(), &loop.getBody()}) {
    for (auto [number, argument] : llvm::enumerate(region->getArguments())) {
      if (auto shape = context.getShape(op->getOperand(number)))
        context.setShape(argument, *shape);
      auto elements = context.getElements(op->getOperand(number));
      if (elements && loop.isInvariant(number))
        context.setElements(argument, *elements);
    }
    if (failed(context.run(region->front())))
      return failure();
  }
  for (auto [number, next] : llvm::enumerate(loop.getBody().front().getTerminator()->getOperands())) {
    auto before = context.getShape(op->getOperand(number)), after = context.getShape(next);
    auto differ = [](Dim x, Dim y) { return x.isKnown() && y.isKnown() && !(x == y); };
    if (before && after && (before->size() != after->size() || llvm::any_of(llvm::zip(*before, *after), [&](auto both) {
                              return std::apply(differ, both);
                            })))
      return op->emitOpError() << "has variable " << number << " of shape " << print(*before)
                               << " that an iteration makes one of shape " << print(*after);
    if (before)
      context.setShape(op->getResult(number), *before);
    if (auto elements = context.getElements(op->getOperand(number)); elements && loop.isInvariant(number))
      context.setElements(op->getResult(number), *elements);
  }
  return success();
}

LogicalResult scan(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (failed(checkScalar(op, context, 1)))
    return failure();
  if (auto axis = context.getConstant(op->getOperand(1));
      input && axis && failed(normalizeAxis(op, *axis, input->size())))
    return failure();
  auto elements = context.getElements(op->getOperand(0));
  if (input && input->size() == 1 && elements && isInteger(op->getResult(0)) && llvm::isa<CumsumOp, CumprodOp>(op)) {
    auto isSet = [&](StringRef name) {
      auto flag = op->getAttrOfType<BoolAttr>(name);
      return flag && flag.getValue();
    };
    if (isSet("reverse"))
      std::reverse(elements->begin(), elements->end());
    Dim all = llvm::isa<CumsumOp>(op) ? 0 : 1;
    for (Dim &element : *elements) {
      Dim next = llvm::isa<CumsumOp>(op) ? all + element : all * element;
      element = isSet("exclusive") ? all : next;
      all = next;
    }
    if (isSet("reverse"))
      std::reverse(elements->begin(), elements->end());
    context.setElements(op->getResult(0), std::move(*elements));
  }
  return sameShape(op, context);
}

LogicalResult reverse(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto axes = context.getConstants(op->getOperand(1));
  llvm::SmallSet<int64_t, 4> reversed;
  if (input && axes)
    for (int64_t axis : *axes) {
      FailureOr<int64_t> along = normalizeAxis(op, axis, input->size());
      if (failed(along))
        return failure();
      if (!reversed.insert(*along).second)
        return op->emitOpError() << "names axis " << *along << " twice";
    }
  if (!input)
    return success();
  context.setShape(op->getResult(0), *input);
  auto elements = context.getElements(op->getOperand(0));
  if (!axes || !elements || input->size() > 1)
    return success();
  if (!reversed.empty())
    std::reverse(elements->begin(), elements->end());
  context.setElements(op->getResult(0), std::move(*elements));
  return success();
}

LogicalResult rows(Operation *op, ShapeContext &context) {
  if (auto input = context.getShape(op->getOperand(0)); input && input->empty())
    return op->emitOpError("needs a tensor with an axis, not a scalar");
  return sameShape(op, context);
}

LogicalResult scalar(Operation *op, ShapeContext &context) {
  for (Value result : op->getResults())
    context.setShape(result, {});
  return success();
}

LogicalResult read(Operation *op, ShapeContext &context) {
  if (auto ref = llvm::dyn_cast<RefType>(op->getOperand(0).getType()))
    if (auto type = llvm::dyn_cast<RankedTensorType>(ref.getValueType())) {
      Dims sizes;
      for (int64_t size : type.getShape())
        sizes.push_back(ShapedType::isDynamic(size) ? Dim() : Dim(size));
      context.setShape(op->getResult(0), std::move(sizes));
    }
  return success();
}

/// The shape that values have which `indices` say the rows of, or the slices, of a variable of shape `sizes`.
static std::optional<Dims> getRowsShape(UpdateInterface update, ArrayRef<Dim> sizes, const Dims &indices) {
  size_t depth = 1;
  Dims rows = indices;
  if (update.hasIndexVectors()) {
    if (indices.empty() || !indices.back().isConstant() || indices.back().getConstant() < 0)
      return std::nullopt;
    depth = indices.back().getConstant();
    rows.pop_back();
  }
  if (depth > sizes.size())
    return std::nullopt;
  rows.append(sizes.begin() + depth, sizes.end());
  return rows;
}

/// Slots are of the variable's shape, its gradient too or of its rows', all else that an optimizer takes is scalar.
static LogicalResult checkUpdate(UpdateInterface update, ShapeContext &context, const Dims &sizes) {
  Operation *op = update;
  SmallVector<unsigned> written = update.getWrittenOperands();
  int gradient = update.getGradientOperand(), indicesOperand = update.getIndicesOperand();
  for (unsigned slot : written)
    if (auto shape = context.getShape(op->getOperand(slot)); shape && !fits(*shape, sizes))
      return op->emitOpError() << "updates a variable of shape " << print(sizes) << " with a slot of shape "
                               << print(*shape);
  if (update.isOptimizerUpdate())
    for (int operand = 0; operand < static_cast<int>(op->getNumOperands()); ++operand)
      if (operand != gradient && operand != indicesOperand &&
          !llvm::is_contained(written, static_cast<unsigned>(operand)) && failed(checkScalar(op, context, operand)))
        return failure();
  auto given = gradient >= 0 ? context.getShape(op->getOperand(gradient)) : std::nullopt;
  auto indices = indicesOperand >= 0 ? context.getShape(op->getOperand(indicesOperand)) : std::nullopt;
  if (!given || (indicesOperand >= 0 && !indices))
    return success();
  if (!indices) {
    if (!fits(*given, sizes))
      return op->emitOpError() << "updates a variable of shape " << print(sizes) << " with a value of shape "
                               << print(*given);
    return success();
  }
  // A scatter's value may be one for all.
  if (given->empty() && !update.isOptimizerUpdate())
    return success();
  std::optional<Dims> rows = getRowsShape(update, sizes, *indices);
  if (!rows || !fits(*given, *rows))
    return op->emitOpError() << "updates a variable of shape " << print(sizes) << " with a value of shape "
                             << print(*given) << " at indices of shape " << print(*indices);
  return success();
}

LogicalResult update(Operation *op, ShapeContext &context) {
  auto updateOp = llvm::cast<UpdateInterface>(op);
  Value handle = op->getOperand(updateOp.getWrittenOperands().front());
  auto ref = llvm::dyn_cast<RefType>(handle.getType());
  auto type = ref ? llvm::dyn_cast<RankedTensorType>(ref.getValueType()) : RankedTensorType();
  if (!type)
    return success();
  Dims sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size) ? Dim() : Dim(size));
  if (failed(checkUpdate(updateOp, context, sizes)))
    return failure();
  for (Value result : op->getResults())
    context.setShape(result, sizes);
  return success();
}

LogicalResult constant(Operation *op, ShapeContext &context) {
  auto value = llvm::dyn_cast<DenseIntElementsAttr>(llvm::cast<ConstOp>(op).getValue());
  if (!value || value.getNumElements() > ShapeContext::kMaxElements)
    return success();
  Dims elements;
  for (const APInt &element : value.getValues<APInt>())
    elements.push_back(value.getElementType().isInteger(1) ? element.getZExtValue() : element.getSExtValue());
  context.setElements(op->getResult(0), std::move(elements));
  return success();
}

LogicalResult placeholder(Operation *op, ShapeContext &context) {
  Value result = op->getResult(0);
  if (const SmallVector<int64_t> *fixed = context.getFeedShape(getNodeName(op))) {
    context.setShape(result, Dims(fixed->begin(), fixed->end()));
    return success();
  }
  auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
  if (!type || type.getRank() == 0 || !type.isDynamicDim(0))
    return success();
  Dims sizes = *context.getShape(result);
  sizes[0] = context.getBatch();
  context.setShape(result, std::move(sizes));
  return success();
}

LogicalResult withDefault(Operation *op, ShapeContext &context) {
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setShape(op->getResult(0), *shape);
  return success();
}

// ---- Element-wise -----------------------------------------------------------------------

/// Whether x < y (or x <= y): 1 or 0 where it is the same for every b.
static Dim isLess(Dim x, Dim y, bool orEqual) {
  if (x.isBound() || y.isBound())
    return {};
  // x < y where y is at least x + 1, and not where it is at most x.
  Dim last = orEqual ? x - 1 : x;
  if (max(last + 1, y) == y)
    return 1;
  return min(last, y) == y ? Dim(0) : Dim();
}

/// Whether x is y: 1 where it is for every b, 0 where it is for none.
static Dim isEqual(Dim x, Dim y) {
  if (x.isBound() || y.isBound())
    return {};
  if (x == y)
    return 1;
  return isLess(x, y, false) == Dim(1) || isLess(y, x, false) == Dim(1) ? Dim(0) : Dim();
}

/// Rounded towards zero.
static Dim truncateDiv(Dim x, Dim y) {
  if (x.isBound() || y.isBound())
    return floorDiv(x, y); // of sizes
  auto isNegative = [](Dim z) { return isLess(z, Dim(0), false); };
  Dim less = isNegative(x), by = isNegative(y);
  if (!less.isConstant() || !by.isConstant())
    return {};
  Dim quotient = floorDiv(less == Dim(1) ? Dim(0) - x : x, by == Dim(1) ? Dim(0) - y : y);
  return less == by ? quotient : Dim(0) - quotient;
}

/// The elements of an integer result, where the operands' are known.
static std::optional<Dim> evaluate(Operation *op, ArrayRef<Dim> x) {
  if (op->hasTrait<Forwards>())
    return x[0];
  return llvm::TypeSwitch<Operation *, std::optional<Dim>>(op)
      .Case<AddOp, AddV2Op>([&](auto) { return x[0] + x[1]; })
      .Case<SubOp>([&](auto) { return x[0] - x[1]; })
      .Case<MulOp>([&](auto) { return x[0] * x[1]; })
      .Case<NegOp>([&](auto) { return Dim(0) - x[0]; })
      .Case<SquareOp>([&](auto) { return x[0] * x[0]; })
      .Case<FloorDivOp>([&](auto) { return floorDiv(x[0], x[1]); })
      .Case<DivOp, TruncateDivOp>([&](auto) { return truncateDiv(x[0], x[1]); })
      .Case<FloorModOp>([&](auto) { return floorMod(x[0], x[1]); })
      .Case<MaximumOp>([&](auto) { return max(x[0], x[1]); })
      .Case<MinimumOp>([&](auto) { return min(x[0], x[1]); })
      .Case<ZerosLikeOp>([&](auto) { return Dim(0); })
      .Case<OnesLikeOp>([&](auto) { return Dim(1); })
      .Case<AddNOp>([&](auto) {
        Dim sum = 0;
        for (Dim next : x)
          sum = sum + next;
        return sum;
      })
      .Case<EqualOp>([&](auto) { return isEqual(x[0], x[1]); })
      .Case<NotEqualOp>([&](auto) { return Dim(1) - isEqual(x[0], x[1]); })
      .Case<LessOp>([&](auto) { return isLess(x[0], x[1], false); })
      .Case<LessEqualOp>([&](auto) { return isLess(x[0], x[1], true); })
      .Case<GreaterOp>([&](auto) { return isLess(x[1], x[0], false); })
      .Case<GreaterEqualOp>([&](auto) { return isLess(x[1], x[0], true); })
      .Case<LogicalNotOp>([&](auto) { return x[0].isConstant() ? Dim(x[0] == Dim(0)) : Dim(); })
      .Case<LogicalAndOp>([&](auto) { return min(x[0], x[1]); })
      .Case<LogicalOrOp>([&](auto) { return max(x[0], x[1]); })
      .Case<SelectV2Op, SelectOp>([&](auto) {
        if (x[0].isConstant())
          return x[0].getConstant() ? x[1] : x[2];
        return x[1] == x[2] ? x[1] : Dim();
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// min(n, max(n, x)) is n whatever the data say of x: how many bins there are at most, and at least.
static std::optional<int64_t> getOnlyValue(Operation *op, const ShapeContext &context) {
  if (!llvm::isa<MinimumOp>(op))
    return std::nullopt;
  for (unsigned side : {0, 1}) {
    std::optional<int64_t> most = context.getConstant(op->getOperand(side));
    auto other = op->getOperand(1 - side).getDefiningOp<MaximumOp>();
    if (most && other && llvm::any_of(other->getOperands(), [&](Value least) {
          std::optional<int64_t> known = context.getConstant(least);
          return known && *known >= *most;
        }))
      return most;
  }
  return std::nullopt;
}

static void evaluateElements(Operation *op, ShapeContext &context, ArrayRef<Dim> sizes) {
  if (!isInteger(op->getResult(0)))
    return;
  Dim count = product(sizes);
  if (!count.isConstant() || count.getConstant() < 0 || count.getConstant() > ShapeContext::kMaxElements)
    return;
  if (count.getConstant() == 1)
    if (std::optional<int64_t> only = getOnlyValue(op, context))
      return context.setElements(op->getResult(0), {Dim(*only)});
  SmallVector<Dims> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Dims> elements = context.getElements(operand);
    // Vectors of one length, and scalars beside them.
    if (!elements || (elements->size() != 1 && static_cast<int64_t>(elements->size()) != count.getConstant()))
      return;
    operands.push_back(std::move(*elements));
  }
  Dims result;
  for (int64_t i = 0; i < count.getConstant(); ++i) {
    Dims arguments;
    for (const Dims &elements : operands)
      arguments.push_back(elements[elements.size() == 1 ? 0 : i]);
    std::optional<Dim> element = evaluate(op, arguments);
    if (!element)
      return;
    result.push_back(*element);
  }
  context.setElements(op->getResult(0), std::move(result));
}

LogicalResult broadcast(Operation *op, ShapeContext &context) {
  Dims sizes;
  for (Value operand : op->getOperands()) {
    std::optional<Dims> next = context.getShape(operand);
    if (!next)
      return success();
    FailureOr<Dims> both = broadcastShapes(op, sizes, *next);
    if (failed(both))
      return failure();
    sizes = std::move(*both);
  }
  evaluateElements(op, context, sizes);
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult alike(Operation *op, ShapeContext &context) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("takes nothing");
  auto first = context.getShape(op->getOperand(0));
  for (Value operand : op->getOperands().drop_front())
    if (auto next = context.getShape(operand); first && next && !fits(*first, *next))
      return op->emitOpError() << "takes operands of shapes " << print(*first) << " and " << print(*next)
                               << ", which must be equal";
  return broadcast(op, context);
}

LogicalResult predicate(Operation *op, ShapeContext &context) { return broadcast(op, context); }
LogicalResult select(Operation *op, ShapeContext &context) { return broadcast(op, context); }

LogicalResult selectRows(Operation *op, ShapeContext &context) {
  auto condition = context.getShape(op->getOperand(0)), chosen = context.getShape(op->getOperand(1)),
       other = context.getShape(op->getOperand(2));
  if (chosen && other && !fits(*chosen, *other))
    return op->emitOpError() << "chooses between shapes " << print(*chosen) << " and " << print(*other);
  // A scalar, one of each row, or one of each element.
  if (condition && chosen && !condition->empty() && !fits(*condition, *chosen) &&
      !(condition->size() == 1 && !chosen->empty() && fits((*condition)[0], (*chosen)[0])))
    return op->emitOpError() << "chooses by a condition of shape " << print(*condition) << " between shapes "
                             << print(*chosen);
  if (auto shape = context.getShape(op->getOperand(1))) {
    evaluateElements(op, context, *shape);
    context.setShape(op->getResult(0), *shape);
  }
  return success();
}

LogicalResult cast(Operation *op, ShapeContext &context) {
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setShape(op->getResult(0), *shape);
  // Elements are followed through floats too (b as the divisor of a mean), exactly where they are integers.
  auto elements = context.getElements(op->getOperand(0));
  if (elements && getElementTypeOrSelf(op->getResult(0)).isInteger(1))
    for (Dim &element : *elements)
      if (element.isConstant())
        element = Dim(element.getConstant() != 0);
  if (elements)
    context.setElements(op->getResult(0), std::move(*elements));
  else if (Type type = getElementTypeOrSelf(op->getResult(0)); type.isInteger(32) || type.isInteger(64))
    if (std::optional<double> known = evaluateNumber(op->getOperand(0), context); known && std::abs(*known) < (1 << 30))
      context.setElements(op->getResult(0), {Dim(static_cast<int64_t>(*known))});
  return success();
}

// ---- Shapes as values ---------------------------------------------------------------------

LogicalResult shapeOf(Operation *op, ShapeContext &context) {
  for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults()))
    if (auto shape = context.getShape(operand)) {
      context.setShape(result, {Dim(shape->size())});
      context.setElements(result, *shape);
    }
  return success();
}

LogicalResult sizeOf(Operation *op, ShapeContext &context) {
  context.setShape(op->getResult(0), {});
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setElements(op->getResult(0), {product(*shape)});
  return success();
}

LogicalResult rankOf(Operation *op, ShapeContext &context) {
  context.setShape(op->getResult(0), {});
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setElements(op->getResult(0), {Dim(shape->size())});
  return success();
}

LogicalResult broadcastGradientArgs(Operation *op, ShapeContext &context) {
  auto x = context.getElements(op->getOperand(0)), y = context.getElements(op->getOperand(1));
  if (!x || !y)
    return success();
  size_t rank = std::max(x->size(), y->size());
  auto sizeAt = [&](const Dims &sizes, size_t axis) {
    return axis < rank - sizes.size() ? Dim(1) : sizes[axis - (rank - sizes.size())];
  };
  auto isOne = [](Dim size) { return size.isConstant() && size.getConstant() == 1; };
  Dims reduceX, reduceY;
  for (size_t axis = 0; axis < rank; ++axis) {
    Dim sizeX = sizeAt(*x, axis), sizeY = sizeAt(*y, axis);
    if (!sizeX.isKnown() || !sizeY.isKnown())
      return success();
    // Both 1: TensorFlow reduces over the axis in both; to the same result.
    if (isOne(sizeX))
      reduceX.push_back(axis);
    if (isOne(sizeY))
      reduceY.push_back(axis);
  }
  // Equal shapes need no reduction at all.
  if (*x == *y)
    reduceX.clear(), reduceY.clear();
  context.setShape(op->getResult(0), {Dim(reduceX.size())});
  context.setShape(op->getResult(1), {Dim(reduceY.size())});
  context.setElements(op->getResult(0), reduceX);
  context.setElements(op->getResult(1), reduceY);
  return success();
}

LogicalResult invertPermutation(Operation *op, ShapeContext &context) {
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setShape(op->getResult(0), *shape);
  auto permutation = context.getConstants(op->getOperand(0));
  if (!permutation)
    return success();
  Dims inverse(permutation->size());
  for (auto [position, axis] : llvm::enumerate(*permutation)) {
    if (axis < 0 || axis >= static_cast<int64_t>(permutation->size()) || inverse[axis].isKnown())
      return op->emitOpError() << axis << " is not an axis of a permutation of " << permutation->size();
    inverse[axis] = position;
  }
  context.setElements(op->getResult(0), std::move(inverse));
  return success();
}

LogicalResult concatOffset(Operation *op, ShapeContext &context) {
  auto axis = context.getConstant(op->getOperand(0));
  Dim offset = 0;
  std::optional<size_t> rank;
  for (auto [shape, result] : llvm::zip(op->getOperands().drop_front(), op->getResults())) {
    auto sizes = context.getElements(shape);
    if (!axis || !sizes)
      return success();
    if (rank.value_or(sizes->size()) != sizes->size())
      return op->emitOpError() << "joins shapes of " << *rank << " and of " << sizes->size() << " axes";
    rank = sizes->size();
    FailureOr<int64_t> along = normalizeAxis(op, *axis, sizes->size());
    if (failed(along))
      return failure();
    Dims start(sizes->size(), Dim(0));
    start[*along] = offset;
    context.setShape(result, {Dim(sizes->size())});
    context.setElements(result, std::move(start));
    offset = offset + (*sizes)[*along];
  }
  return success();
}

LogicalResult listDiff(Operation *op, ShapeContext &context) {
  auto all = context.getConstants(op->getOperand(0)), without = context.getConstants(op->getOperand(1));
  if (!all || !without) {
    for (Value result : op->getResults())
      context.setShape(result, {Dim()});
    return success();
  }
  Dims kept, positions;
  for (auto [position, element] : llvm::enumerate(*all))
    if (!llvm::is_contained(*without, element)) {
      kept.push_back(element);
      positions.push_back(position);
    }
  for (Value result : op->getResults())
    context.setShape(result, {Dim(kept.size())});
  context.setElements(op->getResult(0), std::move(kept));
  context.setElements(op->getResult(1), std::move(positions));
  return success();
}

LogicalResult dynamicStitch(Operation *op, ShapeContext &context) {
  unsigned count = op->getNumOperands() / 2;
  if (count == 0)
    return success();
  auto firstIndices = context.getShape(op->getOperand(0)), firstData = context.getShape(op->getOperand(count));
  if (!firstIndices || !firstData || firstData->size() < firstIndices->size())
    return success();
  // Behind the indices' axes, the data's are the result's. Later rows win.
  Dims sizes = {Dim()};
  sizes.append(firstData->begin() + firstIndices->size(), firstData->end());
  Dims elements;
  bool known = sizes.size() == 1;
  for (unsigned i = 0; i < count; ++i) {
    auto indices = context.getConstants(op->getOperand(i));
    if (!indices) {
      context.setShape(op->getResult(0), std::move(sizes));
      return success();
    }
    auto data = context.getElements(op->getOperand(count + i));
    known &= data && data->size() == indices->size();
    if (auto shape = context.getShape(op->getOperand(count + i)), at = context.getShape(op->getOperand(i));
        shape && at &&
        (shape->size() < at->size() || !fits(ArrayRef(*shape).take_front(at->size()), *at) ||
         !fits(ArrayRef(*shape).drop_front(at->size()), ArrayRef(sizes).drop_front())))
      return op->emitOpError() << "puts rows of shape " << print(*shape) << " at indices of shape " << print(*at)
                               << " beside shape " << print(*firstData);
    for (auto [from, to] : llvm::enumerate(*indices)) {
      if (to < 0 || to >= ShapeContext::kMaxElements)
        return op->emitOpError() << "puts a row at " << to << ", outside of [0, " << ShapeContext::kMaxElements << ")";
      if (to >= static_cast<int64_t>(elements.size()))
        elements.resize(to + 1);
      if (known)
        elements[to] = (*data)[from];
    }
  }
  sizes[0] = Dim(elements.size());
  context.setShape(op->getResult(0), std::move(sizes));
  if (known && isInteger(op->getResult(0)))
    context.setElements(op->getResult(0), std::move(elements));
  return success();
}

/// A range of floats, of constants: as TensorFlow counts them.
static std::optional<int64_t> countFloats(Operation *op, const ShapeContext &context) {
  double bounds[3];
  for (auto [bound, operand] : llvm::zip(bounds, op->getOperands())) {
    std::optional<SmallVector<double>> value = context.getReals(operand);
    if (!value || value->size() != 1)
      return std::nullopt;
    bound = value->front();
  }
  const double count = std::ceil(std::abs((bounds[1] - bounds[0]) / bounds[2]));
  const bool isForward = bounds[2] > 0 ? bounds[0] <= bounds[1] : bounds[0] >= bounds[1];
  return isForward && count <= static_cast<double>(std::numeric_limits<int32_t>::max())
             ? std::optional(static_cast<int64_t>(count))
             : std::nullopt;
}

LogicalResult range(Operation *op, ShapeContext &context) {
  if (auto count = countFloats(op, context)) {
    context.setShape(op->getResult(0), {*count});
    return success();
  }
  auto start = context.getElements(op->getOperand(0)), limit = context.getElements(op->getOperand(1));
  auto delta = context.getConstant(op->getOperand(2));
  if (!start || !limit || !delta) {
    context.setShape(op->getResult(0), {Dim()});
    return success();
  }
  if (start->size() != 1 || limit->size() != 1)
    return op->emitOpError("takes bounds that are no scalars");
  if (*delta == 0)
    return op->emitOpError("counts in steps of 0");
  Dim span = *delta > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
  if (*delta == std::numeric_limits<int64_t>::min())
    return op->emitOpError("counts in steps that are too long");
  int64_t step = std::abs(*delta);
  Dim count = step == 1 ? max(span, 0) : floorDiv(max(span, 0) + Dim(step - 1), step);
  context.setShape(op->getResult(0), {count});
  if (count.isConstant() && (*start)[0].isConstant() && count.getConstant() <= ShapeContext::kMaxElements) {
    Dims elements;
    for (int64_t i = 0; i < count.getConstant(); ++i)
      elements.push_back((*start)[0].getConstant() + i * *delta);
    context.setElements(op->getResult(0), std::move(elements));
  }
  return success();
}

// ---- Layout ---------------------------------------------------------------------------------

LogicalResult reshape(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto target = context.getElements(op->getOperand(1));
  if (auto elements = context.getElements(op->getOperand(0)))
    context.setElements(op->getResult(0), *elements);
  if (!target) {
    // Only the rank is known.
    auto length = context.getShape(op->getOperand(1));
    if (length && length->size() == 1 && (*length)[0].isConstant() &&
        (*length)[0].getConstant() > static_cast<int64_t>(kMaxRank))
      return op->emitOpError() << "gives " << (*length)[0].getConstant() << " axes to a tensor, which can have "
                               << kMaxRank;
    if (length && length->size() == 1 && (*length)[0].isConstant() && !context.getShape(op->getResult(0)))
      context.setShape(op->getResult(0), Dims((*length)[0].getConstant()));
    return success();
  }
  Dims sizes = *target;
  Dim rest = 1;
  int64_t open = -1;
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    if (!size.isConstant() || size.getConstant() != -1) {
      rest = rest * size;
      continue;
    }
    if (open >= 0)
      return op->emitOpError("leaves two sizes open (-1)");
    open = axis;
  }
  if (input) {
    Dim count = product(*input);
    if (open >= 0) {
      sizes[open] = floorDiv(count, rest);
      if (count.isConstant() && rest.isConstant() &&
          (rest.getConstant() == 0 ? count.getConstant() != 0 : count.getConstant() % rest.getConstant() != 0))
        return op->emitOpError() << "cannot give shape " << print(*target) << " to a tensor of shape " << print(*input);
    } else if (count.isConstant() && rest.isConstant() && !(count == rest)) {
      return op->emitOpError() << "cannot give shape " << print(*target) << " to a tensor of shape " << print(*input);
    }
  } else if (open >= 0) {
    sizes[open] = Dim();
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult transpose(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto permutation = context.getConstants(op->getOperand(1));
  if (!input || !permutation)
    return success();
  if (permutation->size() != input->size())
    return op->emitOpError() << "permutes " << permutation->size() << " axes of a tensor of shape " << print(*input);
  Dims sizes;
  SmallVector<bool> taken(input->size());
  for (int64_t axis : *permutation) {
    FailureOr<int64_t> from = normalizeAxis(op, axis, input->size());
    if (failed(from))
      return failure();
    if (taken[*from])
      return op->emitOpError() << "names axis " << *from << " twice";
    taken[*from] = true;
    sizes.push_back((*input)[*from]);
  }
  // The gradient of Tile interleaves sizes by a transpose.
  auto elements = context.getElements(op->getOperand(0));
  if (elements && sizes.size() == 2 && Dim(elements->size()) == sizes[0] * sizes[1]) {
    bool swaps = permutation->front() != 0 && permutation->front() != -2;
    int64_t rows = sizes[0].getConstant(), columns = sizes[1].getConstant();
    Dims moved;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        moved.push_back((*elements)[swaps ? j * rows + i : i * columns + j]);
    context.setElements(op->getResult(0), std::move(moved));
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult expandDims(Operation *op, ShapeContext &context) {
  if (auto elements = context.getElements(op->getOperand(0)))
    context.setElements(op->getResult(0), *elements);
  auto input = context.getShape(op->getOperand(0));
  auto axis = context.getConstant(op->getOperand(1));
  if (!input || !axis)
    return success();
  FailureOr<int64_t> at = normalizeAxis(op, *axis, input->size() + 1);
  if (failed(at))
    return failure();
  input->insert(input->begin() + *at, Dim(1));
  context.setShape(op->getResult(0), *input);
  return success();
}

LogicalResult squeeze(Operation *op, ShapeContext &context) {
  if (auto elements = context.getElements(op->getOperand(0)))
    context.setElements(op->getResult(0), *elements);
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  llvm::SmallSet<int64_t, 4> axes;
  for (Attribute attr : llvm::cast<SqueezeOp>(op).getSqueezeDims()) {
    FailureOr<int64_t> axis = normalizeAxis(op, llvm::cast<IntegerAttr>(attr).getInt(), input->size());
    if (failed(axis))
      return failure();
    Dim size = (*input)[*axis];
    if (size.isConstant() && size.getConstant() != 1)
      return op->emitOpError() << "cannot squeeze axis " << *axis << " of shape " << print(*input);
    axes.insert(*axis);
  }
  Dims sizes;
  for (auto [axis, size] : llvm::enumerate(*input)) {
    if (axes.empty() ? !(size.isConstant() && size.getConstant() == 1) : !axes.contains(axis))
      sizes.push_back(size);
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult tile(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto multiples = context.getElements(op->getOperand(1));
  if (!input)
    return success();
  if (multiples && multiples->size() != input->size())
    return op->emitOpError() << "repeats " << multiples->size() << " axes of a tensor of shape " << print(*input);
  if (multiples && failed(checkSizes(op, *multiples)))
    return failure();
  for (size_t axis = 0; axis < input->size(); ++axis)
    (*input)[axis] = multiples ? (*input)[axis] * (*multiples)[axis] : Dim();
  context.setShape(op->getResult(0), *input);
  // A vector of sizes, repeated: the ones around the batch's in the gradient of a gather with batch_dims.
  auto elements = context.getElements(op->getOperand(0));
  auto count = context.getConstant(op->getOperand(1));
  if (elements && count && input->size() == 1 && (*input)[0].isConstant() &&
      (*input)[0].getConstant() <= ShapeContext::kMaxElements) {
    Dims repeated;
    for (int64_t i = 0; i < *count; ++i)
      repeated.append(elements->begin(), elements->end());
    context.setElements(op->getResult(0), std::move(repeated));
  }
  return success();
}

LogicalResult broadcastTo(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 1);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  if (auto input = context.getShape(op->getOperand(0))) {
    bool canBroadcast = input->size() <= (*sizes)->size();
    for (size_t axis = 0; canBroadcast && axis < input->size(); ++axis)
      canBroadcast =
          fits((*input)[axis], 1) || fits((*input)[axis], (**sizes)[(*sizes)->size() - input->size() + axis]);
    if (!canBroadcast)
      return op->emitOpError() << "cannot broadcast shape " << print(*input) << " to " << print(**sizes);
  }
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult fill(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 0);
  if (failed(sizes) || failed(checkScalar(op, context, 1)))
    return failure();
  if (!*sizes)
    return success();
  Dim count = product(**sizes);
  auto value = context.getElements(op->getOperand(1));
  if (value && value->size() == 1 && count.isConstant() && count.getConstant() <= ShapeContext::kMaxElements)
    context.setElements(op->getResult(0), Dims(count.getConstant(), value->front()));
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult concat(Operation *op, ShapeContext &context) {
  bool axisFirst = llvm::isa<ConcatOp>(op);
  OperandRange operands = op->getOperands();
  Value axisOperand = axisFirst ? operands.front() : operands.back();
  OperandRange values = axisFirst ? operands.drop_front() : operands.drop_back();
  auto axis = context.getConstant(axisOperand);
  if (!axis || values.empty())
    return success();
  std::optional<Dims> sizes;
  std::optional<SmallVector<Dims>> parts = SmallVector<Dims>();
  bool someKnown = false;
  for (Value value : values) {
    auto next = context.getShape(value);
    if (!next)
      return success();
    if (!sizes) {
      FailureOr<int64_t> along = normalizeAxis(op, *axis, next->size());
      if (failed(along))
        return failure();
      axis = *along;
      sizes = *next;
    } else {
      if (next->size() != sizes->size())
        return op->emitOpError() << "joins shapes " << print(*sizes) << " and " << print(*next);
      for (size_t i = 0; i < sizes->size(); ++i) {
        if (static_cast<int64_t>(i) == *axis)
          (*sizes)[i] = (*sizes)[i] + (*next)[i];
        else if ((*sizes)[i].isConstant() && (*next)[i].isConstant() && !((*sizes)[i] == (*next)[i]))
          return op->emitOpError() << "joins shapes " << print(*sizes) << " and " << print(*next) << " along axis "
                                   << *axis;
        else if (!(*sizes)[i].isKnown())
          (*sizes)[i] = (*next)[i];
      }
    }
    auto part = context.getElements(value);
    someKnown |= part.has_value();
    // Of some elements nothing is known; of the others there is.
    if (Dim count = product(*next); !part && isInteger(value) && count.isConstant() && count.getConstant() >= 0 &&
                                    count.getConstant() <= ShapeContext::kMaxElements)
      part = Dims(count.getConstant());
    if (!part)
      parts.reset();
    else if (parts)
      parts->push_back(std::move(*part));
  }
  Dim outer = product(ArrayRef<Dim>(*sizes).take_front(*axis));
  context.setShape(op->getResult(0), std::move(*sizes));
  if (!parts || !someKnown || !outer.isConstant() || outer.getConstant() <= 0)
    return success();
  // Row by row of the axes before: a piece of each part.
  Dims elements;
  for (int64_t row = 0; row < outer.getConstant(); ++row)
    for (const Dims &part : *parts) {
      size_t piece = part.size() / outer.getConstant();
      elements.append(part.begin() + row * piece, part.begin() + (row + 1) * piece);
    }
  context.setElements(op->getResult(0), std::move(elements));
  return success();
}

/// Sizes that a vector of them is split into.
static void followParts(Operation *op, ShapeContext &context, Value vector) {
  auto shape = context.getShape(vector);
  auto elements = context.getElements(vector);
  if (!elements || !shape || shape->size() != 1)
    return;
  ArrayRef<Dim> rest = *elements;
  for (Value result : op->getResults()) {
    auto part = context.getShape(result);
    if (!part || part->size() != 1 || !part->front().isConstant() || part->front().getConstant() < 0 ||
        part->front().getConstant() > static_cast<int64_t>(rest.size()))
      return;
    context.setElements(result, Dims(rest.take_front(part->front().getConstant())));
    rest = rest.drop_front(part->front().getConstant());
  }
}

LogicalResult split(Operation *op, ShapeContext &context) {
  auto axis = context.getConstant(op->getOperand(0));
  auto input = context.getShape(op->getOperand(1));
  if (!axis || !input)
    return success();
  FailureOr<int64_t> along = normalizeAxis(op, *axis, input->size());
  if (failed(along))
    return failure();
  int64_t parts = op->getNumResults();
  if (parts == 0)
    return op->emitOpError("splits into no parts");
  Dim size = (*input)[*along];
  if (size.isConstant() && size.getConstant() % parts != 0)
    return op->emitOpError() << "cannot split axis " << *along << " of shape " << print(*input) << " into " << parts
                             << " equal parts";
  (*input)[*along] = floorDiv(size, parts);
  for (Value result : op->getResults())
    context.setShape(result, *input);
  followParts(op, context, op->getOperand(1));
  return success();
}

LogicalResult splitV(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto parts = context.getElements(op->getOperand(1));
  auto axis = context.getConstant(op->getOperand(2));
  if (!axis || !input)
    return success();
  FailureOr<int64_t> along = normalizeAxis(op, *axis, input->size());
  if (failed(along))
    return failure();
  Dim total = (*input)[*along], given = 0;
  if (parts && parts->size() != op->getNumResults())
    return op->emitOpError() << "names " << parts->size() << " sizes of " << op->getNumResults() << " parts";
  bool isOpen = false;
  for (Dim part : parts.value_or(Dims())) {
    bool isRest = part.isConstant() && part.getConstant() == -1;
    if ((isRest && isOpen) || (!isRest && failed(checkSizes(op, part))))
      return isRest ? op->emitOpError("leaves two sizes open (-1)") : failure();
    isOpen |= isRest;
    given = isRest ? given : given + part;
  }
  if (parts && (isOpen ? total.isConstant() && given.isConstant() && given.getConstant() > total.getConstant()
                       : !fits(total, given)))
    return op->emitOpError() << "splits axis " << *along << " of shape " << print(*input) << " into parts of sizes "
                             << print(*parts);
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Dims sizes = *input;
    Dim part = parts && i < parts->size() ? (*parts)[i] : Dim();
    sizes[*along] = part.isConstant() && part.getConstant() == -1 ? total - given : part;
    context.setShape(result, std::move(sizes));
  }
  followParts(op, context, op->getOperand(0));
  return success();
}

LogicalResult pack(Operation *op, ShapeContext &context) {
  std::optional<Dims> sizes;
  bool known = isInteger(op->getResult(0));
  int64_t axis = llvm::cast<PackOp>(op).getAxisAttr().getInt();
  for (Value value : op->getOperands()) {
    auto next = context.getShape(value);
    if (!next)
      return success();
    if (sizes && !fits(*next, *sizes))
      return op->emitOpError() << "stacks shapes " << print(*sizes) << " and " << print(*next);
    sizes = sizes ? *sizes : *next;
    Dim count = product(*next);
    known &= count.isConstant() && count.getConstant() <= ShapeContext::kMaxElements;
  }
  if (!sizes)
    return op->emitOpError("stacks nothing");
  FailureOr<int64_t> at = normalizeAxis(op, axis, sizes->size() + 1);
  if (failed(at))
    return failure();
  if (known) {
    // Runs of what lies behind the new axis, an operand's behind the other's.
    int64_t run = product(ArrayRef(*sizes).drop_front(*at)).getConstant(), count = product(*sizes).getConstant();
    SmallVector<Dims> parts;
    for (Value value : op->getOperands()) {
      auto part = context.getElements(value);
      parts.push_back(part && static_cast<int64_t>(part->size()) == count ? *part : Dims(count));
    }
    Dims elements;
    for (int64_t first = 0; first < count; first += run)
      for (const Dims &part : parts)
        llvm::append_range(elements, ArrayRef(part).slice(first, run));
    context.setElements(op->getResult(0), std::move(elements));
  }
  sizes->insert(sizes->begin() + *at, Dim(op->getNumOperands()));
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult unpack(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  FailureOr<int64_t> axis = normalizeAxis(op, llvm::cast<UnpackOp>(op).getAxisAttr().getInt(), input->size());
  if (failed(axis))
    return failure();
  if (!fits((*input)[*axis], op->getNumResults()))
    return op->emitOpError() << "unstacks axis " << *axis << " of shape " << print(*input) << " as "
                             << op->getNumResults() << " tensors";
  auto elements = context.getElements(op->getOperand(0));
  bool isVector = input->size() == 1;
  input->erase(input->begin() + *axis);
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    context.setShape(result, *input);
    if (elements && isVector && i < elements->size())
      context.setElements(result, {(*elements)[i]});
  }
  return success();
}

LogicalResult slice(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto begin = context.getElements(op->getOperand(1)), size = context.getElements(op->getOperand(2));
  if (!input || !size)
    return success();
  Dims sizes = *size;
  if (sizes.size() != input->size() || (begin && begin->size() != input->size()))
    return op->emitOpError() << "takes a slice of " << sizes.size() << " axes from shape " << print(*input);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    Dim first = begin ? (*begin)[axis] : Dim(), whole = (*input)[axis];
    if (sizes[axis].isConstant() && sizes[axis].getConstant() == -1)
      sizes[axis] = begin ? whole - first : Dim();
    Dim last = first + sizes[axis];
    if ((first.isConstant() && first.getConstant() < 0) ||
        (sizes[axis].isConstant() && sizes[axis].getConstant() < 0) ||
        (last.isConstant() && whole.isConstant() && last.getConstant() > whole.getConstant()))
      return op->emitOpError() << "takes a slice that begins at " << print(begin.value_or(Dims()))
                               << " and is of shape " << print(*size) << " from shape " << print(*input);
  }
  auto elements = context.getElements(op->getOperand(0));
  auto from = context.getConstants(op->getOperand(1));
  bool fits = elements && from && from->size() == input->size() && sizes.size() == input->size();
  for (size_t axis = 0; fits && axis < sizes.size(); ++axis) {
    Dim whole = (*input)[axis];
    fits = whole.isConstant() && sizes[axis].isConstant() && (*from)[axis] >= 0 &&
           (*from)[axis] + sizes[axis].getConstant() <= whole.getConstant();
  }
  if (fits) {
    // Axis by axis, from the last: how far elements of the result lie from the slice's first, in the input.
    SmallVector<int64_t> offsets = {0};
    int64_t stride = 1;
    for (size_t axis = sizes.size(); axis-- > 0; stride *= (*input)[axis].getConstant()) {
      SmallVector<int64_t> next;
      for (int64_t i = 0; i < sizes[axis].getConstant(); ++i)
        for (int64_t offset : offsets)
          next.push_back(((*from)[axis] + i) * stride + offset);
      offsets = std::move(next);
    }
    context.setElements(op->getResult(0),
                        llvm::map_to_vector<4>(offsets, [&](int64_t offset) { return (*elements)[offset]; }));
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

/// Whether x <= y for any batch of `smallest` examples or more.
static bool isAtMost(Dim x, Dim y, int64_t smallest) {
  Dim rest = y - x;
  int64_t slope, least;
  return rest.growsWithBatch() && !llvm::AddOverflow(rest.getScale(), rest.getWholeScale(), slope) &&
         !llvm::MulOverflow(slope, smallest, least) && !llvm::AddOverflow(least, rest.getOffset(), least) &&
         least >= 0 && !x.isBound() && !y.isBound();
}

/// Sets where a slice of an axis that has the batch's size begins and ends; false where that is not known.
static bool resolveBatchSlice(Dim size, std::optional<Dim> begin, std::optional<Dim> end, int64_t smallest, Dim &from,
                              Dim &to) {
  from = begin.value_or(Dim(0));
  to = end.value_or(size);
  if (to.isConstant() && to.getConstant() < 0)
    to = size + to;
  if (!from.isKnown() || !to.isKnown() || (from.isConstant() && from.getConstant() < 0))
    return false;
  // To the open end: a slice that begins behind it is TensorFlow's to refuse, or empty.
  if (!end && from.isConstant())
    return true;
  return !to.isConstant() && isAtMost(Dim(0), from, smallest) && isAtMost(from, to, smallest) &&
         isAtMost(to, size, smallest);
}

std::optional<ResolvedSlice> resolveStridedSlice(Operation *op, ArrayRef<Dim> input, ArrayRef<Dim> begin,
                                                 ArrayRef<Dim> end, ArrayRef<int64_t> strides) {
  auto mask = [&](StringRef name) -> int64_t {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  int64_t beginMask = mask("begin_mask"), endMask = mask("end_mask"), ellipsisMask = mask("ellipsis_mask"),
          newAxisMask = mask("new_axis_mask"), shrinkMask = mask("shrink_axis_mask");
  if (begin.size() != end.size() || begin.size() != strides.size())
    return std::nullopt;
  int64_t specified = 0;
  bool sawEllipsis = false;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (ellipsisMask >> i & 1) {
      if (sawEllipsis)
        return std::nullopt;
      sawEllipsis = true;
    } else if (!(newAxisMask >> i & 1))
      ++specified;
  }
  int64_t rank = input.size();
  if (specified > rank)
    return std::nullopt;

  ResolvedSlice slice;
  auto takeWhole = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      slice.resultAxes.push_back(slice.begin.size());
      slice.size.push_back(input[slice.begin.size()]);
      slice.begin.push_back(0);
      slice.stride.push_back(1);
    }
  };
  for (size_t i = 0; i < begin.size(); ++i) {
    if (ellipsisMask >> i & 1) {
      takeWhole(rank - specified);
      continue;
    }
    if (newAxisMask >> i & 1) {
      slice.resultAxes.push_back(-1);
      continue;
    }
    int64_t axis = slice.begin.size(), stride = strides[i];
    Dim size = input[axis];
    if (stride == 0 || stride == std::numeric_limits<int64_t>::min())
      return std::nullopt;
    if (shrinkMask >> i & 1) {
      if (!begin[i].isConstant())
        return std::nullopt;
      int64_t at = begin[i].getConstant();
      if (at < 0) {
        if (!size.isConstant())
          return std::nullopt;
        at += size.getConstant();
      }
      if (at < 0 || (size.isConstant() && at >= size.getConstant()))
        return std::nullopt;
      slice.begin.push_back(at);
      slice.stride.push_back(1);
      slice.size.push_back(1);
      continue;
    }
    bool wholeBegin = beginMask >> i & 1, wholeEnd = endMask >> i & 1;
    slice.resultAxes.push_back(axis);
    slice.stride.push_back(stride);
    if (!size.isConstant()) {
      Dim from, to;
      if (stride != 1 ||
          !resolveBatchSlice(size, wholeBegin ? std::nullopt : std::optional(begin[i]),
                             wholeEnd ? std::nullopt : std::optional(end[i]), getSmallestBatch(op), from, to))
        return std::nullopt;
      slice.begin.push_back(from);
      slice.size.push_back(to - from);
      continue;
    }
    if ((!wholeBegin && !begin[i].isConstant()) || (!wholeEnd && !end[i].isConstant()))
      return std::nullopt;
    int64_t extent = size.getConstant();
    int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? extent : extent - 1;
    auto clamp = [&](int64_t at) { return std::clamp(at < 0 ? at + extent : at, low, high); };
    int64_t from = wholeBegin ? (stride > 0 ? low : high) : clamp(begin[i].getConstant());
    int64_t to = wholeEnd ? (stride > 0 ? high : low) : clamp(end[i].getConstant());
    int64_t span = to - from;
    int64_t count = (span == 0 || (span < 0) != (stride < 0)) ? 0 : (span + stride - (stride > 0 ? 1 : -1)) / stride;
    slice.begin.push_back(from);
    slice.size.push_back(count);
  }
  if (!sawEllipsis)
    takeWhole(rank - static_cast<int64_t>(slice.begin.size()));
  return slice;
}

/// The slice of shape `input` that operands 1, 2 and 3 say; none where they are not known. Fails with a diagnostic
/// where it is none.
static FailureOr<std::optional<ResolvedSlice>> getStridedSlice(Operation *op, ShapeContext &context,
                                                               ArrayRef<Dim> input) {
  auto begin = context.getElements(op->getOperand(1)), end = context.getElements(op->getOperand(2));
  auto strides = context.getConstants(op->getOperand(3));
  if (!begin || !end || !strides)
    return std::optional<ResolvedSlice>();
  // A mask has a bit an entry.
  constexpr size_t kMaxEntries = 32;
  if (begin->size() != end->size() || begin->size() != strides->size() || begin->size() > kMaxEntries)
    return op->emitOpError() << "takes a slice by " << begin->size() << " begins, " << end->size() << " ends and "
                             << strides->size() << " strides";
  std::optional<ResolvedSlice> slice = resolveStridedSlice(op, input, *begin, *end, *strides);
  auto areConstant = [](ArrayRef<Dim> sizes) {
    return llvm::all_of(sizes, [](Dim size) { return size.isConstant(); });
  };
  if (!slice && areConstant(input) && areConstant(*begin) && areConstant(*end))
    return op->emitOpError() << "takes a slice that does not fit shape " << print(input);
  return slice;
}

/// Of the result: sizes of axes that are taken, and 1 of new ones.
static Dims getShape(const ResolvedSlice &slice) {
  return llvm::map_to_vector<4>(slice.resultAxes, [&](int64_t axis) { return axis < 0 ? Dim(1) : slice.size[axis]; });
}

LogicalResult stridedSlice(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  FailureOr<std::optional<ResolvedSlice>> resolved = getStridedSlice(op, context, *input);
  if (failed(resolved))
    return failure();
  if (!*resolved)
    return success();
  const ResolvedSlice &slice = **resolved;
  auto elements = context.getElements(op->getOperand(0));
  if (elements && input->size() == 1 && slice.size[0].isConstant() && slice.begin[0].isConstant()) {
    Dims taken;
    for (int64_t i = 0; i < slice.size[0].getConstant(); ++i) {
      int64_t at = slice.begin[0].getConstant() + i * slice.stride[0];
      if (at < 0 || at >= static_cast<int64_t>(elements->size()))
        return op->emitOpError() << "index " << at << " is outside of a vector of " << elements->size();
      taken.push_back((*elements)[at]);
    }
    context.setElements(op->getResult(0), std::move(taken));
  }
  // A size that becomes a vector of one: x[tf.newaxis].
  if (elements && input->empty())
    context.setElements(op->getResult(0), *elements);
  context.setShape(op->getResult(0), getShape(slice));
  return success();
}

LogicalResult stridedSliceGrad(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 0);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  FailureOr<std::optional<ResolvedSlice>> slice = getStridedSlice(op, context, **sizes);
  if (failed(slice))
    return failure();
  auto gradient = context.getShape(op->getOperand(4));
  if (*slice && gradient && !fits(getShape(**slice), *gradient))
    return op->emitOpError() << "takes a gradient of shape " << print(*gradient) << " of a slice of shape "
                             << print(getShape(**slice));
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult pad(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto paddings = context.getElements(op->getOperand(1));
  if (!input)
    return success();
  if (paddings && paddings->size() != 2 * input->size())
    return op->emitOpError() << "pads " << paddings->size() / 2 << " axes of a tensor of shape " << print(*input);
  if (paddings && failed(checkSizes(op, *paddings)))
    return failure();
  if (op->getNumOperands() > 2 && failed(checkScalar(op, context, 2)))
    return failure();
  for (size_t axis = 0; axis < input->size(); ++axis)
    (*input)[axis] = paddings ? (*input)[axis] + (*paddings)[2 * axis] + (*paddings)[2 * axis + 1] : Dim();
  context.setShape(op->getResult(0), *input);
  return success();
}

LogicalResult ensureShape(Operation *op, ShapeContext &context) {
  TensorShapeAttr required = llvm::cast<EnsureShapeOp>(op).getShape();
  auto input = context.getShape(op->getOperand(0));
  if (required.getUnknownRank()) {
    if (input)
      context.setShape(op->getResult(0), *input);
    return success();
  }
  Dims sizes;
  for (int64_t size : required.getSizes())
    sizes.push_back(size < 0 ? Dim() : Dim(size));
  const Dims asked = sizes;
  bool fits = !input || input->size() == sizes.size();
  for (size_t i = 0; input && fits && i < sizes.size(); ++i) {
    fits = !(*input)[i].isConstant() || !sizes[i].isConstant() || (*input)[i] == sizes[i];
    if ((*input)[i].isKnown())
      sizes[i] = (*input)[i];
  }
  if (!fits)
    return op->emitOpError() << "requires shape " << print(asked) << " of a value of shape " << print(*input);
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult oneHot(Operation *op, ShapeContext &context) {
  auto indices = context.getShape(op->getOperand(0));
  auto depth = context.getElements(op->getOperand(1));
  for (unsigned operand : {1, 2, 3})
    if (failed(checkScalar(op, context, operand)))
      return failure();
  if (!indices)
    return success();
  int64_t axis = llvm::cast<OneHotOp>(op).getAxisAttr().getInt();
  FailureOr<int64_t> at = normalizeAxis(op, axis, indices->size() + 1);
  if (failed(at))
    return failure();
  indices->insert(indices->begin() + *at, depth && depth->size() == 1 ? depth->front() : Dim());
  context.setShape(op->getResult(0), *indices);
  return success();
}

// ---- Reductions --------------------------------------------------------------------------------

/// The input's sizes without (or with 1 for) those reduced over.
static LogicalResult reduceShape(Operation *op, ShapeContext &context, std::optional<SmallVector<int64_t>> axes,
                                 bool keep) {
  auto input = context.getShape(op->getOperand(0));
  if (!input || !axes)
    return success();
  SmallVector<bool> reduced(input->size(), false);
  for (int64_t axis : *axes) {
    FailureOr<int64_t> along = normalizeAxis(op, axis, input->size());
    if (failed(along))
      return failure();
    reduced[*along] = true;
  }
  Dims sizes;
  for (auto [size, gone] : llvm::zip(*input, reduced)) {
    if (!gone)
      sizes.push_back(size);
    else if (keep)
      sizes.push_back(1);
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

/// The largest or smallest of a vector of sizes, which is one where it is so for every batch; whether all or any of
/// conditions on sizes hold.
static void followExtremum(Operation *op, ShapeContext &context) {
  auto elements = context.getElements(op->getOperand(0));
  auto shape = context.getShape(op->getOperand(0));
  auto axes = context.getConstants(op->getOperand(1));
  const bool isLargest = llvm::isa<MaxOp, AnyOp>(op);
  if (!llvm::isa<MaxOp, MinOp, AllOp, AnyOp>(op) || !elements || elements->empty() || !shape || shape->size() != 1 ||
      !axes || axes->size() != 1 || !isInteger(op->getResult(0)))
    return;
  Dim found = elements->front();
  for (Dim next : ArrayRef<Dim>(*elements).drop_front())
    found = isLargest ? max(found, next) : min(found, next);
  context.setElements(op->getResult(0), {found});
}

LogicalResult reduction(Operation *op, ShapeContext &context) {
  followExtremum(op, context);
  bool keep = op->getAttrOfType<BoolAttr>("keep_dims") && op->getAttrOfType<BoolAttr>("keep_dims").getValue();
  return reduceShape(op, context, context.getConstants(op->getOperand(1)), keep);
}

LogicalResult prod(Operation *op, ShapeContext &context) {
  auto elements = context.getElements(op->getOperand(0));
  auto shape = context.getShape(op->getOperand(0));
  auto axes = context.getConstants(op->getOperand(1));
  // A scalar, or a vector over its axis; over no axis the value stays.
  if (elements && shape && axes && isInteger(op->getResult(0))) {
    if (axes->empty())
      context.setElements(op->getResult(0), *elements);
    else if (shape->size() == 1)
      context.setElements(op->getResult(0), {product(*elements)});
  }
  return reduction(op, context);
}

LogicalResult argReduction(Operation *op, ShapeContext &context) {
  auto axis = context.getConstants(op->getOperand(1));
  return reduceShape(op, context, axis, false);
}

// ---- Products, convolutions, losses ---------------------------------------------------------------

static LogicalResult multiply(Operation *op, ShapeContext &context, bool transposeA, bool transposeB) {
  auto a = context.getShape(op->getOperand(0)), b = context.getShape(op->getOperand(1));
  if (!a || !b)
    return success();
  if (a->size() < 2 || b->size() < 2)
    return op->emitOpError() << "multiplies shapes " << print(*a) << " and " << print(*b) << "; matrices are needed";
  auto at = [](const Dims &sizes, int64_t fromBack) { return sizes[sizes.size() - fromBack]; };
  Dim rows = at(*a, transposeA ? 1 : 2), innerA = at(*a, transposeA ? 2 : 1);
  Dim innerB = at(*b, transposeB ? 1 : 2), columns = at(*b, transposeB ? 2 : 1);
  if (innerA.isConstant() && innerB.isConstant() && !(innerA == innerB))
    return op->emitOpError() << "multiplies shapes " << print(*a) << " and " << print(*b) << ": "
                             << innerA.getConstant() << " columns meet " << innerB.getConstant() << " rows";
  FailureOr<Dims> sizes = broadcastShapes(op, ArrayRef(*a).drop_back(2), ArrayRef(*b).drop_back(2));
  if (failed(sizes))
    return failure();
  sizes->push_back(rows);
  sizes->push_back(columns);
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult matMul(Operation *op, ShapeContext &context) {
  auto product = llvm::cast<MatMulOp>(op);
  for (Value operand : op->getOperands())
    if (auto shape = context.getShape(operand); shape && shape->size() != 2)
      return op->emitOpError() << "multiplies a tensor of shape " << print(*shape) << "; matrices are needed";
  return multiply(op, context, product.getTransposeA(), product.getTransposeB());
}

LogicalResult batchMatMul(Operation *op, ShapeContext &context) {
  auto flag = [&](StringRef name) {
    auto attr = op->getAttrOfType<BoolAttr>(name);
    return attr && attr.getValue();
  };
  return multiply(op, context, flag("adj_x"), flag("adj_y"));
}

// Windows, strides and paddings; so large that no sum of them overflows.
constexpr int64_t kMaxWindow = int64_t(1) << 30;

int64_t getArrayEntry(Operation *op, StringRef name, int64_t index, int64_t otherwise) {
  auto array = op->getAttrOfType<ArrayAttr>(name);
  return array && index < static_cast<int64_t>(array.size()) ? llvm::cast<IntegerAttr>(array[index]).getInt()
                                                             : otherwise;
}

ResolvedWindow resolveWindow(Dim input, int64_t window, int64_t stride, int64_t dilation, StringRef padding) {
  ResolvedWindow result;
  int64_t effective = (window - 1) * dilation + 1;
  auto divideUp = [&](Dim x) {
    return x.isConstant() ? Dim((x.getConstant() + stride - 1) / stride) : stride == 1 ? x : Dim();
  };
  if (padding == "SAME") {
    result.size = divideUp(input);
    if (result.size.isConstant() && input.isConstant()) {
      int64_t total = std::max<int64_t>((result.size.getConstant() - 1) * stride + effective - input.getConstant(), 0);
      result.before = total / 2;
      result.after = total - result.before;
    }
    return result;
  }
  result.size = divideUp(input - Dim(effective - 1));
  return result;
}

/// What TensorFlow asks of a window's attributes, on images of shape `image`.
static LogicalResult checkWindow(Operation *op, ArrayRef<Dim> image) {
  if (image.size() != 4)
    return op->emitOpError() << "needs images of rank 4, not of shape " << print(image);
  for (StringRef name : {"strides", "dilations", "ksize"}) {
    auto array = op->getAttrOfType<ArrayAttr>(name);
    if (!array)
      continue;
    if (array.size() != 4)
      return op->emitOpError() << "attribute '" << name << "' has " << array.size() << " entries, not 4";
    for (int64_t axis = 0; axis < 4; ++axis)
      if (int64_t entry = getArrayEntry(op, name, axis, 1); entry < 1 || entry > kMaxWindow)
        return op->emitOpError() << "attribute '" << name << "' has the entry " << entry << ", outside of [1, "
                                 << kMaxWindow << "]";
  }
  StringRef padding = op->getAttrOfType<StringAttr>("padding").getValue();
  auto paddings = op->getAttrOfType<ArrayAttr>("explicit_paddings");
  size_t wanted = padding == "EXPLICIT" ? 8 : 0;
  if (padding != "SAME" && padding != "VALID" && padding != "EXPLICIT")
    return op->emitOpError() << "attribute 'padding' is '" << padding << "', not SAME, VALID or EXPLICIT";
  if ((paddings ? paddings.size() : 0) != wanted)
    return op->emitOpError() << "attribute 'explicit_paddings' has " << (paddings ? paddings.size() : 0)
                             << " entries, not " << wanted;
  for (size_t entry = 0; entry < wanted; ++entry)
    if (int64_t size = getArrayEntry(op, "explicit_paddings", entry, 0); size < 0 || size > kMaxWindow)
      return op->emitOpError() << "attribute 'explicit_paddings' has the entry " << size << ", outside of [0, "
                               << kMaxWindow << "]";
  return success();
}

/// Axes of height, width and channels.
struct ImageAxes {
  int64_t h, w, c;
};
static ImageAxes getImageAxes(Operation *op) {
  auto format = op->getAttrOfType<StringAttr>("data_format");
  return format && format.getValue() == "NCHW" ? ImageAxes{2, 3, 1} : ImageAxes{1, 2, 3};
}

/// The shape that a window of such sizes makes of images of shape `image`; `channels`: its channels, else the images'.
static FailureOr<Dims> getWindowShape(Operation *op, ArrayRef<Dim> image, int64_t windowH, int64_t windowW,
                                      std::optional<Dim> channels) {
  ImageAxes axes = getImageAxes(op);
  StringRef padding = op->getAttrOfType<StringAttr>("padding").getValue();
  Dims sizes(image);
  for (auto [axis, window] : {std::pair(axes.h, windowH), std::pair(axes.w, windowW)}) {
    Dim size = image[axis];
    if (window < 1 || window > kMaxWindow)
      return op->emitOpError() << "has a window of " << window << ", outside of [1, " << kMaxWindow << "]";
    if (padding == "EXPLICIT")
      size = size + Dim(getArrayEntry(op, "explicit_paddings", 2 * axis, 0) +
                        getArrayEntry(op, "explicit_paddings", 2 * axis + 1, 0));
    ResolvedWindow resolved = resolveWindow(size, window, getArrayEntry(op, "strides", axis, 1),
                                            getArrayEntry(op, "dilations", axis, 1), padding);
    if (resolved.size.isConstant() && resolved.size.getConstant() < 0)
      return op->emitOpError() << "window of " << window << " does not fit into shape " << print(image);
    sizes[axis] = resolved.size;
  }
  if (channels)
    sizes[axes.c] = *channels;
  return sizes;
}

/// What a convolution of `image` by `filter` makes; none where it is not known.
static FailureOr<std::optional<Dims>> getConvolutionShape(Operation *op, const std::optional<Dims> &image,
                                                          const std::optional<Dims> &filter, bool depthwise) {
  if (!image || !filter)
    return std::optional<Dims>();
  if (failed(checkWindow(op, *image)))
    return failure();
  if (filter->size() != 4)
    return op->emitOpError() << "needs a filter of rank 4, not of shape " << print(*filter);
  if (!(*filter)[0].isConstant() || !(*filter)[1].isConstant())
    return std::optional<Dims>();
  Dim in = (*image)[getImageAxes(op).c], taken = (*filter)[2], given = (*filter)[3];
  bool fit = depthwise ? fits(in, taken)
                       : !in.isConstant() || !taken.isConstant() ||
                             (taken.getConstant() > 0 && in.getConstant() % taken.getConstant() == 0);
  // In groups, each of which makes as many channels.
  if (fit && !depthwise && in.isConstant() && taken.isConstant() && given.isConstant() && in.getConstant() > 0)
    fit = given.getConstant() % (in.getConstant() / taken.getConstant()) == 0;
  if (!fit)
    return op->emitOpError() << "filters images of shape " << print(*image) << " by a filter of shape "
                             << print(*filter);
  FailureOr<Dims> sizes = getWindowShape(op, *image, (*filter)[0].getConstant(), (*filter)[1].getConstant(),
                                         depthwise ? taken * given : given);
  return failed(sizes) ? FailureOr<std::optional<Dims>>(failure()) : FailureOr<std::optional<Dims>>(std::move(*sizes));
}

static LogicalResult convolution(Operation *op, ShapeContext &context, bool depthwise) {
  auto sizes =
      getConvolutionShape(op, context.getShape(op->getOperand(0)), context.getShape(op->getOperand(1)), depthwise);
  if (failed(sizes))
    return failure();
  if (*sizes)
    context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult conv2d(Operation *op, ShapeContext &context) { return convolution(op, context, false); }
LogicalResult depthwiseConv2d(Operation *op, ShapeContext &context) { return convolution(op, context, true); }

/// The gradient of a convolution by its operand `ofFilter`, whose shape operand `ofFilter` is; the other is itself
/// there.
static LogicalResult convolutionGrad(Operation *op, ShapeContext &context, unsigned ofFilter, bool depthwise) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, ofFilter);
  if (failed(sizes))
    return failure();
  auto other = context.getShape(op->getOperand(1 - ofFilter)), gradient = context.getShape(op->getOperand(2));
  auto made =
      ofFilter ? getConvolutionShape(op, other, *sizes, depthwise) : getConvolutionShape(op, *sizes, other, depthwise);
  if (failed(made))
    return failure();
  if (*made && gradient && !fits(**made, *gradient))
    return op->emitOpError() << "takes a gradient of shape " << print(*gradient)
                             << " of a convolution that makes shape " << print(**made);
  if (*sizes)
    context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult conv2dGradInput(Operation *op, ShapeContext &context) { return convolutionGrad(op, context, 0, false); }
LogicalResult conv2dGradFilter(Operation *op, ShapeContext &context) { return convolutionGrad(op, context, 1, false); }
LogicalResult depthwiseConv2dGradInput(Operation *op, ShapeContext &context) {
  return convolutionGrad(op, context, 0, true);
}
LogicalResult depthwiseConv2dGradFilter(Operation *op, ShapeContext &context) {
  return convolutionGrad(op, context, 1, true);
}

static FailureOr<Dims> getPoolShape(Operation *op, ArrayRef<Dim> image) {
  if (failed(checkWindow(op, image)))
    return failure();
  ImageAxes axes = getImageAxes(op);
  for (StringRef name : {"ksize", "strides"})
    if (getArrayEntry(op, name, 0, 1) != 1 || getArrayEntry(op, name, axes.c, 1) != 1)
      return op->emitOpError() << "attribute '" << name << "' joins images or channels, for which there is no code";
  return getWindowShape(op, image, getArrayEntry(op, "ksize", axes.h, 1), getArrayEntry(op, "ksize", axes.w, 1),
                        std::nullopt);
}

LogicalResult pool(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  FailureOr<Dims> sizes = getPoolShape(op, *input);
  if (failed(sizes))
    return failure();
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult maxPoolGrad(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  FailureOr<Dims> sizes = getPoolShape(op, *input);
  if (failed(sizes))
    return failure();
  for (Value operand : op->getOperands().drop_front())
    if (auto shape = context.getShape(operand); shape && !fits(*shape, *sizes))
      return op->emitOpError() << "takes a result of shape " << print(*shape) << " of pooling that makes shape "
                               << print(*sizes);
  context.setShape(op->getResult(0), *input);
  return success();
}

/// Whether oneDNN's kernels, TensorFlow's by default, take a gradient of another shape than `made`: they read the
/// beginning of its memory as if it had that one. (TensorFlow's own kernels, of other types, go by the gradient's
/// shape.)
static bool readsAsPooled(Operation *op, ArrayRef<Dim> images, ArrayRef<Dim> gradient, ArrayRef<Dim> made) {
  Type element = getElementTypeOrSelf(op->getOperand(1).getType());
  auto format = op->getAttrOfType<StringAttr>("data_format");
  if (!(element.isF32() || element.isBF16()) || (format && format.getValue() != "NHWC") || gradient.size() != 4 ||
      !(gradient[0] == made[0]) || !(gradient[3] == made[3]))
    return false;
  int64_t given = 1, read = 1;
  for (int64_t axis : {1, 2}) {
    if (!images[axis].isConstant() || !gradient[axis].isConstant() || !made[axis].isConstant() ||
        (gradient[axis].getConstant() - 1) * getArrayEntry(op, "strides", axis, 1) > images[axis].getConstant())
      return false;
    given *= gradient[axis].getConstant();
    read *= made[axis].getConstant();
  }
  return given >= read;
}

LogicalResult avgPoolGrad(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 0);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  FailureOr<Dims> made = getPoolShape(op, **sizes);
  if (failed(made))
    return failure();
  auto gradient = context.getShape(op->getOperand(1));
  if (gradient && !fits(*gradient, *made) && !readsAsPooled(op, **sizes, *gradient, *made))
    return op->emitOpError() << "takes a gradient of shape " << print(*gradient) << " of pooling that makes shape "
                             << print(*made) << " by its attributes; they must be those of the pooling";
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult biasAdd(Operation *op, ShapeContext &context) {
  auto value = context.getShape(op->getOperand(0)), bias = context.getShape(op->getOperand(1));
  if (value && bias) {
    auto format = op->getAttrOfType<StringAttr>("data_format");
    bool channelsFirst = format && format.getValue() == "NCHW";
    if (value->size() < 2 || bias->size() != 1 || !fits((*bias)[0], channelsFirst ? (*value)[1] : value->back()))
      return op->emitOpError() << "adds a bias of shape " << print(*bias) << " to shape " << print(*value);
  }
  return sameShape(op, context);
}

LogicalResult biasAddGrad(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  if (input->size() < 2)
    return op->emitOpError() << "needs a gradient of two axes or more, not of shape " << print(*input);
  bool channelsFirst = llvm::cast<BiasAddGradOp>(op).getDataFormat() == "NCHW";
  context.setShape(op->getResult(0), {channelsFirst ? (*input)[1] : input->back()});
  return success();
}

/// Fails with a diagnostic where the operands `ofChannels` are not one number a channel of `images`. The mean and the
/// variance may be empty in training.
static LogicalResult checkChannels(Operation *op, ShapeContext &context, unsigned images,
                                   ArrayRef<unsigned> ofChannels) {
  auto x = context.getShape(op->getOperand(images));
  if (!x)
    return success();
  // Version 3 takes volumes, too.
  const bool isVolume = x->size() == 5 && llvm::isa<FusedBatchNormV3Op, FusedBatchNormGradV3Op>(op);
  if (x->size() != 4 && !isVolume)
    return op->emitOpError() << "needs images of rank 4, not of shape " << print(*x);
  auto format = op->getAttrOfType<StringAttr>("data_format");
  const Dim channels = format && format.getValue().starts_with("NC") ? (*x)[1] : x->back();
  for (unsigned operand : ofChannels) {
    auto shape = context.getShape(op->getOperand(operand));
    if (!shape || (shape->size() == 1 && (fits((*shape)[0], channels) || (operand > 2 && (*shape)[0] == Dim(0)))))
      continue;
    return op->emitOpError() << "takes operand " << operand << " of shape " << print(*shape) << " with images of shape "
                             << print(*x);
  }
  return success();
}

LogicalResult batchNorm(Operation *op, ShapeContext &context) {
  auto x = context.getShape(op->getOperand(0)), scale = context.getShape(op->getOperand(1));
  if (failed(checkChannels(op, context, 0, {1, 2, 3, 4})))
    return failure();
  if (x)
    context.setShape(op->getResult(0), *x);
  if (scale)
    for (unsigned result = 1; result < 5; ++result)
      context.setShape(op->getResult(result), *scale);
  // Version 3's last is a library's workspace; there is none.
  if (op->getNumResults() > 5)
    context.setShape(op->getResult(5), {Dim()});
  return success();
}

LogicalResult batchNormGrad(Operation *op, ShapeContext &context) {
  auto x = context.getShape(op->getOperand(1)), scale = context.getShape(op->getOperand(2)),
       gradient = context.getShape(op->getOperand(0));
  if (failed(checkChannels(op, context, 1, {2, 3, 4})))
    return failure();
  if (x && gradient && !fits(*x, *gradient))
    return op->emitOpError() << "takes a gradient of shape " << print(*gradient) << " of images of shape " << print(*x);
  if (x)
    context.setShape(op->getResult(0), *x);
  if (scale)
    for (unsigned result = 1; result < 3; ++result)
      context.setShape(op->getResult(result), *scale);
  for (unsigned result = 3; result < 5; ++result)
    context.setShape(op->getResult(result), {Dim(0)});
  return success();
}

LogicalResult crossEntropy(Operation *op, ShapeContext &context) {
  auto logits = context.getShape(op->getOperand(0));
  if (!logits)
    return success();
  if (logits->size() != 2)
    return op->emitOpError() << "needs logits of rank 2, not of shape " << print(*logits);
  auto labels = context.getShape(op->getOperand(1));
  if (labels && llvm::isa<SparseSoftmaxCrossEntropyWithLogitsOp>(op)) {
    if (!fits(*labels, ArrayRef(*logits).take_front(1)))
      return op->emitOpError() << "takes labels of shape " << print(*labels) << " for logits of shape "
                               << print(*logits);
  } else if (labels && !fits(*labels, *logits)) {
    // One side may be a row for all, or a column.
    FailureOr<Dims> both = labels->size() == 2 ? broadcastShapes(op, *logits, *labels) : FailureOr<Dims>(failure());
    if (labels->size() != 2)
      return op->emitOpError() << "takes labels of shape " << print(*labels) << " for logits of shape "
                               << print(*logits);
    if (failed(both))
      return failure();
    *logits = *both;
  }
  context.setShape(op->getResult(0), {(*logits)[0]});
  context.setShape(op->getResult(1), *logits);
  return success();
}

LogicalResult keyCounter(Operation *op, ShapeContext &context) {
  context.setShape(op->getResult(0), {Dim(1)});
  context.setShape(op->getResult(1), {Dim(2)});
  return success();
}

LogicalResult permutation(Operation *op, ShapeContext &context) {
  auto count = context.getElements(op->getOperand(0));
  if (count && (count->size() != 1 || failed(checkSizes(op, *count))))
    return op->emitOpError("takes how many there are as a scalar");
  context.setShape(op->getResult(0), {count ? count->front() : Dim()});
  return success();
}

LogicalResult fromSizes(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 0);
  if (succeeded(sizes) && *sizes)
    context.setShape(op->getResult(0), **sizes);
  return success(succeeded(sizes));
}

} // namespace shapes
} // namespace distc::dfg
