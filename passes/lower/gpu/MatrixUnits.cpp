//===- MatrixUnits.cpp - Products by the matrix units of a warp ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/MatrixUnits.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace distc {

/// Elements behind each row of the block's memory.
static constexpr int64_t kPadding = 8;

MatrixUnits::MatrixUnits(ThreadWriter &writer, Value lane)
    : w(writer), b(writer.b), group(writer.div(lane, 4)), pair(writer.mul(writer.rem(lane, 4), 2)) {}

Value MatrixUnits::number(double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(static_cast<float>(value)));
}

SharedRows MatrixUnits::addRows(int64_t rows, int64_t size) {
  const int64_t pitch = size + kPadding;
  return {w.addShared(rows * pitch, b.getBF16Type(), /*alignment=*/16), size, pitch};
}

Value MatrixUnits::join(Value first, Value second) {
  Value both = vector::FromElementsOp::create(b, VectorType::get({2}, b.getBF16Type()), ValueRange{first, second});
  Value word = vector::BitCastOp::create(b, VectorType::get({1}, b.getI32Type()), both);
  return vector::ExtractOp::create(b, word, 0);
}

Value MatrixUnits::loadPair(Value buffer, Value at) {
  auto loaded = vector::LoadOp::create(b, VectorType::get({2}, b.getBF16Type()), buffer, ValueRange{at});
  loaded.setAlignment(4);
  Value word = vector::BitCastOp::create(b, VectorType::get({1}, b.getI32Type()), loaded);
  return vector::ExtractOp::create(b, word, 0);
}

void MatrixUnits::storePair(Value first, Value second, Value buffer, Value at) {
  Value elements[] = {arith::TruncFOp::create(b, b.getBF16Type(), first),
                      arith::TruncFOp::create(b, b.getBF16Type(), second)};
  Value both = vector::FromElementsOp::create(b, VectorType::get({2}, b.getBF16Type()), elements);
  auto stored = vector::StoreOp::create(b, both, buffer, ValueRange{at});
  stored.setAlignment(4);
}

Value MatrixUnits::pack(Value first, Value second) {
  return join(arith::TruncFOp::create(b, b.getBF16Type(), first), arith::TruncFOp::create(b, b.getBF16Type(), second));
}

std::array<Value, 2> MatrixUnits::unpack(Value pair) {
  // A bfloat16 is the upper half of a float32.
  Value lower = arith::ShLIOp::create(b, pair, w.constant(b.getI32Type(), 16));
  Value upper = arith::AndIOp::create(b, pair, w.constant(b.getI32Type(), -65536));
  return {arith::BitcastOp::create(b, b.getF32Type(), lower), arith::BitcastOp::create(b, b.getF32Type(), upper)};
}

MatrixUnits::Result MatrixUnits::multiply(const Left &left, std::array<Value, 2> right, const Result &added) {
  using namespace NVVM;
  const Type type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  Value product = MmaOp::create(b, type, ValueRange(left), ValueRange(right), ValueRange(added),
                                ArrayRef<int64_t>{16, kColumns, kDepth}, std::nullopt, std::nullopt,
                                std::array{MMATypes::bf16, MMATypes::bf16}, std::array{MMALayout::row, MMALayout::col});
  Result result;
  for (int64_t i = 0; i < 4; ++i)
    result[i] = LLVM::ExtractValueOp::create(b, product, i);
  return result;
}

MatrixUnits::Result MatrixUnits::multiplyRows(ArrayRef<Left> columns, const SharedRows &rows, Value row) {
  const Value zero = number(0);
  Result sum = {zero, zero, zero, zero};
  const Value begin = w.add(w.mul(w.add(row, group), rows.pitch), pair);
  for (auto [i, left] : llvm::enumerate(columns)) {
    const auto at = static_cast<int64_t>(i) * kDepth;
    sum = multiply(left, {loadPair(rows.buffer, w.add(begin, at)), loadPair(rows.buffer, w.add(begin, at + 8))}, sum);
  }
  return sum;
}

void MatrixUnits::addProducts(MutableArrayRef<Value> sums, const Left &left, const SharedRows &rows, Value row) {
  const Value begin = w.add(w.mul(w.add(row, pair), rows.pitch), group);
  for (int64_t column = 0; column < rows.size; column += kColumns) {
    auto element = [&](int64_t down) { return w.load(rows.buffer, w.add(begin, down * rows.pitch + column)); };
    MutableArrayRef<Value> sum = sums.slice(column / kColumns * 4, 4);
    const Result result =
        multiply(left, {join(element(0), element(1)), join(element(8), element(9))}, {sum[0], sum[1], sum[2], sum[3]});
    llvm::copy(result, sum.begin());
  }
}

Value MatrixUnits::sumOfRow(Value value) {
  for (int32_t mask : {1, 2})
    value = arith::AddFOp::create(b, value, w.fromLane(value, mask));
  return value;
}

Value MatrixUnits::maximumOfRow(Value value) {
  for (int32_t mask : {1, 2})
    value = arith::MaximumFOp::create(b, value, w.fromLane(value, mask));
  return value;
}

} // namespace distc
