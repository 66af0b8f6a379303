//===- FuseRows.cpp - Operations over the same rows become one kernel -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/Hoist.h"
#include "passes/lower/gpu/Reduction.h"
#include "passes/lower/kernels/Reshapes.h"
#include "passes/lower/kernels/RowForm.h"
#include "passes/lower/plan/Addresses.h"

#include <set>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FUSEROWS
#include "passes/lower/Passes.h.inc"

namespace {

using namespace schedule;

/// Blocks that are enough for a chip: sums of columns in fewer parts stay kernels of their own.
constexpr int64_t kFewestParts = 128;
/// A row that whole warps read.
constexpr int64_t kFewestColumns = 128;

/// Operations over the same rows, in order; they become one launch in the place of the first.
struct RowGroup {
  RowForm form;
  SmallVector<linalg::GenericOp> ops;
  int64_t parts = 0; // that columns are summed by; 0: none are

  bool makes(Value value) const {
    auto op = getReshaped(value).getDefiningOp<linalg::GenericOp>();
    return op && llvm::is_contained(ops, op);
  }
  bool hasReduction() const {
    return llvm::any_of(ops, [](linalg::GenericOp op) { return op.getNumReductionLoops() > 0; });
  }
  /// What it reads of whole rows. What it makes and does not read is written where it is computed, and held nowhere.
  SetVector<Value> getReadRows() {
    SetVector<Value> rows;
    for (linalg::GenericOp op : ops)
      for (OpOperand *input : op.getDpsInputOperands())
        if (form.hasRows(input->get()) && form.isOwnRow(*input))
          rows.insert(getReshaped(input->get()));
    return rows;
  }
  /// What it reads and makes of whole rows.
  SetVector<Value> getRows() {
    SetVector<Value> rows = getReadRows();
    for (linalg::GenericOp op : ops)
      for (Value result : op->getResults())
        if (form.hasRows(result))
          rows.insert(result);
    return rows;
  }
  /// Of one row, what operations make for each other.
  int64_t getExchangedBytes() {
    SetVector<Value> used;
    for (linalg::GenericOp op : ops)
      for (Value value : getUsed(op))
        used.insert(getReshaped(value));
    int64_t bytes = 0;
    for (linalg::GenericOp op : ops)
      for (Value result : op->getResults())
        if (form.hasRows(result) && used.contains(result))
          bytes += form.columns * getElementBytes(cast<RankedTensorType>(result.getType()).getElementType());
    return bytes;
  }
};

bool hasStaticShape(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape();
}

bool fits(linalg::GenericOp op, const RowGroup &group) {
  std::optional<RowForm::Kind> kind = group.form.getKind(op);
  if (!kind || (*kind == RowForm::Kind::Reduction && !Reduction::match(op)))
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (group.makes(operand.get()) && !group.form.isOwnRow(operand))
      return false;
    if (op.isDpsInit(&operand) && op.payloadUsesValueFromOperand(&operand) &&
        !operand.get().getDefiningOp<linalg::FillOp>())
      return false;
  }
  WalkResult reads = op->walk([&](tensor::ExtractOp extract) {
    bool isOwn =
        !group.makes(extract.getTensor()) || group.form.isOwnRow(op, extract.getTensor(), extract.getIndices());
    return isOwn ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !reads.wasInterrupted();
}

class RowGrouping {
public:
  RowGrouping(int64_t maxRowBytes, int64_t minRows) : maxRowBytes(maxRowBytes), minRows(minRows) {}

  void add(linalg::GenericOp op) {
    if (!llvm::all_of(op->getResults(), hasStaticShape))
      return;
    SetVector<Value> used = getUsed(op);
    // The groups that make what it uses, the latest first.
    std::set<size_t, std::greater<>> makers;
    for (Value value : used)
      if (auto found = groupOf.find(getReshaped(value).getDefiningOp()); found != groupOf.end())
        makers.insert(found->second);
    for (size_t maker : makers)
      if (join(op, used, groups[maker])) {
        groupOf[op] = maker;
        return;
      }
    std::optional<RowForm> form = RowForm::of(op);
    RowGroup own{form.value_or(RowForm{1, 1}), {}};
    if (form && form->rows >= minRows && fits(op, own)) {
      own.ops.push_back(op);
      groupOf[op] = groups.size();
      groups.push_back(own);
    }
  }

  /// What sums columns of what a group reads or makes anyway joins it.
  void addColumnSums(Block &block) {
    llvm::DenseMap<Value, SmallVector<size_t, 1>> readers; // by whole rows
    for (auto [number, group] : llvm::enumerate(groups))
      if (group.hasReduction())
        for (Value value : group.getRows())
          readers[value].push_back(number);
    for (auto op : llvm::make_early_inc_range(block.getOps<linalg::GenericOp>())) {
      if (op.getNumReductionLoops() == 0 || groupOf.contains(op) || !llvm::all_of(op->getResults(), hasStaticShape) ||
          llvm::is_contained(op.getStaticLoopRanges(), ShapedType::kDynamic))
        continue;
      for (OpOperand *input : op.getDpsInputOperands())
        if (auto found = readers.find(getReshaped(input->get())); found != readers.end())
          if (llvm::any_of(found->second, [&](size_t number) { return joinColumns(op, groups[number]); }))
            break;
    }
  }

  /// Marks the operations of a group with its number.
  void mark() {
    int64_t number = 0;
    for (RowGroup &group : groups) {
      if (group.ops.size() < 2 || !group.hasReduction())
        continue;
      for (linalg::GenericOp op : group.ops)
        op->setAttr(drt::kRowsAttr, Builder(op.getContext()).getI64IntegerAttr(number));
      ++number;
    }
  }

private:
  bool join(linalg::GenericOp op, const SetVector<Value> &used, RowGroup &group) {
    if (!fits(op, group))
      return false;
    RowGroup joined = group;
    joined.ops.push_back(op);
    if (joined.getExchangedBytes() > maxRowBytes || !hoist(used, group.ops.front(), group))
      return false;
    group.ops.push_back(op);
    return true;
  }

  bool joinColumns(linalg::GenericOp op, RowGroup &group) {
    std::optional<int64_t> parts = group.form.getColumnParts(op);
    if (!parts || *parts < kFewestParts || (group.parts && group.parts != *parts) ||
        group.form.columns < kFewestColumns || !Reduction::match(op))
      return false;
    for (OpOperand &operand : op->getOpOperands())
      if (group.makes(operand.get()) && !group.form.isOwnRow(operand))
        return false;
    bool readsByIndex = false;
    op->walk([&](tensor::ExtractOp) { readsByIndex = true; });
    // All lies in registers, from row to row.
    llvm::SetVector<Value> rows = group.getReadRows();
    const int64_t sums = op->getNumResults() + group.form.countColumnSums(group.ops);
    for (OpOperand *input : op.getDpsInputOperands())
      if (isa<RankedTensorType>(input->get().getType()) && !group.form.isPerRow(input->get()) &&
          group.form.isOwnRow(*input))
        rows.insert(getReshaped(input->get()));
    const RowThreads threads(group.form);
    if (readsByIndex || !threads.holds(static_cast<int64_t>(rows.size()) + sums, threads.group))
      return false;
    if (!moveTo(op, group))
      return false;
    group.ops.push_back(op);
    group.parts = *parts;
    groupOf[op] = &group - groups.data();
    return true;
  }

  /// To the group's place, if what is read and made there allows it.
  bool moveTo(linalg::GenericOp op, RowGroup &group) {
    linalg::GenericOp *first =
        llvm::min_element(group.ops, [](linalg::GenericOp x, linalg::GenericOp y) { return x->isBeforeInBlock(y); });
    return (*first)->isBeforeInBlock(op) ? hoist(getUsed(op), *first, group) : waitFor(*first, op, group);
  }

  /// What is used and not made by the group is there in front of `place`, or moves there; false where some cannot.
  static bool hoist(const SetVector<Value> &used, linalg::GenericOp place, const RowGroup &group) {
    Hoist hoist(place);
    auto isOutside = [&](Value value) { return !group.makes(value); };
    if (!llvm::all_of(used, [&](Value value) { return !isOutside(value) || hoist.isPossible(value); }))
      return false;
    for (Value value : used)
      if (isOutside(value))
        hoist.move(value);
    return true;
  }

  /// It waits for the group, and so does what is made of it alone.
  bool waitFor(linalg::GenericOp first, linalg::GenericOp op, RowGroup &group) {
    llvm::SetVector<Operation *> waiting;
    waiting.insert(op);
    for (size_t i = 0; i < waiting.size(); ++i) { // grows
      for (Operation *user : waiting[i]->getUsers()) {
        Operation *there = op->getBlock()->findAncestorOpInBlock(*user);
        if (!there || llvm::is_contained(group.ops, there))
          return false;
        if (there->isBeforeInBlock(first) && !isa<linalg::GenericOp>(there) && !isReshape(there))
          return false;
        if (there->isBeforeInBlock(first))
          waiting.insert(there);
      }
    }
    for (Operation *one : waiting)
      if (!waitsAsWhole(one, waiting, first))
        return false;
    for (Operation *one : waiting)
      for (Value value : isReshape(one) ? SetVector<Value>() : getUsed(cast<linalg::GenericOp>(one)))
        if (isa_and_nonnull<drt::ReadOp>(getReshaped(value).getDefiningOp()))
          return false; // it would be read later
    SmallVector<Operation *> inOrder(waiting.begin(), waiting.end());
    llvm::sort(inOrder, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
    for (Operation *one : inOrder)
      one->moveBefore(first);
    return true;
  }

  /// Whether no operation of its group stays in front of `first`: the group's kernel would be made there, before what
  /// it waits for.
  bool waitsAsWhole(Operation *one, const llvm::SetVector<Operation *> &waiting, linalg::GenericOp first) {
    auto found = groupOf.find(one);
    return found == groupOf.end() || llvm::all_of(groups[found->second].ops, [&](linalg::GenericOp other) {
             return waiting.contains(other) || !other->isBeforeInBlock(first);
           });
  }

  int64_t maxRowBytes, minRows;
  std::vector<RowGroup> groups;
  llvm::DenseMap<Operation *, size_t> groupOf;
};

struct FuseRows : impl::FuseRowsBase<FuseRows> {
  using Base::Base;

  void runOnOperation() override {
    RowGrouping grouping(maxRowBytes, minRows);
    for (auto op : llvm::make_early_inc_range(getOperation().getBody().front().getOps<linalg::GenericOp>()))
      grouping.add(op);
    if (columnSums)
      grouping.addColumnSums(getOperation().getBody().front());
    grouping.mark();
  }
};

} // namespace
} // namespace distc
