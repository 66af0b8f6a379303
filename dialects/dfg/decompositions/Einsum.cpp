//===- Einsum.cpp - Products and sums by Einstein's convention -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

// A letter; axes that "..." stands for are negative, counted from the last of them.
using Labels = SmallVector<int>;

struct Term {
  Value value;
  Labels labels;
};

FailureOr<Labels> parse(GraphBuilder &g, StringRef text, int64_t ellipsis) {
  Labels labels;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ' ')
      continue;
    if (text.substr(at).starts_with("...")) {
      for (int64_t axis = ellipsis; axis > 0; --axis)
        labels.push_back(-axis);
      at += 2;
    } else {
      labels.push_back(text[at]);
    }
  }
  return labels;
}

int64_t countNamed(StringRef text) {
  return llvm::count_if(text, [](char c) { return c != '.' && c != ' '; });
}

class Contraction {
public:
  explicit Contraction(GraphBuilder &g) : g(g) {}

  Term arrange(Term term, const Labels &order) {
    SmallVector<int64_t> permutation;
    for (int label : order)
      permutation.push_back(llvm::find(term.labels, label) - term.labels.begin());
    return {g.transpose(term.value, permutation), order};
  }

  Term sumOut(Term term, llvm::function_ref<bool(int)> goes) {
    SmallVector<int64_t> axes;
    Labels kept;
    for (auto [axis, label] : llvm::enumerate(term.labels))
      if (goes(label))
        axes.push_back(axis);
      else
        kept.push_back(label);
    return axes.empty() ? term : Term{g.sum(term.value, axes), kept};
  }

  /// A label that is there twice names a diagonal.
  Term takeDiagonals(Term term) {
    for (size_t first = 0; first < term.labels.size(); ++first) {
      int label = term.labels[first];
      size_t second = llvm::find(llvm::drop_begin(term.labels, first + 1), label) - term.labels.begin();
      if (second >= term.labels.size())
        continue;
      SmallVector<int64_t> permutation;
      Labels rest;
      for (size_t axis = 0; axis < term.labels.size(); ++axis)
        if (axis != first && axis != second) {
          permutation.push_back(axis);
          rest.push_back(term.labels[axis]);
        }
      permutation.append({static_cast<int64_t>(first), static_cast<int64_t>(second)});
      Value square = g.transpose(term.value, permutation);
      int64_t rank = permutation.size();
      Value rows = g.expandDims(g.positions(square, rank - 2, g.builder.getI32Type()), 1);
      Value onDiagonal = g.equal(rows, g.positions(square, rank - 1, g.builder.getI32Type()));
      Value zero = g.scalar(g.elementOf(square), 0);
      rest.push_back(label);
      return takeDiagonals({g.sum(g.select(onDiagonal, square, zero), {rank - 2}), rest});
    }
    return term;
  }

  /// Where the result names a label twice its elements are on a diagonal, and zero beside it.
  Term spreadDiagonals(Term term, const Labels &wanted) {
    Labels seen;
    for (int label : wanted) {
      if (!llvm::is_contained(seen, label)) {
        seen.push_back(label);
        continue;
      }
      Labels order;
      for (int other : term.labels)
        if (other != label)
          order.push_back(other);
      order.push_back(label);
      term = arrange(term, order);
      int64_t rank = order.size();
      Value at = g.positions(term.value, rank - 1, g.builder.getI32Type());
      Value wide = g.expandDims(term.value, rank);
      term = {g.select(g.equal(g.expandDims(at, 1), at), wide, g.scalar(g.elementOf(wide), 0)), order};
      // A name of its own, until all are there.
      term.labels.push_back(label + kSecond);
    }
    return term;
  }

  /// The sum over what both have and the result has not, by one product of matrices.
  FailureOr<Term> multiply(Term a, Term b, const Labels &wanted) {
    auto has = [](const Labels &labels, int label) { return llvm::is_contained(labels, label); };
    Labels batch, contracted, freeA, freeB;
    for (int label : a.labels)
      (!has(b.labels, label) ? freeA : has(wanted, label) ? batch : contracted).push_back(label);
    for (int label : b.labels)
      if (!has(a.labels, label))
        freeB.push_back(label);
    // A size of 1 beside a larger one is broadcast by the product; sums over such do not agree.
    auto join = [](const Labels &x, const Labels &y, const Labels &z) {
      Labels all(x);
      llvm::append_range(all, y);
      llvm::append_range(all, z);
      return all;
    };
    // As it is, if its matrices only are transposed.
    const bool transposeA = a.labels == join(batch, contracted, freeA) && !(a.labels == join(batch, freeA, contracted));
    const bool transposeB = b.labels == join(batch, freeB, contracted) && !(b.labels == join(batch, contracted, freeB));
    a = arrange(a, transposeA ? join(batch, contracted, freeA) : join(batch, freeA, contracted));
    b = arrange(b, transposeB ? join(batch, freeB, contracted) : join(batch, contracted, freeB));
    FailureOr<Dims> shapeA = g.getShape(a.value), shapeB = g.getShape(b.value);
    if (failed(shapeA) || failed(shapeB))
      return failure();
    auto sizesOf = [](const Term &term, const Dims &shape, const Labels &labels) {
      Dims sizes;
      for (int label : labels)
        sizes.push_back(shape[llvm::find(term.labels, label) - term.labels.begin()]);
      return sizes;
    };
    auto matrix = [&](const Term &term, const Dims &shape, const Labels &rows, const Labels &columns) {
      Dims sizes = sizesOf(term, shape, batch);
      for (const Labels *labels : {&rows, &columns}) {
        Dim product = 1;
        for (Dim size : sizesOf(term, shape, *labels))
          product = product * size;
        sizes.push_back(product);
      }
      return g.reshape(term.value, sizes);
    };
    Value left = transposeA ? matrix(a, *shapeA, contracted, freeA) : matrix(a, *shapeA, freeA, contracted);
    Value right = transposeB ? matrix(b, *shapeB, freeB, contracted) : matrix(b, *shapeB, contracted, freeB);
    Value product = batch.empty() ? g.matMul(left, right, transposeA, transposeB)
                                  : g.batchMatMul(left, right, transposeA, transposeB);
    FailureOr<Dims> shape = g.getShape(product);
    if (failed(shape))
      return failure();
    Dims sizes(shape->begin(), shape->begin() + batch.size());
    llvm::append_range(sizes, sizesOf(a, *shapeA, freeA));
    llvm::append_range(sizes, sizesOf(b, *shapeB, freeB));
    return Term{g.reshape(product, sizes), join(batch, freeA, freeB)};
  }

  static constexpr int kSecond = 1 << 16;

private:
  GraphBuilder &g;
};

} // namespace

Result einsum(Operation *op, GraphBuilder &g) {
  StringRef equation = getText(op, "equation");
  auto [left, right] = equation.split("->");
  SmallVector<StringRef> parts;
  left.split(parts, ',');
  if (!equation.contains("->") || parts.size() != op->getNumOperands() || parts.size() > 2)
    return g.fail("the equation '" + equation + "' is none of one or two operands");
  SmallVector<Term> terms;
  int64_t mostEllipsis = 0;
  Contraction contraction(g);
  for (auto [part, operand] : llvm::zip(parts, op->getOperands())) {
    FailureOr<Dims> shape = g.getShape(operand);
    if (failed(shape))
      return failure();
    int64_t ellipsis = static_cast<int64_t>(shape->size()) - countNamed(part);
    mostEllipsis = std::max(mostEllipsis, ellipsis);
    Labels labels = *parse(g, part, ellipsis);
    if (labels.size() != shape->size())
      return g.fail("'" + part + "' of the equation does not name the axes of its operand");
    terms.push_back({operand, labels});
  }
  Labels wanted = *parse(g, right, mostEllipsis);
  auto isWanted = [&](int label) { return llvm::is_contained(wanted, label); };
  for (Term &term : terms)
    term = contraction.takeDiagonals(term);
  Term result = terms[0];
  if (terms.size() == 1) {
    result = contraction.sumOut(result, [&](int label) { return !isWanted(label); });
  } else {
    for (size_t i = 0; i < 2; ++i)
      terms[i] = contraction.sumOut(
          terms[i], [&](int label) { return !isWanted(label) && !llvm::is_contained(terms[1 - i].labels, label); });
    FailureOr<Term> product = contraction.multiply(terms[0], terms[1], wanted);
    if (failed(product))
      return failure();
    result = *product;
  }
  result = contraction.spreadDiagonals(result, wanted);
  Labels order, seen;
  for (int label : wanted) {
    order.push_back(llvm::is_contained(seen, label) ? label + Contraction::kSecond : label);
    seen.push_back(label);
  }
  for (int label : order)
    if (!llvm::is_contained(result.labels, label))
      return g.fail("the result of the equation '" + equation + "' has a label that no operand has");
  return one(g, contraction.arrange(result, order).value);
}

Result sparseMatMul(Operation *op, GraphBuilder &g) {
  Type f32 = g.builder.getF32Type();
  return one(g, g.matMul(g.cast(op->getOperand(0), f32), g.cast(op->getOperand(1), f32), getFlag(op, "transpose_a"),
                         getFlag(op, "transpose_b")));
}

Result accumulateN(Operation *op, GraphBuilder &g) { return one(g, g.make<AddNOp>(op->getOperands())); }

Result cross(Operation *op, GraphBuilder &g) {
  FailureOr<Dims> shape = g.getShape(op->getOperand(0));
  if (failed(shape))
    return failure();
  int64_t axis = static_cast<int64_t>(shape->size()) - 1;
  auto turned = [&](Value x, int64_t by) {
    return g.concat({g.slice(x, axis, by, 3 - by), g.slice(x, axis, 0, by)}, axis);
  };
  Value a = op->getOperand(0), b = op->getOperand(1);
  return one(g, g.sub(g.mul(turned(a, 1), turned(b, 2)), g.mul(turned(a, 2), turned(b, 1))));
}

/// Operands: the diagonals above, on and below, [..., 1, m], and [..., m, n]. The last element of the one above and the
/// first of the one below are none of the matrix.
Result tridiagonalMatMul(Operation *op, GraphBuilder &g) {
  Value rhs = op->getOperand(3);
  FailureOr<Dims> shape = g.getShape(rhs);
  if (failed(shape))
    return failure();
  const int64_t rank = shape->size(), rows = rank - 2;
  if (rank < 2 || !(*shape)[rows].isConstant())
    return g.fail("the size of its matrices is not known");
  const int64_t count = (*shape)[rows].getConstant();
  SmallVector<int64_t> swapped = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank >= 2)
    std::swap(swapped[rank - 1], swapped[rank - 2]);
  auto diagonal = [&](unsigned operand) { return g.transpose(op->getOperand(operand), swapped); };
  Value result = g.mul(diagonal(1), rhs);
  if (count > 1) {
    Value above = g.mul(g.slice(diagonal(0), rows, 0, count - 1), g.slice(rhs, rows, 1, count - 1));
    Value below = g.mul(g.slice(diagonal(2), rows, 1, count - 1), g.slice(rhs, rows, 0, count - 1));
    result = g.addAll({result, g.padAxis(above, rows, 0, 1), g.padAxis(below, rows, 1, 0)});
  }
  return one(g, result);
}

Result parallelConcat(Operation *op, GraphBuilder &g) {
  Value joined = g.concat(SmallVector<Value>(op->getOperands()), 0);
  return one(g, op->getNumOperands() == 1 ? g.make<IdentityOp>(joined) : joined);
}

Result guaranteeConst(Operation *op, GraphBuilder &g) { return one(g, g.make<IdentityOp>(op->getOperand(0))); }

} // namespace distc::dfg::decompositions
