//===- RepeatInRows.cpp - drt-repeat-in-rows --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/Hoist.h"
#include "passes/lower/kernels/MemoryWrites.h"
#include "passes/lower/kernels/Reshapes.h"
#include "passes/lower/kernels/RowForm.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/WorkEstimate.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_REPEATINROWS
#include "passes/lower/Passes.h.inc"

namespace repeatedrows {
namespace {

using namespace schedule;

/// Of one element: below what a chip computes while it reads or writes one.
constexpr int64_t kMostInstructions = 40;

int64_t countBytes(Value value) { return getTensorBytes(cast<RankedTensorType>(value.getType())); }

/// A kernel of `drt-fuse-rows`, in the order of the block.
struct Group {
  SmallVector<linalg::GenericOp> ops;
  std::optional<RowForm> form;

  void add(linalg::GenericOp op) {
    ops.push_back(op);
    if (const SmallVector<int64_t> sizes = op.getStaticLoopRanges(); !form && reducesRows(op)) {
      const size_t rowLoops = sizes.size() - op.getNumReductionLoops();
      form = RowForm{computeProduct(ArrayRef(sizes).take_front(rowLoops)),
                     computeProduct(ArrayRef(sizes).drop_front(rowLoops))};
    }
  }
  /// Whole rows that its operations read.
  llvm::SetVector<Value> getRows() {
    llvm::SetVector<Value> rows;
    for (linalg::GenericOp op : ops)
      for (Value input : op.getDpsInputs())
        if (form->hasRows(input))
          rows.insert(getReshaped(input));
    return rows;
  }
};

class Groups {
public:
  explicit Groups(Block &block) : writes(block) {
    for (auto op : block.getOps<linalg::GenericOp>())
      if (Group *group = find(op))
        group->add(op);
  }

  void repeat() {
    for (auto &[number, group] : groups)
      for (linalg::GenericOp op : SmallVector<linalg::GenericOp>(group.ops))
        if (group.form && isRepeatable(op, group))
          repeat(op);
  }

private:
  using Readers = llvm::SmallMapVector<Group *, SmallVector<OpOperand *>, 2>;

  Group *find(Operation *op) {
    auto number = op->getAttrOfType<IntegerAttr>(drt::kRowsAttr);
    return number ? &groups[number.getInt()] : nullptr;
  }

  /// Whether it is rows made of what is in memory anyway.
  bool isRepeatable(linalg::GenericOp op, Group &group) {
    if (op->getNumResults() != 1 || !group.form->hasRows(op.getResult(0)) ||
        group.form->getKind(op) != RowForm::Kind::Map || countInstructions(op.getRegion()) > kMostInstructions)
      return false;
    return llvm::all_of(getUsed(op), [&](Value used) {
      Operation *maker = getReshaped(used).getDefiningOp();
      if (llvm::is_contained(op.getDpsInits(), used) || !isa<RankedTensorType>(used.getType()))
        return true;
      return !maker || find(maker) != &group;
    });
  }

  /// Reads by other groups, each of its own rows; false where there is another.
  bool addReaders(Value value, Group &own, Readers &readers) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isReshape(user)) {
        if (!addReaders(user->getResult(0), own, readers))
          return false;
        continue;
      }
      auto op = dyn_cast<linalg::GenericOp>(own.ops[0]->getBlock()->findAncestorOpInBlock(*user));
      Group *group = op ? find(op) : nullptr;
      if (group == &own)
        continue;
      if (!group || !group->form || op != user || !op.isDpsInput(&use) || !group->form->isOwnRow(use))
        return false;
      readers[group].push_back(&use);
    }
    return true;
  }

  void repeat(linalg::GenericOp op) {
    Readers readers;
    if (!addReaders(op.getResult(0), *find(op), readers) || readers.empty())
      return;
    int64_t saved = countBytes(op.getResult(0)); // written
    for (auto &[group, uses] : readers) {
      if (!canRepeat(op, *group, uses.back()->getOwner()))
        return;
      saved += countBytes(op.getResult(0)); // read
      const llvm::SetVector<Value> known = group->getRows();
      for (Value read : getReads(op))
        if (!known.contains(getReshaped(read)))
          saved -= countRead(op, read);
    }
    if (saved <= 0 || countKept(op, readers) > countBytes(op.getResult(0)))
      return;
    for (auto &[group, uses] : readers)
      move(op, *group, uses);
  }

  /// Tensors that it reads, also by index.
  static llvm::SetVector<Value> getReads(linalg::GenericOp op) {
    llvm::SetVector<Value> reads = getUsed(op);
    reads.remove_if([&](Value used) {
      return llvm::is_contained(op.getDpsInits(), used) || !isa<RankedTensorType>(used.getType());
    });
    return reads;
  }
  /// Bytes: of what it takes elements from by index, one for each of its own at most.
  static int64_t countRead(linalg::GenericOp op, Value read) {
    const int64_t all = countBytes(read);
    if (llvm::is_contained(op.getDpsInputs(), read))
      return all;
    return std::min(all, countElements(op.getResult(0)) * getElementBytes(getElementTypeOrSelf(read)));
  }

  /// Whether it would make there what it makes here, and the group's threads can hold what they read instead.
  bool canRepeat(linalg::GenericOp op, Group &group, Operation *reader) const {
    if (group.form->getKind(op) != RowForm::Kind::Map ||
        !llvm::all_of(getReads(op), [&](Value read) { return writes.isUnchanged(read, op, reader); }))
      return false;
    llvm::SetVector<Value> rows = group.getRows();
    for (Value input : op.getDpsInputs())
      if (group.form->hasRows(input))
        rows.insert(getReshaped(input));
    const RowThreads threads(*group.form);
    return threads.holds(static_cast<int64_t>(rows.size()) + group.form->countColumnSums(group.ops), threads.group);
  }

  /// Bytes that have to be kept longer than they are now.
  static int64_t countKept(linalg::GenericOp op, Readers &readers) {
    int64_t bytes = 0;
    for (Value read : getReads(op))
      if (const Value kept = getStorage(read);
          !isGiven(kept.getDefiningOp()) &&
          llvm::any_of(readers, [&](auto &reader) { return !isReadFrom(kept, reader.first->ops[0]); }))
        bytes += countBytes(kept);
    return bytes;
  }

  /// A variable, a feed or a constant: there for as long as it is what it is.
  static bool isGiven(Operation *maker) {
    return !maker || isa<drt::ReadOp, drt::FeedOp>(maker) || maker->hasTrait<OpTrait::ConstantLike>();
  }

  /// Whether the value is read by the operation or one behind it.
  static bool isReadFrom(Value value, Operation *op) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      Operation *there = op->getBlock()->findAncestorOpInBlock(*user);
      return isReshape(there) ? isReadFrom(there->getResult(0), op) : !there->isBeforeInBlock(op);
    });
  }

  /// The group computes what it reads, in front of what it did.
  static void move(linalg::GenericOp op, Group &group, ArrayRef<OpOperand *> uses) {
    OpBuilder builder(group.ops[0]);
    auto made = cast<linalg::GenericOp>(builder.clone(*op));
    made->setAttr(drt::kRowsAttr, group.ops[0]->getAttr(drt::kRowsAttr));
    for (OpOperand *use : uses) {
      // The reshapes on the way, from the last.
      SmallVector<Operation *> path;
      for (Value value = use->get(); value != op.getResult(0); value = path.back()->getOperand(0))
        path.push_back(value.getDefiningOp());
      Value value = made.getResult(0);
      for (Operation *reshape : llvm::reverse(path)) {
        Operation *again = builder.clone(*reshape);
        again->setOperand(0, value);
        value = again->getResult(0);
      }
      use->set(value);
    }
    group.ops.insert(group.ops.begin(), made);
  }

  llvm::MapVector<int64_t, Group> groups;
  MemoryWrites writes;
};

} // namespace
} // namespace repeatedrows

namespace {

struct RepeatInRows : impl::RepeatInRowsBase<RepeatInRows> {
  void runOnOperation() override { repeatedrows::Groups(getOperation().getBody().front()).repeat(); }
};

} // namespace
} // namespace distc
