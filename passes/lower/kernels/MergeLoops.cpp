//===- MergeLoops.cpp - Loops that walk on where the last one ended are one ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A short loop in a short loop LLVM unrolls whole, into thousands of instructions
// that do what one long loop does. Loops over a sum stay, and its order with them.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_MERGELOOPS
#include "passes/lower/Passes.h.inc"

namespace {

/// The axis of an operand that loop `loop` alone walks along, if there is one; -1 where the loop has no part in it.
std::optional<int64_t> findAxis(AffineMap map, unsigned loop) {
  int64_t found = -1;
  for (auto [axis, place] : llvm::enumerate(map.getResults())) {
    if (!place.isFunctionOfDim(loop))
      continue;
    if (found >= 0 || place != getAffineDimExpr(loop, map.getContext()))
      return std::nullopt;
    found = axis;
  }
  return found;
}

/// Whether loop `loop` and the next one walk through each operand as one longer loop does.
bool canMerge(linalg::LinalgOp op, ArrayRef<int64_t> sizes, unsigned loop) {
  auto types = op.getIteratorTypesArray();
  if (types[loop] != types[loop + 1] ||
      (types[loop] != utils::IteratorType::parallel && types.back() != utils::IteratorType::parallel))
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    std::optional<int64_t> outer = findAxis(map, loop), inner = findAxis(map, loop + 1);
    if (!outer || !inner)
      return false;
    if (*outer < 0 && *inner < 0)
      continue;
    auto type = llvm::dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.getLayout().isIdentity() || *outer < 0 || *inner != *outer + 1 ||
        type.getDimSize(*outer) != sizes[loop] || type.getDimSize(*inner) != sizes[loop + 1])
      return false;
  }
  return true;
}

/// `operand` with the axes that merged loops walk along as one.
Value mergeAxes(OpBuilder &builder, OpOperand &operand, AffineMap map, ArrayRef<int64_t> mergedLoops,
                SmallVectorImpl<AffineExpr> &places) {
  SmallVector<ReassociationIndices> groups;
  int64_t last = -1;
  SmallVector<AffineExpr> dims;
  for (int64_t merged : mergedLoops)
    dims.push_back(builder.getAffineDimExpr(merged));
  for (auto [axis, place] : llvm::enumerate(map.getResults())) {
    auto dim = llvm::dyn_cast<AffineDimExpr>(place);
    const int64_t loop = dim ? dim.getPosition() : -1;
    const bool isNext = last >= 0 && loop == last + 1 && mergedLoops[loop] == mergedLoops[last];
    last = loop;
    if (isNext) {
      groups.back().push_back(axis);
      continue;
    }
    groups.push_back({static_cast<int64_t>(axis)});
    places.push_back(place.replaceDims(dims));
  }
  if (groups.size() == map.getNumResults())
    return operand.get();
  return memref::CollapseShapeOp::create(builder, operand.getOwner()->getLoc(), operand.get(), groups);
}

void mergeLoops(linalg::LinalgOp op) {
  auto generic = llvm::dyn_cast<linalg::GenericOp>(op.getOperation());
  if ((!generic && !llvm::isa<linalg::FillOp>(op)) || !op.hasPureBufferSemantics())
    return;
  const SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (llvm::any_of(sizes, ShapedType::isDynamic))
    return;
  llvm::SmallBitVector asked(sizes.size());
  op->walk([&](linalg::IndexOp index) { asked.set(index.getDim()); });
  // The loop that each one becomes a part of.
  SmallVector<int64_t> merged;
  SmallVector<utils::IteratorType> types;
  for (unsigned loop = 0; loop < sizes.size(); ++loop) {
    if (loop == 0 || asked[loop - 1] || asked[loop] || !canMerge(op, sizes, loop - 1))
      types.push_back(op.getIteratorTypesArray()[loop]);
    merged.push_back(static_cast<int64_t>(types.size()) - 1);
  }
  if (types.size() == sizes.size())
    return;

  IRRewriter rewriter(op);
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    SmallVector<AffineExpr> places;
    operands.push_back(mergeAxes(rewriter, operand, map, merged, places));
    maps.push_back(AffineMap::get(types.size(), 0, places, op.getContext()));
  }
  if (!generic) {
    linalg::FillOp::create(rewriter, op.getLoc(), operands.front(), operands.back());
    rewriter.eraseOp(op);
    return;
  }
  const size_t inputs = op.getNumDpsInputs();
  auto made = linalg::GenericOp::create(rewriter, op.getLoc(), ArrayRef(operands).take_front(inputs),
                                        ArrayRef(operands).drop_front(inputs), maps, types);
  rewriter.inlineRegionBefore(generic.getRegion(), made.getRegion(), made.getRegion().begin());
  made.walk([&](linalg::IndexOp index) { index.setDim(merged[index.getDim()]); });
  rewriter.eraseOp(op);
}

struct MergeLoops : impl::MergeLoopsBase<MergeLoops> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    llvm::for_each(ops, mergeLoops);
  }
};

} // namespace
} // namespace distc
