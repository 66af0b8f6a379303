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

/// A block is `width` columns wide. Its threads walk down the rows, `height` of them at a time, and join what they
/// found.
class ColumnKernel {
public:
  ColumnKernel(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &space)
      : w(w), op(op), space(space), reduction(*Reduction::match(op)), rows(space.getReductionSize()) {
    columns = space.parallel.back().size;
    width = std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(columns));
    // 8 rows and more a thread; whole warps.
    int64_t threads = std::clamp<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(rows, 8)) * width, 64, 1024);
    height = threads / width;
  }

  void write() {
    SmallVector<int64_t> tiles;
    for (const Loop &loop : space.parallel)
      tiles.push_back(loop.size);
    tiles.back() = llvm::divideCeil(columns, width);
    w.setLaunch(computeProduct(tiles), width * height);
    Value row = w.div(w.getThread(), width), column = w.rem(w.getThread(), width);
    Point point{w.delinearize(w.getBlock(), tiles), {}};
    Value position = w.add(w.mul(point.parallel.back(), width), column);
    // All threads meet at the barriers: those behind the last column read the first one.
    Value inside = columns % width ? w.less(position, columns) : Value();
    point.parallel.back() = inside ? w.select(inside, position, w.number(0)) : position;
    KernelWriter::Values partial = joinRows(walk(point, row), row, column);
    w.when(w.both(inside, w.equal(row, 0)), [&] { storeReduced(w, reduction, op, space, point, partial); });
  }

private:
  KernelWriter::Values walk(Point point, Value row) {
    Lanes one{/*alongReduction=*/false, 0, 1};
    return w.loop(row, w.number(rows), height, reduction.getIdentities(w), [&](Value at, ValueRange partial) {
      point.reduction = w.delinearize(at, space.reduction);
      return accumulate(w, op, space, point, one, partial);
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
    scf::YieldOp::create(w.b, reduction.join(w, partial, others));
    return llvm::to_vector(ValueRange(branch.getResults()));
  }

  Value atLeast(Value x, int64_t bound) {
    return arith::CmpIOp::create(w.b, arith::CmpIPredicate::uge, x, w.number(bound));
  }

  KernelWriter &w;
  linalg::LinalgOp op;
  const IterationSpace &space;
  Reduction reduction;
  int64_t rows, columns, width, height;
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
