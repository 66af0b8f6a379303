//===- FusedRows.cpp - Several operations over the same rows in one kernel ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/lower/gpu/Reduction.h"
#include "passes/lower/gpu/Schedule.h"
#include "passes/lower/kernels/RowForm.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc::schedule {
namespace {

/// What a block has without asking.
constexpr int64_t kSharedBytes = 48 * 1024;
/// Results of the exchange between warps.
constexpr int64_t kExchangeBytes = 4 * 1024;

bool isInside(Value buffer) { return getReshaped(buffer).getDefiningOp<memref::AllocOp>() != nullptr; }

/// The rows of the first reduction along rows are those of all.
std::optional<RowForm> getForm(Kernel &kernel) {
  for (auto [op, space] : llvm::zip(kernel.ops, kernel.spaces))
    if (succeeded(space) && reducesRows(op))
      return RowForm{space->getParallelSize(), space->getReductionSize()};
  return std::nullopt;
}

/// What sums of columns are written to.
llvm::SetVector<Value> getColumnSums(Kernel &kernel, const RowForm &form) {
  llvm::SetVector<Value> sums;
  for (linalg::LinalgOp op : kernel.ops)
    if (form.getColumnParts(op))
      for (Value result : op.getDpsInits())
        sums.insert(getReshaped(result));
  return sums;
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
  const bool sumsColumns = !kind && form.getColumnParts(op);
  if ((!kind && !sumsColumns) || ((sumsColumns || *kind == RowForm::Kind::Reduction) && !Reduction::match(op)))
    return false;
  for (OpOperand &operand : op->getOpOperands())
    if (made.contains(getReshaped(operand.get())) && !form.isOwnRow(operand) &&
        !(sumsColumns && op.isDpsInit(&operand)))
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
  /// Where columns are summed too: parts of the rows, each a block's, whose threads keep their sums in registers from
  /// row to row. 0 elsewhere, where a group of threads has one row.
  int64_t parts = 0;

  /// Of a block that has a part of the rows.
  static constexpr int64_t kMaxPartThreads = 512;

  RowLayout(Kernel &kernel, const RowForm &form) {
    const llvm::SetVector<Value> sums = getColumnSums(kernel, form);
    llvm::SetVector<Value> made = kernel.getWritten(), indexed;
    made.remove_if([&](Value buffer) { return sums.contains(buffer); });
    // What is made and not read is written where it is computed, and held nowhere.
    llvm::SetVector<Value> rows;
    for (linalg::LinalgOp op : kernel.ops) {
      for (OpOperand *input : op.getDpsInputOperands())
        rows.insert(getReshaped(input->get()));
      for (memref::LoadOp load : getReadsOfMade(op, made))
        indexed.insert(getReshaped(load.getMemRef()));
    }
    rows.remove_if([&](Value buffer) { return !isa<MemRefType>(buffer.getType()) || form.isPerRow(buffer); });
    const RowThreads ofRow(form);
    const auto values = static_cast<int64_t>(rows.size() + sums.size());
    group = ofRow.group;
    if (ofRow.holds(values, group)) {
      vector = ofRow.vector;
      held = ofRow.held;
    } else {
      group = form.columns <= kWarpRow ? std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(form.columns))
              : form.columns <= 4096   ? 256
                                       : 512;
    }
    threads = group <= kWarp ? RowThreads::kMinThreads : group;
    for (Value buffer : made)
      if (isInside(buffer) && !form.isPerRow(buffer) && (held == 0 || indexed.contains(buffer)))
        shared.insert(buffer);
    if (!sums.empty())
      layParts(kernel, form, ofRow, values, sums);
    // A block that has several rows has fewer where they do not fit.
    while (!parts && isOfWarps() && threads > kWarp &&
           threads / group * getRowBytes(form) > kSharedBytes - kExchangeBytes)
      threads /= 2;
  }

  bool isOfWarps() const { return group <= kWarp; }
  bool fits(const RowForm &form) const {
    return getRowBytes(form) <= kSharedBytes - kExchangeBytes && (!parts || held > 0);
  }

private:
  /// As many groups as share a part's rows evenly, and fit.
  void layParts(Kernel &kernel, const RowForm &form, const RowThreads &ofRow, int64_t values,
                const llvm::SetVector<Value> &sums) {
    for (linalg::LinalgOp op : kernel.ops) {
      const std::optional<int64_t> own = form.getColumnParts(op);
      if (own && parts && *own != parts)
        held = 0; // no block has all
      parts = own.value_or(parts);
    }
    int64_t sumBytes = 0;
    for (Value sum : sums)
      sumBytes += form.columns * llvm::divideCeil(cast<MemRefType>(sum.getType()).getElementTypeBitWidth(), 8);
    int64_t groups = 1;
    for (int64_t more = 2; more * group <= kMaxPartThreads; more *= 2)
      if (form.rows / parts % more == 0 && ofRow.holds(values, more * group) &&
          more * getRowBytes(form) + (more - 1) * sumBytes <= kSharedBytes - kExchangeBytes)
        groups = more;
    threads = groups * group;
    if (group < kWarp)
      held = 0;
  }

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
    groups = threads / group;
    w.setLaunch(layout.parts ? layout.parts : llvm::divideCeil(form.rows, groups), threads);
    ofBlock = w.div(w.getThread(), group);
    if (!layout.parts)
      row = groups == 1 ? w.getBlock() : w.add(w.mul(w.getBlock(), groups), ofBlock);
    lane = groups == 1 && group == threads ? w.getThread() : w.rem(w.getThread(), group);
    begin = w.mul(ofBlock, form.columns);
    end = w.number(form.columns);
    // All threads stay for the exchange: a group behind the last row has a row without elements.
    if (!layout.parts && form.rows % groups) {
      inside = w.less(row, form.rows);
      row = w.select(inside, row, w.number(0));
      end = w.select(inside, end, w.number(0));
    }
    for (Value buffer : layout.shared)
      shared[buffer] = w.addShared({groups * form.columns}, cast<MemRefType>(buffer.getType()).getElementType());
    findColumns();
    w.readElsewhere = [this](memref::LoadOp load) { return readMade(load); };
    if (layout.parts)
      return writePart();
    for (linalg::LinalgOp op : kernel.ops)
      writeOp(op);
  }

private:
  /// A block's groups go through the rows of its part together, as many at a time as there are groups.
  void writePart() {
    const int64_t rows = form.rows / layout.parts;
    KernelWriter::Values identities;
    for (linalg::LinalgOp op : kernel.ops)
      if (form.getColumnParts(op))
        for (int64_t slot = 0; slot < layout.held; ++slot)
          llvm::append_range(identities, Reduction::match(op)->getIdentities(w));
    KernelWriter::Values sums =
        w.loop(w.number(0), w.number(rows), groups, identities, [&](Value first, ValueRange soFar) {
          row = w.add(w.add(w.mul(w.getBlock(), rows), first), ofBlock);
          KernelWriter::Values next;
          for (linalg::LinalgOp op : kernel.ops)
            if (form.getColumnParts(op))
              llvm::append_range(next, addColumns(op, soFar.slice(next.size(), layout.held * op.getNumDpsInits())));
            else
              writeOp(op);
          // What was exchanged is read before the next row's is.
          if (!layout.isOfWarps() || !layout.shared.empty())
            w.barrier();
          return next;
        });
    joinGroups(sums);
  }

  /// The row's elements joined to the sums, by slot.
  KernelWriter::Values addColumns(linalg::LinalgOp op, ValueRange sums) {
    const unsigned results = op.getNumDpsInits();
    KernelWriter::Values next;
    for (auto [slot, at] : llvm::enumerate(columns)) {
      ValueRange before = sums.slice(slot * results, results);
      for (auto [sum, joined] : llvm::zip(before, step(op, at.first, before, slot)))
        next.push_back(at.second ? w.select(at.second, joined, sum) : joined);
    }
    return next;
  }

  /// The first group joins what the others have found, in their order, and stores it.
  void joinGroups(ValueRange sums) {
    KernelWriter::Values memories;
    if (groups > 1) {
      for (linalg::LinalgOp op : kernel.ops)
        if (form.getColumnParts(op))
          for (Value result : op.getDpsInits())
            memories.push_back(
                w.addShared({(groups - 1) * form.columns}, cast<MemRefType>(result.getType()).getElementType()));
      Value isLater = arith::CmpIOp::create(w.b, arith::CmpIPredicate::uge, ofBlock, w.number(1));
      w.when(isLater, [&] {
        Value before = w.mul(arith::SubIOp::create(w.b, ofBlock, w.number(1)), form.columns);
        forEachSum([&](linalg::LinalgOp, unsigned, Value column, Value isElement, size_t memory, size_t number) {
          w.when(isElement, [&] {
            memref::StoreOp::create(w.b, sums[number], memories[memory], w.toIndex(w.add(before, column)));
          });
        });
      });
      w.barrier();
    }
    w.when(groups > 1 ? w.equal(ofBlock, 0) : Value(), [&] {
      KernelWriter::Values whole(sums);
      if (groups > 1)
        whole = w.loop(w.number(0), w.number(groups - 1), 1, whole, [&](Value other, ValueRange soFar) {
          KernelWriter::Values joined(soFar);
          Value before = w.mul(other, form.columns);
          forEachSum([&](linalg::LinalgOp op, unsigned result, Value column, Value, size_t memory, size_t number) {
            Value found = memref::LoadOp::create(w.b, memories[memory], w.toIndex(w.add(before, column)));
            joined[number] = Reduction::match(op)->join(w, result, soFar[number], found);
          });
          return joined;
        });
      forEachSum([&](linalg::LinalgOp op, unsigned result, Value column, Value isElement, size_t, size_t number) {
        OpOperand &operand = *op.getDpsInitOperand(result);
        if (isInside(operand.get())) // nobody reads it
          return;
        w.when(isElement, [&] {
          Value initial = w.lookup(kernel.initial.lookup(operand.get()));
          Value value = Reduction::match(op)->join(w, result, initial, whole[number]);
          memref::StoreOp::create(w.b, value, w.lookup(operand.get()),
                                  w.getIndices(op, operand, getPartPositions(op, column)));
        });
      });
    });
  }

  /// Of each sum of columns that a thread holds: its operation, result and column, with the condition under which there
  /// is one; the number of the result among all, and of the sum.
  void forEachSum(llvm::function_ref<void(linalg::LinalgOp, unsigned, Value, Value, size_t, size_t)> visit) {
    size_t memory = 0, number = 0;
    for (linalg::LinalgOp op : kernel.ops) {
      if (!form.getColumnParts(op))
        continue;
      const unsigned results = op.getNumDpsInits();
      for (auto [column, isElement] : columns)
        for (unsigned result = 0; result < results; ++result)
          visit(op, result, column, isElement, memory + result, number++);
      memory += results;
    }
  }

  /// Of a sum of columns in its operation's loops: those over rows of a part have none, and it is the block's part.
  KernelWriter::Values getPartPositions(linalg::LinalgOp op, Value column) {
    SmallVector<int64_t> sizes = op.getStaticLoopRanges();
    const unsigned rowLoops = *form.getRowLoops(op);
    SmallVector<int64_t> ofParts(ArrayRef(sizes).take_front(rowLoops));
    for (auto [size, iterator] : llvm::zip(ofParts, op.getIteratorTypesArray()))
      if (iterator == utils::IteratorType::reduction)
        size = 1;
    KernelWriter::Values positions = w.delinearize(w.getBlock(), ofParts);
    llvm::append_range(positions, w.delinearize(column, ArrayRef(sizes).drop_front(rowLoops)));
    return positions;
  }

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
                                 : reduction.joinGroups(w, partial, layout.group, layout.threads);
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

  /// Neighbours are stored as soon as they are computed: who reads none of them again needs no register for others.
  void mapHeld(linalg::LinalgOp op) {
    SmallVector<KernelWriter::Values> results(op.getNumDpsInits());
    for (int64_t slot = 0; slot < layout.held; slot += layout.vector) {
      for (int64_t i = slot; i < slot + layout.vector; ++i)
        for (auto [values, value] : llvm::zip(results, step(op, columns[i].first, getInitial(op), i)))
          values.push_back(value);
      for (auto [result, values] : llvm::enumerate(results))
        storeHeld(op, result, slot, ValueRange(values).slice(slot, layout.vector));
    }
    for (auto [result, values] : llvm::enumerate(results))
      held[getReshaped(op.getDpsInits()[result])] = values;
  }

  void storeHeld(linalg::LinalgOp op, unsigned result, int64_t slot, ValueRange vector) {
    Value buffer = getReshaped(op.getDpsInits()[result]);
    Value memory = shared.lookup(buffer);
    if (isInside(buffer) && !memory)
      return;
    auto [column, isElement] = columns[slot];
    w.when(isElement ? w.both(inside, isElement) : inside, [&, column = column] {
      if (!memory && canTakeVector(buffer))
        return w.storeVector(w.getLine(buffer), vector, getOwnAddress(column));
      for (auto [lane, value] : llvm::enumerate(vector))
        storeElement(op, result, value, w.add(column, w.number(lane)));
    });
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
  int64_t groups = 1; // of a block
  Value ofBlock;      // the thread's group
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
