//===- ScoreExpressions.h - What element-wise work on scores computes -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Of tensors [..., queries, keys] and of the rows' numbers beside them: expressions over what is no element-wise
// operation and no reduction of rows. Equal ones are one node, however their operations are cut and wherever they are
// rounded, so that what a softmax is made of is compared by its nodes.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_SCOREEXPRESSIONS_H
#define DISTC_PASSES_LOWER_GPU_SCOREEXPRESSIONS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace distc {

class ScoreExpressions {
public:
  using Node = unsigned;
  enum class Kind { Leaf, Constant, Add, Subtract, Multiply, Divide, Exp, RowSum, RowMaximum, Inverse, Product };
  /// Products of nodes (in order) with their factors.
  using Polynomial = std::map<std::vector<Node>, double>;

  struct Expression {
    Kind kind;
    std::vector<Node> operands;
    double constant = 0;
    /// Of a leaf: its tensor, and where an element of [..., queries, keys] is in it; null for its own place.
    mlir::Value tensor;
    mlir::AffineMap map;
  };

  /// Of the elements of a tensor of scores, or of a number for each row.
  Node get(mlir::Value tensor);
  const Expression &operator[](Node node) const { return expressions[node]; }

  /// Sums, products and quotients multiplied out; what is the same for all of a row stands before its sum. Anything else
  /// is a node of its own, and so is what is too deep or too long for what is looked for.
  Polynomial expand(Node node, unsigned depth = 12);
  /// One over a node, and a row's sum of a product, as `expand` has them.
  Node getInverse(Node node) { return add({Kind::Inverse, {node}, 0, {}, {}}); }
  Node getRowSum(std::vector<Node> product);

private:
  Node add(Expression expression);
  Node addLeaf(mlir::Value tensor, mlir::AffineMap map = {}) { return add({Kind::Leaf, {}, 0, tensor, map}); }
  Node addConstant(double value) { return add({Kind::Constant, {}, value, {}, {}}); }
  Node addOperation(Kind kind, std::vector<Node> operands);
  std::optional<Node> getElementwise(mlir::linalg::GenericOp op, unsigned result);
  std::optional<Node> getOfBody(mlir::linalg::GenericOp op, mlir::Value element);
  std::optional<Node> getOperand(mlir::linalg::GenericOp op, mlir::OpOperand &operand);
  std::optional<Node> getReduction(mlir::linalg::GenericOp op);
  Polynomial expandRowSum(const Polynomial &terms);
  bool isOfRow(Node node) const;
  bool isConstant(Node node, double value) const {
    return expressions[node].kind == Kind::Constant && expressions[node].constant == value;
  }

  std::vector<Expression> expressions;
  std::map<std::tuple<Kind, std::vector<Node>, uint64_t, const void *, const void *>, Node> known;
  llvm::DenseMap<mlir::Value, Node> ofTensor;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_SCOREEXPRESSIONS_H
