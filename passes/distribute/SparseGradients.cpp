//===- SparseGradients.cpp - Rows on the way to an update --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/SparseGradients.h"
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

/// The rows that an element-wise node works on: its only operand that differs between replicas and is no scalar of a
/// hyper-parameter or norm. The other operands must not hide a factor of the batch's size.
Value getElementwiseRows(Operation *op, const BatchFlow &flow) {
  Value rows;
  for (Value operand : op->getOperands()) {
    const Flow &at = flow.get(operand);
    if (at.kind == Flow::Replicated) {
      if (!at.zero && at.scale != 0)
        return {};
      continue;
    }
    auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
    if (at.kind != Flow::Sharded && type && type.getRank() == 0)
      continue;
    if (rows)
      return {};
    rows = operand;
  }
  return rows && (isIndices(rows) || isLinearIn(op, rows)) ? rows : Value();
}

/// The value whose rows op's are made of, one step nearer to backward; null where op makes them itself.
Value getRows(Operation *op, const BatchFlow &flow) {
  if (!op)
    return {};
  if (isUnique(op) || llvm::isa<dfg::UnsortedSegmentSumOp, dfg::GatherV2Op, dfg::GatherOp, dfg::DynamicPartitionOp>(op))
    return op->getOperand(0);
  if (llvm::isa<dfg::IdentityOp, dfg::CastOp>(op))
    return op->getOperand(0);
  if (llvm::isa<dfg::ScalarInterface>(op))
    return getElementwiseRows(op, flow);
  return {};
}

bool isRows(const Flow &at) { return at.isSharded(0); }

Value walk(Value value, const BatchFlow &flow, SmallVectorImpl<Operation *> &path) {
  while (true) {
    const Flow &at = flow.get(value);
    Operation *op = value.getDefiningOp();
    if (at.kind == Flow::Replicated || at.kind == Flow::Partial)
      return {};
    Value next = getRows(op, flow);
    // A shard's rows are chosen among all.
    if (auto own = llvm::dyn_cast_or_null<dist::OwnRowsOp>(op))
      next = value == own.getOwnIndices() ? own.getIndices() : own.getValues();
    // Rows of a table that the batch chooses are where backward begins, not a choice among its rows.
    if (next && flow.get(next).kind == Flow::Replicated)
      next = {};
    if (next && isRows(at) && !isRows(flow.get(next)))
      next = {};
    if (!next)
      return isRows(at) ? value : Value();
    path.push_back(op);
    value = next;
  }
}

} // namespace

bool isUnique(Operation *op) {
  return llvm::isa<dfg::UniqueOp, dfg::UniqueWithCountsOp, dfg::UniqueV2Op, dfg::UniqueWithCountsV2Op>(op);
}

bool worksOnRows(Operation *op) {
  return isUnique(op) || llvm::isa<dist::OwnRowsOp, dfg::ScalarInterface, dfg::UnsortedSegmentSumOp, dfg::GatherV2Op,
                                   dfg::GatherOp, dfg::DynamicPartitionOp, dfg::IdentityOp, dfg::CastOp,
                                   dfg::ExpandDimsOp, dfg::ReshapeOp, dfg::ShapeOp>(op);
}

std::optional<SparseGradient> findSparseGradient(dfg::UpdateInterface update, const BatchFlow &flow) {
  SparseGradient found;
  found.indices = walk(update->getOperand(update.getIndicesOperand()), flow, found.path);
  found.values = walk(update->getOperand(update.getGradientOperand()), flow, found.path);
  if (!found.indices || !found.values)
    return std::nullopt;
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
