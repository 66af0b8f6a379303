//===- Transpose.cpp - Tiles in shared memory -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/lower/gpu/Schedule.h"

using namespace mlir;

namespace distc::schedule {
namespace {

constexpr int64_t kTile = 32, kRowsAtOnce = 8;
/// Loops that are shorter leave most of a tile empty.
constexpr int64_t kShortest = 8;
/// Of the 48 KiB that a block has without asking.
constexpr int64_t kMostTransposed = 4;

/// The loop along which inputs are contiguous that the result walks across.
struct Transposition {
  unsigned loop;
  SmallVector<unsigned> inputs;
};

std::optional<Transposition> match(linalg::LinalgOp op, const IterationSpace &space) {
  if (!space.reduction.empty() || space.parallel.size() < 2)
    return std::nullopt;
  const Loop &innermost = space.parallel.back();
  Transposition found;
  for (unsigned operand = 0; operand < op.getNumDpsInputs(); ++operand) {
    if (innermost.strides[operand] <= 1)
      continue;
    const auto *along = llvm::find_if(space.parallel, [&](const Loop &loop) { return loop.strides[operand] == 1; });
    if (along == space.parallel.end())
      continue;
    unsigned loop = along - space.parallel.begin();
    if (!found.inputs.empty() && found.loop != loop)
      return std::nullopt;
    found.loop = loop;
    found.inputs.push_back(operand);
  }
  if (found.inputs.empty() || found.inputs.size() > kMostTransposed || innermost.size < kShortest ||
      space.parallel[found.loop].size < kShortest)
    return std::nullopt;
  return found;
}

/// A block makes a tile of 32 x 32 elements of the result: across, the loop along which transposed inputs are
/// contiguous; along, the innermost one.
class TransposeKernel {
public:
  TransposeKernel(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &space)
      : w(w), op(op), space(space), transposition(*match(op, space)), along(space.parallel.size() - 1) {}

  void write() {
    SmallVector<int64_t> tiles = llvm::map_to_vector(space.parallel, [](const Loop &loop) { return loop.size; });
    for (unsigned loop : {transposition.loop, along})
      tiles[loop] = llvm::divideCeil(tiles[loop], kTile);
    w.setLaunch(computeProduct(tiles), kTile * kRowsAtOnce);
    tile = w.delinearize(w.getBlock(), tiles);
    fast = w.rem(w.getThread(), kTile);
    slow = w.div(w.getThread(), kTile);
    for (unsigned input : transposition.inputs) {
      Type element = cast<MemRefType>(op->getOperand(input).getType()).getElementType();
      // A column of padding: threads that read a column of the tile find it in different banks.
      shared.push_back(w.addShared({kTile, kTile + 1}, element));
    }
    for (int64_t row = 0; row < kTile; row += kRowsAtOnce)
      read(row);
    w.barrier();
    for (int64_t row = 0; row < kTile; row += kRowsAtOnce)
      writeRow(row);
  }

private:
  /// The element at (across, along) in the block's tile, where there is one.
  void at(Value across, Value inRow, llvm::function_ref<void(const Point &)> write) {
    Point point{tile, {}};
    Value inside;
    for (auto [loop, position] : {std::pair(transposition.loop, across), std::pair(along, inRow)}) {
      point.parallel[loop] = w.add(w.mul(tile[loop], kTile), position);
      if (int64_t size = space.parallel[loop].size; size % kTile)
        inside = w.both(inside, w.less(point.parallel[loop], size));
    }
    w.when(inside, [&] { write(point); });
  }

  void read(int64_t row) {
    Value inRow = w.add(slow, w.number(row));
    at(fast, inRow, [&](const Point &point) {
      for (auto [input, memory] : llvm::zip(transposition.inputs, shared)) {
        Value element = w.load(op, input, w.address(space, input, point));
        memref::StoreOp::create(w.b, element, memory, ValueRange{w.toIndex(inRow), w.toIndex(fast)});
      }
    });
  }

  void writeRow(int64_t row) {
    Value across = w.add(slow, w.number(row));
    at(across, fast, [&](const Point &point) {
      KernelWriter::Values elements;
      for (unsigned operand = 0; operand < space.getNumOperands(); ++operand)
        elements.push_back(load(operand, across, point));
      KernelWriter::Values results = w.writeBody(op, space, elements, point);
      for (auto [result, value] : llvm::enumerate(results))
        w.store(op, result, value, w.address(space, op.getNumDpsInputs() + result, point));
    });
  }

  Value load(unsigned operand, Value across, const Point &point) {
    for (auto [input, memory] : llvm::zip(transposition.inputs, shared))
      if (input == operand)
        return memref::LoadOp::create(w.b, memory, ValueRange{w.toIndex(fast), w.toIndex(across)});
    Value address = w.address(space, operand, point);
    return operand < op.getNumDpsInputs() ? w.load(op, operand, address)
                                          : w.loadInitial(op, operand - op.getNumDpsInputs(), address);
  }

  KernelWriter &w;
  linalg::LinalgOp op;
  const IterationSpace &space;
  Transposition transposition;
  unsigned along;
  KernelWriter::Values tile, shared;
  Value fast, slow; // of the thread, in the tile
};

bool matchesTranspose(Kernel &kernel) {
  const IterationSpace *space = kernel.getOnlySpace();
  return space && !readsByIndex(kernel.ops[0]) && match(kernel.ops[0], *space);
}

void writeTranspose(Kernel &kernel, KernelWriter &writer) {
  TransposeKernel(writer, kernel.ops[0], *kernel.spaces[0]).write();
}

} // namespace

const Schedule kTranspose{"transpose", matchesTranspose, writeTranspose};

} // namespace distc::schedule
