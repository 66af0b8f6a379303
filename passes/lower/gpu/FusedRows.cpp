//===- FusedRows.cpp - Several operations over the same rows in one kernel ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/lower/gpu/Reduction.h"
#include "passes/lower/gpu/RowForm.h"
#include "passes/lower/gpu/Schedule.h"

using namespace mlir;

namespace distc::schedule {
namespace {

/// What a block has without asking.
constexpr int64_t kSharedBytes = 48 * 1024;
/// Results of the exchange between warps.
constexpr int64_t kExchangeBytes = 4 * 1024;

bool isInside(Value buffer) { return getReshaped(buffer).getDefiningOp<memref::AllocOp>() != nullptr; }

/// The rows of the first reduction are those of all.
std::optional<RowForm> getForm(Kernel &kernel) {
  for (auto [op, space] : llvm::zip(kernel.ops, kernel.spaces))
    if (succeeded(space) && op.getNumReductionLoops() > 0)
      return RowForm{space->getParallelSize(), space->getReductionSize()};
  return std::nullopt;
}

/// Bytes of one row that lie in shared memory.
int64_t getRowBytes(Kernel &kernel, const RowForm &form) {
  int64_t bytes = 0;
  for (Value buffer : kernel.getWritten())
    if (isInside(buffer) && !form.isPerRow(buffer))
      bytes += form.columns * llvm::divideCeil(cast<MemRefType>(buffer.getType()).getElementTypeBitWidth(), 8);
  return bytes;
}

/// Reads of what the kernel makes, at computed places of the row.
SmallVector<memref::LoadOp> getReadsOfMade(linalg::LinalgOp op, const llvm::SetVector<Value> &made) {
  SmallVector<memref::LoadOp> reads;
  op->walk([&](memref::LoadOp load) {
    if (made.contains(getReshaped(load.getMemRef())))
      reads.push_back(load);
  });
  return reads;
}

bool fits(linalg::LinalgOp op, const RowForm &form, Kernel &kernel, const llvm::SetVector<Value> &made) {
  std::optional<RowForm::Kind> kind = form.getKind(op);
  if (!kind || (*kind == RowForm::Kind::Reduction && !Reduction::match(op)))
    return false;
  for (OpOperand &operand : op->getOpOperands())
    if (made.contains(getReshaped(operand.get())) && !form.isOwnRow(operand))
      return false;
  for (memref::LoadOp load : getReadsOfMade(op, made))
    if (!form.isOwnRow(op, load.getMemRef(), load.getIndices()))
      return false;
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &result) {
    return kernel.initial.contains(result.get()) || !op.payloadUsesValueFromOperand(&result);
  });
}

/// A group of threads has a row: a warp or a part of one, or a block. A value of a row is in a register of each of
/// them; whole rows that only the kernel uses lie in shared memory, where each thread reads what it wrote itself.
class FusedRowKernel {
public:
  FusedRowKernel(KernelWriter &w, Kernel &kernel)
      : w(w), kernel(kernel), form(*getForm(kernel)), made(kernel.getWritten()) {
    byWarps = form.columns <= kWarpRow;
    threads = byWarps ? 128 : form.columns <= 4096 ? 256 : 512;
    group = byWarps ? std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(form.columns)) : threads;
    while (threads > kWarp && threads / group * getRowBytes(kernel, form) > kSharedBytes - kExchangeBytes)
      threads /= 2;
    if (!byWarps)
      group = threads;
  }

  void write() {
    int64_t groups = threads / group;
    w.setLaunch(llvm::divideCeil(form.rows, groups), threads);
    Value ofBlock = w.div(w.getThread(), group);
    row = groups == 1 ? w.getBlock() : w.add(w.mul(w.getBlock(), groups), ofBlock);
    lane = groups == 1 && group == threads ? w.getThread() : w.rem(w.getThread(), group);
    begin = w.mul(ofBlock, form.columns);
    end = w.number(form.columns);
    // All threads stay for the exchange: a group behind the last row has a row without elements.
    if (form.rows % groups) {
      inside = w.less(row, form.rows);
      row = w.select(inside, row, w.number(0));
      end = w.select(inside, end, w.number(0));
    }
    for (Value buffer : made)
      if (isInside(buffer) && !form.isPerRow(buffer))
        shared[buffer] = w.addShared({groups * form.columns}, cast<MemRefType>(buffer.getType()).getElementType());
    w.readElsewhere = [this](memref::LoadOp load) { return readMade(load); };
    for (linalg::LinalgOp op : kernel.ops)
      writeOp(op);
  }

private:
  void writeOp(linalg::LinalgOp op) {
    // Other threads' elements of the row.
    if (!getReadsOfMade(op, made).empty())
      w.barrier();
    switch (*form.getKind(op)) {
    case RowForm::Kind::Map:
      w.loop(lane, end, group, {}, [&](Value column, ValueRange) {
        for (auto [result, value] : llvm::enumerate(step(op, column, getInitial(op))))
          storeElement(op, result, value, column);
        return KernelWriter::Values();
      });
      return;
    case RowForm::Kind::Reduction:
      return keep(op, reduce(op));
    case RowForm::Kind::PerRow:
      return keep(op, step(op, w.number(0), getInitial(op)));
    }
  }

  KernelWriter::Values reduce(linalg::LinalgOp op) {
    Reduction reduction = *Reduction::match(op);
    KernelWriter::Values partial = w.loop(lane, end, group, reduction.getIdentities(w),
                                          [&](Value column, ValueRange partial) { return step(op, column, partial); });
    partial = byWarps ? reduction.joinLanes(w, partial, group) : reduction.joinBlock(w, partial, threads);
    return reduction.join(w, getInitial(op), partial);
  }

  /// The body at one column.
  KernelWriter::Values step(linalg::LinalgOp op, Value column, ValueRange results) {
    KernelWriter::Values positions = getPositions(op, column), elements;
    for (OpOperand *input : op.getDpsInputOperands())
      elements.push_back(loadElement(op, *input, column));
    llvm::append_range(elements, results);
    return w.writeBody(op, elements, [&](unsigned dim) { return positions[dim]; });
  }

  KernelWriter::Values getPositions(linalg::LinalgOp op, Value column) {
    SmallVector<int64_t> sizes = op.getStaticLoopRanges();
    unsigned rowLoops = *form.getRowLoops(op);
    KernelWriter::Values positions = w.delinearize(row, ArrayRef(sizes).take_front(rowLoops));
    llvm::append_range(positions, w.delinearize(column, ArrayRef(sizes).drop_front(rowLoops)));
    return positions;
  }

  KernelWriter::Values getInitial(linalg::LinalgOp op) {
    return llvm::map_to_vector(op.getDpsInits(), [&](Value result) -> Value {
      Value fill = kernel.initial.lookup(result);
      return fill ? w.lookup(fill) : Value();
    });
  }

  Value loadElement(linalg::LinalgOp op, OpOperand &operand, Value column) {
    Value buffer = getReshaped(operand.get());
    if (!isa<MemRefType>(buffer.getType()))
      return w.lookup(buffer);
    if (Value value = ofRow.lookup(buffer))
      return value;
    if (Value memory = shared.lookup(buffer))
      return memref::LoadOp::create(w.b, memory, w.toIndex(w.add(begin, column)));
    return memref::LoadOp::create(w.b, w.lookup(operand.get()), w.getIndices(op, operand, getPositions(op, column)));
  }

  void storeElement(linalg::LinalgOp op, unsigned result, Value value, Value column) {
    OpOperand &operand = *op.getDpsInitOperand(result);
    if (Value memory = shared.lookup(getReshaped(operand.get())))
      memref::StoreOp::create(w.b, value, memory, w.toIndex(w.add(begin, column)));
    else
      memref::StoreOp::create(w.b, value, w.lookup(operand.get()), w.getIndices(op, operand, getPositions(op, column)));
  }

  /// The row's values in registers; one thread writes those that others use.
  void keep(linalg::LinalgOp op, ValueRange values) {
    for (auto [result, value] : llvm::enumerate(values)) {
      Value buffer = getReshaped(op.getDpsInits()[result]);
      ofRow[buffer] = value;
      if (!isInside(buffer))
        w.when(w.both(inside, w.equal(lane, 0)),
               [&, result = result, value = value] { storeElement(op, result, value, w.number(0)); });
    }
  }

  /// What a body reads by index of the kernel's own values.
  Value readMade(memref::LoadOp load) {
    Value buffer = getReshaped(load.getMemRef());
    if (Value value = ofRow.lookup(buffer))
      return value;
    Value memory = shared.lookup(buffer);
    if (!memory)
      return {};
    Value column = load.getIndices().back();
    Value first = w.toIndex(begin);
    return memref::LoadOp::create(w.b, memory, w.b.createOrFold<arith::AddIOp>(first, column));
  }

  KernelWriter &w;
  Kernel &kernel;
  RowForm form;
  llvm::SetVector<Value> made;
  bool byWarps;
  int64_t threads, group; // threads a block, a row
  Value row, lane, begin, end, inside;
  llvm::DenseMap<Value, Value> ofRow, shared; // by buffer
};

bool matches(Kernel &kernel) {
  std::optional<RowForm> form = getForm(kernel);
  if (!form || kernel.ops.size() < 2 || getRowBytes(kernel, *form) > kSharedBytes - kExchangeBytes)
    return false;
  llvm::SetVector<Value> made = kernel.getWritten();
  return llvm::all_of(kernel.ops, [&](linalg::LinalgOp op) { return fits(op, *form, kernel, made); });
}

void write(Kernel &kernel, KernelWriter &writer) { FusedRowKernel(writer, kernel).write(); }

} // namespace

const Schedule kFusedRows{"fused-rows", matches, write};

} // namespace distc::schedule
