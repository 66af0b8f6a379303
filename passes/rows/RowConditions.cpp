//===- RowConditions.cpp - Masks that choose the same rows ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// One mask is written in many ways: as a matrix and as a vector, as a bool, as a
// number that is compared with one, as the number of a part. Rows that were chosen
// by two of them meet where both ask the same of the same elements.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/SameValues.h"
#include "passes/rows/MaskedRows.h"

using namespace mlir;

namespace distc {

using dfg::Dim;
using dfg::Dims;

/// The number that all elements are.
static std::optional<double> getSplat(Value value, const dfg::ShapeContext &shapes) {
  if (auto constant = value.getDefiningOp<dfg::ConstOp>()) {
    auto splat = llvm::dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!splat)
      return std::nullopt;
    if (llvm::isa<FloatType>(splat.getElementType()))
      return splat.getSplatValue<APFloat>().convertToDouble();
    if (!splat.getElementType().isInteger())
      return std::nullopt;
    const APInt number = splat.getSplatValue<APInt>();
    return splat.getElementType().isInteger(1) ? static_cast<double>(number.getZExtValue())
                                               : static_cast<double>(number.getSExtValue());
  }
  auto numbers = shapes.getConstants(value);
  if (!numbers || numbers->empty() || !llvm::all_equal(*numbers))
    return std::nullopt;
  return static_cast<double>(numbers->front());
}

/// What the operation makes of a number at its operand `at`, where the other is `other`.
static std::optional<double> compute(Operation *op, double x, unsigned at, double other) {
  const double left = at == 0 ? x : other, right = at == 0 ? other : x;
  if (llvm::isa<dfg::EqualOp>(op))
    return left == right;
  if (llvm::isa<dfg::NotEqualOp>(op))
    return left != right;
  if (llvm::isa<dfg::LessOp>(op))
    return left < right;
  if (llvm::isa<dfg::LessEqualOp>(op))
    return left <= right;
  if (llvm::isa<dfg::GreaterOp>(op))
    return left > right;
  if (llvm::isa<dfg::GreaterEqualOp>(op))
    return left >= right;
  if (llvm::isa<dfg::SubOp>(op) && dfg::GraphBuilder::elementOf(op->getResult(0)).getIntOrFloatBitWidth() >= 8)
    return left - right;
  if (llvm::isa<dfg::MulOp>(op) && !dfg::GraphBuilder::elementOf(op->getResult(0)).isInteger(1))
    return left * right;
  return std::nullopt;
}

/// The elements of the result are those of operand 0, in their order.
static bool keepsElements(Operation *op) { return op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Forwards>(); }

namespace {

/// A function of the elements of a tensor of bools.
struct FunctionOfBools {
  Value of;
  double ofFalse = 0, ofTrue = 1;
};

} // namespace

static FunctionOfBools traceToBools(Value value, const dfg::ShapeContext &shapes) {
  Operation *op = value.getDefiningOp();
  Type element = dfg::GraphBuilder::elementOf(value);
  const bool isBool = element.isInteger(1);
  const FunctionOfBools itself{isBool ? value : Value()};
  if (!op)
    return itself;
  if (keepsElements(op)) {
    FunctionOfBools below = traceToBools(op->getOperand(0), shapes);
    return below.of ? below : itself;
  }
  const bool isCast = llvm::isa<dfg::CastOp>(op), isNot = llvm::isa<dfg::LogicalNotOp>(op);
  for (unsigned at = 0; at < op->getNumOperands() && at < 2; ++at) {
    std::optional<double> other;
    if (!isCast && !isNot) {
      if (op->getNumOperands() != 2 || !(other = getSplat(op->getOperand(1 - at), shapes)))
        continue;
    }
    FunctionOfBools below = traceToBools(op->getOperand(at), shapes);
    if (!below.of)
      continue;
    auto apply = [&](double x) -> std::optional<double> {
      if (isNot)
        return x == 0;
      if (isCast)
        return isBool ? std::optional<double>(x != 0) : x == 0 || x == 1 ? std::optional<double>(x) : std::nullopt;
      return compute(op, x, at, *other);
    };
    auto ofFalse = apply(below.ofFalse), ofTrue = apply(below.ofTrue);
    if (ofFalse && ofTrue)
      return {below.of, *ofFalse, *ofTrue};
  }
  return itself;
}

/// Whether both have the same elements in row-major order, whatever their shapes are.
bool RowMasker::haveSameElements(Value x, Value y, int depth) const {
  auto strip = [](Value value) {
    for (Operation *op = value.getDefiningOp(); op && keepsElements(op); op = value.getDefiningOp())
      value = op->getOperand(0);
    return value;
  };
  x = strip(x);
  y = strip(y);
  auto left = shapes.getShape(x), right = shapes.getShape(y);
  if (!left || !right || !(product(*left) == product(*right)))
    return false;
  if (dfg::areSame(x, y))
    return true;
  auto numbers = shapes.getElements(x), others = shapes.getElements(y);
  if (numbers && others && *numbers == *others && llvm::none_of(*numbers, [](Dim dim) { return dim.isBound(); }))
    return true;
  Operation *one = x.getDefiningOp(), *other = y.getDefiningOp();
  if (depth == 0 || !one || !other || !llvm::isa<dfg::ScalarInterface>(one) || !isMemoryEffectFree(one) ||
      one->hasTrait<dfg::DrawsNumbers>() || one->getName() != other->getName() ||
      one->getNumOperands() != other->getNumOperands() ||
      one->getPropertiesAsAttribute() != other->getPropertiesAsAttribute())
    return false;
  return llvm::all_of(llvm::zip(one->getOperands(), other->getOperands()), [&](auto operands) {
    auto [a, b] = operands;
    auto first = getSplat(a, shapes), second = getSplat(b, shapes);
    if (first && second)
      return *first == *second && dfg::GraphBuilder::elementOf(a) == dfg::GraphBuilder::elementOf(b);
    // An operand that is broadcast gives its elements to places that the shapes say.
    auto sizes = shapes.getShape(a), otherSizes = shapes.getShape(b);
    return sizes && otherSizes && (product(*sizes) == product(*left) || (*sizes == *otherSizes && *left == *right)) &&
           haveSameElements(a, b, depth - 1);
  });
}

/// What it asks of each element.
RowCondition RowMasker::getCondition(Value mask) const {
  RowCondition asked{mask, std::nullopt, false};
  auto sizes = shapes.getShape(mask);
  if (FunctionOfBools made = traceToBools(mask, shapes); made.of && sizes) {
    auto of = shapes.getShape(made.of);
    // Compared with a larger constant there are more.
    if (of && product(*of) == product(*sizes) && (made.ofFalse != 0) != (made.ofTrue != 0))
      asked = {made.of, std::nullopt, made.ofFalse != 0};
  }
  // A number is set where it is not 0.
  auto isNumber = [](Value value) { return !dfg::GraphBuilder::elementOf(value).isInteger(1); };
  Operation *op = asked.of.getDefiningOp();
  if (llvm::isa_and_nonnull<dfg::CastOp>(op) && isNumber(op->getOperand(0)) && !isNumber(asked.of))
    return {op->getOperand(0), 0, !asked.isNegated};
  if (isNumber(asked.of))
    return {asked.of, 0, !asked.isNegated};
  if (!llvm::isa_and_nonnull<dfg::EqualOp, dfg::NotEqualOp>(op))
    return asked;
  for (unsigned at : {0, 1})
    if (auto number = getSplat(op->getOperand(1 - at), shapes)) {
      auto of = shapes.getShape(op->getOperand(at));
      if (of && sizes && product(*of) == product(*sizes))
        return {op->getOperand(at), number, asked.isNegated != llvm::isa<dfg::NotEqualOp>(op)};
    }
  return asked;
}

/// Of the elements of a partition: they are in that part.
RowCondition RowMasker::getCondition(Value parts, int64_t part) const {
  const auto number = static_cast<double>(part);
  auto sizes = shapes.getShape(parts);
  if (FunctionOfBools made = traceToBools(parts, shapes); made.of && sizes) {
    auto of = shapes.getShape(made.of);
    if (of && product(*of) == product(*sizes) && (made.ofFalse == number) != (made.ofTrue == number)) {
      RowCondition asked = getCondition(made.of);
      asked.isNegated ^= made.ofFalse == number;
      return asked;
    }
  }
  return {parts, number, false};
}

/// The rows of `among` that were chosen by the same condition before.
const Selection *RowMasker::findSelection(const RowCondition &condition, const Selection *among, Dim rows) const {
  for (const auto &known : selections) {
    const RowCondition &other = known->condition;
    if (other.of && known->among == among && known->rows == rows && other.isNegated == condition.isNegated &&
        other.equals == condition.equals && haveSameElements(other.of, condition.of))
      return known.get();
  }
  return nullptr;
}

/// Whether the rows are the same ones, or must be: the ids and the weights of a sparse tensor are made of two dense
/// ones, which leave the same elements out by a value of their own. That they do is asserted.
bool RowMasker::areOneChoice(Operation *op, const Selection *rows, const Selection *others) {
  if (rows == others)
    return true;
  auto leavesOut = [](const Selection *chosen) {
    return chosen->condition.of && chosen->condition.equals && chosen->condition.isNegated && !chosen->repeats;
  };
  // Of one tensor two values are left out at other places.
  if (!rows || !others || rows->among != others->among || !(rows->rows == others->rows) || !leavesOut(rows) ||
      !leavesOut(others) || haveSameElements(rows->condition.of, others->condition.of))
    return false;
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Value agree = g.equal(rows->mask, others->mask);
  StringAttr checked = check(g, g.reduce(dfg::AllOp::getOperationName(), agree, {0}, false), agree);
  if (!checked)
    return false;
  runBehind(op, checked);
  // From here on they are one.
  for (auto &[value, at] : masked) {
    if (at.rows == others)
      at.rows = rows;
    if (at.numbers.among == others)
      at.numbers.among = rows;
  }
  for (const auto &known : selections)
    if (known->among == others)
      known->among = rows;
  for (auto &[value, of] : sized)
    if (of.remove(others))
      of.insert(rows);
  return true;
}

} // namespace distc
