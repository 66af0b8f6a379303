//===- EntryLowering.h - From a graph's entry to the runtime's plan -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What the lowering of one node sees: the values that stand for its operands,
// and builders of the forms that nodes become (element-wise kernels, gathers,
// library calls). Nodes with an interface (ScalarInterface, ReductionInterface,
// UpdateInterface) are lowered by it; every other node has a function in one of
// the tables below, registered under its class.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_ENTRIES_ENTRYLOWERING_H
#define DISTC_PASSES_LOWER_ENTRIES_ENTRYLOWERING_H

#include "dialects/dfg/Dfg.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/lower/TensorType.h"
#include "llvm/ADT/DenseSet.h"

namespace distc::lower {

class EntryLowering;

/// Lowers one node: sets its results.
using NodeLowering = llvm::LogicalResult (*)(EntryLowering &, mlir::Operation *);
using LoweringTable = llvm::DenseMap<mlir::OperationName, NodeLowering>;

class EntryLowering {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  /// Makes the element of a result at `indices`.
  using ElementFn = llvm::function_ref<Value(dfg::ScalarBuilder &, ValueRange indices)>;
  /// Makes a result's element from one element of each input.
  using ScalarFn = llvm::function_ref<Value(dfg::ScalarBuilder &, ValueRange elements)>;

  EntryLowering(mlir::MLIRContext *context, const LoweringTable &table) : builder(context), table(table) {}
  virtual ~EntryLowering() = default;

  /// Sets the results of a node that computes something, by its interface or its class' function; fails with a
  /// diagnostic where there is neither.
  llvm::LogicalResult lowerComputation(mlir::Operation *node);

  /// The tensor that stands for a node's result.
  virtual Value get(Value graphValue) = 0;
  void set(Value graphValue, Value tensor) { values[graphValue] = tensor; }

  /// Stands for a tensor without elements. Neither kernels nor library calls are made for it, nor are they given it.
  Value empty(mlir::Location loc, mlir::RankedTensorType type);
  /// The only value of a constant tensor whose elements are all equal.
  static mlir::TypedAttr getSplat(Value tensor);
  /// The elements of a constant integer operand of the node; fails with a diagnostic that names the node where it is
  /// not constant.
  llvm::FailureOr<llvm::SmallVector<int64_t>> getConstants(mlir::Operation *node, unsigned operand);

  /// Makes the program end where an index in operand `operand` of the node is outside of the axes that it names, an
  /// index of as many numbers as `sizes`: TensorFlow's kernels do. Fails with a diagnostic where constants are.
  virtual llvm::LogicalResult checkIndices(mlir::Operation *node, unsigned operand, llvm::ArrayRef<int64_t> sizes);

  /// A kernel over `shape`, each input broadcast to it (equal trailing sizes, or 1).
  Value elementwise(mlir::Location loc, mlir::RankedTensorType type, ValueRange inputs, ScalarFn fn);
  /// The same with a map for each input.
  Value mapped(mlir::Location loc, mlir::RankedTensorType type, ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
               ScalarFn fn);
  /// A kernel whose elements are computed from their position; reads tensors through `load`.
  Value gather(mlir::Location loc, mlir::RankedTensorType type, ElementFn fn);
  /// An element of a tensor, inside of gather's `fn`.
  static Value load(dfg::ScalarBuilder &s, Value tensor, ValueRange indices);
  /// Reduces `input` over `axes` (the result has the other axes). `initial` makes a constant, the result where there is
  /// nothing to reduce. Elements that are narrower than float32 are accumulated in float32.
  Value reduce(mlir::Location loc, Value input, llvm::ArrayRef<int64_t> axes, mlir::Type elementType,
               llvm::function_ref<Value(dfg::ScalarBuilder &)> initial,
               llvm::function_ref<Value(dfg::ScalarBuilder &, Value accumulator, Value element)> combine);
  /// The elements as TensorFlow casts them; the tensor itself where they are of that type.
  Value cast(mlir::Location loc, Value tensor, mlir::Type elementType);
  /// The same elements in another static shape; no copy.
  Value reshape(mlir::Location loc, Value tensor, llvm::ArrayRef<int64_t> shape);
  Value constant(mlir::Location loc, mlir::RankedTensorType type, double value);

  mlir::OpBuilder builder;

protected:
  const LoweringTable &table;
  llvm::DenseMap<Value, Value> values;

  /// Keeps `padded`: to be called for each node, in their order.
  void notePadding(mlir::Operation *node);

  /// Values that hold padding, or are computed from some: their indices of -1 name no row.
  llvm::DenseSet<Value> padded;
  /// Indices into an axis of a size that have been checked.
  llvm::DenseSet<std::pair<Value, int64_t>> checked;

public:
  /// Whether indices are checked when the program runs.
  bool asserts = false;
  bool isForDevices = false;
};

template <typename Op> void addLowering(LoweringTable &table, mlir::MLIRContext *context, NodeLowering fn) {
  table[mlir::OperationName(Op::getOperationName(), context)] = fn;
}

void addLayoutLowerings(LoweringTable &table, mlir::MLIRContext *context);
void addScanLowerings(LoweringTable &table, mlir::MLIRContext *context);
void addRowLowerings(LoweringTable &table, mlir::MLIRContext *context);
void addShardLowerings(LoweringTable &table, mlir::MLIRContext *context);
void addProductLowerings(LoweringTable &table, mlir::MLIRContext *context);
void addLossLowerings(LoweringTable &table, mlir::MLIRContext *context);
void addRoutineLowerings(LoweringTable &table, mlir::MLIRContext *context);
void addRandomLowerings(LoweringTable &table, mlir::MLIRContext *context);

/// A loop of which data say when it ends becomes one kernel of `module`, called NAME, which the plan launches
/// (LowerLoops.cpp).
llvm::LogicalResult lowerLoop(EntryLowering &plan, dfg::WhileOp loop, mlir::ModuleOp module, const LoweringTable &table,
                              llvm::StringRef name);

/// By interface.
llvm::LogicalResult lowerElementwise(EntryLowering &lowering, dfg::ScalarInterface node);
llvm::LogicalResult lowerReduction(EntryLowering &lowering, dfg::ReductionInterface node);

/// Whether a tensor has no elements.
inline bool isEmpty(mlir::RankedTensorType type) { return type.hasStaticShape() && type.getNumElements() == 0; }
/// float16 and bfloat16: kernels and libraries compute in float32 what the graph keeps in them.
inline bool isNarrowFloat(mlir::Type element) { return element.isF16() || element.isBF16(); }

/// An index: a number, or what an integer counts.
inline mlir::Value index(dfg::ScalarBuilder &s, int64_t value) {
  return mlir::arith::ConstantIndexOp::create(s.builder, s.loc, value);
}
inline mlir::Value toIndex(dfg::ScalarBuilder &s, mlir::Value value) {
  return mlir::arith::IndexCastOp::create(s.builder, s.loc, s.builder.getIndexType(), value);
}
/// The static tensor type of a node's result; fails with a diagnostic where it is not static.
llvm::FailureOr<mlir::RankedTensorType> getStaticType(mlir::Operation *node, unsigned result = 0);

} // namespace distc::lower

#endif // DISTC_PASSES_LOWER_ENTRIES_ENTRYLOWERING_H
