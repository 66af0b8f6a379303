//===- Access.cpp - How replicas share the memory of a plan ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"

using namespace mlir;

namespace distc::drt {

static Access read(Value tensor, Extent extent = {}) { return {.extent = extent, .tensor = tensor}; }

SmallVector<Access> readWhole(ValueRange operands) {
  SmallVector<Access> accesses;
  for (Value operand : operands)
    if (isa<TensorType>(operand.getType()))
      accesses.push_back(read(operand));
  return accesses;
}

/// Of a range kernel that works on `extent` of `count` elements: it reads and writes that of the variables, and reads
/// that of arguments with an element for each of theirs. Other arguments have one element, which every replica reads.
static SmallVector<Access> ofRangeKernel(ArrayAttr variables, ValueRange arguments, int64_t count, Extent extent) {
  SmallVector<Access> accesses;
  for (auto variable : variables.getAsRange<FlatSymbolRefAttr>()) {
    accesses.push_back({.extent = extent, .variable = variable});
    accesses.push_back({.writes = true, .extent = extent, .variable = variable});
  }
  for (Value argument : arguments) {
    const bool each = cast<RankedTensorType>(argument.getType()).getNumElements() == count;
    accesses.push_back(read(argument, each ? extent : Extent()));
  }
  return accesses;
}

SmallVector<Access> ReadOp::getAccesses() { return {}; } // an address; who uses it accesses it

/// Of drt.matmul and drt.matmul_packed, whose first operand is the left one.
static SmallVector<Access> ofMatmul(ValueRange operands, Value result, bool joined) {
  SmallVector<Access> accesses = readWhole(operands);
  if (joined) {
    accesses[0].ofOthers = true;
    const int64_t columns = cast<RankedTensorType>(result.getType()).getShape().back();
    accesses.push_back({.writes = true, .extent = {Extent::Matmul, columns}, .tensor = result, .ofOthers = true});
  }
  return accesses;
}

SmallVector<Access> MatmulOp::getAccesses() { return ofMatmul(getOperands(), getResult(), getJoined()); }
bool MatmulOp::meetsBefore() { return getJoined(); }
bool MatmulOp::meetsAfter() { return getJoined(); }

SmallVector<Access> MatmulPackedOp::getAccesses() { return ofMatmul(getOperands(), getResult(), getJoined()); }
bool MatmulPackedOp::meetsBefore() { return getJoined(); }
bool MatmulPackedOp::meetsAfter() { return getJoined(); }

// What is reduced lies in the bucket from here on: reading it as a tensor is over.
SmallVector<Access> AllReduceStartOp::getAccesses() { return readWhole(getGradients()); }

// The other tasks' shares arrive until the wait.
SmallVector<Access> GatherStartOp::getAccesses() {
  SmallVector<Access> accesses;
  for (auto variable : getVariables().getAsRange<FlatSymbolRefAttr>())
    accesses.push_back({.writes = true, .variable = variable, .byRuntime = true});
  return accesses;
}

// Each replica combines a range of the whole bucket where the first one's contribution is; then they meet.
SmallVector<Access> AllReduceResultOp::getAccesses() {
  const Extent range = {Extent::Range, -1}; // padding between members included: the cut of no variable
  const auto bucket = static_cast<int32_t>(getBucket());
  return {{.extent = range, .bucket = bucket}, {.writes = true, .extent = range, .bucket = bucket}};
}
bool AllReduceResultOp::meetsAfter() { return true; }

SmallVector<Access> UpdateOp::getAccesses() {
  const auto count = static_cast<int64_t>(getCount());
  const Extent extent =
      getShare() ? Extent{Extent::Share, static_cast<int64_t>(*getShare())} : Extent{Extent::Range, count};
  SmallVector<Access> accesses = ofRangeKernel(getVariables(), getArguments(), count, extent);
  if (getBucket())
    accesses.push_back({.extent = extent, .bucket = static_cast<int32_t>(*getBucket())});
  if (getOwner())
    for (Access &access : accesses)
      access.owner = static_cast<int64_t>(*getOwner());
  return accesses;
}

SmallVector<Access> SparseUpdateOp::getAccesses() {
  auto values = cast<RankedTensorType>(getValues().getType());
  const int64_t row = values.getNumElements() / std::max<int64_t>(getNumRows(), 1);
  // An argument with as many elements as the variable is read by rows too; the others have one.
  SmallVector<Access> accesses = ofRangeKernel(getVariables(), {}, 0, {Extent::Rows, row});
  for (Value argument : getArguments())
    accesses.push_back(read(argument, cast<RankedTensorType>(argument.getType()).getNumElements() == 1
                                          ? Extent()
                                          : Extent{Extent::Rows, row}));
  accesses.push_back(read(getIndices()));
  accesses.push_back(read(getValues()));
  if (getOwner())
    for (Access &access : accesses)
      access.owner = static_cast<int64_t>(*getOwner());
  return accesses;
}

// The owner's communication reads the variable between the arrival of all its replicas and the departure of the first.
SmallVector<Access> PullRowsOp::getAccesses() {
  SmallVector<Access> accesses;
  for (auto [variable, indices, owner] :
       llvm::zip(getVariables().getAsRange<FlatSymbolRefAttr>(), getIndices(), getOwners())) {
    accesses.push_back(read(indices));
    accesses.push_back({.variable = variable, .byRuntime = true, .owner = owner});
  }
  return accesses;
}
SmallVector<Access> PushRowsOp::getAccesses() { return readWhole(getOperands()); }
bool PushRowsOp::meetsBefore() { return true; }
bool PushRowsOp::meetsAfter() { return true; }
bool PullRowsOp::meetsBefore() { return true; }
bool PullRowsOp::meetsAfter() { return true; }

SmallVector<Access> MatmulUpdateOp::getAccesses() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType());
  const int64_t rows = a.getDimSize(getTransposeA() ? 1 : 0), columns = b.getDimSize(getTransposeB() ? 0 : 1);
  SmallVector<Access> accesses = ofRangeKernel(getVariables(), getArguments(), rows * columns, {Extent::Matmul, rows});
  for (Value operand : {getA(), getB()}) {
    accesses.push_back(read(operand));
    accesses.back().ofOthers = true;
  }
  return accesses;
}

bool BarrierOp::meetsBefore() { return true; }

} // namespace distc::drt
