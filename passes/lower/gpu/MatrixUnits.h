//===- MatrixUnits.h - Products by the matrix units of a warp --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// mma.sync.m16n8k16 of bfloat16, added up in float32 (PTX ISA, "Matrix fragments for mma.m16n8k16"). A warp has
// 16 rows of the result. With g = lane / 4 and p = lane % 4 * 2 a lane holds
//   of the left matrix [16, 16]:   rows g, g + 8, g, g + 8 at columns p, p, p + 8, p + 8, each with the next column;
//   of the right matrix [16, 8]:   rows p and p + 8, each with the next row, at column g;
//   of the result [16, 8]:         row g at p and p + 1, row g + 8 at p and p + 1.
// So what a result holds is, rounded, the left matrix of another product.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_MATRIXUNITS_H
#define DISTC_PASSES_LOWER_GPU_MATRIXUNITS_H

#include "passes/lower/gpu/ThreadWriter.h"
#include <array>

namespace distc {

/// Rows of bfloat16 in the block's memory, `pitch` elements apart, so that the lanes of a warp meet no bank twice.
struct SharedRows {
  mlir::Value buffer;
  int64_t size, pitch;
};

class MatrixUnits {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<mlir::Value>;
  /// Pairs of a left matrix, as i32.
  using Left = std::array<Value, 4>;
  using Result = std::array<Value, 4>;

  /// `lane` of the warp.
  MatrixUnits(ThreadWriter &writer, Value lane);

  /// g and p.
  Value getGroup() const { return group; }
  Value getPair() const { return pair; }

  /// `rows` rows of `size` elements, a multiple of 16.
  SharedRows addRows(int64_t rows, int64_t size);

  /// A pair of neighbours of a buffer of bfloat16, the first at an even place.
  Value loadPair(Value buffer, Value at);
  void storePair(Value first, Value second, Value buffer, Value at);
  /// Two float32, rounded.
  Value pack(Value first, Value second);
  /// As float32.
  std::array<Value, 2> unpack(Value pair);

  /// Left x the transpose of 8 rows from `row` on, of whose elements `columns` holds 16 each.
  Result multiplyRows(llvm::ArrayRef<Left> columns, const SharedRows &rows, Value row);
  /// Adds left x 16 rows from `row` on to `sums`, a result for each 8 of their columns.
  void addProducts(llvm::MutableArrayRef<Value> sums, const Left &left, const SharedRows &rows, Value row);

  /// Over the four lanes that hold a row of a result.
  Value sumOfRow(Value value);
  Value maximumOfRow(Value value);

  Value number(double value);
  ThreadWriter &w;
  mlir::ImplicitLocOpBuilder &b;

private:
  static constexpr int64_t kDepth = 16, kColumns = 8; // of one product

  Result multiply(const Left &left, std::array<Value, 2> right, const Result &added);
  Value join(Value first, Value second);

  Value group, pair;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_MATRIXUNITS_H
