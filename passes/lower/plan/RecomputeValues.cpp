//===- RecomputeValues.cpp - Values that are computed again instead of kept ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Rematerialization, as of Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), by greedy choice over a
// plan whose order stands: at the place of an entry where most is kept, the value whose memory costs least time to do
// without until its next reader is computed there again. Runs behind drt-insert-copies, where what has memory
// has it for itself, and drt-insert-barriers, which says how long others read it.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/MemoryWrites.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/EntryBlocks.h"
#include "passes/lower/plan/TaskMemory.h"
#include "passes/lower/plan/WorkEstimate.h"
#include "passes/lower/program/ScopeNames.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_RECOMPUTEVALUES
#include "passes/lower/Passes.h.inc"

namespace {

/// Operations at most that give one value again.
constexpr size_t kMaxRepeated = 16;
/// Values smaller than this part of what an entry may take are left alone.
constexpr int64_t kSmallestPart = 10000;
/// Values at most that are computed again, for each operation of the entry.
constexpr size_t kMostTimes = 2;

std::string formatBytes(int64_t bytes) {
  const char *units[] = {"B", "kB", "MB", "GB", "TB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1000 && unit + 1 < std::size(units); ++unit)
    amount /= 1000;
  return llvm::formatv(unit ? "{0:F1} {1}" : "{0:F0} {1}", amount, units[unit]).str();
}

/// Whether running it again, later, gives the same where its operands are the same.
bool isRepeatable(Operation *op) {
  auto access = dyn_cast<drt::AccessInterface>(op);
  return isPlaced(op) && !isa<drt::EmptyOp>(op) && isMemoryEffectFree(op) && access && !access.meetsBefore() &&
         !access.meetsAfter() &&
         llvm::none_of(access.getAccesses(), [](const drt::Access &made) { return made.writes || made.ofOthers; });
}

/// Matmuls take their right operands where they lie: what was packed for several of them is the first memory that time
/// is given for, and nothing need be computed again for it.
void unpack(drt::EntryOp entry) {
  Block &body = entry.getBody().front();
  for (auto product : llvm::make_early_inc_range(body.getOps<drt::MatmulPackedOp>())) {
    OpBuilder builder(product);
    auto plain =
        drt::MatmulOp::create(builder, product.getLoc(), product.getResult().getType(), product.getA(), product.getB(),
                              product.getBias(), product.getTransposeAAttr(), product.getTransposeBAttr(),
                              product.getEpilogueAttr(), product.getJoinedAttr(), DenseI64ArrayAttr(), StringAttr());
    product.getResult().replaceAllUsesWith(plain.getResult());
    product.erase();
  }
  for (auto pack : llvm::make_early_inc_range(body.getOps<drt::PackOp>()))
    pack.erase();
}

/// How a value is had again in front of an operation that reads it.
struct Repetition {
  Value value;
  Operation *reader = nullptr;       // the first behind the place
  SetVector<Operation *> operations; // to run again, in the entry's order
  int64_t freed = 0;                 // bytes at the place
  double seconds = 0;                // what running them again takes
};

/// What was changed: `made` in front of a reader, and the uses that are of it, with what they were of before.
struct Change {
  SmallVector<Operation *> made;
  SmallVector<std::pair<OpOperand *, Value>> uses;
};

/// The arena of one entry. Positions are those of its operations as they stand; every change counts them anew.
class EntryMemory {
public:
  EntryMemory(drt::EntryOp entry, WorkEstimate &estimate)
      : entry(entry), body(entry.getBody().front()), estimate(estimate) {}

  struct Result {
    int64_t before = 0, after = 0; // bytes of the arena
    unsigned values = 0;           // that are computed again
    double seconds = 0, all = 0;   // of a replica's step, estimated: added; before
    std::string largest;           // of what is kept where most is kept, at the end
  };

  /// Computes values again until the arena has `wanted` bytes at most, or nothing helps.
  Result reduce(int64_t wanted) {
    Result result;
    result.before = result.after = EntryBlocks(entry).pack();
    for (Operation &op : body)
      if (auto work = estimateSeconds(&op))
        result.all += *work;
    // Packing leaves gaps: the sum of what is kept has to be so much smaller.
    int64_t target = wanted;
    count();
    while (result.after > wanted) {
      while (most > target) {
        Repetition best = findBest(std::max<int64_t>(wanted / kSmallestPart, 1));
        if (!best.value || result.values >= kMostTimes * positions.size())
          return finish(result);
        // What is too much over all places gets less by every change, so that they end.
        const double before = getExcess(target);
        const double seconds = best.seconds;
        const Change change = apply(best);
        count();
        if (getExcess(target) >= before) {
          undo(change);
          refused.insert({best.value, best.reader});
          count();
          continue;
        }
        ++result.values;
        result.seconds += seconds;
      }
      result.after = EntryBlocks(entry).pack();
      target = most - std::max<int64_t>(result.after - wanted, 1);
    }
    return finish(result);
  }

private:
  Result finish(Result &result) {
    result.after = EntryBlocks(entry).pack();
    SmallVector<EntryBlock> there;
    for (const EntryBlock &block : blocks->getBlocks())
      if (block.bytes > 0 && block.begin <= place && block.end >= place)
        there.push_back(block);
    llvm::stable_sort(there, [](const EntryBlock &a, const EntryBlock &b) { return a.bytes > b.bytes; });
    for (const EntryBlock &block : ArrayRef(there).take_front(3))
      result.largest += llvm::formatv("{0}'{1}' ({2})", result.largest.empty() ? "" : ", ", getScopeName(block.of),
                                      formatBytes(block.bytes));
    return std::move(result);
  }

  std::optional<double> estimateSeconds(Operation *op) {
    if (!isPlaced(op) && !isa<drt::MatmulUpdateOp, drt::UpdateOp>(op))
      return std::nullopt;
    return estimate.getSeconds(estimate(op));
  }

  /// Where each operation stands, what each value keeps, and where most is kept.
  void count() {
    blocks.emplace(entry);
    writes.emplace(body);
    positions.clear();
    int64_t end = 0;
    for (Operation &op : body)
      positions[&op] = end++;
    SmallVector<int64_t> change(end + 1, 0);
    for (const EntryBlock &block : blocks->getBlocks()) {
      if (block.bytes < 0 || block.begin >= end) // in a bucket; a bucket without gradients, which begins never
        continue;
      const int64_t bytes = std::max<int64_t>(llvm::alignTo(block.bytes, kPlaceAlignment), kPlaceAlignment);
      change[block.begin] += bytes;
      change[std::min(block.end, end - 1) + 1] -= bytes;
    }
    most = 0;
    kept.assign(end, 0);
    for (int64_t i = 0, bytes = 0; i < end; ++i) {
      kept[i] = bytes += change[i];
      if (bytes > most)
        std::tie(most, place) = std::pair(bytes, i);
    }
  }

  /// Of all places, what is kept there beyond `target`.
  double getExcess(int64_t target) const {
    double excess = 0;
    for (int64_t bytes : kept)
      excess += static_cast<double>(std::max<int64_t>(bytes - target, 0));
    return excess;
  }

  Repetition findBest(int64_t smallest) {
    Repetition best;
    for (const EntryBlock &block : blocks->getBlocks()) {
      if (block.bytes < smallest || block.begin >= place || block.end <= place || isa<drt::AllReduceStartOp>(block.of))
        continue;
      Repetition repetition;
      repetition.value = block.of->getResult(block.result);
      if (!plan(repetition, block.bytes) || refused.contains({repetition.value, repetition.reader}))
        continue;
      if (!best.value ||
          repetition.seconds * static_cast<double>(best.freed) < best.seconds * static_cast<double>(repetition.freed))
        best = std::move(repetition);
    }
    return best;
  }

  bool plan(Repetition &repetition, int64_t bytes) {
    for (OpOperand *use : usesOf(repetition.value)) {
      const int64_t position = positions.lookup(use->getOwner());
      if (position == place)
        return false;
      if (position > place && (!repetition.reader || position < positions.lookup(repetition.reader)))
        repetition.reader = use->getOwner();
    }
    if (!repetition.reader)
      return false;
    repetition.freed = bytes;
    if (!repeat(repetition.value.getDefiningOp(), repetition, bytes / 4) || repetition.freed <= 0)
      return false;
    for (Operation *op : repetition.operations)
      if (auto seconds = estimateSeconds(op))
        repetition.seconds += *seconds;
    return true;
  }

  /// Readers of a tensor's memory, in whatever shape.
  SmallVector<OpOperand *> usesOf(Value value) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : value.getUses()) {
      if (drt::isView(use.getOwner()))
        llvm::append_range(uses, usesOf(use.getOwner()->getResult(0)));
      else
        uses.push_back(&use);
    }
    return uses;
  }

  /// Adds `op` to what runs again, behind what it needs. What has ended by the reader's time is kept until then where
  /// it is smaller than `small`, and else computed again itself.
  bool repeat(Operation *op, Repetition &repetition, int64_t small) {
    if (repetition.operations.contains(op))
      return true;
    if ((!isRepeatable(op) && !drt::isView(op)) || repetition.operations.size() >= kMaxRepeated)
      return false;
    const int64_t when = positions.lookup(repetition.reader);
    for (Value operand : op->getOperands()) {
      if (!writes->isUnchanged(operand, op, repetition.reader))
        return false;
      Operation *producer = operand.getDefiningOp();
      if (!producer || !isPlaced(getStorage(operand).getDefiningOp())) // of a variable, a feed, a constant
        continue;
      const EntryBlock *block = blocks->find(getStorage(operand));
      if (!block || block->end >= when)
        continue;
      if (block->bytes <= small) {
        repetition.freed -= block->end < place ? block->bytes : 0;
        continue;
      }
      if (!repeat(producer, repetition, small))
        return false;
    }
    repetition.operations.insert(op);
    return true;
  }

  Change apply(const Repetition &repetition) {
    LDBG("drt-recompute-values") << repetition.operations.size() << " operations again for " << *repetition.reader;
    OpBuilder builder(repetition.reader);
    IRMapping again;
    Change change;
    for (Operation *op : repetition.operations)
      change.made.push_back(builder.clone(*op, again));
    const int64_t when = positions.lookup(repetition.reader);
    for (OpOperand *use : usesOf(repetition.value))
      if (positions.lookup(use->getOwner()) >= when)
        change.uses.push_back({use, use->get()});
    for (auto [use, old] : change.uses)
      use->set(viewAgain(old, again, builder, change.made));
    return change;
  }

  /// The value in the shape in which it was read.
  Value viewAgain(Value value, IRMapping &again, OpBuilder &builder, SmallVector<Operation *> &made) {
    if (Value known = again.lookupOrNull(value))
      return known;
    Operation *view = value.getDefiningOp();
    viewAgain(view->getOperand(0), again, builder, made);
    made.push_back(builder.clone(*view, again));
    return again.lookup(value);
  }

  static void undo(const Change &change) {
    for (auto [use, old] : change.uses)
      use->set(old);
    for (Operation *op : llvm::reverse(change.made))
      op->erase();
  }

  drt::EntryOp entry;
  Block &body;
  WorkEstimate &estimate;
  std::optional<EntryBlocks> blocks;
  std::optional<MemoryWrites> writes;
  llvm::DenseMap<Operation *, int64_t> positions;
  SmallVector<int64_t> kept;                             // bytes at each place
  llvm::DenseSet<std::pair<Value, Operation *>> refused; // a value, and the reader for which it is not computed again
  int64_t most = 0, place = 0;
};

struct RecomputeValues : impl::RecomputeValuesBase<RecomputeValues> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<drt::ProgramOp> program = drt::getProgram(module);
    if (failed(program))
      return signalPassFailure();
    const TaskMemory memory = getTaskMemory(*program);
    const int64_t wanted = (maxBytes - memory.variables) / memory.replicas;
    if (wanted <= 0) {
      // Diagnostics keep a reference to a string, and a copy of a twine.
      program->emitError() << "--max-memory=" << int64_t(maxBytes) << " is too little: a task has "
                           << Twine(formatBytes(memory.variables))
                           << " of variables; use more tasks with a strategy that splits variables among them";
      return signalPassFailure();
    }
    WorkEstimate estimate(module);
    drt::EntryOp refused;
    EntryMemory::Result most;
    for (drt::EntryOp entry : getEntries(module)) {
      if (EntryBlocks(entry).pack() > wanted)
        unpack(entry);
      EntryMemory::Result result = EntryMemory(entry, estimate).reduce(wanted);
      if (result.after > std::max(wanted, most.after)) {
        most = std::move(result);
        refused = entry;
      } else if (result.values && !refused) {
        entry.emitRemark() << Twine(llvm::formatv(
            "--max-memory: {0} values are computed again when they are read, so that '{1}' takes {2} a replica and not "
            "{3}; about {4:P1} more is computed",
            result.values, entry.getName(), formatBytes(result.after), formatBytes(result.before),
            result.seconds / result.all));
      }
    }
    if (!refused)
      return;
    refused.emitError() << Twine(llvm::formatv(
        "--max-memory={0} is too little: a task has {1} of variables, and '{2}' takes {3} more for each of its {4} "
        "replicas, with {5} values computed again ({6} bytes in all); the largest that are kept at once are {7}; use a "
        "smaller batch, or more tasks",
        int64_t(maxBytes), formatBytes(memory.variables), refused.getName(), formatBytes(most.after), memory.replicas,
        most.values, memory.variables + most.after * memory.replicas, most.largest));
    signalPassFailure();
  }
};

} // namespace
} // namespace distc
