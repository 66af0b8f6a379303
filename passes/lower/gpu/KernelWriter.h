//===- KernelWriter.h - Writes a gpu.func ---------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What schedules are written with: index arithmetic, elements of buffers, bodies
// of linalg operations, exchange between threads. Grids and blocks have one
// dimension; a schedule takes its own coordinates apart. A warp has 32 threads.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_KERNELWRITER_H
#define DISTC_PASSES_LOWER_GPU_KERNELWRITER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/lower/gpu/Kernel.h"

namespace distc::schedule {

inline constexpr int64_t kWarp = 32;
/// Rows up to this size are a warp's, longer ones a block's.
inline constexpr int64_t kWarpRow = 1024;

/// One iteration: a value of index arithmetic for each loop.
struct Point {
  llvm::SmallVector<mlir::Value> parallel, reduction;
};

/// Neighbours along one loop that a thread takes at once.
struct Lanes {
  bool alongReduction;
  /// Of the space's parallel or reduction loops.
  unsigned loop;
  int64_t count;
};

class KernelWriter {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using Values = llvm::SmallVector<mlir::Value>;

  /// Makes the gpu.func in `module`, with the kernel's name, arguments and constants.
  KernelWriter(Kernel &kernel, mlir::gpu::GPUModuleOp module);

  mlir::ImplicitLocOpBuilder b;
  Kernel &kernel;

  /// Once, before the coordinates are asked for.
  void setLaunch(int64_t blocks, int64_t threads);
  /// Behind everything else.
  void finish();

  // Index arithmetic: 32 bits where all numbers of the kernel fit, since divisions of 64 bits are many instructions.
  // All values are non-negative.
  Value getBlock() const { return block; }
  Value getThread() const { return thread; }
  Value number(int64_t value);
  Value add(Value x, Value y);
  Value mul(Value x, int64_t factor);
  Value div(Value x, int64_t divisor);
  Value rem(Value x, int64_t divisor);
  Value less(Value x, int64_t bound);
  Value equal(Value x, int64_t value);
  Value both(Value condition, Value other);
  Value select(Value condition, Value x, Value y);
  /// As `index`.
  Value toIndex(Value x);
  /// A position in loops, from the linear one.
  Values delinearize(Value linear, llvm::ArrayRef<int64_t> sizes);
  Values delinearize(Value linear, llvm::ArrayRef<Loop> loops);

  // Control flow.
  /// Where `condition` holds; everywhere without one.
  void when(Value condition, llvm::function_ref<void()> write);
  /// `step` apart from `begin` to `end`; hands on values.
  Values loop(Value begin, Value end, int64_t step, ValueRange carried,
              llvm::function_ref<Values(Value at, ValueRange carried)> write);

  // Elements. An operand is one of the operation's, inputs before outputs.
  /// Where the operand's element of an iteration lies, in elements from the buffer's begin.
  Value address(const IterationSpace &space, unsigned operand, const Point &point);
  Value load(mlir::linalg::LinalgOp op, unsigned operand, Value address);
  void store(mlir::linalg::LinalgOp op, unsigned result, Value element, Value address);
  /// Neighbours, the first of them at `point`: by vectors where they are contiguous and aligned, once where they are
  /// equal.
  Values loadLanes(mlir::linalg::LinalgOp op, const IterationSpace &space, unsigned operand, const Point &point,
                   const Lanes &lanes);
  void storeLanes(mlir::linalg::LinalgOp op, const IterationSpace &space, unsigned result, ValueRange elements,
                  const Point &point, const Lanes &lanes);
  Point getLane(Point point, const Lanes &lanes, int64_t lane);
  /// What result `result` starts from: the kernel's fill, or what lies in memory.
  Value loadInitial(mlir::linalg::LinalgOp op, unsigned result, Value address);
  /// Where the operand's element of an iteration lies, in its buffer's own axes; `positions` by loop of the operation.
  Values getIndices(mlir::linalg::LinalgOp op, mlir::OpOperand &operand, ValueRange positions);
  /// The buffer as one line.
  Value getLine(Value buffer);
  /// Neighbours of a line; `address` is a multiple of their number.
  Values loadVector(Value line, Value address, int64_t count);
  void storeVector(Value line, ValueRange elements, Value address);

  // Bodies.
  /// The operation's results from the elements of its operands; `position` gives a loop's as index arithmetic.
  Values writeBody(mlir::linalg::LinalgOp op, ValueRange elements, llvm::function_ref<Value(unsigned dim)> position);
  /// The same at a point of the collapsed loops.
  Values writeBody(mlir::linalg::LinalgOp op, const IterationSpace &space, ValueRange elements, const Point &point);
  /// The operation's loop `dim` at a point of the collapsed ones.
  Value getPosition(mlir::linalg::LinalgOp op, const IterationSpace &space, const Point &point, unsigned dim);
  /// Of the kernel, as it is in the gpu.func.
  Value lookup(Value value) { return values.lookupOrDefault(value); }

  // Exchange between threads.
  /// Memory of the block.
  Value addShared(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  void barrier();
  /// The value of the lane whose number differs by `mask`.
  Value shuffleXor(Value value, int64_t mask);

  mlir::gpu::GPUFuncOp function;
  mlir::IRMapping values;
  /// Gives the element that a body reads by index where it lies in no buffer of the gpu.func; null elsewhere.
  std::function<Value(mlir::memref::LoadOp)> readElsewhere;

private:
  void makeFunction(mlir::gpu::GPUModuleOp module);
  void cloneConstants();

  mlir::Type type;
  Value block, thread;
  llvm::DenseMap<Value, Value> lines;
};

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_GPU_KERNELWRITER_H
