//===- ScoreExpressions.cpp - What element-wise work on scores computes ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/ScoreExpressions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "passes/lower/kernels/FusionPlan.h"
#include "passes/lower/kernels/Reshapes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <limits>

using namespace mlir;

namespace distc {

static std::optional<double> getConstant(Value value) {
  APFloat number(0.0f);
  if (!matchPattern(value, m_ConstantFloat(&number)))
    return std::nullopt;
  return number.convertToDouble();
}

/// The sizes without those of one element at the end: a row's number is [..., queries] or [..., queries, 1].
static ArrayRef<int64_t> getRowSizes(RankedTensorType type) {
  ArrayRef<int64_t> sizes = type.getShape();
  while (!sizes.empty() && sizes.back() == 1)
    sizes = sizes.drop_back();
  return sizes;
}

auto ScoreExpressions::add(Expression expression) -> Node {
  auto key = std::make_tuple(expression.kind, expression.operands, llvm::bit_cast<uint64_t>(expression.constant),
                             expression.tensor.getAsOpaquePointer(), expression.map.getAsOpaquePointer());
  auto [it, isNew] = known.try_emplace(key, static_cast<Node>(expressions.size()));
  if (isNew)
    expressions.push_back(std::move(expression));
  return it->second;
}

auto ScoreExpressions::addOperation(Kind kind, std::vector<Node> operands) -> Node {
  const Node x = operands.front(), y = operands.back();
  if ((kind == Kind::Add && isConstant(x, 0)) || (kind == Kind::Multiply && isConstant(x, 1)))
    return y;
  if (((kind == Kind::Add || kind == Kind::Subtract) && isConstant(y, 0)) ||
      ((kind == Kind::Multiply || kind == Kind::Divide) && isConstant(y, 1)))
    return x;
  if (kind == Kind::Add || kind == Kind::Multiply)
    llvm::sort(operands);
  return add({kind, std::move(operands), 0, {}, {}});
}

auto ScoreExpressions::get(Value tensor) -> Node {
  if (auto found = ofTensor.find(tensor); found != ofTensor.end())
    return found->second;
  std::optional<Node> node;
  Operation *op = tensor.getDefiningOp();
  if (isReshape(op)) {
    // Only sizes of one element come or go behind a row's number; positions of scores are kept.
    auto from = cast<RankedTensorType>(op->getOperand(0).getType()), to = cast<RankedTensorType>(tensor.getType());
    if (getRowSizes(from) == getRowSizes(to))
      node = get(op->getOperand(0));
  } else if (auto generic = llvm::dyn_cast_or_null<linalg::GenericOp>(op)) {
    node = isElementwise(generic) ? getElementwise(generic, cast<OpResult>(tensor).getResultNumber())
                                  : getReduction(generic);
  }
  if (!node)
    node = addLeaf(tensor);
  return ofTensor[tensor] = *node;
}

auto ScoreExpressions::getElementwise(linalg::GenericOp op, unsigned result) -> std::optional<Node> {
  if (!op.getMatchingIndexingMap(op.getDpsInitOperand(result)).isIdentity())
    return std::nullopt;
  return getOfBody(op, op.getBody()->getTerminator()->getOperand(result));
}

auto ScoreExpressions::getOfBody(linalg::GenericOp op, Value element) -> std::optional<Node> {
  if (auto constant = getConstant(element))
    return addConstant(*constant);
  if (auto argument = dyn_cast<BlockArgument>(element)) {
    OpOperand *operand = argument.getOwner() == op.getBody() ? op.getMatchingOpOperand(argument) : nullptr;
    return operand && op.isDpsInput(operand) ? getOperand(op, *operand) : std::nullopt;
  }
  Operation *inner = element.getDefiningOp();
  if (!inner || inner->getBlock() != op.getBody())
    return std::nullopt;
  const auto kind = llvm::TypeSwitch<Operation *, std::optional<Kind>>(inner)
                        .Case([](arith::AddFOp) { return Kind::Add; })
                        .Case([](arith::SubFOp) { return Kind::Subtract; })
                        .Case([](arith::MulFOp) { return Kind::Multiply; })
                        .Case([](arith::DivFOp) { return Kind::Divide; })
                        .Case([](math::ExpOp) { return Kind::Exp; })
                        // A number that is rounded and one that is not are the same here.
                        .Case<arith::ExtFOp, arith::TruncFOp>([](auto) { return Kind::Leaf; })
                        .Case([](arith::NegFOp) { return Kind::Constant; })
                        .Default(std::nullopt);
  if (!kind)
    return std::nullopt;
  std::vector<Node> operands;
  for (Value operand : inner->getOperands()) {
    std::optional<Node> node = getOfBody(op, operand);
    if (!node)
      return std::nullopt;
    operands.push_back(*node);
  }
  if (*kind == Kind::Leaf)
    return operands.front();
  if (*kind == Kind::Constant)
    return addOperation(Kind::Multiply, {operands.front(), addConstant(-1)});
  return addOperation(*kind, std::move(operands));
}

auto ScoreExpressions::getOperand(linalg::GenericOp op, OpOperand &operand) -> std::optional<Node> {
  const AffineMap map = op.getMatchingIndexingMap(&operand);
  if (map.isIdentity())
    return get(operand.get());
  // A row's number, for each of the row's elements: all loops but the last one.
  const unsigned rank = op.getNumLoops();
  const bool isOfRow = map.getNumResults() + 1 >= rank && llvm::all_of(llvm::enumerate(map.getResults()), [&](auto it) {
                         auto constant = dyn_cast<AffineConstantExpr>(it.value());
                         return it.index() + 1 < rank ? it.value() == getAffineDimExpr(it.index(), map.getContext())
                                                      : constant && constant.getValue() == 0;
                       });
  if (!isOfRow)
    return addLeaf(operand.get(), map);
  const Node node = get(operand.get());
  // What is no expression is known by its place among the row's elements.
  return expressions[node].kind == Kind::Leaf ? addLeaf(operand.get(), map) : node;
}

auto ScoreExpressions::getReduction(linalg::GenericOp op) -> std::optional<Node> {
  const unsigned loops = op.getNumLoops();
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 || op.getNumReductionLoops() != 1 || loops < 2 ||
      op.getIteratorTypesArray().back() != utils::IteratorType::reduction ||
      !op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isIdentity() ||
      op.getMatchingIndexingMap(op.getDpsInitOperand(0)) !=
          AffineMap::getMultiDimIdentityMap(loops, op.getContext()).dropResult(loops - 1))
    return std::nullopt;
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  const std::optional<double> start = fill ? getConstant(fill.getInputs()[0]) : std::nullopt;
  Operation *step = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  if (!start || !step || step->getNumOperands() != 2 || step->getBlock() != op.getBody())
    return std::nullopt;
  const Value in = op.getBody()->getArgument(0), out = op.getBody()->getArgument(1);
  if (!llvm::is_contained(step->getOperands(), in) || !llvm::is_contained(step->getOperands(), out))
    return std::nullopt;
  if (isa<arith::AddFOp>(step) && *start == 0 && op.getStaticLoopRanges().back() == 1)
    return get(op.getInputs()[0]); // of one element
  if (isa<arith::AddFOp>(step) && *start == 0)
    return addOperation(Kind::RowSum, {get(op.getInputs()[0])});
  const double least = -std::numeric_limits<float>::max();
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(step) && *start <= least)
    return addOperation(Kind::RowMaximum, {get(op.getInputs()[0])});
  return std::nullopt;
}

bool ScoreExpressions::isOfRow(Node node) const {
  const Expression &expression = expressions[node];
  return expression.kind == Kind::RowSum || expression.kind == Kind::RowMaximum ||
         (expression.kind == Kind::Inverse && isOfRow(expression.operands[0]));
}

auto ScoreExpressions::getRowSum(std::vector<Node> product) -> Node {
  llvm::sort(product);
  const Node all = product.size() == 1 ? product[0] : add({Kind::Product, std::move(product), 0, {}, {}});
  return add({Kind::RowSum, {all}, 0, {}, {}});
}

auto ScoreExpressions::expandRowSum(const Polynomial &terms) -> Polynomial {
  Polynomial result;
  for (auto &[product, factor] : terms) {
    std::vector<Node> before, summed;
    for (Node node : product)
      (isOfRow(node) ? before : summed).push_back(node);
    before.push_back(getRowSum(std::move(summed)));
    llvm::sort(before);
    result[before] += factor;
  }
  return result;
}

auto ScoreExpressions::expand(Node node, unsigned depth) -> Polynomial {
  constexpr size_t kMostProducts = 8;
  const Expression expression = expressions[node];
  const Polynomial itself = {{{node}, 1.0}};
  if (expression.kind == Kind::Constant)
    return {{{}, expression.constant}};
  if (depth == 0)
    return itself;
  if (expression.kind == Kind::RowSum) {
    const Polynomial terms = expand(expression.operands[0], depth - 1);
    return terms.size() > kMostProducts ? itself : expandRowSum(terms);
  }
  const bool isSum = expression.kind == Kind::Add || expression.kind == Kind::Subtract;
  if (!isSum && expression.kind != Kind::Multiply && expression.kind != Kind::Divide)
    return itself;
  Polynomial left = expand(expression.operands[0], depth - 1), right = expand(expression.operands[1], depth - 1),
             result;
  if (left.size() > kMostProducts || right.size() > kMostProducts)
    return itself;
  if (isSum) {
    result = std::move(left);
    for (auto &[product, factor] : right)
      result[product] += expression.kind == Kind::Add ? factor : -factor;
    return result;
  }
  if (expression.kind == Kind::Divide) {
    if (right.size() != 1)
      return itself;
    std::vector<Node> inverses;
    for (Node divisor : right.begin()->first)
      inverses.push_back(getInverse(divisor));
    right = {{std::move(inverses), 1 / right.begin()->second}};
  }
  for (auto &[product, factor] : left)
    for (auto &[other, times] : right) {
      std::vector<Node> both = product;
      both.insert(both.end(), other.begin(), other.end());
      llvm::sort(both);
      result[both] += factor * times;
    }
  return result;
}

} // namespace distc
