//===- FusionPlan.cpp - Which element-wise operations become one kernel -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/kernels/FusionPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lower/kernels/MemoryWrites.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/WorkEstimate.h"

using namespace mlir;

namespace distc {
namespace {

/// What a kernel computes for an element at most, in instructions. Fusing two kernels saves a store and a load of an
/// element: a few cycles of a vector, or some tens where it goes to memory. A kernel of this cost takes hundreds, so
/// that a few percent are left to save beyond it, while registers spill and the time of code generation grows faster
/// than the kernel.
constexpr int64_t kMaxCost = 512;
/// Work that costs less than reading its result from memory again: it may be done once for each of several users.
bool isCheap(linalg::GenericOp op) {
  if (op.getNumDpsInputs() > 1)
    return false;
  return llvm::all_of(op.getRegion().front().without_terminator(), [](Operation &inner) {
    return inner.hasTrait<OpTrait::ConstantLike>() ||
           llvm::isa<linalg::IndexOp, arith::IndexCastOp, arith::ExtFOp, arith::ExtUIOp, arith::UIToFPOp>(inner);
  });
}

/// Bytes that are read of a tensor, or of what is cheaply made of it.
int64_t countReadBytes(Value tensor) {
  if (auto producer = tensor.getDefiningOp<linalg::GenericOp>();
      producer && isCheap(producer) && producer.getNumDpsInputs() == 1)
    tensor = producer.getInputs().front();
  return getTensorBytes(llvm::cast<RankedTensorType>(tensor.getType()));
}

/// Arithmetic of at most so many instructions on one tensor and on much smaller ones, as where a mean is subtracted
/// from rows, or on two of half as wide elements: who reads these instead of the result reads as much, and the result
/// need not be written.
bool isAsCheapAsItsInput(linalg::GenericOp op, int64_t maxInstructions) {
  constexpr int64_t kMuchSmaller = 16;
  if (op.getNumDpsInits() != 1)
    return false;
  const int64_t written = getTensorBytes(llvm::cast<RankedTensorType>(op.getResult(0).getType()));
  int64_t read = 0;
  for (Value input : op.getInputs())
    if (int64_t bytes = countReadBytes(input); bytes * kMuchSmaller > written)
      read += bytes;
  if (read > written)
    return false;
  int64_t instructions = 0;
  for (Operation &inner : op.getRegion().front().without_terminator()) {
    if (inner.hasTrait<OpTrait::ConstantLike>() || llvm::isa<arith::ExtFOp, arith::UIToFPOp>(inner))
      continue;
    const bool isFunction = llvm::isa<math::MathDialect>(inner.getDialect());
    if (!isFunction &&
        !llvm::isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::CmpFOp, arith::SelectOp>(inner))
      return false;
    instructions += isFunction ? kFunctionInstructions : 1;
  }
  return instructions <= maxInstructions;
}

/// Whether every loop of the root has a tensor that says how long it is.
bool areLoopsBounded(const FusionCluster &cluster) {
  linalg::GenericOp root = cluster.getRoot();
  llvm::SmallBitVector bounded(root.getNumLoops());
  auto add = [&](AffineMap map) {
    for (AffineExpr index : map.getResults())
      if (auto dim = llvm::dyn_cast<AffineDimExpr>(index))
        bounded.set(dim.getPosition());
  };
  for (OpOperand &init : root.getDpsInitsMutable())
    add(root.getMatchingIndexingMap(&init));
  for (const FusedValue &input : cluster.inputs)
    add(input.second);
  return bounded.all();
}

} // namespace

FusedValue getRead(const FusedOp &op, OpOperand &operand) {
  return {operand.get(), llvm::cast<linalg::GenericOp>(op.first).getMatchingIndexingMap(&operand).compose(op.second)};
}

std::optional<FusedOp> getProducer(const FusedValue &value) {
  auto producer = value.first.getDefiningOp<linalg::GenericOp>();
  if (!producer)
    return std::nullopt;
  AffineMap made = producer.getIndexingMapMatchingResult(llvm::cast<OpResult>(value.first));
  if (!made.isPermutation())
    return std::nullopt;
  return FusedOp{producer, inversePermutation(made).compose(value.second)};
}

bool isElementwise(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumParallelLoops() != op.getNumLoops())
    return false;
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    return !op.payloadUsesValueFromOperand(&init) && op.getMatchingIndexingMap(&init).isPermutation();
  });
}

FusionPlan::FusionPlan(Block &block, int64_t maxRepeated) : maxRepeated(maxRepeated) {
  MemoryWrites writes(block);
  for (Operation &op : llvm::reverse(block))
    if (auto generic = llvm::dyn_cast<linalg::GenericOp>(op))
      add(generic, writes);
}

void FusionPlan::add(linalg::GenericOp op, const MemoryWrites &writes) {
  SmallVector<std::pair<size_t, AffineMap>, 1> places;
  bool isKept = op->use_empty() || !isElementwise(op);
  if (isElementwise(op)) {
    // Every cluster that reads it, and in which loops.
    llvm::SetVector<std::pair<size_t, AffineMap>> readers;
    for (OpOperand &use : op->getUses()) {
      auto user = llvm::dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!user || user->getBlock() != op->getBlock() || !user.isDpsInput(&use)) {
        isKept = true;
        continue;
      }
      for (auto [cluster, fromRoot] : computedIn.at(user))
        readers.insert({cluster, getProducer(getRead({user, fromRoot}, use))->second});
    }
    const bool isRepeated = isCheap(op) || (!isKept && isAsCheapAsItsInput(op, maxRepeated));
    if (!isRepeated && (isKept || readers.size() > 1)) {
      readers.clear();
      isKept = true;
    }
    for (auto [cluster, fromRoot] : readers) {
      if (join(clusters[cluster], {op, fromRoot}, writes))
        places.push_back({cluster, fromRoot});
      else
        isKept = true;
    }
  }
  if (isKept) {
    AffineMap fromRoot = addCluster(op);
    places.push_back({clusters.size() - 1, fromRoot});
  }
  computedIn[op] = std::move(places);
}

AffineMap FusionPlan::addCluster(linalg::GenericOp op) {
  FusionCluster own;
  FusedOp root{op, AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op.getContext())};
  own.members.push_back(root);
  own.cost = countInstructions(op.getRegion());
  for (OpOperand *input : op.getDpsInputOperands())
    own.inputs.insert(getRead(root, *input));
  clusters.push_back(std::move(own));
  return root.second;
}

bool FusionPlan::join(FusionCluster &cluster, const FusedOp &op, const MemoryWrites &writes) {
  auto generic = llvm::cast<linalg::GenericOp>(op.first);
  const int64_t cost = countInstructions(generic.getRegion());
  if (cluster.cost + cost > kMaxCost || !writes.isUnchanged(generic, cluster.getRoot()))
    return false;
  SmallVector<FusedValue, 4> added, removed;
  for (OpOperand *input : generic.getDpsInputOperands())
    if (FusedValue read = getRead(op, *input); cluster.inputs.insert(read).second)
      added.push_back(read);
  for (OpResult result : generic->getResults()) {
    FusedValue made{result, generic.getIndexingMapMatchingResult(result).compose(op.second)};
    if (cluster.inputs.erase(made))
      removed.push_back(made);
  }
  // Fewer inputs than before are no worse, however many they are.
  if ((cluster.inputs.size() <= kMaxKernelInputs || added.size() <= removed.size()) && areLoopsBounded(cluster)) {
    cluster.members.push_back(op);
    cluster.cost += cost;
    return true;
  }
  for (const FusedValue &read : added)
    cluster.inputs.erase(read);
  cluster.inputs.insert(removed.begin(), removed.end());
  return false;
}

SmallVector<const FusionCluster *> FusionPlan::getClusters() const {
  SmallVector<const FusionCluster *> fused;
  for (const FusionCluster &cluster : clusters)
    if (cluster.members.size() > 1)
      fused.push_back(&cluster);
  return fused;
}

} // namespace distc
