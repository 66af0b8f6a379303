//===- ThreadWriter.cpp - Writes what a thread of a kernel does ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/ThreadWriter.h"
#include "passes/lower/gpu/ControlFlow.h"
#include "passes/lower/gpu/DeviceKernel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

ThreadWriter::ThreadWriter(ImplicitLocOpBuilder &builder, gpu::GPUFuncOp kernel, int64_t threads)
    : b(builder), kernel(kernel), threads(threads), block(gpu::BlockIdOp::create(b, gpu::Dimension::x)),
      thread(gpu::ThreadIdOp::create(b, gpu::Dimension::x)) {}

Value ThreadWriter::getNumber() { return add(mul(block, threads), thread); }

Value ThreadWriter::number(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
Value ThreadWriter::constant(Type type, int64_t value) {
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}
Value ThreadWriter::add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
Value ThreadWriter::sub(Value x, Value y) { return b.createOrFold<arith::SubIOp>(x, y); }
Value ThreadWriter::mul(Value x, int64_t y) { return b.createOrFold<arith::MulIOp>(x, number(y)); }
Value ThreadWriter::div(Value x, int64_t y) { return b.createOrFold<arith::DivUIOp>(x, number(y)); }
Value ThreadWriter::rem(Value x, int64_t y) { return b.createOrFold<arith::RemUIOp>(x, number(y)); }
Value ThreadWriter::min(Value x, Value y) { return b.createOrFold<arith::MinUIOp>(x, y); }
Value ThreadWriter::max(Value x, Value y) { return b.createOrFold<arith::MaxUIOp>(x, y); }
Value ThreadWriter::both(Value x, Value y) { return b.createOrFold<arith::AndIOp>(x, y); }
Value ThreadWriter::either(Value x, Value y) { return b.createOrFold<arith::OrIOp>(x, y); }
Value ThreadWriter::select(Value condition, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(condition, x, y);
}

Value ThreadWriter::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(predicate, x, y);
}
Value ThreadWriter::equal(Value x, Value y) { return compare(arith::CmpIPredicate::eq, x, y); }
Value ThreadWriter::less(Value x, Value y) { return compare(arith::CmpIPredicate::slt, x, y); }
Value ThreadWriter::lessOrEqual(Value x, Value y) { return compare(arith::CmpIPredicate::sle, x, y); }

Value ThreadWriter::isInside(Value x, int64_t size) {
  Value wide = toIndex(x);
  return compare(arith::CmpIPredicate::ult, wide, number(size));
}

Value ThreadWriter::toIndex(Value x) {
  return x.getType().isIndex() ? x : b.createOrFold<arith::IndexCastOp>(b.getIndexType(), x);
}
Value ThreadWriter::fromIndex(Type type, Value x) {
  return type.isIndex() ? x : b.createOrFold<arith::IndexCastOp>(type, x);
}

Value ThreadWriter::load(Value buffer, Value at) { return memref::LoadOp::create(b, buffer, ValueRange{at}); }
void ThreadWriter::store(Value value, Value buffer, Value at) {
  memref::StoreOp::create(b, value, buffer, ValueRange{at});
}

void ThreadWriter::when(Value condition, llvm::function_ref<void()> write) { schedule::writeIf(b, condition, write); }

ThreadWriter::Values ThreadWriter::when(Value condition, ValueRange other, llvm::function_ref<Values()> write) {
  auto branch = scf::IfOp::create(b, other.getTypes(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, write());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, other);
  return llvm::to_vector(ValueRange(branch.getResults()));
}

ThreadWriter::Values ThreadWriter::loop(Value begin, Value end, ValueRange carried,
                                        llvm::function_ref<Values(Value, ValueRange)> write) {
  return schedule::writeLoop(b, begin, end, number(1), carried, write);
}

ThreadWriter::Values ThreadWriter::loopWhile(ValueRange carried, llvm::function_ref<Value(ValueRange)> holds,
                                             llvm::function_ref<Values(ValueRange)> write) {
  auto loop = scf::WhileOp::create(
      b, carried.getTypes(), carried,
      [&](OpBuilder &, Location, ValueRange now) { scf::ConditionOp::create(b, holds(now), now); },
      [&](OpBuilder &, Location, ValueRange now) { scf::YieldOp::create(b, write(now)); });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

Value ThreadWriter::search(Value buffer, Value begin, Value length, int64_t most, int64_t size,
                           llvm::function_ref<Value(Value)> isBefore) {
  Value found = number(0), last = number(size - 1);
  for (auto step = static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(most))); step > 0; step /= 2) {
    Value next = add(found, step);
    // What lies behind the end is not looked at; the load reads something else then.
    Value element = load(buffer, min(add(begin, sub(next, number(1))), last));
    found = select(both(compare(arith::CmpIPredicate::ule, next, length), isBefore(element)), next, found);
  }
  return found;
}

ThreadWriter::Values ThreadWriter::loadVector(Value buffer, Value at, int64_t count) {
  const auto type = VectorType::get({count}, getElementTypeOrSelf(buffer));
  auto loaded = vector::LoadOp::create(b, type, buffer, ValueRange{at});
  loaded.setAlignment(kVectorBytes);
  Values elements;
  for (int64_t i = 0; i < count; ++i)
    elements.push_back(vector::ExtractOp::create(b, loaded, i));
  return elements;
}

constexpr int32_t kLanesOfWarp = 32;

Value ThreadWriter::fromLane(Value value, int32_t mask) {
  return gpu::ShuffleOp::create(b, value, mask, kLanesOfWarp, gpu::ShuffleMode::XOR).getShuffleResult();
}

Value ThreadWriter::sumOfWarp(Value value) {
  for (int32_t mask = kLanesOfWarp / 2; mask > 0; mask /= 2)
    value = arith::AddFOp::create(b, value, fromLane(value, mask));
  return value;
}

ThreadWriter::Values ThreadWriter::findEntry(Value at, ArrayRef<int64_t> begins, TypeRange types,
                                             llvm::function_ref<Values(size_t)> write) {
  return findEntry(at, begins, 0, begins.size(), types, write);
}

ThreadWriter::Values ThreadWriter::findEntry(Value at, ArrayRef<int64_t> begins, size_t first, size_t count,
                                             TypeRange types, llvm::function_ref<Values(size_t)> write) {
  if (count == 1)
    return write(first);
  const size_t half = count / 2;
  auto branch = scf::IfOp::create(b, types, less(at, number(begins[first + half])), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, findEntry(at, begins, first, half, types, write));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, findEntry(at, begins, first + half, count - half, types, write));
  return llvm::to_vector(ValueRange(branch.getResults()));
}

Value ThreadWriter::addShared(int64_t size, Type element, int64_t alignment) {
  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  Value memory =
      kernel.addWorkgroupAttribution(MemRefType::get({size}, element, MemRefLayoutAttrInterface(), space), b.getLoc());
  if (alignment)
    kernel.setWorkgroupAttributionAttr(static_cast<int>(kernel.getNumWorkgroupAttributions()) - 1,
                                       LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(alignment));
  return memory;
}

void ThreadWriter::barrier() { gpu::BarrierOp::create(b); }

} // namespace distc
