//===- GroupRowSums.cpp - drt-group-row-sums ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/DeviceKernel.h"
#include "passes/lower/gpu/DeviceLaunches.h"
#include "passes/lower/kernels/Reshapes.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_GROUPROWSUMS
#include "passes/lower/Passes.h.inc"

namespace rowsums {
namespace {

constexpr int64_t kLanes = 32;
/// Of a row that a warp adds up, and of a tensor that takes no longer than its launch.
constexpr int64_t kMostColumns = 1024, kMostElements = 1 << 20;
/// Sums; fewer are left alone. More are several launches: a kernel's arguments have 4 KiB, two for each.
constexpr size_t kFewest = 4, kMost = 250;
/// What is summed stays in memory until all are.
constexpr int64_t kMostBytes = 1 << 27;

/// Whether each result is the sum, from zero, of the rows of one float32 input.
bool sumsRows(linalg::GenericOp op) {
  if (op->hasAttr(drt::kRowsAttr) || op->getNumResults() == 0 || op.getNumDpsInputs() != op->getNumResults() ||
      op.getNumReductionLoops() == 0 || op.getNumParallelLoops() == 0 || !op.hasPureTensorSemantics())
    return false;
  const AffineMap whole = AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op.getContext());
  const AffineMap kept = whole.getMajorSubMap(op.getNumParallelLoops());
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    auto input = dyn_cast<RankedTensorType>(op.getInputs()[i].getType());
    auto fill = op.getDpsInits()[i].getDefiningOp<linalg::FillOp>();
    auto sum = op.getBody()->getTerminator()->getOperand(i).getDefiningOp<arith::AddFOp>();
    if (!input || !input.hasStaticShape() || !input.getElementType().isF32() || !sum || !fill ||
        !matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) || input.getNumElements() == 0 ||
        input.getNumElements() > kMostElements || op.getMatchingIndexingMap(op.getDpsInputOperand(i)) != whole ||
        op.getMatchingIndexingMap(op.getDpsInitOperand(i)) != kept ||
        input.getNumElements() / countElements(op->getResult(i)) > kMostColumns)
      return false;
    const Value element = op.getBody()->getArgument(i), soFar = op.getRegionOutputArgs()[i];
    if (!(sum.getLhs() == element && sum.getRhs() == soFar) && !(sum.getLhs() == soFar && sum.getRhs() == element))
      return false;
    // A variable may be another one until all are summed.
    if (isa_and_nonnull<drt::ReadOp>(getStorage(op.getInputs()[i]).getDefiningOp()))
      return false;
  }
  return true;
}

/// Sums that wait for the first operation which reads one of them, and their reshapes.
class Waiting {
public:
  explicit Waiting(DeviceLaunches &launches) : launches(launches) {}

  void visit(Operation *op) {
    if (isReshape(op) && made.contains(op->getOperand(0))) {
      reshapes.push_back(op);
      made.insert(op->getResult(0));
      return;
    }
    if (reads(op) || changes(op))
      launch(op);
    auto sum = dyn_cast<linalg::GenericOp>(op);
    if (!sum || !sumsRows(sum))
      return;
    int64_t own = 0;
    for (Value input : sum.getInputs())
      own += getTensorBytes(cast<RankedTensorType>(input.getType()));
    if (made.size() + sum->getNumResults() > kMost || bytes + own > kMostBytes)
      launch(op);
    sums.push_back(sum);
    made.insert(sum->result_begin(), sum->result_end());
    bytes += own;
  }

private:
  bool reads(Operation *op) {
    return op
        ->walk([&](Operation *inner) {
          return llvm::any_of(inner->getOperands(), [&](Value operand) { return made.contains(operand); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Whether it reduces in place what is summed.
  bool changes(Operation *op) {
    return isa<drt::AllReduceStartOp>(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
             return llvm::any_of(sums, [&](linalg::GenericOp sum) {
               return llvm::any_of(sum.getInputs(),
                                   [&](Value input) { return getStorage(input) == getStorage(operand); });
             });
           });
  }

  /// All in front of `place`, as one.
  void launch(Operation *place) {
    SmallVector<Value> inputs, results;
    SmallVector<RankedTensorType> types;
    SmallVector<Location> locations;
    for (linalg::GenericOp sum : sums) {
      llvm::append_range(inputs, sum.getInputs());
      llvm::append_range(results, sum.getResults());
      locations.push_back(sum.getLoc());
    }
    if (sums.size() > 1 && results.size() >= kFewest) {
      for (Value result : results)
        types.push_back(cast<RankedTensorType>(result.getType()));
      ImplicitLocOpBuilder b(FusedLoc::get(place->getContext(), locations), place);
      SmallVector<int64_t> begins; // the first row of each
      int64_t rows = 0;
      for (RankedTensorType type : types)
        begins.push_back(std::exchange(rows, rows + type.getNumElements()));
      SmallVector<Value> launched = launches.launch(
          b, "joined", {}, types, inputs, rows * kLanes, kThreads,
          [&](ThreadWriter &w, ValueRange from, ValueRange to) { writeKernel(w, inputs, begins, rows, from, to); });
      for (auto [result, value] : llvm::zip(results, launched))
        result.replaceAllUsesWith(value);
      for (Operation *reshape : reshapes)
        reshape->moveBefore(place);
      for (linalg::GenericOp sum : sums)
        sum->erase();
    }
    sums.clear();
    reshapes.clear();
    made.clear();
    bytes = 0;
  }

  /// A warp adds up a row.
  static void writeKernel(ThreadWriter &w, ArrayRef<Value> inputs, ArrayRef<int64_t> begins, int64_t rows,
                          ValueRange from, ValueRange to) {
    const auto line = MemRefType::get({ShapedType::kDynamic}, w.b.getF32Type());
    const Type index = w.b.getIndexType();
    const Value mine = w.div(w.getNumber(), kLanes), lane = w.rem(w.getThread(), kLanes);
    // All warps stay for the exchange: those behind the last row read it again.
    const Value row = rows * kLanes % kThreads ? w.min(mine, w.number(rows - 1)) : mine;
    ThreadWriter::Values entry =
        w.findEntry(row, begins, {line, line, index, index}, [&](size_t i) -> ThreadWriter::Values {
          const int64_t end = i + 1 < begins.size() ? begins[i + 1] : rows;
          return {memref::CastOp::create(w.b, line, from[i]), memref::CastOp::create(w.b, line, to[i]),
                  w.number(begins[i]), w.number(countElements(inputs[i]) / (end - begins[i]))};
        });
    const Value own = w.sub(row, entry[2]), columns = entry[3];
    const Value begin = arith::MulIOp::create(w.b, own, columns);
    const Value zero = arith::ConstantOp::create(w.b, w.b.getF32FloatAttr(0));
    const Value rounds = w.div(w.add(columns, kLanes - 1), kLanes);
    Value sum = w.loop(w.number(0), rounds, zero, [&](Value round, ValueRange carried) -> ThreadWriter::Values {
      const Value column = w.add(w.mul(round, kLanes), lane);
      return w.when(w.less(column, columns), carried, [&]() -> ThreadWriter::Values {
        return {arith::AddFOp::create(w.b, carried[0], w.load(entry[0], w.add(begin, column)))};
      });
    })[0];
    sum = w.sumOfWarp(sum);
    const Value isFirst = w.equal(lane, w.number(0));
    w.when(row == mine ? isFirst : w.both(isFirst, w.equal(row, mine)), [&] { w.store(sum, entry[1], own); });
  }

  DeviceLaunches &launches;
  SmallVector<linalg::GenericOp> sums;
  SmallVector<Operation *> reshapes;
  llvm::DenseSet<Value> made;
  int64_t bytes = 0;
};

} // namespace
} // namespace rowsums

namespace {

struct GroupRowSums : impl::GroupRowSumsBase<GroupRowSums> {
  void runOnOperation() override {
    DeviceLaunches launches(getOperation(), "row_sums");
    for (drt::EntryOp entry : getEntries(getOperation())) {
      rowsums::Waiting waiting(launches);
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front()))
        waiting.visit(&op);
    }
  }
};

} // namespace
} // namespace distc
