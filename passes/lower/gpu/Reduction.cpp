//===- Reduction.cpp - Partial results and how they are joined -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/gpu/Reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace distc::schedule {

std::optional<Reduction> Reduction::match(linalg::LinalgOp op) {
  Reduction reduction;
  Block &body = op->getRegion(0).front();
  for (OpOperand &result : op.getDpsInitsMutable())
    if (!isReduced(op, result))
      return std::nullopt;
  for (auto [accumulator, yielded] : llvm::zip(op.getRegionOutputArgs(), body.getTerminator()->getOperands())) {
    Operation *join = yielded.getDefiningOp();
    if (!join || join->getBlock() != &body || join->getNumOperands() != 2 || !arith::getNeutralElement(join) ||
        !accumulator.hasOneUse() || *accumulator.user_begin() != join || !yielded.hasOneUse())
      return std::nullopt;
    reduction.joins.push_back(join);
  }
  return reduction;
}

Reduction::Values Reduction::getIdentities(KernelWriter &w) const {
  return llvm::map_to_vector(
      joins, [&](Operation *join) -> Value { return arith::ConstantOp::create(w.b, *arith::getNeutralElement(join)); });
}

Reduction::Values Reduction::join(KernelWriter &w, ValueRange x, ValueRange y) const {
  Values joined;
  for (unsigned result = 0; result < joins.size(); ++result)
    joined.push_back(join(w, result, x[result], y[result]));
  return joined;
}

Value Reduction::join(KernelWriter &w, unsigned result, Value x, Value y) const {
  Operation *copy = w.b.clone(*joins[result]);
  copy->setOperands({x, y});
  return copy->getResult(0);
}

Reduction::Values Reduction::joinLanes(KernelWriter &w, Values partial, int64_t lanes) const {
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2) {
    Values others = llvm::map_to_vector(partial, [&](Value value) { return w.shuffleXor(value, mask); });
    partial = join(w, partial, others);
  }
  return partial;
}

Reduction::Values Reduction::joinGroups(KernelWriter &w, Values partial, int64_t size, int64_t threads) const {
  int64_t warps = size / kWarp;
  partial = joinLanes(w, partial, kWarp);
  if (warps == 1)
    return partial;
  Value warp = w.toIndex(w.div(w.getThread(), kWarp)), lane = w.rem(w.getThread(), kWarp);
  Values shared =
      llvm::map_to_vector(partial, [&](Value value) { return w.addShared({threads / kWarp}, value.getType()); });
  w.when(w.equal(lane, 0), [&] {
    for (auto [memory, value] : llvm::zip(shared, partial))
      memref::StoreOp::create(w.b, value, memory, warp);
  });
  w.barrier();
  // Every warp of a group does the same: all threads have the result without another exchange.
  Value other = w.rem(lane, warps);
  if (size != threads)
    other = w.add(w.mul(w.div(w.getThread(), size), warps), other);
  other = w.toIndex(other);
  Values ofWarps =
      llvm::map_to_vector(shared, [&](Value memory) -> Value { return memref::LoadOp::create(w.b, memory, other); });
  return joinLanes(w, ofWarps, warps);
}

SmallVector<KernelWriter::Values> loadInputs(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &space,
                                             const Point &point, const Lanes &lanes) {
  SmallVector<KernelWriter::Values> inputs(lanes.count);
  for (unsigned operand = 0; operand < op.getNumDpsInputs(); ++operand)
    for (auto [elements, element] : llvm::zip(inputs, w.loadLanes(op, space, operand, point, lanes)))
      elements.push_back(element);
  return inputs;
}

KernelWriter::Values accumulate(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &space, const Point &point,
                                const Lanes &lanes, ValueRange partial) {
  KernelWriter::Values sums(partial);
  for (auto [lane, elements] : llvm::enumerate(loadInputs(w, op, space, point, lanes))) {
    llvm::append_range(elements, sums);
    sums = w.writeBody(op, space, elements, w.getLane(point, lanes, lane));
  }
  return sums;
}

KernelWriter::Values accumulateLanes(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &space,
                                     const Point &point, const Lanes &lanes,
                                     MutableArrayRef<KernelWriter::Values> inputs, ValueRange partial) {
  KernelWriter::Values sums;
  for (auto [lane, elements] : llvm::enumerate(inputs)) {
    llvm::append_range(elements, partial.slice(lane * op.getNumDpsInits(), op.getNumDpsInits()));
    llvm::append_range(sums, w.writeBody(op, space, elements, w.getLane(point, lanes, lane)));
  }
  return sums;
}

void storeReduced(KernelWriter &w, const Reduction &reduction, linalg::LinalgOp op, const IterationSpace &space,
                  const Point &point, ValueRange partial) {
  KernelWriter::Values addresses, initial;
  for (unsigned result = 0; result < op.getNumDpsInits(); ++result) {
    addresses.push_back(w.address(space, op.getNumDpsInputs() + result, {point.parallel, {}}));
    initial.push_back(w.loadInitial(op, result, addresses.back()));
  }
  KernelWriter::Values values = reduction.join(w, initial, partial);
  for (auto [result, value] : llvm::enumerate(values))
    w.store(op, result, value, addresses[result]);
}

OpOperand *getLargestInput(linalg::LinalgOp op) {
  OpOperand *largest = nullptr;
  int64_t most = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    if (auto type = dyn_cast<ShapedType>(input->get().getType());
        type && type.hasStaticShape() && type.getNumElements() > most) {
      largest = input;
      most = type.getNumElements();
    }
  return largest;
}

bool readsRows(linalg::LinalgOp op, const IterationSpace &space) {
  OpOperand *input = getLargestInput(op);
  if (!input)
    return true;
  auto getStep = [operand = input->getOperandNumber()](ArrayRef<Loop> loops) {
    int64_t step = INT64_MAX;
    for (const Loop &loop : loops)
      if (loop.strides[operand] != 0)
        step = std::min(step, std::abs(loop.strides[operand]));
    return step;
  };
  return getStep(space.reduction) <= getStep(space.parallel);
}

} // namespace distc::schedule
