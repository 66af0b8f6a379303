//===- SparseGradients.cpp - Rows on the way to an update --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/SparseGradients.h"
#include "dialects/dist/Dist.h"

using namespace mlir;

namespace distc {
namespace {

bool isIndices(Value value) { return getElementTypeOrSelf(value.getType()).isInteger(); }

/// A gradient's rows may be joined before a node that scales them, not before one that made the gradient of something
/// else.
bool isLinearIn(Operation *op, Value operand) {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  switch (node ? node.getLinearity() : dfg::Linearity::None) {
  case dfg::Linearity::None:
    return false;
  case dfg::Linearity::Joint:
    return op->getNumOperands() == 1;
  case dfg::Linearity::Each:
    return true;
  case dfg::Linearity::First:
    return operand == op->getOperands().front();
  case dfg::Linearity::Last:
    return operand == op->getOperands().back();
  }
  return false;
}

/// What an element-wise node works on of its operands: those that differ between replicas and are no single number of a
/// hyper-parameter or norm. None where another operand hides a factor of the batch's size.
SmallVector<Value> getElementwiseRows(Operation *op, const BatchFlow &flow) {
  SmallVector<Value> rows;
  for (Value operand : op->getOperands()) {
    const Flow &at = flow.get(operand);
    if (at.kind == Flow::Replicated) {
      if (!at.zero && at.scale != 0)
        return {};
      continue;
    }
    auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
    if (at.kind == Flow::Sharded || !type || !type.hasStaticShape() || type.getNumElements() != 1)
      rows.push_back(operand);
  }
  return rows;
}

bool isRows(const Flow &at) { return at.isSharded(0); }

/// Whether a value has a row for each of `indices` that follows from the index alone: rows of a table that is the same
/// in every replica (a slot of the optimizer's), and what each of them becomes by itself. `made`: by which nodes.
bool isOfIndex(Value value, Value indices, const BatchFlow &flow, SmallVectorImpl<Operation *> &made, int depth = 16) {
  const Flow &at = flow.get(value);
  Operation *op = value.getDefiningOp();
  if (value == indices || (at.kind == Flow::Replicated && (at.zero || at.scale == 0)))
    return true;
  if (!op || depth == 0 || !isRows(at))
    return false;
  made.push_back(op);
  auto isToo = [&](Value operand) { return isOfIndex(operand, indices, flow, made, depth - 1); };
  if (llvm::isa<dfg::GatherV2Op, dfg::GatherOp>(op)) {
    const Flow &table = flow.get(op->getOperand(0));
    return table.kind == Flow::Replicated && (table.zero || table.scale == 0) && isToo(op->getOperand(1));
  }
  return llvm::isa<dfg::ScalarInterface>(op) && llvm::all_of(op->getOperands(), isToo);
}

/// The value whose rows op's are made of, one step nearer to backward; null where op makes them itself. `indices`: of
/// the sparse gradient, null where they are looked for; `path`: gets what op makes of them alone.
Value getRows(Operation *op, const BatchFlow &flow, Value indices, SmallVectorImpl<Operation *> &path) {
  if (!op)
    return {};
  if (isUnique(op) || llvm::isa<dfg::UnsortedSegmentSumOp, dfg::GatherV2Op, dfg::GatherOp, dfg::DynamicPartitionOp>(op))
    return op->getOperand(0);
  if (!llvm::isa<dfg::ScalarInterface>(op))
    return {};
  SmallVector<Value> rows = getElementwiseRows(op, flow);
  SmallVector<Operation *> ofIndex;
  if (indices && rows.size() > 1)
    llvm::erase_if(rows, [&](Value operand) {
      SmallVector<Operation *> made;
      const bool isOf = isOfIndex(operand, indices, flow, made);
      if (isOf)
        ofIndex.append(made);
      return isOf;
    });
  if (rows.size() != 1 || (!isIndices(rows.front()) && !isLinearIn(op, rows.front())))
    return {};
  path.append(ofIndex);
  return rows.front();
}

/// `indices`: those of the gradient whose rows `value` is; null where it is the indices.
Value walk(Value value, const BatchFlow &flow, SmallVectorImpl<Operation *> &path, EndsAt endsAt, Value indices = {}) {
  while (true) {
    const Flow &at = flow.get(value);
    Operation *op = value.getDefiningOp();
    if (at.kind == Flow::Replicated || at.kind == Flow::Partial)
      return {};
    SmallVector<Operation *> ofIndex;
    Value next = getRows(op, flow, indices, ofIndex);
    // A shard's rows are chosen among all.
    if (auto own = llvm::dyn_cast_or_null<dist::OwnRowsOp>(op))
      next = value == own.getOwnIndices() ? own.getIndices() : own.getValues();
    // Rows of a table that the batch chooses are where backward begins, not a choice among its rows.
    if (next && flow.get(next).kind == Flow::Replicated)
      next = {};
    if (next && isRows(at) && !isRows(flow.get(next)))
      next = {};
    // What numbers of rows are brought within a table from may be outside of it.
    if (next && isIndices(value) &&
        (!isIndices(next) ||
         llvm::isa<dfg::FloorModOp, dfg::TruncateModOp, dfg::ModOp, dfg::MinimumOp, dfg::MaximumOp>(op)))
      next = {};
    if (next && endsAt && endsAt(op))
      next = {};
    if (!next)
      return isRows(at) ? value : Value();
    path.push_back(op);
    path.append(ofIndex);
    value = next;
  }
}

/// `walk`, and on from rows that neither a sum nor a mean makes the whole batch's (the squares of what is divided by
/// the batch's size, a gradient that is clipped) over what each of them is computed from, by itself, to rows of which
/// one does.
Value walkToGradient(Value value, const BatchFlow &flow, SmallVectorImpl<Operation *> &path, EndsAt endsAt,
                     Value indices, int depth = 8) {
  Value last = walk(value, flow, path, endsAt, indices);
  if (!last || depth == 0)
    return last;
  const Flow &at = flow.get(last);
  Operation *op = last.getDefiningOp();
  if (at.zero || at.scale == 0 || at.scale == -1 || !llvm::isa_and_nonnull<dfg::ScalarInterface>(op) ||
      (endsAt && endsAt(op)))
    return last;
  Value gradient;
  SmallVector<Operation *> further = {op};
  for (Value rows : getElementwiseRows(op, flow)) {
    Value found = walkToGradient(rows, flow, further, endsAt, indices, depth - 1);
    if (!found || (gradient && found != gradient))
      return last;
    gradient = found;
  }
  if (!gradient)
    return last;
  path.append(further);
  return gradient;
}

/// Follows a sparse gradient from where it is synchronized to where rows of one index have been added.
class RowUses {
public:
  RowUses(const RawGradients &gradients, Value values) : gradients(gradients), values(values) {}

  /// False where the node makes something else of rows that have been added.
  bool visit(Operation *op) {
    SmallVector<Kind> kinds;
    for (Value operand : op->getOperands())
      kinds.push_back(getKind(op, operand));
    if (llvm::all_of(kinds, [](Kind kind) { return kind == Kind::None; }))
      return true;
    std::optional<SmallVector<Kind>> made = getResults(op, kinds);
    if (!made)
      return false;
    for (auto [result, kind] : llvm::zip(op->getResults(), *made))
      if (kind != Kind::None)
        found[result] = kind;
    return true;
  }

private:
  /// Each of rows: linear in the gradient's; a function of their index; numbers of distinct indices.
  enum class Kind { None, Rows, OfIndex, Positions };

  Kind getKind(Operation *op, Value operand) const {
    if (operand == values)
      return Kind::Rows;
    if (auto it = found.find(operand); it != found.end())
      return it->second;
    return gradients.indices.contains(operand) && gradients.find(op, operand) == values ? Kind::OfIndex : Kind::None;
  }

  static bool isScalar(Value value) {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 0;
  }

  /// What an element-wise node makes of rows: each by itself.
  static std::optional<Kind> getElementwise(Operation *op, ArrayRef<Kind> kinds) {
    Kind made = Kind::OfIndex;
    for (auto [operand, kind] : llvm::zip(op->getOperands(), kinds)) {
      if (kind == Kind::Positions || (kind == Kind::None && !isScalar(operand)))
        return std::nullopt;
      if (kind != Kind::Rows)
        continue;
      if (made == Kind::Rows || !isLinearIn(op, operand))
        return std::nullopt;
      made = Kind::Rows;
    }
    return made;
  }

  static bool addsRows(Operation *op, ArrayRef<Kind> kinds) {
    auto is = [&](unsigned rows, unsigned indices) {
      return kinds[rows] == Kind::Rows && (kinds[indices] == Kind::OfIndex || kinds[indices] == Kind::Positions) &&
             llvm::count_if(kinds, [](Kind kind) { return kind != Kind::None; }) == 2;
    };
    if (llvm::isa<dfg::UnsortedSegmentSumOp>(op))
      return is(0, 1);
    if (llvm::isa<dfg::ScatterNdOp>(op))
      return is(1, 0);
    return op->hasTrait<dfg::AddsSlices>() && is(2, 1);
  }

  static std::optional<SmallVector<Kind>> getResults(Operation *op, ArrayRef<Kind> kinds) {
    SmallVector<Kind> made(op->getNumResults(), Kind::None);
    if (addsRows(op, kinds))
      return made;
    if (llvm::isa<dfg::UniqueOp, dfg::UniqueV2Op>(op) && kinds[0] == Kind::OfIndex) {
      made[1] = Kind::Positions;
      return made;
    }
    if (llvm::isa<dist::OwnRowsOp>(op) && kinds[0] == Kind::OfIndex && kinds[1] == Kind::Rows)
      return SmallVector<Kind>{Kind::OfIndex, Kind::Rows};
    if (llvm::isa<dfg::DynamicPartitionOp>(op) && kinds[1] == Kind::OfIndex && kinds[0] != Kind::Positions &&
        kinds[0] != Kind::None)
      return SmallVector<Kind>(op->getNumResults(), kinds[0]);
    // A row of a table for each index.
    if (llvm::isa<dfg::GatherOp, dfg::GatherV2Op>(op) && kinds[0] == Kind::None && kinds[1] == Kind::OfIndex)
      return SmallVector<Kind>{Kind::OfIndex};
    if (llvm::isa<dfg::ExpandDimsOp>(op) && kinds[0] == Kind::OfIndex)
      return SmallVector<Kind>{Kind::OfIndex};
    if (llvm::isa<dfg::IdentityOp>(op))
      return SmallVector<Kind>(kinds);
    std::optional<Kind> kind = llvm::isa<dfg::ScalarInterface>(op) ? getElementwise(op, kinds) : std::optional<Kind>();
    if (!kind)
      return std::nullopt;
    return SmallVector<Kind>{*kind};
  }

  const RawGradients &gradients;
  Value values;
  llvm::DenseMap<Value, Kind> found;
};

} // namespace

bool canAddRows(const RawGradients &gradients, Value values, const llvm::DenseSet<Operation *> &consumers) {
  RowUses uses(gradients, values);
  return llvm::all_of(*values.getParentBlock(),
                      [&](Operation &op) { return !consumers.contains(&op) || uses.visit(&op); });
}

bool isUnique(Operation *op) { return op->hasTrait<dfg::FindsDistinct>(); }

bool worksOnRows(Operation *op) {
  return isUnique(op) ||
         llvm::isa<dist::OwnRowsOp, dfg::ScalarInterface, dfg::UnsortedSegmentSumOp, dfg::GatherV2Op, dfg::GatherOp,
                   dfg::DynamicPartitionOp, dfg::ExpandDimsOp, dfg::ReshapeOp, dfg::ShapeOp>(op);
}

std::optional<SparseGradient> findSparseGradient(dfg::UpdateInterface update, const BatchFlow &flow,
                                                 bool throughFunctions, EndsAt endsAt) {
  SparseGradient found;
  found.indices = walk(update->getOperand(update.getIndicesOperand()), flow, found.path, endsAt);
  Value gradient = update->getOperand(update.getGradientOperand());
  if (!found.indices)
    return std::nullopt;
  found.values = throughFunctions ? walkToGradient(gradient, flow, found.path, endsAt, found.indices)
                                  : walk(gradient, flow, found.path, endsAt, found.indices);
  if (!found.values)
    return std::nullopt;
  return found;
}

std::optional<SparseGradient> findAddedRows(Operation *op, const BatchFlow &flow, EndsAt endsAt) {
  if (!llvm::isa<dfg::UnsortedSegmentSumOp>(op))
    return std::nullopt;
  SparseGradient found;
  found.indices = walk(op->getOperand(1), flow, found.path, endsAt);
  if (!found.indices)
    return std::nullopt;
  found.values = walkToGradient(op->getOperand(0), flow, found.path, endsAt, found.indices);
  if (!found.values)
    return std::nullopt;
  found.path.push_back(op);
  return found;
}

void chooseOwnRows(SparseGradient &gradient) {
  for (Operation *op : gradient.path)
    if (auto own = llvm::dyn_cast<dist::OwnRowsOp>(op);
        own && own.getIndices() == gradient.indices && own.getValues() == gradient.values) {
      gradient.indices = own.getOwnIndices();
      gradient.values = own.getOwnValues();
      llvm::erase(gradient.path, op);
      return;
    }
}

} // namespace distc
