//===- Rows.cpp - The innermost loops are reduced: a warp or a block a row -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/gpu/Reduction.h"
#include "passes/lower/gpu/Schedule.h"

using namespace mlir;

namespace distc::schedule {
namespace {

class RowKernel {
public:
  RowKernel(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &given)
      : w(w), op(op), space(given), reduction(*Reduction::match(op)), rows(given.getParallelSize()),
        columns(given.getReductionSize()) {
    if (space.reduction.empty()) // one column
      space.reduction.push_back({1, {}, SmallVector<int64_t>(space.getNumOperands(), 0)});
    // Neighbours that a thread reads at once, where there is enough for a warp.
    int64_t innermost = space.reduction.back().size;
    lanes = {/*alongReduction=*/true, static_cast<unsigned>(space.reduction.size() - 1), getVectorSize(op)};
    while (lanes.count > 1 && (innermost % lanes.count != 0 || columns < kWarp * lanes.count))
      lanes.count /= 2;
  }

  void write() { columns <= kWarpRow ? writeWarps() : writeBlocks(); }

private:
  /// Several rows a block, some or all threads of a warp each.
  void writeWarps() {
    int64_t threads = rows * kWarp <= 64 * 1024 ? 128 : 256;
    int64_t group = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(columns));
    int64_t groups = threads / group;
    w.setLaunch(llvm::divideCeil(rows, groups), threads);
    Value row = w.add(w.mul(w.getBlock(), groups), w.div(w.getThread(), group));
    // All threads stay for the exchange: those behind the last row read the first one.
    Value inside = rows % groups ? w.less(row, rows) : Value();
    if (inside)
      row = w.select(inside, row, w.number(0));
    Value lane = w.rem(w.getThread(), group);
    Point point{w.delinearize(row, space.parallel), {}};
    KernelWriter::Values partial = reduction.joinLanes(w, walk(point, lane, group), group);
    w.when(w.both(inside, w.equal(lane, 0)), [&] { storeReduced(w, reduction, op, space, point, partial); });
  }

  void writeBlocks() {
    // Few rows have few blocks: each should be large.
    int64_t threads = columns <= 8 * 1024 && rows > 256 ? 256 : 1024;
    w.setLaunch(rows, threads);
    Point point{w.delinearize(w.getBlock(), space.parallel), {}};
    KernelWriter::Values partial = reduction.joinBlock(w, walk(point, w.getThread(), threads), threads);
    w.when(w.equal(w.getThread(), 0), [&] { storeReduced(w, reduction, op, space, point, partial); });
  }

  /// What one of `threads` threads of a row finds.
  KernelWriter::Values walk(Point point, Value thread, int64_t threads) {
    SmallVector<int64_t> sizes = llvm::map_to_vector(space.reduction, [](const Loop &loop) { return loop.size; });
    sizes.back() /= lanes.count;
    int64_t steps = columns / lanes.count;
    return w.loop(thread, w.number(steps), threads, reduction.getIdentities(w), [&](Value at, ValueRange partial) {
      point.reduction = w.delinearize(at, sizes);
      point.reduction.back() = w.mul(point.reduction.back(), lanes.count);
      return accumulate(w, op, space, point, lanes, partial);
    });
  }

  KernelWriter &w;
  linalg::LinalgOp op;
  IterationSpace space;
  Reduction reduction;
  int64_t rows, columns;
  Lanes lanes;
};

bool matchesRows(Kernel &kernel) {
  const IterationSpace *space = kernel.getOnlySpace();
  return space && kernel.ops[0].getNumReductionLoops() > 0 && Reduction::match(kernel.ops[0]) &&
         readsRows(kernel.ops[0], *space);
}

void writeRows(Kernel &kernel, KernelWriter &writer) { RowKernel(writer, kernel.ops[0], *kernel.spaces[0]).write(); }

} // namespace

const Schedule kRows{"rows", matchesRows, writeRows};

} // namespace distc::schedule
