//===- SeparateRows.cpp - A tensor of rows for each of several tables --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/IRMapping.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "passes/distribute/synchronize/SparseGradients.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTSEPARATEROWS
#include "passes/distribute/Passes.h.inc"

namespace {

class RowSeparator {
public:
  RowSeparator(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies)
      : block(graph.getBody().front()), flow(flow), policies(policies), builder(graph.getContext()) {}

  bool run() {
    findShared();
    for (Use &use : shared)
      separate(use);
    return !shared.empty();
  }

private:
  struct Use {
    dfg::UpdateInterface update;
    SparseGradient gradient;
  };

  void findShared() {
    llvm::DenseMap<Value, Value> indicesOf; // of the first update that takes the rows
    for (Operation &op : block) {
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
      if (!update || update.getIndicesOperand() < 0)
        continue;
      std::optional<SparseGradient> gradient;
      // What is not synchronized goes to the server as it is.
      if (policies.get(getUpdatedVariable(update)).async)
        gradient = {op.getOperand(update.getIndicesOperand()), op.getOperand(update.getGradientOperand()), {}};
      else
        gradient = findSparseGradient(update, flow, /*throughFunctions=*/true);
      if (gradient && indicesOf.insert({gradient->values, gradient->indices}).first->second != gradient->indices)
        shared.push_back({update, *gradient});
    }
  }

  void separate(Use &use) {
    Value rows = use.gradient.values;
    std::string scope = dfg::getNodeName(use.update).str() + "/";
    auto locate = [&](llvm::StringRef name) {
      return NameLoc::get(builder.getStringAttr(getFreeName(block, scope + name)));
    };
    builder.setInsertionPointAfterValue(rows);
    auto type = llvm::cast<RankedTensorType>(rows.getType());
    Value shape = dfg::ShapeOp::create(builder, locate("rows/shape"),
                                       RankedTensorType::get({type.getRank()}, builder.getI32Type()), rows);
    IRMapping own;
    own.map(rows, dfg::ReshapeOp::create(builder, locate("rows"), type, rows, shape).getResult());
    // What leads from the rows to the update may lead to others.
    llvm::DenseSet<Operation *> path(use.gradient.path.begin(), use.gradient.path.end());
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (&op == use.update)
        break;
      if (!path.contains(&op) || llvm::none_of(op.getOperands(), [&](Value operand) { return own.contains(operand); }))
        continue;
      builder.setInsertionPointAfter(&op);
      builder.clone(op, own)->setLoc(locate(dfg::getNodeName(&op)));
    }
    // Indices of rows that a shard chooses are chosen with them.
    for (unsigned number : {use.update.getGradientOperand(), use.update.getIndicesOperand()}) {
      OpOperand &operand = use.update->getOpOperand(number);
      operand.set(own.lookupOrDefault(operand.get()));
    }
  }

  Block &block;
  const BatchFlow &flow;
  const SyncPolicies &policies;
  OpBuilder builder;
  SmallVector<Use> shared;
};

bool hasSeveralByRows(dfg::GraphOp graph) {
  return llvm::count_if(graph.getBody().front(), [](Operation &op) {
           auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
           return update && update.getIndicesOperand() >= 0;
         }) > 1;
}

struct DistSeparateRows : public impl::DistSeparateRowsBase<DistSeparateRows> {
  using DistSeparateRowsBase::DistSeparateRowsBase;

  void runOnOperation() override {
    FailureOr<SyncPolicies> policies = SyncPolicies::read(getOperation());
    if (failed(policies))
      return signalPassFailure();
    bool changed = false;
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      if (!hasSeveralByRows(graph))
        continue;
      FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
      if (failed(flow))
        return signalPassFailure();
      changed |= RowSeparator(graph, *flow, *policies).run();
    }
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace distc
