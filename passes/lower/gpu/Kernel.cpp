//===- Kernel.cpp - A kernel of linalg operations, before it is scheduled -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/gpu/Kernel.h"
#include "dialects/dfg/Dfg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/kernels/RowForm.h"

using namespace mlir;

namespace distc::schedule {
namespace {

/// A result has an element for each iteration, or, where it is reduced, for each iteration of the parallel loops. What
/// is written more often needs an order of threads, and its fill be in memory: schedules have neither.
LogicalResult checkResults(linalg::LinalgOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (OpOperand &result : op.getDpsInitsMutable()) {
    auto type = dyn_cast<MemRefType>(result.get().getType());
    if (!type || type.getNumElements() == 0)
      continue;
    FailureOr<SmallVector<int64_t>> address =
        getLinearAddress(op.getMatchingIndexingMap(&result), getStrides(type.getShape()));
    const bool reduced = isReduced(op, result);
    SmallVector<std::pair<int64_t, int64_t>> steps; // with sizes
    if (succeeded(address))
      for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
        if ((iterator == utils::IteratorType::parallel || !reduced) && sizes[dim] != 1)
          steps.emplace_back((*address)[dim], sizes[dim]);
    llvm::sort(steps);
    int64_t reach = 0; // of the inner loops
    bool distinct = succeeded(address);
    for (auto [step, size] : steps) {
      distinct &= step > reach;
      reach += step * (size - 1);
    }
    if (!distinct)
      return op.emitError() << "result " << result.getOperandNumber() - op.getNumDpsInputs()
                            << " may have elements that several iterations write, none of them a reduction over all of "
                               "the operation's reduced loops: no schedule on GPUs has an order for that";
  }
  return success();
}

bool isWrittenBehind(linalg::FillOp fill) {
  Value buffer = fill.getOutputs()[0];
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    auto op = dyn_cast<linalg::LinalgOp>(user);
    return op && user != fill && llvm::is_contained(op.getDpsInits(), buffer) && fill->isBeforeInBlock(user);
  });
}

} // namespace

FailureOr<Kernel> Kernel::get(drt::KernelOp function) {
  Kernel kernel;
  kernel.function = function;
  auto add = [&](linalg::LinalgOp op) {
    kernel.ops.push_back(op);
    kernel.spaces.push_back(IterationSpace::get(op));
  };
  kernel.hasLoops = !function.getBody().front().getOps<scf::WhileOp>().empty();
  if (kernel.hasLoops) {
    function.walk([&](linalg::LinalgOp op) { add(op); });
    if (llvm::any_of(kernel.ops, [](linalg::LinalgOp op) { return failed(checkResults(op)); }))
      return failure();
    return kernel;
  }
  for (Operation &op : function.getBody().front()) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp) {
      if (op.hasTrait<OpTrait::ConstantLike>() ||
          isa<memref::GetGlobalOp, memref::AllocOp, memref::ExpandShapeOp, memref::CollapseShapeOp, drt::ReturnOp>(op))
        continue;
      return op.emitOpError() << "has no schedule on GPUs in a kernel";
    }
    if (failed(checkResults(linalgOp)))
      return failure();
    auto fill = dyn_cast<linalg::FillOp>(op);
    if (fill && isWrittenBehind(fill)) {
      kernel.initial[fill.getOutputs()[0]] = fill.getInputs()[0];
      continue;
    }
    add(linalgOp);
  }
  return kernel;
}

llvm::SetVector<Value> Kernel::getWritten() const {
  llvm::SetVector<Value> written;
  auto insert = [&](Value buffer) {
    buffer = getReshaped(buffer);
    while (auto view = buffer.getDefiningOp<memref::ViewOp>())
      buffer = getReshaped(view.getSource());
    written.insert(buffer);
  };
  for (linalg::LinalgOp op : ops)
    for (Value result : op.getDpsInits())
      insert(result);
  if (hasLoops)
    drt::KernelOp(function)->walk([&](memref::StoreOp store) { insert(store.getMemRef()); });
  return written;
}

const IterationSpace *Kernel::getOnlySpace() const {
  return ops.size() == 1 && succeeded(spaces[0]) ? &*spaces[0] : nullptr;
}

int64_t getVectorSize(linalg::LinalgOp op) {
  unsigned widest = 16;
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<MemRefType>(operand.getType()))
      widest = std::max(widest, type.getElementTypeBitWidth());
  return std::max(128 / widest, 1u);
}

bool isReduced(linalg::LinalgOp op, OpOperand &result) {
  AffineMap map = op.getMatchingIndexingMap(&result);
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  return llvm::none_of(llvm::enumerate(op.getIteratorTypesArray()), [&](auto loop) {
    return loop.value() == utils::IteratorType::reduction && sizes[loop.index()] != 1 &&
           map.isFunctionOfDim(loop.index());
  });
}

bool readsByIndex(linalg::LinalgOp op) {
  return op->walk([](memref::LoadOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

} // namespace distc::schedule
