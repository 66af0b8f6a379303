//===- DivideKernels.cpp - The cores of a replica share a kernel's work --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DIVIDEKERNELS
#include "passes/lower/Passes.h.inc"

namespace {

/// Operations on elements that take as long as a core is called.
constexpr int64_t kLeastWork = 1 << 14;
/// Iterations for each core that a loop must have to be preferred to those within it, where they cannot be dealt out
/// evenly.
constexpr int64_t kLongLoop = 8;

/// A loop of every linalg operation of a kernel, by the axis of the results that it walks along.
struct Loop {
  SmallVector<unsigned> ofOperation;
  int64_t extent = 0;
};

class Division {
public:
  Division(drt::KernelOp kernel, int64_t cores) : kernel(kernel), cores(cores) {}

  /// Divides the kernel, if it can be.
  LogicalResult divide() {
    if (scf::ForOp rows = findOnlyLoop())
      return divideRows(rows);
    for (Operation &op : kernel.getBody().front()) {
      if (auto linalgOp = llvm::dyn_cast<linalg::LinalgOp>(op))
        operations.push_back(linalgOp);
      else if (llvm::isa<memref::AllocOp>(op) || op.getNumRegions() > 0)
        return success(); // what one loop leaves to another: its parts are another's
    }
    int64_t work = 0;
    for (linalg::LinalgOp op : operations)
      work += countWork(op);
    std::optional<Loop> loop = chooseLoop();
    if (!loop || loop->extent < 2)
      return success();
    // Whether there is enough of it is the runtime's to say.
    return rewrite(*loop, std::max<int64_t>(1, kLeastWork / std::max<int64_t>(1, work / loop->extent)));
  }

private:
  /// The loop that is all that a kernel does: `drt-loop-over-rows` alone makes such.
  scf::ForOp findOnlyLoop() {
    auto working =
        llvm::make_filter_range(kernel.getBody().front(), [](Operation &op) { return op.getNumRegions() > 0; });
    return llvm::hasSingleElement(working) ? llvm::dyn_cast<scf::ForOp>(*working.begin()) : scf::ForOp();
  }

  LogicalResult divideRows(scf::ForOp rows) {
    const std::optional<llvm::APInt> extent = rows.getStaticTripCount();
    if (!extent || extent->getSExtValue() < 2)
      return success();
    int64_t work = 0; // of a row
    rows.getBody()->walk([&](Operation *op) {
      int64_t times = 1;
      for (auto loop = op->getParentOfType<scf::ForOp>(); loop != rows; loop = loop->getParentOfType<scf::ForOp>())
        if (std::optional<llvm::APInt> count = loop.getStaticTripCount())
          times *= count->getSExtValue();
      work += times;
    });
    IRRewriter rewriter(kernel.getContext());
    FailureOr<std::pair<Value, Value>> part = addPart(rewriter);
    if (failed(part))
      return failure();
    rows.getLowerBoundMutable().assign(part->first);
    rows.getUpperBoundMutable().assign(part->second);
    return setDivided(extent->getSExtValue(), std::max<int64_t>(1, kLeastWork / std::max<int64_t>(1, work)));
  }

  static int64_t countWork(linalg::LinalgOp op) {
    int64_t work = 0;
    op.getBlock()->walk([&](Operation *) { ++work; });
    for (int64_t extent : op.getStaticLoopRanges())
      work *= extent;
    return work;
  }

  /// The loop of `op` that walks along axis `axis` of each of its results: its iterations write different elements.
  static std::optional<unsigned> findLoop(linalg::LinalgOp op, unsigned axis) {
    std::optional<unsigned> found;
    for (OpOperand &output : op.getDpsInitsMutable()) {
      AffineMap map = op.getMatchingIndexingMap(&output);
      auto dim =
          axis < map.getNumResults() ? llvm::dyn_cast<AffineDimExpr>(map.getResult(axis)) : AffineDimExpr(nullptr);
      if (!dim || (found && *found != dim.getPosition()))
        return std::nullopt;
      found = dim.getPosition();
    }
    if (!found || op.getIteratorTypesArray()[*found] != utils::IteratorType::parallel)
      return std::nullopt;
    return found;
  }

  std::optional<Loop> findLoop(unsigned axis) {
    Loop loop;
    for (linalg::LinalgOp op : operations) {
      std::optional<unsigned> found = findLoop(op, axis);
      if (!found)
        return std::nullopt;
      int64_t extent = op.getStaticLoopRanges()[*found];
      if (!loop.ofOperation.empty() && extent != loop.extent)
        return std::nullopt;
      loop.ofOperation.push_back(*found);
      loop.extent = extent;
    }
    return loop;
  }

  /// The outermost that is long, else the longest.
  std::optional<Loop> chooseLoop() {
    std::optional<Loop> best;
    if (operations.empty())
      return best;
    const int64_t rank = llvm::cast<MemRefType>(operations.front().getDpsInits().front().getType()).getRank();
    for (unsigned axis = 0; axis < rank; ++axis) {
      std::optional<Loop> loop = findLoop(axis);
      if (!loop)
        continue;
      if (loop->extent >= kLongLoop * cores || (loop->extent > 0 && loop->extent % cores == 0))
        return loop;
      if (!best || loop->extent > best->extent)
        best = loop;
    }
    return best;
  }

  /// Begin and end of the part, as the kernel's first two arguments.
  FailureOr<std::pair<Value, Value>> addPart(IRRewriter &rewriter) {
    Location loc = kernel.getLoc();
    const SmallVector<Type> part(2, rewriter.getI64Type());
    const SmallVector<DictionaryAttr> none(2);
    if (failed(kernel.insertArguments({0, 0}, part, none, {loc, loc})))
      return failure();
    rewriter.setInsertionPointToStart(&kernel.getBody().front());
    Value begin = arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(), kernel.getArgument(0));
    Value end = arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(), kernel.getArgument(1));
    return std::pair(begin, end);
  }

  LogicalResult setDivided(int64_t extent, int64_t grain) {
    kernel.setDivided(ArrayRef<int64_t>{extent, grain});
    return success();
  }

  LogicalResult rewrite(const Loop &loop, int64_t grain) {
    IRRewriter rewriter(kernel.getContext());
    FailureOr<std::pair<Value, Value>> part = addPart(rewriter);
    if (failed(part))
      return failure();
    for (auto [op, number] : llvm::zip(operations, loop.ofOperation)) {
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
      if (failed(loops))
        return op.emitOpError("has no loops that cores could divide");
      auto divided = llvm::cast<scf::ForOp>((*loops)[number]);
      divided.getLowerBoundMutable().assign(part->first);
      divided.getUpperBoundMutable().assign(part->second);
      rewriter.eraseOp(op);
    }
    return setDivided(loop.extent, grain);
  }

  drt::KernelOp kernel;
  int64_t cores;
  SmallVector<linalg::LinalgOp> operations;
};

struct DivideKernels : impl::DivideKernelsBase<DivideKernels> {
  void runOnOperation() override {
    const int64_t cores = drt::getCores(getOperation());
    if (cores < 2)
      return;
    for (auto function : getOperation().getOps<drt::KernelOp>())
      if (!function.getRange() && failed(Division(function, cores).divide()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace distc
