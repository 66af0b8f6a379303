//===- IterationSpace.cpp - How a linalg operation walks its buffers ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/gpu/IterationSpace.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"

using namespace mlir;

namespace distc::schedule {
namespace {

bool walkAlike(const Loop &outer, const Loop &inner) {
  return llvm::all_of(llvm::zip(outer.strides, inner.strides),
                      [&](auto strides) { return std::get<0>(strides) == std::get<1>(strides) * inner.size; });
}

/// Joins neighbours that all operands walk alike.
void collapse(SmallVector<Loop> &loops) {
  SmallVector<Loop> joined;
  for (Loop &loop : loops) {
    if (joined.empty() || !walkAlike(joined.back(), loop)) {
      joined.push_back(loop);
      continue;
    }
    Loop &outer = joined.back();
    outer.size *= loop.size;
    outer.dims.append(loop.dims);
    outer.strides = loop.strides;
  }
  loops = joined;
}

} // namespace

FailureOr<SmallVector<int64_t>> getLinearAddress(AffineMap map, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> address(map.getNumDims() + 1, 0);
  for (auto [result, stride] : llvm::zip(map.getResults(), strides)) {
    SmallVector<int64_t> coefficients;
    if (failed(getFlattenedAffineExpr(result, map.getNumDims(), 0, &coefficients)) ||
        coefficients.size() != address.size()) // divisions and remainders add to them
      return failure();
    for (auto [sum, coefficient] : llvm::zip(address, coefficients))
      sum += coefficient * stride;
  }
  return address;
}

SmallVector<int64_t> getStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t axis = static_cast<int64_t>(shape.size()) - 2; axis >= 0; --axis)
    strides[axis] = strides[axis + 1] * shape[axis + 1];
  return strides;
}

int64_t IterationSpace::getSize(ArrayRef<Loop> loops) {
  int64_t size = 1;
  for (const Loop &loop : loops)
    size *= loop.size;
  return size;
}

FailureOr<IterationSpace> IterationSpace::get(linalg::LinalgOp op) {
  SmallVector<SmallVector<int64_t>> addresses;
  IterationSpace space;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    FailureOr<SmallVector<int64_t>> address = SmallVector<int64_t>(op.getNumLoops() + 1, 0); // a scalar
    if (type)
      address = getLinearAddress(op.getMatchingIndexingMap(&operand), getStrides(type.getShape()));
    if (failed(address))
      return failure();
    space.offsets.push_back(address->back());
    addresses.push_back(*address);
  }
  for (auto [dim, size] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (size == 1)
      continue;
    Loop loop{size, {static_cast<unsigned>(dim)}, {}};
    for (ArrayRef<int64_t> address : addresses)
      loop.strides.push_back(address[dim]);
    bool isParallel = op.getIteratorTypesArray()[dim] == utils::IteratorType::parallel;
    (isParallel ? space.parallel : space.reduction).push_back(loop);
  }
  unsigned result = op.getNumDpsInputs();
  llvm::stable_sort(space.parallel,
                    [&](const Loop &x, const Loop &y) { return x.strides[result] > y.strides[result]; });
  collapse(space.parallel);
  collapse(space.reduction);
  return space;
}

} // namespace distc::schedule
