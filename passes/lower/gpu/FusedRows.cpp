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
#include "llvm/ADT/MapVector.h"

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

/// How a row lies over a group of threads: a warp or a part of one, or a block.
struct RowLayout {
  int64_t threads, group; // a block has, and a row
  /// Neighbours that a thread takes at once, and how many of a row's elements each has in registers. Where there are
  /// none, the row is too long for that, and each operation goes through it again.
  int64_t vector = 1, held = 0;
  /// What only the kernel uses of whole rows and lies in shared memory, where each thread reads what it wrote itself,
  /// or what others wrote.
  llvm::SetVector<Value> shared;

  static constexpr int64_t kHeldElements = 8, kMinThreads = 128, kMaxThreads = 1024;
  /// A multiprocessor's, which the threads of a block share; a thread's for elements, where others are left for
  /// addresses and what is computed of them. More would be spilled.
  static constexpr int64_t kBlockRegisters = 65536, kMaxRegisters = 160, kOtherRegisters = 24;

  RowLayout(Kernel &kernel, const RowForm &form) {
    const llvm::SetVector<Value> made = kernel.getWritten();
    llvm::SetVector<Value> rows(made), indexed;
    for (linalg::LinalgOp op : kernel.ops) {
      for (OpOperand *input : op.getDpsInputOperands())
        rows.insert(getReshaped(input->get()));
      for (memref::LoadOp load : getReadsOfMade(op, made))
        indexed.insert(getReshaped(load.getMemRef()));
    }
    rows.remove_if([&](Value buffer) { return !isa<MemRefType>(buffer.getType()) || form.isPerRow(buffer); });
    vector = form.columns % 4 == 0 ? 4 : 1;
    group = std::max<int64_t>(kWarp, llvm::PowerOf2Ceil(llvm::divideCeil(form.columns, kHeldElements)));
    if (int64_t vectors = llvm::PowerOf2Ceil(form.columns / vector); vectors < kWarp)
      group = vectors;
    // A vocabulary's row takes all threads of a block, which then hold more of it each.
    group = std::min(group, kMaxThreads);
    held = llvm::divideCeil(form.columns, group * vector) * vector;
    if (held * static_cast<int64_t>(rows.size()) >
        std::min(kMaxRegisters, kBlockRegisters / std::max(group, kMinThreads) - kOtherRegisters)) {
      vector = 1;
      held = 0;
      group = form.columns <= kWarpRow ? std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(form.columns))
              : form.columns <= 4096   ? 256
                                       : 512;
    }
    threads = group <= kWarp ? kMinThreads : group;
    for (Value buffer : made)
      if (isInside(buffer) && !form.isPerRow(buffer) && (held == 0 || indexed.contains(buffer)))
        shared.insert(buffer);
    // A block that has several rows has fewer where they do not fit.
    while (isOfWarps() && threads > kWarp && threads / group * getRowBytes(form) > kSharedBytes - kExchangeBytes)
      threads /= 2;
  }

  bool isOfWarps() const { return group <= kWarp; }
  bool fits(const RowForm &form) const { return getRowBytes(form) <= kSharedBytes - kExchangeBytes; }

private:
  /// Bytes of one row that lie in shared memory.
  int64_t getRowBytes(const RowForm &form) const {
    int64_t bytes = 0;
    for (Value buffer : shared)
      bytes += form.columns * llvm::divideCeil(cast<MemRefType>(buffer.getType()).getElementTypeBitWidth(), 8);
    return bytes;
  }
};

/// A value of a row is in a register of each thread of its group.
class FusedRowKernel {
public:
  FusedRowKernel(KernelWriter &w, Kernel &kernel)
      : w(w), kernel(kernel), form(*getForm(kernel)), made(kernel.getWritten()), layout(kernel, form) {}

  void write() {
    const auto [threads, group] = std::pair(layout.threads, layout.group);
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
    for (Value buffer : layout.shared)
      shared[buffer] = w.addShared({groups * form.columns}, cast<MemRefType>(buffer.getType()).getElementType());
    findColumns();
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
      if (layout.held)
        return mapHeld(op);
      w.loop(lane, end, layout.group, {}, [&](Value column, ValueRange) {
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
    KernelWriter::Values partial = reduction.getIdentities(w);
    if (layout.held)
      for (auto [slot, at] : llvm::enumerate(columns)) {
        auto [column, isElement] = at;
        KernelWriter::Values next = step(op, column, partial, slot);
        for (auto [sum, joined] : llvm::zip(partial, next))
          sum = isElement ? w.select(isElement, joined, sum) : joined;
      }
    else
      partial = w.loop(lane, end, layout.group, partial,
                       [&](Value column, ValueRange partial) { return step(op, column, partial); });
    partial = layout.isOfWarps() ? reduction.joinLanes(w, partial, layout.group)
                                 : reduction.joinBlock(w, partial, layout.threads);
    return reduction.join(w, getInitial(op), partial);
  }

  /// The columns of the thread's elements. Neighbours of one vector are all in the row or none is: without a condition
  /// all are, for all threads; with one that does not hold, the columns are the row's first, so that what is read lies
  /// in memory.
  void findColumns() {
    for (int64_t slot = 0; slot < layout.held; slot += layout.vector) {
      const int64_t chunk = slot / layout.vector * layout.group;
      Value first = w.mul(w.add(lane, w.number(chunk)), layout.vector), isElement;
      if ((chunk + layout.group) * layout.vector > form.columns) {
        isElement = w.less(first, form.columns);
        first = w.select(isElement, first, w.number(0));
      }
      for (int64_t i = 0; i < layout.vector; ++i)
        columns.push_back({w.add(first, w.number(i)), isElement});
    }
  }

  void mapHeld(linalg::LinalgOp op) {
    SmallVector<KernelWriter::Values> results(op.getNumDpsInits());
    for (auto [slot, at] : llvm::enumerate(columns))
      for (auto [values, value] : llvm::zip(results, step(op, at.first, getInitial(op), slot)))
        values.push_back(value);
    for (auto [result, values] : llvm::enumerate(results)) {
      OpOperand &operand = *op.getDpsInitOperand(result);
      Value buffer = getReshaped(operand.get());
      held[buffer] = values;
      Value memory = shared.lookup(buffer);
      if (isInside(buffer) && !memory)
        continue;
      for (int64_t slot = 0; slot < layout.held; slot += layout.vector) {
        auto [column, isElement] = columns[slot];
        ValueRange vector = ValueRange(values).slice(slot, layout.vector);
        w.when(isElement ? w.both(inside, isElement) : inside, [&, column = column, result = result] {
          if (!memory && canTakeVector(buffer))
            return w.storeVector(w.getLine(buffer), vector, getOwnAddress(column));
          for (auto [lane, value] : llvm::enumerate(vector))
            storeElement(op, result, value, w.add(column, w.number(lane)));
        });
      }
    }
  }

  /// Elements of one bit lie in a byte each, but in a vector's memory side by side.
  bool canTakeVector(Value buffer) const {
    return layout.vector > 1 && cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() >= 8;
  }

  /// Of a buffer of whole rows.
  Value getOwnAddress(Value column) { return w.add(w.mul(row, form.columns), column); }

  /// A row that the kernel is given, as far as the thread has it: read once, whichever operations ask for it.
  const KernelWriter::Values &loadHeld(OpOperand &operand) {
    Value buffer = getReshaped(operand.get());
    KernelWriter::Values &values = held[buffer];
    if (!values.empty())
      return values;
    Value line = w.getLine(buffer);
    for (int64_t slot = 0; slot < layout.held; slot += layout.vector) {
      Value address = getOwnAddress(columns[slot].first);
      if (canTakeVector(buffer))
        llvm::append_range(values, w.loadVector(line, address, layout.vector));
      else
        for (int64_t lane = 0; lane < layout.vector; ++lane)
          values.push_back(memref::LoadOp::create(w.b, line, w.toIndex(w.add(address, w.number(lane)))));
    }
    return values;
  }

  /// The body at one column, which the thread may hold.
  KernelWriter::Values step(linalg::LinalgOp op, Value column, ValueRange results, std::optional<int64_t> slot = {}) {
    KernelWriter::Values positions = getPositions(op, column), elements;
    for (OpOperand *input : op.getDpsInputOperands())
      elements.push_back(slot && isHeld(*input) ? loadHeld(*input)[*slot] : loadElement(op, *input, column));
    llvm::append_range(elements, results);
    return w.writeBody(op, elements, [&](unsigned dim) { return positions[dim]; });
  }

  /// Whether the operand is the thread's own elements of the row.
  bool isHeld(OpOperand &operand) const {
    Value buffer = getReshaped(operand.get());
    return isa<MemRefType>(buffer.getType()) && !form.isPerRow(buffer) && form.isOwnRow(operand) &&
           (held.contains(buffer) || !made.contains(buffer));
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
  RowLayout layout;
  Value row, lane, begin, end, inside;
  SmallVector<std::pair<Value, Value>> columns; // with the condition
  llvm::DenseMap<Value, Value> ofRow, shared;   // by buffer
  llvm::MapVector<Value, KernelWriter::Values> held;
};

bool matchesFusedRows(Kernel &kernel) {
  std::optional<RowForm> form = getForm(kernel);
  if (!form || kernel.ops.size() < 2 || !RowLayout(kernel, *form).fits(*form))
    return false;
  llvm::SetVector<Value> made = kernel.getWritten();
  return llvm::all_of(kernel.ops, [&](linalg::LinalgOp op) { return fits(op, *form, kernel, made); });
}

void writeFusedRows(Kernel &kernel, KernelWriter &writer) { FusedRowKernel(writer, kernel).write(); }

} // namespace

const Schedule kFusedRows{"fused-rows", matchesFusedRows, writeFusedRows};

bool holdsRows(Kernel &kernel) { return matchesFusedRows(kernel) && RowLayout(kernel, *getForm(kernel)).held > 0; }

} // namespace distc::schedule
