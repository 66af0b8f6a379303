//===- GraphBuilder.h - Nodes that a node is made of -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What decompositions (Decompositions.h) are written with. Every node that is made
// knows its shape at once, with the batch as a symbol.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_GRAPHBUILDER_H
#define DISTC_DIALECTS_DFG_GRAPHBUILDER_H

#include "dialects/dfg/ShapeContext.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

namespace distc::dfg {

/// Once it has failed nothing more is made, and values are null.
class GraphBuilder {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using Values = llvm::SmallVector<Value>;

  /// Nodes are made where `builder` stands, in the name of `node`.
  GraphBuilder(mlir::OpBuilder &builder, ShapeContext &shapes, mlir::Operation *node)
      : builder(builder), shapes(shapes), node(node) {}

  // ---- What is known --------------------------------------------------------------------
  /// The shape, the rank, one size; fails (once and for all) where they are not known.
  llvm::FailureOr<Dims> getShape(Value value);
  llvm::FailureOr<llvm::SmallVector<int64_t>> getStaticShape(Value value);
  llvm::FailureOr<llvm::SmallVector<int64_t>> getConstants(Value value);
  llvm::FailureOr<int64_t> getConstant(Value value);
  llvm::FailureOr<llvm::SmallVector<double>> getReals(Value value);
  /// Fails for the reason that `why` says: what must be known and is not, or has no code.
  llvm::LogicalResult fail(const llvm::Twine &why);
  bool failed() const { return !reason.empty() || invalid; }
  /// Why; empty where a diagnostic has said it.
  llvm::StringRef getReason() const { return reason; }
  /// Removes what was made.
  void takeBack();
  /// What stands for the node's first result, made by a node that has its name; all that was made waits for what it
  /// waited for.
  Value takeName(Value first);
  static Type elementOf(Value value) { return value ? mlir::getElementTypeOrSelf(value.getType()) : Type(); }

  // ---- Nodes ------------------------------------------------------------------------------
  /// A node of one result; its elements are `element`, or as operand 0's.
  template <typename Op>
  Value make(mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes = {}, Type element = Type()) {
    if (failed() || llvm::any_of(operands, [](Value operand) { return !operand; }))
      return {};
    Values results = makeAll<Op>(operands, element ? element : elementOf(operands[0]), attributes);
    return results.empty() ? Value() : results[0];
  }
  template <typename Op>
  Values makeAll(mlir::ValueRange operands, llvm::ArrayRef<Type> elements,
                 llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return create(Op::getOperationName(), operands, elements, attributes);
  }
  mlir::NamedAttribute attribute(llvm::StringRef name, mlir::Attribute value) {
    return {builder.getStringAttr(name), value};
  }
  mlir::NamedAttribute flag(llvm::StringRef name, bool value) { return attribute(name, builder.getBoolAttr(value)); }

  /// Constants: a scalar; a vector of integers; elements of a tensor.
  Value scalar(Type element, double value);
  Value integers(llvm::ArrayRef<int64_t> values, bool wide = false);
  Value integer(int64_t value, bool wide = false);
  Value table(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<float> values);
  /// The sizes as a vector of int32, of which `like`'s axes give those that depend on the batch.
  Value sizes(llvm::ArrayRef<Dim> sizes, Value like);
  /// 0, 1, ... below the size of `axis` of `of`.
  Value positions(Value of, int64_t axis, Type element);
  Value sizeOf(Value of, int64_t axis, Type element);
  /// As sizeOf, but a node that asks for it also where it is a number: that of the batch's rows, of which replicas have
  /// shares.
  Value askSizeOf(Value of, int64_t axis, Type element);

  // ---- Arithmetic, with broadcasting -----------------------------------------------------------
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y);
  Value maximum(Value x, Value y);
  Value minimum(Value x, Value y);
  Value neg(Value x);
  Value exp(Value x);
  Value log(Value x);
  Value rsqrt(Value x);
  Value pow(Value x, Value y);
  Value equal(Value x, Value y);
  Value less(Value x, Value y);
  Value lessEqual(Value x, Value y);
  Value both(Value x, Value y);
  Value either(Value x, Value y);
  Value negate(Value x);
  Value select(Value condition, Value x, Value y);
  Value cast(Value x, Type element);
  /// The first as it is where there is only one.
  Value addAll(llvm::ArrayRef<Value> values);
  Value zerosLike(Value x);

  // ---- Layout -------------------------------------------------------------------------------------
  /// One size at most may be other than a constant.
  Value reshape(Value x, llvm::ArrayRef<Dim> shape);
  Value transpose(Value x, llvm::ArrayRef<int64_t> permutation);
  Value expandDims(Value x, int64_t axis);
  /// [begin, begin + size) along one axis; `stride` takes every so many-th.
  Value slice(Value x, int64_t axis, int64_t begin, int64_t size, int64_t stride = 1);
  /// The same up to `limit`, which is a constant or by a constant less than the axis' size.
  Value sliceTo(Value x, int64_t axis, int64_t begin, Dim limit, int64_t stride = 1);
  Value concat(llvm::ArrayRef<Value> values, int64_t axis);
  Value pack(llvm::ArrayRef<Value> values, int64_t axis);
  Value reverse(Value x, int64_t axis);
  /// Before and behind, an axis a pair; zeros, or `value`.
  Value pad(Value x, llvm::ArrayRef<int64_t> paddings, Value value = Value());
  Value padAxis(Value x, int64_t axis, int64_t before, int64_t behind, Value value = Value());
  Value tile(Value x, llvm::ArrayRef<int64_t> multiples);
  Value broadcastTo(Value x, Value shape);
  Value gather(Value x, Value indices, int64_t axis, int64_t batchDims = 0);

  // ---- Reductions and products ---------------------------------------------------------------------
  Value sum(Value x, llvm::ArrayRef<int64_t> axes, bool keepDims = false);
  Value mean(Value x, llvm::ArrayRef<int64_t> axes, bool keepDims = false);
  Value reduce(llvm::StringRef op, Value x, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Value matMul(Value a, Value b, bool transposeA = false, bool transposeB = false);
  Value batchMatMul(Value a, Value b, bool transposeA = false, bool transposeB = false);
  Value segmentSum(Value data, Value ids, Value count);

  mlir::OpBuilder &builder;
  ShapeContext &shapes;
  mlir::Operation *const node;
  /// What was made, in order.
  llvm::SmallVector<mlir::Operation *> made;

private:
  Value sliceBetween(Value x, int64_t rank, int64_t axis, int64_t begin, std::optional<int64_t> end, int64_t stride);
  Values create(llvm::StringRef name, mlir::ValueRange operands, llvm::ArrayRef<Type> elements,
                llvm::ArrayRef<mlir::NamedAttribute> attributes);
  Value constant(mlir::DenseElementsAttr value);

  std::string reason;
  bool invalid = false;
};

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_GRAPHBUILDER_H
