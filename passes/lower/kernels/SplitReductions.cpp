//===- SplitReductions.cpp - drt-split-reductions -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/Reduction.h"
#include "passes/lower/kernels/RowForm.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/lower/Passes.h.inc"

namespace {

using namespace schedule;

/// Blocks that keep a chip's multiprocessors busy, some eight on each of the 132 of an H100.
constexpr int64_t kBlocks = 1024;
/// Of a column, what a block should have to walk down; of a row, what it should have to read. With less, the second
/// launch takes longer than the first one saves.
constexpr int64_t kColumnPart = 256, kRowPart = 2048;
constexpr int64_t kFewestColumnParts = 4, kFewestRowParts = 8;
/// Of columns that a kernel of rows may sum beside its own work (drt-fuse-rows), a part for each of its blocks.
constexpr int64_t kRowBlocks = 256, kFewestRowsOfBlock = 4;
/// On a processor: parts for its cores, whatever their number, and what a part should have to read.
constexpr int64_t kCoreParts = 16, kCorePart = 1 << 13;
/// Elements that should stay side by side.
constexpr int64_t kLine = 32;
/// What a block of columns is wide.
constexpr int64_t kColumnBits = 128 * 8;

/// A loop that becomes two, of `parts` and of `size` iterations; of one that is taken as a whole `size` is 1.
struct SplitLoop {
  unsigned loop;
  int64_t parts, size;
};

int64_t getLargestDivisor(int64_t number, int64_t most) {
  for (int64_t divisor = std::min(number, most); divisor > 1; --divisor)
    if (number % divisor == 0)
      return divisor;
  return 1;
}

/// One reduction becomes two: parts of it, then their sum.
class Split {
public:
  Split(linalg::GenericOp op, bool forCores) : op(op), forCores(forCores), sizes(op.getStaticLoopRanges()) {}

  bool isWanted() {
    if (op.getNumReductionLoops() == 0 || !op.hasPureTensorSemantics() || llvm::any_of(sizes, ShapedType::isDynamic) ||
        llvm::is_contained(sizes, 0) || !Reduction::match(op) || !resultsAreWhole())
      return false;
    findLoops();
    return !loops.empty();
  }

  void write() {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    renumber();
    linalg::GenericOp parts = writeParts(b);
    linalg::GenericOp sum = writeSum(b, parts);
    op->replaceAllUsesWith(sum->getResults());
    op->erase();
  }

private:
  /// Each result has an element for each iteration of the parallel loops, all in the same order.
  bool resultsAreWhole() {
    AffineMap first = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
      AffineMap map = op.getMatchingIndexingMap(&init);
      return map == first && map.isProjectedPermutation() && map.getNumResults() == op.getNumParallelLoops();
    });
  }

  /// Whether the input's elements lie side by side along a reduction.
  bool readsRows(OpOperand *input) {
    for (AffineExpr expr : llvm::reverse(op.getMatchingIndexingMap(input).getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && sizes[dim.getPosition()] != 1)
        return isReduction(dim.getPosition());
    return true;
  }

  bool isReduction(unsigned loop) { return op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction; }

  void findLoops() {
    int64_t parallel = 1, reduced = 1;
    for (auto [loop, size] : llvm::enumerate(sizes))
      (isReduction(loop) ? reduced : parallel) *= size;
    OpOperand *largest = getLargestInput(op);
    const bool rows = !largest || readsRows(largest);
    if (forCores) {
      // Sums along rows that are many are divided by rows.
      if (!rows || parallel < kCoreParts)
        chooseLoops(std::min(kCoreParts, parallel * reduced / kCorePart), rows);
      return;
    }
    const int64_t width =
        rows ? 1 : kColumnBits / std::max(getElementTypeOrSelf(largest->get()).getIntOrFloatBitWidth(), 16u);
    const int64_t blocks = llvm::divideCeil(parallel, width);
    int64_t wanted = std::min(kBlocks / blocks, reduced / (rows ? kRowPart : kColumnPart));
    if (!rows && reduced >= kRowBlocks * kFewestRowsOfBlock && isReadByRows(largest->get()))
      wanted = kRowBlocks;
    if (wanted >= (rows ? kFewestRowParts : kFewestColumnParts))
      chooseLoops(wanted, rows);
  }

  void chooseLoops(int64_t wanted, bool rows) {
    // The outermost loops: what a part reads lies together.
    for (unsigned loop = 0; loop < sizes.size() && wanted > 1; ++loop) {
      if (!isReduction(loop) || sizes[loop] == 1)
        continue;
      // What is read along a row stays together, as far as a line of the cache.
      const int64_t most = rows && loop + 1 == sizes.size() && sizes[loop] > kLine ? sizes[loop] / kLine : wanted;
      const int64_t limit = std::min(wanted, most);
      const int64_t parts = sizes[loop] <= limit ? sizes[loop]
                            : canDivide(loop)    ? getLargestDivisor(sizes[loop], limit)
                                                 : 1;
      if (parts == 1)
        continue;
      loops.push_back({loop, parts, sizes[loop] / parts});
      wanted /= parts;
    }
  }

  /// Whether something reduces rows of the value, of another shape perhaps: layer normalization's gradient.
  static bool isReadByRows(Value value) {
    SmallVector<Value> shapes = {getReshaped(value)};
    while (!shapes.empty())
      for (Operation *user : shapes.pop_back_val().getUsers())
        if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
          shapes.push_back(user->getResult(0));
        else if (auto generic = dyn_cast<linalg::GenericOp>(user); generic && reducesRows(generic))
          return true;
    return false;
  }

  /// Inputs that step along the loop have an axis of their own for it, which can become two.
  bool canDivide(unsigned loop) {
    if (op.hasIndexSemantics())
      return false;
    return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
      AffineMap map = op.getMatchingIndexingMap(input);
      return llvm::count_if(map.getResults(), [&](AffineExpr expr) { return expr.isFunctionOfDim(loop); }) <= 1 &&
             llvm::all_of(map.getResults(),
                          [&](AffineExpr expr) { return !expr.isFunctionOfDim(loop) || isa<AffineDimExpr>(expr); });
    });
  }

  const SplitLoop *find(unsigned loop) const {
    auto found = llvm::find_if(loops, [&](const SplitLoop &split) { return split.loop == loop; });
    return found == loops.end() ? nullptr : &*found;
  }

  /// A loop that is divided is two, one behind the other.
  void renumber() {
    MLIRContext *context = op.getContext();
    for (unsigned loop = 0; loop < sizes.size(); ++loop) {
      const SplitLoop *split = find(loop);
      numbers.push_back(getAffineDimExpr(iterators.size(), context));
      iterators.push_back(split ? utils::IteratorType::parallel : op.getIteratorTypesArray()[loop]);
      if (split && split->size > 1)
        iterators.push_back(utils::IteratorType::reduction);
    }
  }

  /// The operand with two axes for each loop that is divided, and how it is read then.
  std::pair<Value, AffineMap> divideInput(ImplicitLocOpBuilder &b, OpOperand &input) {
    AffineMap map = op.getMatchingIndexingMap(&input);
    SmallVector<AffineExpr> exprs;
    SmallVector<int64_t> shape;
    SmallVector<ReassociationIndices> axes;
    for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
      axes.push_back({static_cast<int64_t>(exprs.size())});
      exprs.push_back(expr.replaceDims(numbers));
      auto dim = dyn_cast<AffineDimExpr>(expr);
      const SplitLoop *split = dim ? find(dim.getPosition()) : nullptr;
      if (!split || split->size == 1) {
        shape.push_back(cast<RankedTensorType>(input.get().getType()).getDimSize(axis));
        continue;
      }
      axes.back().push_back(static_cast<int64_t>(exprs.size()));
      exprs.push_back(getAffineDimExpr(cast<AffineDimExpr>(exprs.back()).getPosition() + 1, op.getContext()));
      llvm::append_range(shape, ArrayRef<int64_t>{split->parts, split->size});
    }
    Value value = input.get();
    if (auto type = dyn_cast<RankedTensorType>(value.getType()); type && shape != type.getShape())
      value = tensor::ExpandShapeOp::create(b, RankedTensorType::get(shape, type.getElementType()), value, axes);
    return {value, AffineMap::get(iterators.size(), 0, exprs, op.getContext())};
  }

  /// The axes of the parts among those of a result: a block of threads reads the parts of a result along a row, and a
  /// core makes its part of all results.
  template <class T> SmallVector<T> arrange(SmallVector<T> ofResult, SmallVector<T> ofParts) {
    if (forCores)
      std::swap(ofResult, ofParts);
    ofResult.append(ofParts);
    return ofResult;
  }

  linalg::GenericOp writeParts(ImplicitLocOpBuilder &b) {
    SmallVector<Value> inputs, inits;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto [value, map] = divideInput(b, *input);
      inputs.push_back(value);
      maps.push_back(map);
    }
    for (auto [init, yielded] : llvm::zip(op.getDpsInitsMutable(), op.getBody()->getTerminator()->getOperands())) {
      SmallVector<AffineExpr> exprs, partExprs;
      for (AffineExpr expr : op.getMatchingIndexingMap(&init).getResults())
        exprs.push_back(expr.replaceDims(numbers));
      auto type = cast<RankedTensorType>(init.get().getType());
      SmallVector<int64_t> partShape;
      for (const SplitLoop &split : loops) {
        partExprs.push_back(numbers[split.loop]);
        partShape.push_back(split.parts);
      }
      maps.push_back(AffineMap::get(iterators.size(), 0, arrange(exprs, partExprs), op.getContext()));
      const SmallVector<int64_t> shape = arrange(SmallVector<int64_t>(type.getShape()), partShape);
      Value identity = arith::ConstantOp::create(b, *arith::getNeutralElement(yielded.getDefiningOp()));
      Value empty = tensor::EmptyOp::create(b, shape, type.getElementType());
      inits.push_back(linalg::FillOp::create(b, identity, empty).getResult(0));
    }
    auto parts = linalg::GenericOp::create(b, ValueRange(inits).getTypes(), inputs, inits, maps, iterators);
    IRMapping mapping;
    op.getRegion().cloneInto(&parts.getRegion(), mapping);
    parts.walk(
        [&](linalg::IndexOp index) { index.setDim(cast<AffineDimExpr>(numbers[index.getDim()]).getPosition()); });
    return parts;
  }

  linalg::GenericOp writeSum(ImplicitLocOpBuilder &b, linalg::GenericOp parts) {
    const unsigned outer = op.getNumParallelLoops(), all = outer + loops.size();
    const SmallVector<utils::IteratorType> types =
        arrange(SmallVector<utils::IteratorType>(outer, utils::IteratorType::parallel),
                SmallVector<utils::IteratorType>(loops.size(), utils::IteratorType::reduction));
    AffineMap whole = AffineMap::getMultiDimIdentityMap(all, op.getContext());
    SmallVector<AffineMap> maps(parts->getNumResults(), whole);
    ArrayRef<AffineExpr> axes = whole.getResults();
    axes = forCores ? axes.take_back(outer) : axes.take_front(outer);
    maps.append(parts->getNumResults(), AffineMap::get(all, 0, axes, op.getContext()));
    return linalg::GenericOp::create(b, op.getResultTypes(), parts->getResults(), op.getDpsInits(), maps, types,
                                     [&](OpBuilder &inner, Location at, ValueRange elements) {
                                       SmallVector<Value> joined;
                                       const size_t count = elements.size() / 2;
                                       for (auto [number, yielded] :
                                            llvm::enumerate(op.getBody()->getTerminator()->getOperands())) {
                                         Operation *join = inner.clone(*yielded.getDefiningOp());
                                         join->setOperands({elements[count + number], elements[number]});
                                         joined.push_back(join->getResult(0));
                                       }
                                       linalg::YieldOp::create(inner, at, joined);
                                     });
  }

  linalg::GenericOp op;
  bool forCores;
  SmallVector<int64_t> sizes;
  SmallVector<SplitLoop> loops;
  SmallVector<AffineExpr> numbers; // the new outer loop, by loop
  SmallVector<utils::IteratorType> iterators;
};

struct SplitReductions : impl::SplitReductionsBase<SplitReductions> {
  using Base::Base;

  void runOnOperation() override {
    for (auto op : llvm::make_early_inc_range(getOperation().getBody().front().getOps<linalg::GenericOp>()))
      if (Split split(op, cores); split.isWanted())
        split.write();
  }
};

} // namespace
} // namespace distc
