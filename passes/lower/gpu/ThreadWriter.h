//===- ThreadWriter.h - Writes what a thread of a kernel does ---------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_THREADWRITER_H
#define DISTC_PASSES_LOWER_GPU_THREADWRITER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace distc {

/// Positions and sizes are of type `index` and never negative; buffers have one dimension.
class ThreadWriter {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using Values = llvm::SmallVector<mlir::Value>;

  /// At the builder's place in `kernel`, whose blocks have `threads` threads.
  ThreadWriter(mlir::ImplicitLocOpBuilder &builder, mlir::gpu::GPUFuncOp kernel, int64_t threads);

  mlir::ImplicitLocOpBuilder &b;

  Value getBlock() const { return block; }
  Value getThread() const { return thread; }
  /// Among those of all blocks.
  Value getNumber();

  Value number(int64_t value);
  Value constant(mlir::Type type, int64_t value);
  Value add(Value x, Value y);
  Value add(Value x, int64_t y) { return add(x, number(y)); }
  Value sub(Value x, Value y);
  Value mul(Value x, int64_t y);
  Value div(Value x, int64_t y);
  Value rem(Value x, int64_t y);
  Value min(Value x, Value y);
  Value max(Value x, Value y);
  Value both(Value x, Value y);
  Value either(Value x, Value y);
  Value select(Value condition, Value x, Value y);
  /// Of integers of any type; `less` and `lessOrEqual` of signed ones.
  Value equal(Value x, Value y);
  Value less(Value x, Value y);
  Value lessOrEqual(Value x, Value y);
  /// Whether 0 <= x < size, for a signed integer.
  Value isInside(Value x, int64_t size);
  /// Between integers and `index`, signed.
  Value toIndex(Value x);
  Value fromIndex(mlir::Type type, Value x);

  Value load(Value buffer, Value at);
  void store(Value value, Value buffer, Value at);

  void when(Value condition, llvm::function_ref<void()> write);
  /// What `write` gives where the condition holds, else `other`.
  Values when(Value condition, ValueRange other, llvm::function_ref<Values()> write);
  /// From `begin` to before `end`; hands on values.
  Values loop(Value begin, Value end, ValueRange carried,
              llvm::function_ref<Values(Value at, ValueRange carried)> write);
  /// While `holds`, which is asked before each time.
  Values loopWhile(ValueRange carried, llvm::function_ref<Value(ValueRange carried)> holds,
                   llvm::function_ref<Values(ValueRange carried)> write);

  /// How many of the `length` elements from `begin` on are before the first that `isBefore` does not hold for: those
  /// that it holds for are in front. `length` is at most `most`, which is above 0; `size`: the elements that may be
  /// read.
  Value search(Value buffer, Value begin, Value length, int64_t most, int64_t size,
               llvm::function_ref<Value(Value element)> isBefore);

  /// `count` elements of a buffer, in one load of 16 bytes.
  Values loadVector(Value buffer, Value at, int64_t count);
  /// The value that the lane has whose number differs in the bits of `mask`.
  Value fromLane(Value value, int32_t mask);
  /// Of what all lanes have, for each of them.
  Value sumOfWarp(Value value);

  /// What `write` gives for the entry of a table that `at` is in: entry i is from begins[i] on. Found by halves, so
  /// that all entries are in the code.
  Values findEntry(Value at, llvm::ArrayRef<int64_t> begins, mlir::TypeRange types,
                   llvm::function_ref<Values(size_t entry)> write);

  /// Memory of the block; `alignment` in bytes, where elements are accessed several at once.
  Value addShared(int64_t size, mlir::Type element, int64_t alignment = 0);
  void barrier();

private:
  Values findEntry(Value at, llvm::ArrayRef<int64_t> begins, size_t first, size_t count, mlir::TypeRange types,
                   llvm::function_ref<Values(size_t entry)> write);
  Value compare(mlir::arith::CmpIPredicate predicate, Value x, Value y);

  mlir::gpu::GPUFuncOp kernel;
  int64_t threads;
  Value block, thread;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_THREADWRITER_H
