//===- OwnRows.cpp - Rows of shards are chosen before they are pushed -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Choosing rows by their index and what optimizers do to rows commute:
//
//   own_rows(unique(i), segment_sum(v, unique(i)#1))  =  (unique(j), segment_sum(w, unique(j)#1)),  j, w = own_rows(i,
//   v)
//
// Both sides have the rows in the same order and add them in the same order.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/OwnRows.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "passes/distribute/synchronize/SparseGradients.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc {
namespace {

/// A shard's choice of rows for the update that it is made for.
struct Choice {
  dist::OwnRowsOp own;
  SparseGradient raw;
  dist::PlaceAttr place;
};

/// What lies between raw rows and the choice among them.
class Between {
public:
  Between(const Choice &choice, const BatchFlow &flow) : choice(choice), flow(flow) {}

  /// Whether each row of it is made of rows of one index, of those alone.
  bool keepsRowsApart() { return walkIndices() && walkValues(); }

  SmallVector<Operation *> inOrder() const {
    SmallVector<Operation *> sorted(nodes.begin(), nodes.end());
    llvm::sort(sorted, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
    return sorted;
  }

private:
  bool walkIndices() {
    Value value = choice.own->getOperand(0);
    while (value != choice.raw.indices) {
      Operation *op = value.getDefiningOp();
      if (isUnique(op) && value == op->getResult(0))
        unique = op;
      else if (!llvm::isa<dfg::IdentityOp, dfg::CastOp>(op))
        return false;
      nodes.insert(op);
      value = op->getOperand(0);
    }
    return true;
  }

  bool walkValues() {
    Value value = choice.own->getOperand(1);
    while (value != choice.raw.values) {
      Operation *op = value.getDefiningOp();
      if (auto sums = llvm::dyn_cast<dfg::UnsortedSegmentSumOp>(op)) {
        if (!unique || sums->getOperand(1) != unique->getResult(1) || !collect(sums->getOperand(2)))
          return false;
        value = sums->getOperand(0);
      } else if (Value rows = getRows(op)) {
        value = rows;
      } else {
        return false;
      }
      nodes.insert(op);
    }
    return true;
  }

  /// The rows that an element-wise node works on, each by itself.
  Value getRows(Operation *op) const {
    if (!llvm::isa<dfg::ScalarInterface>(op))
      return {};
    Value rows;
    for (Value operand : op->getOperands()) {
      auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
      auto result = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
      if (!type || !result)
        return {};
      if (flow.get(operand).kind == Flow::Replicated && type.getRank() < result.getRank())
        continue;
      if (rows)
        return {};
      rows = operand;
    }
    return rows;
  }

  /// The number of distinct indices is counted anew, by nodes that depend on the indices.
  bool collect(Value value) {
    Operation *op = value.getDefiningOp();
    if (nodes.contains(op))
      return true;
    if (!llvm::isa<dfg::ShapeOp, dfg::SizeOp, dfg::StridedSliceOp, dfg::IdentityOp, dfg::CastOp>(op))
      return llvm::isa<dfg::ConstOp>(op);
    if (!llvm::all_of(op->getOperands(), [&](Value operand) { return collect(operand); }))
      return false;
    if (llvm::any_of(op->getOperands(), [&](Value operand) { return nodes.contains(operand.getDefiningOp()); }))
      nodes.insert(op);
    return true;
  }

  const Choice &choice;
  const BatchFlow &flow;
  Operation *unique = nullptr;
  llvm::DenseSet<Operation *> nodes;
};

class OwnRowsFirst {
public:
  OwnRowsFirst(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies)
      : block(graph.getBody().front()), flow(flow), policies(policies), builder(graph.getContext()) {}

  bool run() {
    findChoices();
    for (auto &[values, shards] : choices) {
      bool several = llvm::any_of(shards, [&](const Choice &choice) { return choice.place != shards.front().place; });
      for (const Choice &choice : shards)
        if (Between between(choice, flow); several && between.keepsRowsApart())
          move(choice, between.inOrder());
    }
    removeUnused();
    return moved;
  }

private:
  void findChoices() {
    for (Operation &op : block) {
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
      if (!update || update.getIndicesOperand() < 0)
        continue;
      const SyncPolicy &policy = policies.get(getUpdatedVariable(update));
      auto own = op.getOperand(update.getIndicesOperand()).getDefiningOp<dist::OwnRowsOp>();
      if (!own || !policy.place || policy.async || !own.getOwnIndices().hasOneUse() ||
          !own.getOwnValues().hasOneUse() || op.getOperand(update.getGradientOperand()) != own.getOwnValues())
        continue;
      if (std::optional<SparseGradient> raw = findSparseGradient(update, flow))
        choices[own.getValues()].push_back({own, *raw, policy.place});
    }
  }

  void move(const Choice &choice, ArrayRef<Operation *> between) {
    dist::OwnRowsOp own = choice.own;
    if (between.empty())
      return;
    Operation *after = choice.raw.values.getDefiningOp();
    if (Operation *indices = choice.raw.indices.getDefiningOp(); after->isBeforeInBlock(indices))
      after = indices;
    builder.setInsertionPointAfter(after);
    auto first = dist::OwnRowsOp::create(builder, own.getLoc(), anyNumber(choice.raw.indices.getType()),
                                         anyNumber(choice.raw.values.getType()), choice.raw.indices, choice.raw.values,
                                         own.getBegin(), own.getCount());
    IRMapping map;
    map.map(choice.raw.indices, first.getOwnIndices());
    map.map(choice.raw.values, first.getOwnValues());
    builder.setInsertionPoint(own);
    llvm::StringRef name = dfg::getNodeName(own);
    for (Operation *op : between) {
      Operation *clone = builder.clone(*op, map);
      clone->setLoc(NameLoc::get(builder.getStringAttr(name + "/" + dfg::getNodeName(op))));
      for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
        if (flow.get(from).isSharded(0))
          to.setType(anyNumber(to.getType()));
      unused.insert(op);
    }
    own.getOwnIndices().replaceAllUsesWith(map.lookup(own.getIndices()));
    own.getOwnValues().replaceAllUsesWith(map.lookup(own.getValues()));
    own.erase();
    moved = true;
  }

  /// Of the whole table's deduplication, what nothing else uses.
  void removeUnused() {
    llvm::StringSet<> named;
    for (Operation &op : block)
      for (llvm::StringRef name : dfg::getControlInputs(&op))
        named.insert(name);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (unused.contains(&op) && op.use_empty() && !named.contains(dfg::getNodeName(&op)))
        op.erase();
  }

  /// Of rows, any number.
  static Type anyNumber(Type type) {
    auto ranked = llvm::cast<RankedTensorType>(type);
    SmallVector<int64_t> sizes(ranked.getShape());
    sizes[0] = ShapedType::kDynamic;
    return ranked.clone(sizes);
  }

  Block &block;
  const BatchFlow &flow;
  const SyncPolicies &policies;
  OpBuilder builder;
  llvm::MapVector<Value, SmallVector<Choice>> choices; // by the rows that they choose from
  llvm::DenseSet<Operation *> unused;
  bool moved = false;
};

} // namespace

bool chooseOwnRowsFirst(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies) {
  return (policies.hasSync || policies.hasAsync) && OwnRowsFirst(graph, flow, policies).run();
}

} // namespace distc
