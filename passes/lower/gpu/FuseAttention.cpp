//===- FuseAttention.cpp - drt-fuse-attention -------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/ScoreExpressions.h"
#include "passes/lower/kernels/FusionPlan.h"
#include "passes/lower/kernels/Reshapes.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FUSEATTENTION
#include "passes/lower/Passes.h.inc"

namespace attention {
namespace {

using Node = ScoreExpressions::Node;
using Kind = ScoreExpressions::Kind;
using Polynomial = ScoreExpressions::Polynomial;

RankedTensorType getType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Heads and tokens change places: [batch, heads, tokens, size] and [batch, tokens, heads, size].
AffineMap getHeadsMap(MLIRContext *context) {
  return AffineMap::getPermutationMap(ArrayRef<unsigned>{0, 2, 1, 3}, context);
}

/// An element-wise operation of one tensor, and how it reads it.
linalg::GenericOp getUnary(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || !isElementwise(generic) || generic.getNumDpsInputs() != 1 || generic->getNumResults() != 1 ||
      !generic.getMatchingIndexingMap(generic.getDpsInitOperand(0)).isIdentity())
    return {};
  // What it reads by index has places of its own.
  for (Operation &inner : *generic.getBody())
    if (isa<linalg::IndexOp, tensor::ExtractOp>(inner) || inner.getNumRegions() > 0)
      return {};
  return generic;
}
AffineMap getReadMap(linalg::GenericOp unary) { return unary.getMatchingIndexingMap(unary.getDpsInputOperand(0)); }

bool isMove(linalg::GenericOp unary) {
  return unary.getBody()->getTerminator()->getOperand(0) == unary.getBody()->getArgument(0);
}
/// Whether the operation does nothing but convert its elements.
template <typename Cast> bool isCast(linalg::GenericOp unary) {
  auto cast = unary.getBody()->getTerminator()->getOperand(0).getDefiningOp<Cast>();
  return cast && cast.getIn() == unary.getBody()->getArgument(0);
}
/// Whether the operation adds zero: of a number it changes at most the sign of a zero.
bool addsZero(linalg::GenericOp unary) {
  auto add = unary.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  return add && add.getLhs() == unary.getBody()->getArgument(0) && matchPattern(add.getRhs(), m_AnyZeroFloat());
}

/// Puts heads behind tokens, and tokens behind heads again, where the graph does it already: no transposition is left
/// of those around an attention.
class HeadsLast {
public:
  /// [batch, tokens, heads, size] of a tensor [batch, heads, tokens, size].
  static Value get(ImplicitLocOpBuilder &b, Value value) {
    Value moved = find(b, value);
    return moved ? moved : transpose(b, value);
  }

  /// Readers of `before`, [batch, heads, tokens, size], read `value`.
  static void replace(ImplicitLocOpBuilder &b, Value before, Value value) {
    Value transposed;
    for (OpOperand &use : llvm::make_early_inc_range(before.getUses())) {
      linalg::GenericOp reader = getUnary(use.getOwner());
      ImplicitLocOpBuilder at(use.getOwner()->getLoc(), use.getOwner());
      if (reader && getReadMap(reader) == getHeadsMap(b.getContext())) {
        replaceSame(reader.getResult(0), isMove(reader) ? value : apply(at, reader, value));
      } else if (reader && getReadMap(reader).isIdentity()) {
        replace(at, reader.getResult(0), apply(at, reader, value));
      } else {
        if (!transposed)
          transposed = transpose(b, value);
        use.set(transposed);
      }
    }
  }

private:
  /// Readers of `before` read `value`, of the same sizes; those that only round what was widened are left out.
  static void replaceSame(Value before, Value value) {
    for (OpOperand &use : llvm::make_early_inc_range(before.getUses())) {
      linalg::GenericOp reader = getUnary(use.getOwner());
      if (Value narrow = reader && getReadMap(reader).isIdentity() ? getRounded(reader, value) : Value())
        reader.getResult(0).replaceAllUsesWith(narrow);
      else
        use.set(value);
    }
  }

  /// What rounding `value` gives, where that was widened; else null.
  static Value getRounded(linalg::GenericOp unary, Value value) {
    linalg::GenericOp wide = getUnary(value.getDefiningOp());
    if (!isCast<arith::TruncFOp>(unary) || !wide || !isCast<arith::ExtFOp>(wide) || !getReadMap(wide).isIdentity())
      return {};
    const Value narrow = wide.getInputs()[0];
    return getType(narrow).getElementType() == getType(unary.getResult(0)).getElementType() ? narrow : Value();
  }

  static Value transpose(ImplicitLocOpBuilder &b, Value value) {
    const RankedTensorType type = getType(value);
    SmallVector<int64_t> sizes = applyPermutation(type.getShape());
    Value empty = tensor::EmptyOp::create(b, sizes, type.getElementType());
    auto made = linalg::GenericOp::create(
        b, empty.getType(), value, empty, ArrayRef<AffineMap>{getHeadsMap(b.getContext()), b.getMultiDimIdentityMap(4)},
        SmallVector<utils::IteratorType>(4, utils::IteratorType::parallel),
        [](OpBuilder &body, Location at, ValueRange elements) { linalg::YieldOp::create(body, at, elements[0]); });
    return made.getResult(0);
  }

  static SmallVector<int64_t> applyPermutation(ArrayRef<int64_t> sizes) {
    return {sizes[0], sizes[2], sizes[1], sizes[3]};
  }

  /// The unary operation on a tensor of other sizes; what widens and rounds again, or adds zero, is left out.
  static Value apply(ImplicitLocOpBuilder &b, linalg::GenericOp unary, Value value) {
    const Type element = getType(unary.getResult(0)).getElementType();
    if (addsZero(unary))
      return value;
    if (Value narrow = getRounded(unary, value))
      return narrow;
    Value empty = tensor::EmptyOp::create(b, getType(value).getShape(), element);
    auto made = linalg::GenericOp::create(b, empty.getType(), value, empty,
                                          SmallVector<AffineMap>(2, b.getMultiDimIdentityMap(4)),
                                          SmallVector<utils::IteratorType>(4, utils::IteratorType::parallel));
    IRMapping mapping;
    unary.getRegion().cloneInto(&made.getRegion(), mapping);
    return made.getResult(0);
  }

  /// Null where there is no transposition on the way.
  static Value find(ImplicitLocOpBuilder &b, Value value) {
    linalg::GenericOp unary = getUnary(value.getDefiningOp());
    if (!unary)
      return {};
    if (getReadMap(unary) == getHeadsMap(b.getContext()))
      return isMove(unary) ? unary.getInputs()[0] : apply(b, unary, unary.getInputs()[0]);
    if (!getReadMap(unary).isIdentity())
      return {};
    Value moved = find(b, unary.getInputs()[0]);
    return moved ? apply(b, unary, moved) : Value();
  }
};

/// What makes an attention, and its gradients.
struct Attention {
  drt::MatmulOp scores, output;
  double scale = 1;
  Node power = 0, sum = 0;                          // exponentials, and their sum
  std::optional<ScoreExpressions::Expression> bias; // a leaf
  drt::MatmulOp probabilityGrad, valueGrad, queryGrad, keyGrad;

  SmallVector<drt::MatmulOp> gradients() {
    SmallVector<drt::MatmulOp> all;
    for (drt::MatmulOp product : {probabilityGrad, valueGrad, queryGrad, keyGrad})
      if (product)
        all.push_back(product);
    return all;
  }
};

class Matcher {
public:
  explicit Matcher(bool device) : device(device) {}

  std::optional<Attention> match(drt::MatmulOp output) {
    Attention found;
    found.output = output;
    if (!isPlain(output) || output.getTransposeA() || output.getTransposeB())
      return std::nullopt;
    const Node probability = expressions.get(output.getA());
    if (!matchSoftmax(probability, found) || !matchSizes(found) || !matchReaders(probability, found))
      return std::nullopt;
    return found;
  }

private:
  static bool isPlain(drt::MatmulOp product) {
    return product && !product.getBias() && product.getEpilogue() == 0 && !product.getJoined() &&
           getType(product).getRank() == 4;
  }

  drt::MatmulOp getProduct(Node node) {
    const ScoreExpressions::Expression &leaf = expressions[node];
    return leaf.kind == Kind::Leaf && !leaf.map ? leaf.tensor.getDefiningOp<drt::MatmulOp>() : drt::MatmulOp();
  }

  /// exp(x - max x) / sum exp(x - max x), of x = scale * query key^T + bias.
  bool matchSoftmax(Node probability, Attention &found) {
    const ScoreExpressions::Expression ratio = expressions[probability];
    if (ratio.kind != Kind::Divide)
      return false;
    const ScoreExpressions::Expression sum = expressions[ratio.operands[1]], power = expressions[ratio.operands[0]];
    if (sum.kind != Kind::RowSum || sum.operands[0] != ratio.operands[0] || power.kind != Kind::Exp)
      return false;
    const ScoreExpressions::Expression shifted = expressions[power.operands[0]];
    if (shifted.kind != Kind::Subtract)
      return false;
    found.power = ratio.operands[0];
    found.sum = ratio.operands[1];
    const Node score = shifted.operands[0];
    const ScoreExpressions::Expression maximum = expressions[shifted.operands[1]];
    if (maximum.kind != Kind::RowMaximum || maximum.operands[0] != score)
      return false;
    for (auto &[product, factor] : expressions.expand(score)) {
      if (product.size() != 1)
        return false;
      if (drt::MatmulOp scores = getProduct(product[0]); scores && !found.scores) {
        found.scores = scores;
        found.scale = factor;
      } else if (!found.bias && factor == 1 && expressions[product[0]].kind == Kind::Leaf) {
        found.bias = expressions[product[0]];
      } else {
        return false;
      }
    }
    return isPlain(found.scores) && !found.scores.getTransposeA() && found.scores.getTransposeB();
  }

  /// Of queries, keys, values and their gradients.
  bool isElement(Type type) const { return device ? type.isBF16() : type.isF32(); }

  /// What `drt.attention` takes.
  bool matchSizes(Attention &found) const {
    const RankedTensorType query = getType(found.scores.getA()), key = getType(found.scores.getB()),
                           value = getType(found.output.getB());
    for (RankedTensorType type : {query, key, value, getType(found.output.getResult())})
      if (type.getRank() != 4 || !isElement(type.getElementType()) || type.getNumElements() == 0)
        return false;
    const int64_t size = query.getDimSize(3);
    if (key != value || key.getDimSize(0) != query.getDimSize(0) || key.getDimSize(1) != query.getDimSize(1) ||
        (device && (size % 16 != 0 || size > 128)))
      return false;
    return !found.bias || getBiasSizes(*found.bias, getType(found.scores.getResult()));
  }

  /// [batch, heads, queries, keys], each of them or 1, of a bias that is read as `leaf` says.
  static std::optional<SmallVector<int64_t>> getBiasSizes(const ScoreExpressions::Expression &leaf,
                                                          RankedTensorType scores) {
    RankedTensorType type = getType(leaf.tensor);
    if (!type.getElementType().isF32() || type.getRank() == 0)
      return std::nullopt;
    if (!leaf.map)
      return type.getShape() == scores.getShape() ? std::optional(llvm::to_vector(scores.getShape())) : std::nullopt;
    if (leaf.map.getNumDims() != 4)
      return std::nullopt;
    SmallVector<int64_t> sizes(4, 1);
    int64_t last = -1;
    for (auto [expression, size] : llvm::zip(leaf.map.getResults(), type.getShape())) {
      auto dim = dyn_cast<AffineDimExpr>(expression);
      if (!dim && size == 1)
        continue;
      if (!dim || static_cast<int64_t>(dim.getPosition()) <= last || size != scores.getDimSize(dim.getPosition()))
        return std::nullopt;
      last = dim.getPosition();
      sizes[last] = size;
    }
    return sizes;
  }

  /// All that scores, and the gradients of probabilities, lead to are the products of the attention.
  bool matchReaders(Node probability, Attention &found) {
    llvm::SmallSetVector<Operation *, 16> products;
    if (!addReaders(found.scores.getResult(), products))
      return false;
    for (size_t i = 0; i < products.size(); ++i) {
      auto product = cast<drt::MatmulOp>(products[i]);
      if (product == found.output)
        continue;
      if (!isPlain(product) || product.getTransposeB() || !matchGradient(product, probability, found, products))
        return false;
    }
    // Each of the gradients takes the others' operands.
    for (drt::MatmulOp product : found.gradients())
      if (!isElement(getType(product.getResult()).getElementType()) && product != found.probabilityGrad)
        return false;
    if (!found.probabilityGrad)
      return found.gradients().empty();
    const Value outputGrad = found.probabilityGrad.getA();
    return getType(outputGrad) == getType(found.output.getResult()) &&
           (!found.valueGrad || found.valueGrad.getB() == outputGrad) &&
           (!found.queryGrad || found.queryGrad.getB() == found.scores.getB()) &&
           (!found.keyGrad || found.keyGrad.getB() == found.scores.getA());
  }

  bool matchGradient(drt::MatmulOp product, Node probability, Attention &found,
                     llvm::SmallSetVector<Operation *, 16> &products) {
    const Node left = expressions.get(product.getA());
    if (left == probability) {
      if (!product.getTransposeA() || found.valueGrad)
        return false;
      found.valueGrad = product;
      return true;
    }
    drt::MatmulOp probabilityGrad = matchScoreGradient(left, found);
    if (!probabilityGrad || (found.probabilityGrad && found.probabilityGrad != probabilityGrad))
      return false;
    if (!found.probabilityGrad) {
      found.probabilityGrad = probabilityGrad;
      if (!addReaders(probabilityGrad.getResult(), products))
        return false;
    }
    drt::MatmulOp &place = product.getTransposeA() ? found.keyGrad : found.queryGrad;
    if (place)
      return false;
    place = product;
    return true;
  }

  /// Of scale * p * (g - sum p g), with p = e / s: the product g, of the output's gradient and the value.
  drt::MatmulOp matchScoreGradient(Node node, Attention &found) {
    const Polynomial terms = expressions.expand(node);
    if (terms.size() != 2)
      return {};
    const Node inverse = getInverseOfSum(found);
    for (auto &[factors, times] : terms)
      for (Node gradient : factors) {
        drt::MatmulOp product = getProduct(gradient);
        if (!isPlain(product) || product.getTransposeA() || !product.getTransposeB() ||
            product.getB() != found.output.getB())
          continue;
        std::vector<Node> whole = {found.power, inverse, gradient};
        std::vector<Node> dot = {found.power, inverse, inverse, expressions.getRowSum({found.power, gradient})};
        llvm::sort(whole);
        llvm::sort(dot);
        if (isFactor(terms, whole, found.scale) && isFactor(terms, dot, -found.scale))
          return product;
      }
    return {};
  }

  /// As the sum's node is where it is multiplied out.
  Node getInverseOfSum(Attention &found) { return expressions.getInverse(expressions.getRowSum({found.power})); }

  static bool isFactor(const Polynomial &terms, const std::vector<Node> &product, double expected) {
    auto term = terms.find(product);
    return term != terms.end() && std::abs(term->second - expected) <= 1e-6 * std::abs(expected);
  }

  /// Adds the products that element-wise work and sums of rows lead to from `value`; false where anything else is.
  static bool addReaders(Value value, llvm::SmallSetVector<Operation *, 16> &products) {
    SmallVector<Value> values = {value};
    llvm::SmallDenseSet<Value> seen;
    constexpr size_t kMost = 256;
    while (!values.empty()) {
      Value next = values.pop_back_val();
      if (!seen.insert(next).second)
        continue;
      if (seen.size() > kMost)
        return false;
      for (Operation *user : next.getUsers()) {
        if (isa<drt::MatmulOp>(user))
          products.insert(user);
        else if (isa<linalg::GenericOp>(user) || isReshape(user))
          llvm::append_range(values, user->getResults());
        else
          return false; // among them one that reads by index
      }
    }
    return true;
  }

  const bool device;

public:
  ScoreExpressions expressions;
  static SmallVector<int64_t> getBias(Attention &found) {
    return *getBiasSizes(*found.bias, getType(found.scores.getResult()));
  }
};

class Rewriter {
public:
  Rewriter(Attention &found, bool device) : found(found), device(device) {}

  void run() {
    ImplicitLocOpBuilder b(found.output.getLoc(), found.output);
    query = HeadsLast::get(b, found.scores.getA());
    key = HeadsLast::get(b, found.scores.getB());
    value = HeadsLast::get(b, found.output.getB());
    if (found.bias)
      bias = getBias(b);
    const RankedTensorType scores = getType(found.scores.getResult());
    rows = RankedTensorType::get(scores.getShape().drop_back(), b.getF32Type());
    SmallVector<int64_t> statistics = {2};
    llvm::append_range(statistics, rows.getShape());
    forward = drt::AttentionOp::create(b, query.getType(), rows.clone(statistics), query, key, value, bias, getScale(b),
                                       DenseI64ArrayAttr());
    if (found.probabilityGrad)
      makeGradients();
    HeadsLast::replace(b, found.output.getResult(), forward.getOutput());
  }

private:
  FloatAttr getScale(OpBuilder &b) { return b.getF32FloatAttr(static_cast<float>(found.scale)); }

  Value getBias(ImplicitLocOpBuilder &b) {
    const SmallVector<int64_t> sizes = Matcher::getBias(found);
    Value added = found.bias->tensor;
    const RankedTensorType type = getType(added);
    if (type.getShape() == ArrayRef(sizes))
      return added;
    if (type.getRank() > 1)
      added = tensor::CollapseShapeOp::create(
          b, added, ArrayRef{ReassociationIndices(llvm::to_vector(llvm::seq<int64_t>(type.getRank())))});
    return tensor::ExpandShapeOp::create(b, type.clone(sizes), added, ArrayRef{ReassociationIndices{0, 1, 2, 3}});
  }

  void makeGradients() {
    SmallVector<drt::MatmulOp> products = found.gradients();
    drt::MatmulOp first =
        *llvm::min_element(products, [](drt::MatmulOp x, drt::MatmulOp y) { return x->isBeforeInBlock(y); });
    ImplicitLocOpBuilder b(found.probabilityGrad.getLoc(), first);
    const Value grad = HeadsLast::get(b, found.probabilityGrad.getA());
    Value queryGrad, keyGrad, valueGrad;
    if (device) {
      auto ofQuery = drt::AttentionQueryGradientOp::create(b, query.getType(), rows, query, key, value, bias,
                                                           forward.getStatistics(), grad, forward.getOutput(),
                                                           getScale(b), DenseI64ArrayAttr());
      auto ofOthers = drt::AttentionKeyValueGradientOp::create(b, key.getType(), value.getType(), query, key, value,
                                                               bias, forward.getStatistics(), grad, ofQuery.getDots(),
                                                               getScale(b), DenseI64ArrayAttr());
      queryGrad = ofQuery.getQueryGrad();
      keyGrad = ofOthers.getKeyGrad();
      valueGrad = ofOthers.getValueGrad();
    } else {
      auto all = drt::AttentionGradientOp::create(b, query.getType(), key.getType(), value.getType(), query, key, value,
                                                  bias, forward.getStatistics(), grad, forward.getOutput(), getScale(b),
                                                  DenseI64ArrayAttr());
      queryGrad = all.getQueryGrad();
      keyGrad = all.getKeyGrad();
      valueGrad = all.getValueGrad();
    }
    for (auto [product, made] : {std::pair(found.queryGrad, queryGrad), std::pair(found.keyGrad, keyGrad),
                                 std::pair(found.valueGrad, valueGrad)})
      if (product)
        HeadsLast::replace(b, product.getResult(), made);
  }

  Attention &found;
  const bool device;
  Value query, key, value, bias;
  RankedTensorType rows;
  drt::AttentionOp forward;
};

} // namespace
} // namespace attention

namespace {

struct FuseAttention : impl::FuseAttentionBase<FuseAttention> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<drt::MatmulOp> products(getOperation().getBody().front().getOps<drt::MatmulOp>());
    // An expression holds for as long as what it is of: nothing is rewritten before all are found.
    attention::Matcher matcher(device);
    SmallVector<attention::Attention> found;
    for (drt::MatmulOp product : products)
      if (std::optional<attention::Attention> attention = matcher.match(product))
        found.push_back(*attention);
    for (attention::Attention &attention : found)
      attention::Rewriter(attention, device).run();
    if (found.empty())
      return;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getOperation().getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
} // namespace distc
