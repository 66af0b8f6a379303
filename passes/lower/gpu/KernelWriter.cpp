//===- KernelWriter.cpp - Writes a gpu.func ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/gpu/KernelWriter.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/gpu/ControlFlow.h"
#include "passes/lower/kernels/RowForm.h"

using namespace mlir;

namespace distc::schedule {
namespace {

/// Whether every number that addresses are made of fits into 31 bits.
bool isSmall(Kernel &kernel) {
  // Threads at the end of the last block count beyond the last element.
  constexpr int64_t limit = (int64_t(1) << 31) - (int64_t(1) << 16);
  for (Type type : kernel.function.getArgumentTypes())
    if (cast<MemRefType>(type).getNumElements() >= limit)
      return false;
  return llvm::all_of(kernel.ops, [&](linalg::LinalgOp op) {
    int64_t iterations = 1;
    for (int64_t size : op.getStaticLoopRanges())
      iterations *= size;
    return iterations < limit;
  });
}

/// Whether some thread reads what another one wrote: behind a barrier, which LLVM does not take for a writer of memory
/// that nothing else is said to point to.
bool isExchanged(Kernel &kernel, Value buffer) {
  if (kernel.hasLoops)
    return true;
  return llvm::any_of(kernel.ops, [&](linalg::LinalgOp op) {
    return op
        ->walk([&](memref::LoadOp load) {
          return getReshaped(load.getMemRef()) == buffer ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

} // namespace

KernelWriter::KernelWriter(Kernel &kernel, gpu::GPUModuleOp module)
    : b(kernel.function.getLoc(), kernel.function.getContext()), kernel(kernel) {
  type = isSmall(kernel) ? Type(b.getI32Type()) : Type(b.getIndexType());
  makeFunction(module);
  cloneConstants();
}

void KernelWriter::makeFunction(gpu::GPUModuleOp module) {
  drt::KernelOp original = kernel.function;
  b.setInsertionPointToEnd(module.getBody());
  function = gpu::GPUFuncOp::create(b, original.getSymName(), original.getFunctionType());
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  llvm::SetVector<Value> written = kernel.getWritten();
  for (BlockArgument argument : original.getArguments()) {
    unsigned at = argument.getArgNumber();
    values.map(argument, function.getArgument(at));
    // Results never share memory with operands: what is only read may go through the read-only cache.
    bool isWritten = written.contains(argument);
    if (!isWritten || !isExchanged(kernel, argument))
      function.setArgAttr(at, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    if (!isWritten)
      function.setArgAttr(at, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
  }
  b.setInsertionPointToStart(&function.getBody().front());
}

void KernelWriter::cloneConstants() {
  for (Operation &op : kernel.function.getBody().front())
    if (op.hasTrait<OpTrait::ConstantLike>() || isa<memref::GetGlobalOp>(op))
      b.clone(op, values);
    else if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(op) && values.contains(op.getOperand(0)))
      b.clone(op, values);
}

void KernelWriter::setLaunch(int64_t blocks, int64_t threads) {
  blocks = std::max<int64_t>(blocks, 1);
  function->setAttr(drt::kGridAttr, b.getDenseI64ArrayAttr({blocks, 1, 1}));
  function->setAttr(drt::kBlockAttr, b.getDenseI64ArrayAttr({threads, 1, 1}));
  function.setKnownBlockSize(SmallVector<int32_t>{static_cast<int32_t>(threads), 1, 1});
  function.setKnownGridSize(SmallVector<int32_t>{static_cast<int32_t>(blocks), 1, 1});
  auto asNumber = [&](Value id) { return type.isIndex() ? id : arith::IndexCastUIOp::create(b, type, id).getResult(); };
  block = blocks == 1 ? number(0) : asNumber(gpu::BlockIdOp::create(b, gpu::Dimension::x));
  thread = asNumber(gpu::ThreadIdOp::create(b, gpu::Dimension::x));
}

void KernelWriter::finish() {
  b.setInsertionPointToEnd(&function.getBody().front());
  gpu::ReturnOp::create(b);
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value KernelWriter::number(int64_t value) { return arith::ConstantOp::create(b, b.getIntegerAttr(type, value)); }

Value KernelWriter::add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }

Value KernelWriter::mul(Value x, int64_t factor) { return b.createOrFold<arith::MulIOp>(x, number(factor)); }

Value KernelWriter::div(Value x, int64_t divisor) { return b.createOrFold<arith::DivUIOp>(x, number(divisor)); }

Value KernelWriter::rem(Value x, int64_t divisor) { return b.createOrFold<arith::RemUIOp>(x, number(divisor)); }

Value KernelWriter::less(Value x, int64_t bound) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, x, number(bound));
}

Value KernelWriter::equal(Value x, int64_t value) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, number(value));
}

Value KernelWriter::both(Value condition, Value other) {
  return condition ? b.createOrFold<arith::AndIOp>(condition, other) : other;
}

Value KernelWriter::select(Value condition, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(condition, x, y);
}

Value KernelWriter::toIndex(Value x) {
  return x.getType().isIndex() ? x : b.createOrFold<arith::IndexCastUIOp>(b.getIndexType(), x);
}

KernelWriter::Values KernelWriter::delinearize(Value linear, ArrayRef<int64_t> sizes) {
  Values positions(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    positions[i] = i == 0 ? linear : rem(linear, sizes[i]);
    if (i != 0)
      linear = div(linear, sizes[i]);
  }
  return positions;
}

KernelWriter::Values KernelWriter::delinearize(Value linear, ArrayRef<Loop> loops) {
  return delinearize(linear, llvm::map_to_vector(loops, [](const Loop &loop) { return loop.size; }));
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void KernelWriter::when(Value condition, llvm::function_ref<void()> write) {
  if (!condition || matchPattern(condition, m_One()))
    return write();
  schedule::writeIf(b, condition, write);
}

KernelWriter::Values KernelWriter::loop(Value begin, Value end, int64_t step, ValueRange carried,
                                        llvm::function_ref<Values(Value, ValueRange)> write) {
  return schedule::writeLoop(b, begin, end, number(step), carried, write);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value KernelWriter::address(const IterationSpace &space, unsigned operand, const Point &point) {
  Value sum = number(space.offsets[operand]);
  for (auto [loops, positions] :
       {std::pair(&space.parallel, &point.parallel), std::pair(&space.reduction, &point.reduction)})
    for (auto [loop, position] : llvm::zip(*loops, *positions))
      if (loop.strides[operand] != 0)
        sum = add(sum, mul(position, loop.strides[operand]));
  return sum;
}

KernelWriter::Values KernelWriter::getIndices(linalg::LinalgOp op, OpOperand &operand, ValueRange positions) {
  Values loops = llvm::map_to_vector(positions, [&](Value position) { return toIndex(position); });
  auto indices = affine::expandAffineMap(b, b.getLoc(), op.getMatchingIndexingMap(&operand), loops);
  return Values(indices->begin(), indices->end());
}

Value KernelWriter::getLine(Value buffer) {
  Value &line = lines[buffer];
  if (line)
    return line;
  OpBuilder::InsertionGuard guard(b);
  Value known = lookup(buffer);
  if (Operation *definition = known.getDefiningOp())
    b.setInsertionPointAfter(definition);
  else
    b.setInsertionPointToStart(&function.getBody().front());
  auto bufferType = cast<MemRefType>(known.getType());
  if (bufferType.getRank() == 1)
    return line = known;
  auto flat = MemRefType::get({bufferType.getNumElements()}, bufferType.getElementType(), MemRefLayoutAttrInterface(),
                              bufferType.getMemorySpace());
  return line = memref::ReinterpretCastOp::create(b, flat, known, /*offset=*/0, flat.getShape(), ArrayRef<int64_t>{1});
}

Value KernelWriter::load(linalg::LinalgOp op, unsigned operand, Value address) {
  Value buffer = op->getOperand(operand);
  if (!isa<MemRefType>(buffer.getType()))
    return lookup(buffer);
  return memref::LoadOp::create(b, getLine(buffer), toIndex(address));
}

void KernelWriter::store(linalg::LinalgOp op, unsigned result, Value element, Value address) {
  memref::StoreOp::create(b, element, getLine(op.getDpsInits()[result]), toIndex(address));
}

Point KernelWriter::getLane(Point point, const Lanes &lanes, int64_t lane) {
  Value &position = (lanes.alongReduction ? point.reduction : point.parallel)[lanes.loop];
  position = add(position, number(lane));
  return point;
}

/// The step of the operand along the lanes.
static int64_t getStride(const IterationSpace &space, unsigned operand, const Lanes &lanes) {
  return (lanes.alongReduction ? space.reduction : space.parallel)[lanes.loop].strides[operand];
}

/// Whether vectors of the operand are contiguous and begin at multiples of their size. Elements of one bit lie in a
/// byte each, but in a vector's memory side by side.
static bool isVector(const IterationSpace &space, unsigned operand, const Lanes &lanes, Type element) {
  if (lanes.count == 1 || element.getIntOrFloatBitWidth() < 8 || getStride(space, operand, lanes) != 1 ||
      space.offsets[operand] % lanes.count != 0)
    return false;
  unsigned ofLanes = 0; // loops that lead from one lane to the next, and no further
  for (const Loop &loop : llvm::concat<const Loop>(space.parallel, space.reduction))
    if (loop.strides[operand] % lanes.count != 0)
      ++ofLanes;
  return ofLanes == 1;
}

static llvm::MaybeAlign getVectorAlignment(VectorType type) {
  return llvm::MaybeAlign(type.getNumElements() * type.getElementTypeBitWidth() / 8);
}

KernelWriter::Values KernelWriter::loadVector(Value line, Value address, int64_t count) {
  auto vectorType = VectorType::get(count, cast<MemRefType>(line.getType()).getElementType());
  Value vector = vector::LoadOp::create(b, vectorType, line, toIndex(address), /*nontemporal=*/false,
                                        getVectorAlignment(vectorType));
  return llvm::map_to_vector(llvm::seq<int64_t>(0, count),
                             [&](int64_t lane) -> Value { return vector::ExtractOp::create(b, vector, lane); });
}

void KernelWriter::storeVector(Value line, ValueRange elements, Value address) {
  auto vectorType = VectorType::get(elements.size(), elements.front().getType());
  Value vector = vector::FromElementsOp::create(b, vectorType, elements);
  vector::StoreOp::create(b, vector, line, toIndex(address), /*nontemporal=*/false, getVectorAlignment(vectorType));
}

KernelWriter::Values KernelWriter::loadLanes(linalg::LinalgOp op, const IterationSpace &space, unsigned operand,
                                             const Point &point, const Lanes &lanes) {
  Value buffer = op->getOperand(operand);
  if (getStride(space, operand, lanes) == 0)
    return Values(lanes.count, load(op, operand, address(space, operand, point)));
  if (isVector(space, operand, lanes, getElementTypeOrSelf(buffer)))
    return loadVector(getLine(buffer), address(space, operand, point), lanes.count);
  return llvm::map_to_vector(llvm::seq<int64_t>(0, lanes.count), [&](int64_t lane) {
    return load(op, operand, address(space, operand, getLane(point, lanes, lane)));
  });
}

void KernelWriter::storeLanes(linalg::LinalgOp op, const IterationSpace &space, unsigned result, ValueRange elements,
                              const Point &point, const Lanes &lanes) {
  unsigned operand = op.getNumDpsInputs() + result;
  if (isVector(space, operand, lanes, elements.front().getType()))
    return storeVector(getLine(op->getOperand(operand)), elements, address(space, operand, point));
  for (auto [lane, element] : llvm::enumerate(elements))
    store(op, result, element, address(space, operand, getLane(point, lanes, lane)));
}

Value KernelWriter::loadInitial(linalg::LinalgOp op, unsigned result, Value address) {
  if (Value fill = kernel.initial.lookup(op.getDpsInits()[result]))
    return lookup(fill);
  return load(op, op.getNumDpsInputs() + result, address);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

KernelWriter::Values KernelWriter::writeBody(linalg::LinalgOp op, ValueRange elements,
                                             llvm::function_ref<Value(unsigned)> position) {
  Block &body = op->getRegion(0).front();
  IRMapping mapping(values);
  mapping.map(body.getArguments(), elements);
  for (Operation &inner : body.without_terminator()) {
    Operation *copy = b.clone(inner, mapping);
    auto replace = [&](Operation *nested, Value value) {
      nested->getResult(0).replaceAllUsesWith(value);
      if (copy == nested)
        mapping.map(inner.getResult(0), value);
      nested->erase();
    };
    copy->walk([&](Operation *nested) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(nested);
      if (auto index = dyn_cast<linalg::IndexOp>(nested))
        replace(nested, toIndex(position(index.getDim())));
      else if (auto load = dyn_cast<memref::LoadOp>(nested); load && readElsewhere)
        if (Value element = readElsewhere(load))
          replace(nested, element);
    });
  }
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value yielded) { return mapping.lookupOrDefault(yielded); });
}

KernelWriter::Values KernelWriter::writeBody(linalg::LinalgOp op, const IterationSpace &space, ValueRange elements,
                                             const Point &point) {
  return writeBody(op, elements, [&](unsigned dim) { return getPosition(op, space, point, dim); });
}

Value KernelWriter::getPosition(linalg::LinalgOp op, const IterationSpace &space, const Point &point, unsigned dim) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto find = [&](ArrayRef<Loop> loops, ArrayRef<Value> positions) -> Value {
    for (auto [loop, position] : llvm::zip(loops, positions)) {
      auto found = llvm::find(loop.dims, dim);
      if (found == loop.dims.end())
        continue;
      int64_t inner = 1;
      for (auto it = std::next(found); it != loop.dims.end(); ++it)
        inner *= sizes[*it];
      Value at = div(position, inner);
      return found == loop.dims.begin() ? at : rem(at, sizes[dim]);
    }
    return {};
  };
  if (Value found = find(space.parallel, point.parallel))
    return found;
  if (Value found = find(space.reduction, point.reduction))
    return found;
  return number(0); // a loop of one iteration
}

//===----------------------------------------------------------------------===//
// Exchange between threads
//===----------------------------------------------------------------------===//

Value KernelWriter::addShared(ArrayRef<int64_t> shape, Type element) {
  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  auto shared = MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space);
  return function.addWorkgroupAttribution(shared, b.getLoc());
}

void KernelWriter::barrier() { gpu::BarrierOp::create(b); }

Value KernelWriter::shuffleXor(Value value, int64_t mask) {
  Type element = value.getType();
  unsigned width = element.getIntOrFloatBitWidth();
  // Lanes exchange 32 or 64 bits.
  Value wide = value;
  if (width < 32)
    wide = isa<FloatType>(element) ? arith::ExtFOp::create(b, b.getF32Type(), value).getResult()
                                   : arith::ExtUIOp::create(b, b.getI32Type(), value).getResult();
  Value other =
      gpu::ShuffleOp::create(b, wide, static_cast<int32_t>(mask), static_cast<int32_t>(kWarp), gpu::ShuffleMode::XOR)
          .getShuffleResult();
  if (width >= 32)
    return other;
  return isa<FloatType>(element) ? arith::TruncFOp::create(b, element, other).getResult()
                                 : arith::TruncIOp::create(b, element, other).getResult();
}

} // namespace distc::schedule
