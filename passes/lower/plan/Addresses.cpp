//===- Addresses.cpp - Where a tensor of an entry lies ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/Addresses.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/plan/ArenaPacking.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

bool isPlaced(Operation *op) { return op->hasTrait<drt::Placed>(); }

Value getStorage(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!drt::isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

int64_t getElementBytes(Type element) { return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8); }

int64_t getTensorBytes(RankedTensorType type) { return type.getNumElements() * getElementBytes(type.getElementType()); }

int64_t countElements(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getNumElements(); }

SmallVector<drt::EntryOp> getEntries(ModuleOp module) { return llvm::to_vector(module.getOps<drt::EntryOp>()); }

SmallVector<int64_t> getMemberOffsets(drt::AllReduceStartOp bucket) {
  SmallVector<int64_t> offsets;
  int64_t next = 0;
  // Joined rows have no gaps between them; they lie behind the replica's own.
  if (bucket.getGather()) {
    int64_t own = getTensorBytes(cast<RankedTensorType>(bucket.getGradients().front().getType()));
    return {0, static_cast<int64_t>(llvm::alignTo(own, kPlaceAlignment) + bucket.getGather() * own)};
  }
  for (auto [member, gradient] : llvm::enumerate(bucket.getGradients())) {
    auto type = cast<RankedTensorType>(gradient.getType());
    int64_t elements = bucket.getRoom() ? (*bucket.getRoom())[member] : type.getNumElements();
    offsets.push_back(next);
    next += llvm::alignTo(elements * getElementBytes(type.getElementType()), kPlaceAlignment);
  }
  offsets.push_back(next);
  return offsets;
}

} // namespace distc
