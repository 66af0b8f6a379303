//===- LoopOverRows.cpp - Operations over the same rows go through them together -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/RowForm.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_LOOPOVERROWS
#include "passes/lower/Passes.h.inc"

namespace {

using schedule::RowForm;

/// The rows of the first reduction along rows are those of all.
std::optional<RowForm> findForm(ArrayRef<linalg::LinalgOp> ops) {
  const auto *first = llvm::find_if(ops, schedule::reducesRows);
  return first == ops.end() ? std::nullopt : RowForm::of(*first);
}

/// Whether nothing is in a kernel but operations on whole buffers: what else is there, as the loops of `dfg.while`, has
/// a place among them.
bool hasOnlyOperations(Block &body) {
  return llvm::all_of(body.without_terminator(), [](Operation &op) {
    return llvm::isa<linalg::LinalgOp, memref::AllocOp, memref::ExpandShapeOp, memref::CollapseShapeOp,
                     memref::GetGlobalOp>(op) ||
           op.hasTrait<OpTrait::ConstantLike>();
  });
}

/// The number `index` as counters of loops, the first of which is the outermost.
SmallVector<Value> getCounters(OpBuilder &builder, Location loc, Value index, ArrayRef<int64_t> sizes) {
  SmallVector<Value> counters(sizes.size());
  int64_t left = computeProduct(sizes);
  for (auto [counter, size] : llvm::reverse(llvm::zip(counters, sizes))) {
    left /= size;
    if (size == 1) {
      counter = arith::ConstantIndexOp::create(builder, loc, 0);
    } else if (left == 1) {
      counter = index;
    } else {
      Value extent = arith::ConstantIndexOp::create(builder, loc, size);
      counter = arith::RemUIOp::create(builder, loc, index, extent);
      index = arith::DivUIOp::create(builder, loc, index, extent);
    }
  }
  return counters;
}

/// What only a kernel uses is one row of it.
class RowBuffer {
public:
  RowBuffer(memref::AllocOp whole, const RowForm &form)
      : form(form), size(form.isPerRow(whole) ? 1 : form.columns), whole(whole) {
    OpBuilder builder(whole);
    auto type = MemRefType::get({size}, whole.getType().getElementType());
    constexpr int64_t cacheLine = 64;
    row = memref::AllocaOp::create(builder, whole.getLoc(), type, builder.getI64IntegerAttr(cacheLine));
  }

  LogicalResult replace() {
    if (failed(replaceUses(whole)))
      return failure();
    whole.erase();
    return success();
  }

private:
  LogicalResult replaceUses(Value buffer) {
    for (Operation *user : llvm::make_early_inc_range(buffer.getUsers())) {
      OpBuilder builder(user);
      if (auto load = llvm::dyn_cast<memref::LoadOp>(user)) {
        auto own = memref::LoadOp::create(builder, load.getLoc(), row,
                                          getPlace(builder, load.getMemRefType(), load.getIndices()));
        load.replaceAllUsesWith(own.getResult());
      } else if (auto store = llvm::dyn_cast<memref::StoreOp>(user)) {
        memref::StoreOp::create(builder, store.getLoc(), store.getValue(), row,
                                getPlace(builder, store.getMemRefType(), store.getIndices()));
      } else if (llvm::isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(user)) {
        if (failed(replaceUses(user->getResult(0))))
          return failure();
      } else {
        return user->emitOpError("internal error: takes rows that a kernel has one by one");
      }
      user->erase();
    }
    return success();
  }

  /// Within the row: behind the axes that lead from row to row.
  Value getPlace(OpBuilder &builder, MemRefType type, ValueRange indices) {
    Location loc = row.getLoc();
    ArrayRef<int64_t> shape = type.getShape();
    size_t axis = 0;
    for (int64_t rows = 1; rows < form.rows && axis < shape.size(); ++axis)
      rows *= shape[axis];
    Value place;
    for (; size > 1 && axis < shape.size(); ++axis) {
      if (place)
        place = arith::AddIOp::create(
            builder, loc,
            arith::MulIOp::create(builder, loc, place, arith::ConstantIndexOp::create(builder, loc, shape[axis])),
            indices[axis]);
      else
        place = indices[axis];
    }
    return place ? place : arith::ConstantIndexOp::create(builder, loc, 0).getResult();
  }

  RowForm form;
  int64_t size;
  memref::AllocOp whole;
  memref::AllocaOp row;
};

struct LoopOverRows : impl::LoopOverRowsBase<LoopOverRows> {
  void runOnOperation() override {
    drt::KernelOp kernel = getOperation();
    if (kernel.getRange() || kernel.getBody().empty())
      return;
    Block &body = kernel.getBody().front();
    SmallVector<linalg::LinalgOp> ops(body.getOps<linalg::LinalgOp>());
    if (llvm::range_size(body.getOps<linalg::GenericOp>()) < 2 || !hasOnlyOperations(body))
      return;
    std::optional<RowForm> form = findForm(ops);
    // What GPUs group beside (sums of columns, a single row) keeps its loops where the host runs it.
    if (!form || form->rows < 2 || !llvm::all_of(ops, [&](linalg::LinalgOp op) { return fits(op, *form); }))
      return;
    if (failed(join(kernel, ops, *form)))
      return signalPassFailure();
    for (auto whole : llvm::make_early_inc_range(body.getOps<memref::AllocOp>()))
      if (failed(RowBuffer(whole, *form).replace()))
        return signalPassFailure();
  }

private:
  /// Whether of what only the kernel uses the operation takes, in each of its rows, that row alone.
  static bool fits(linalg::LinalgOp op, const RowForm &form) {
    if (llvm::isa<linalg::FillOp>(op))
      return form.getRowLoops(op).value_or(0) > 0;
    auto isOwn = [](Value buffer) { return schedule::getReshaped(buffer).getDefiningOp<memref::AllocOp>() != nullptr; };
    if (!form.getKind(op) || llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
          return isOwn(operand.get()) && !form.isOwnRow(operand);
        }))
      return false;
    return !op->walk([&](memref::LoadOp load) {
                return isOwn(load.getMemRef()) && !form.isOwnRow(op, load.getMemRef(), load.getIndices())
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              }).wasInterrupted();
  }

  /// One loop over all rows, in which each operation has the loops within a row.
  static LogicalResult join(drt::KernelOp kernel, ArrayRef<linalg::LinalgOp> ops, const RowForm &form) {
    Location loc = kernel.getLoc();
    IRRewriter rewriter(kernel.getBody().front().getTerminator());
    Value first = arith::ConstantIndexOp::create(rewriter, loc, 0),
          one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    Value end = arith::ConstantIndexOp::create(rewriter, loc, form.rows);
    auto rows = scf::ForOp::create(rewriter, loc, first, end, one);
    for (linalg::LinalgOp op : ops) {
      const std::optional<unsigned> rowLoops = form.getRowLoops(op);
      const SmallVector<int64_t> sizes = op.getStaticLoopRanges();
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
      if (!rowLoops || *rowLoops == 0 || failed(loops))
        return op.emitOpError("internal error: has no loops over the kernel's ") << form.rows << " rows";
      rewriter.eraseOp(op);
      rewriter.setInsertionPoint(rows.getBody()->getTerminator());
      for (auto [loop, counter] :
           llvm::zip(*loops, getCounters(rewriter, loc, rows.getInductionVar(), ArrayRef(sizes).take_front(*rowLoops))))
        llvm::cast<scf::ForOp>(loop).getInductionVar().replaceAllUsesWith(counter);
      Block *inner = llvm::cast<scf::ForOp>((*loops)[*rowLoops - 1]).getBody();
      rows.getBody()->getOperations().splice(rows.getBody()->getTerminator()->getIterator(), inner->getOperations(),
                                             inner->begin(), std::prev(inner->end()));
      rewriter.eraseOp(loops->front());
    }
    return success();
  }
};

} // namespace
} // namespace distc
