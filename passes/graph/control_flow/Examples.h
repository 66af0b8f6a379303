//===- Examples.h - What is computed for one example, for all of them -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The nodes that an iteration of a loop over the examples of a batch became are made
// again for all examples at once: each value has one more axis in front, along which
// they lie. Only what is asked for is made.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_EXAMPLES_H
#define DISTC_PASSES_GRAPH_EXAMPLES_H

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/GraphBuilder.h"
#include "mlir/IR/Builders.h"

namespace distc {

class Examples {
public:
  /// `nodes`: those of one example, in order; `number`: which example, a scalar; `numbers`: all of them, a vector.
  Examples(mlir::OpBuilder &builder, dfg::ShapeContext &shapes, llvm::ArrayRef<mlir::Operation *> nodes,
           mlir::Value number, mlir::Value numbers);

  /// `value` of each example; null where that has no form (`getReason`).
  mlir::Value getAll(mlir::Value value);
  /// `value` where all examples have the same; null for others.
  mlir::Value getSame(mlir::Value value);
  /// The sum of `value` over the examples.
  mlir::Value getSum(mlir::Value value);
  /// Whether examples may have other values.
  bool dependsOnExample(mlir::Value value) const { return touched.contains(value); }

  const std::string &getReason() const { return reason; }
  /// What was made, in order.
  llvm::SmallVector<mlir::Operation *> made;

private:
  /// Of all examples: along axis 0, or one for all.
  struct Value {
    mlir::Value value;
    bool varies = false;
  };
  using Builder = dfg::GraphBuilder;
  using Values = Builder::Values;

  bool fail(mlir::Operation *op, const llvm::Twine &why);
  bool makeAll(mlir::Value value);
  bool vectorize(mlir::Operation *op);
  Values rewrite(mlir::Operation *op, Builder &g, bool &varies);
  Values rewriteComposite(mlir::Operation *op, Builder &g);
  Values elementwise(mlir::Operation *op, Builder &g);
  Values product(mlir::Operation *op, Builder &g);
  Values matrices(mlir::Operation *op, Builder &g);
  Values gather(mlir::Operation *op, Builder &g);
  Values strided(mlir::Operation *op, Builder &g);
  Values image(mlir::Operation *op, Builder &g);
  Values segments(mlir::Operation *op, Builder &g);
  Values places(mlir::Operation *op, Builder &g);
  mlir::Value addRows(Builder &g, mlir::Value ids, mlir::Value data, int64_t number) const;
  mlir::Value numberPlaces(Builder &g, mlir::Value indices, llvm::ArrayRef<dfg::Dim> shape, int64_t &rows) const;
  Values crossEntropy(mlir::Operation *op, Builder &g);
  mlir::Value sumOf(mlir::Operation *op, Builder &g);

  Value get(mlir::Value value) const;
  /// The axes of one example's value.
  llvm::FailureOr<dfg::Dims> shapeOf(Builder &g, mlir::Value value) const;
  int64_t rankOf(Builder &g, mlir::Value value) const;
  /// With the examples in front, whether it varies or not.
  mlir::Value each(Builder &g, mlir::Value value) const;
  /// The same with axes of size 1 behind the examples' up to `rank` axes of each; what does not vary stays.
  mlir::Value lift(Builder &g, mlir::Value value, int64_t rank) const;
  /// `value` ([examples, n, ...]) as [examples * n, ...], and back to the shape of one example's `like`.
  mlir::Value join(Builder &g, mlir::Value value) const;
  /// `op` on the rows of all examples: its operands `joined` are joined, the others are the same for all.
  Values copyJoined(mlir::Operation *op, Builder &g, llvm::ArrayRef<unsigned> joined) const;
  mlir::Value reshape(Builder &g, mlir::Value value, llvm::ArrayRef<dfg::Dim> to) const;
  bool areNumbers(mlir::Value value) const;
  mlir::Value placeOf(Builder &g, mlir::Value begin) const;
  mlir::Value divide(Builder &g, mlir::Value joined, mlir::Value like) const;
  /// A vector that says something of each axis, with `first` for the examples'.
  mlir::Value prepend(Builder &g, int64_t first, mlir::Value vector) const;
  /// Sizes of one example's value as those of all.
  mlir::Value prependCount(Builder &g, mlir::Value sizes) const;
  std::optional<int64_t> axisOf(Builder &g, mlir::Value axis, int64_t rank) const;

  mlir::OpBuilder &builder;
  dfg::ShapeContext &shapes;
  const mlir::Value numbers;
  dfg::Dim count;
  llvm::DenseMap<mlir::Value, Value> all;
  llvm::DenseSet<mlir::Value> touched;
  llvm::DenseMap<mlir::Operation *, unsigned> order;
  std::string reason;
};

} // namespace distc

#endif // DISTC_PASSES_GRAPH_EXAMPLES_H
