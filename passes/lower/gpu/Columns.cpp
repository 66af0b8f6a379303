//===- Columns.cpp - The outermost loops are reduced: blocks of columns --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/gpu/Reduction.h"
#include "passes/lower/gpu/Schedule.h"

using namespace mlir;

namespace distc::schedule {
namespace {

/// Of a block's shared memory.
constexpr int64_t kSharedBytes = 32 * 1024;

/// Rows that a thread reads before it joins them.
constexpr int64_t kRowsAtOnce = 4;

/// A block is some columns wide, of which a thread has `lanes` neighbours. Its threads walk down the rows, `height` of
/// them at a time, and join what they found.
class ColumnKernel {
public:
  ColumnKernel(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &space)
      : w(w), op(op), space(space), reduction(*Reduction::match(op)), rows(space.getReductionSize()),
        lanes(findLanes()) {
    int64_t vectors = space.parallel[lanes.loop].size / lanes.count;
    // 128 bytes of a row are enough for whole lines of the cache, and more blocks fill the chip.
    width = std::min<int64_t>(lanes.count > 1 ? kWarp / 4 : kWarp, llvm::PowerOf2Ceil(vectors));
    // 8 rows and more a thread; whole warps. Many blocks share a multiprocessor, of few each should be large.
    const int64_t blocks = space.getParallelSize() / (lanes.count * width);
    int64_t most = lanes.count > 1 && blocks > 256 ? 256 : 1024;
    // Half of the threads store what they found.
    int64_t bytes = 0;
    for (Value init : op.getDpsInits())
      bytes += lanes.count * llvm::divideCeil(cast<MemRefType>(init.getType()).getElementTypeBitWidth(), 8);
    while (most / 2 * bytes > kSharedBytes)
      most /= 2;
    int64_t threads = std::clamp<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(rows, 8)) * width, 64, most);
    height = threads / width;
  }

  void write() {
    SmallVector<int64_t> tiles;
    for (const Loop &loop : space.parallel)
      tiles.push_back(loop.size);
    const int64_t vectors = tiles[lanes.loop] / lanes.count;
    tiles[lanes.loop] = llvm::divideCeil(vectors, width);
    w.setLaunch(computeProduct(tiles), width * height);
    Value row = w.div(w.getThread(), width), column = w.rem(w.getThread(), width);
    Point point{w.delinearize(w.getBlock(), tiles), {}};
    Value &position = point.parallel[lanes.loop];
    position = w.add(w.mul(position, width), column);
    // All threads meet at the barriers: those behind the last column read the first one.
    Value inside = vectors % width ? w.less(position, vectors) : Value();
    if (inside)
      position = w.select(inside, position, w.number(0));
    position = w.mul(position, lanes.count);
    KernelWriter::Values partial = joinRows(walk(point, row), row, column);
    w.when(w.both(inside, w.equal(row, 0)), [&] {
      for (int64_t lane = 0; lane < lanes.count; ++lane)
        storeReduced(w, reduction, op, space, w.getLane(point, lanes, lane), ofLane(partial, lane));
    });
  }

private:
  /// Neighbours along which the largest input is contiguous: 16 bytes of it.
  Lanes findLanes() {
    Lanes found{/*alongReduction=*/false, static_cast<unsigned>(space.parallel.size() - 1), 1};
    OpOperand *input = getLargestInput(op);
    if (!input)
      return found;
    int64_t step = INT64_MAX;
    for (auto [number, loop] : llvm::enumerate(space.parallel))
      if (int64_t stride = std::abs(loop.strides[input->getOperandNumber()]); stride != 0 && stride < step) {
        step = stride;
        found.loop = number;
      }
    if (step == 1)
      found.count =
          std::max<int64_t>(128 / std::max(getElementTypeOrSelf(input->get()).getIntOrFloatBitWidth(), 16u), 1);
    while (space.parallel[found.loop].size % found.count != 0)
      found.count /= 2;
    return found;
  }

  ValueRange ofLane(ValueRange partial, int64_t lane) {
    const size_t results = op.getNumDpsInits();
    return partial.slice(lane * results, results);
  }

  KernelWriter::Values walk(Point point, Value row) {
    KernelWriter::Values identities;
    for (int64_t lane = 0; lane < lanes.count; ++lane)
      llvm::append_range(identities, reduction.getIdentities(w));
    // Several loads are on their way at once; what they give is joined in the order of the rows.
    const int64_t whole = rows / (kRowsAtOnce * height) * (kRowsAtOnce * height);
    KernelWriter::Values partial = walk(point, row, 0, whole, kRowsAtOnce, identities);
    return walk(point, row, whole, rows, 1, partial);
  }

  /// From row `begin` to `end`, `count` of them at a time.
  KernelWriter::Values walk(Point point, Value row, int64_t begin, int64_t end, int64_t count,
                            KernelWriter::Values partial) {
    if (begin == end)
      return partial;
    Value first = begin == 0 ? row : w.add(row, w.number(begin));
    return w.loop(first, w.number(end), count * height, partial, [&](Value at, ValueRange soFar) {
      SmallVector<Point> points;
      SmallVector<SmallVector<KernelWriter::Values>> loaded;
      for (int64_t i = 0; i < count; ++i) {
        points.push_back(point);
        points.back().reduction = w.delinearize(i == 0 ? at : w.add(at, w.number(i * height)), space.reduction);
        loaded.push_back(loadInputs(w, op, space, points.back(), lanes));
      }
      KernelWriter::Values sums(soFar);
      for (auto [place, inputs] : llvm::zip(points, loaded))
        sums = accumulateLanes(w, op, space, place, lanes, inputs, sums);
      return sums;
    });
  }

  /// A tree: the upper half of the block joins what the lower half has. The first row has the result.
  KernelWriter::Values joinRows(KernelWriter::Values partial, Value row, Value column) {
    KernelWriter::Values shared =
        llvm::map_to_vector(partial, [&](Value value) { return w.addShared({height / 2, width}, value.getType()); });
    Value at = w.toIndex(column);
    for (int64_t half = height / 2; half > 0; half /= 2) {
      if (half != height / 2)
        w.barrier(); // what was stored before is read
      w.when(w.both(w.less(row, 2 * half), atLeast(row, half)), [&] {
        Value place = w.toIndex(arith::SubIOp::create(w.b, row, w.number(half)));
        for (auto [memory, value] : llvm::zip(shared, partial))
          memref::StoreOp::create(w.b, value, memory, ValueRange{place, at});
      });
      w.barrier();
      partial = joinStored(partial, shared, row, at, half);
    }
    return partial;
  }

  KernelWriter::Values joinStored(KernelWriter::Values partial, ValueRange shared, Value row, Value at, int64_t half) {
    auto types = llvm::map_to_vector(partial, [](Value value) { return value.getType(); });
    auto branch = scf::IfOp::create(w.b, types, w.less(row, half), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(w.b);
    w.b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(w.b, partial);
    w.b.setInsertionPointToStart(branch.thenBlock());
    KernelWriter::Values others = llvm::map_to_vector(shared, [&](Value memory) -> Value {
      return memref::LoadOp::create(w.b, memory, ValueRange{w.toIndex(row), at});
    });
    KernelWriter::Values joined;
    for (int64_t lane = 0; lane < lanes.count; ++lane)
      llvm::append_range(joined, reduction.join(w, ofLane(partial, lane), ofLane(others, lane)));
    scf::YieldOp::create(w.b, joined);
    return llvm::to_vector(ValueRange(branch.getResults()));
  }

  Value atLeast(Value x, int64_t bound) {
    return arith::CmpIOp::create(w.b, arith::CmpIPredicate::uge, x, w.number(bound));
  }

  KernelWriter &w;
  linalg::LinalgOp op;
  const IterationSpace &space;
  Reduction reduction;
  int64_t rows;
  Lanes lanes;           // of neighbouring columns
  int64_t width, height; // of a block, in threads
};

bool matchesColumns(Kernel &kernel) {
  const IterationSpace *space = kernel.getOnlySpace();
  return space && !space->reduction.empty() && !space->parallel.empty() && Reduction::match(kernel.ops[0]) &&
         !readsRows(kernel.ops[0], *space);
}

void writeColumns(Kernel &kernel, KernelWriter &writer) {
  ColumnKernel(writer, kernel.ops[0], *kernel.spaces[0]).write();
}

} // namespace

const Schedule kColumns{"columns", matchesColumns, writeColumns};

} // namespace distc::schedule
