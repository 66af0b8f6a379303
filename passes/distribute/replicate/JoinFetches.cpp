//===- JoinFetches.cpp - What a fetch gives over all replicas ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/flow/DescribeUnproven.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTJOINFETCHES
#include "passes/distribute/Passes.h.inc"

namespace {

class FetchJoiner {
public:
  FetchJoiner(dfg::GraphOp graph, const BatchFlow &flow, const SyncPolicies &policies)
      : graph(graph), flow(flow), policies(policies), replicas(policies.replicas) {
    for (Operation &op : graph.getBody().front())
      nodes[dfg::getNodeName(&op)] = &op;
  }

  LogicalResult run() {
    Builder builder(graph.getContext());
    NamedAttrList joins;
    for (const std::string &tensor : getFetchedTensors(graph)) {
      Operation *node = nodes.lookup(llvm::StringRef(tensor).split(':').first);
      // What is not there is said where it is looked for.
      Value value = node ? getTensor(node, tensor) : Value();
      if (!value)
        continue;
      FailureOr<std::string> join = getJoin(tensor, value);
      // A summary is no reason not to train.
      if (failed(join) && isOnlySummary(tensor)) {
        node->emitWarning() << "the summary of " << refusal << " (it is left out)";
        dropSummary(tensor);
        continue;
      }
      if (failed(join))
        return node->emitError()
               << "cannot fetch " << refusal
               << "; fetch what it is computed from, or compile with coupling=replica in the strategy";
      joins.set(tensor, builder.getStringAttr(*join));
    }
    if (!joins.empty())
      graph->setAttr(dist::kJoinsAttr, joins.getDictionary(graph.getContext()));
    return success();
  }

private:
  FailureOr<std::string> getJoin(llvm::StringRef tensor, Value value) {
    const Flow &at = flow.get(value);
    switch (at.kind) {
    case Flow::Replicated:
      // A size of the batch is the sum of the shares'.
      if (at.zero || at.scale == 0)
        return getReplicated(value);
      if (at.scale == 1)
        return std::string("sum");
      break;
    case Flow::Sharded:
      if (!at.zero && at.scale != 0)
        break;
      if (replicas > 1 && !flow.isEstimated() && !at.batch.uniform && at.batch.segments.size() > 1)
        return refuse(tensor, value, "it has several parts with the rows of each replica's share");
      return "concat:" + std::to_string(at.batch.axis);
    case Flow::Partial:
      if (at.zero || at.scale == 0)
        return std::string(isCoupled(value) ? "batch" : "mean");
      if (at.scale == 1 && flow.getFixedBatch() && replicas > 1 && !flow.isEstimated() && !isLoss(tensor))
        return refuse(tensor, value,
                      "it is a sum over the batch, which the graph fixes to the rows of each replica, and whether a "
                      "number beside it counts them is not seen");
      // What the strategy says of the gradients of all variables, it says of the loss.
      if (at.scale == 1 && flow.getFixedBatch() && isLoss(tensor) && !flow.growsNot(value) &&
          policies.getCommonReduction() == dist::Reduction::Mean)
        return std::string("mean");
      if (at.scale == 1)
        return std::string("sum");
      break;
    case Flow::Local:
      // A loss beside a penalty, where each replica has its own.
      if (policies.serves && isSumOfMeans(value, flow))
        return std::string(isCoupled(value) ? "batch" : "mean");
      break;
    }
    // One replica's share is the whole batch; with values of the replicas' own there is no other.
    if (replicas == 1 || flow.isEstimated())
      return getEstimate(value);
    if (at.kind == Flow::Local && at.cause)
      return refuse(tensor, value,
                    "it depends on node '" + dfg::getNodeName(at.cause).str() + "', " +
                        describeUnproven(at.cause, flow));
    return refuse(tensor, value, "it depends on the size of a replica's share");
  }

  /// The same in all replicas; of several batches of an evaluation numbers that data change are averaged.
  std::string getReplicated(Value value) {
    if (Value share = getReducedShare(value); share && flow.get(share).kind == Flow::Partial && !isCoupled(share))
      return "mean";
    return getElementTypeOrSelf(value.getType()).isIntOrFloat() && seesData(value) ? "batch" : "first";
  }

  /// What is reduced to `value`, where that is a sum or mean over the batch; null for others.
  static Value getReducedShare(Value value) {
    while (auto identity = value.getDefiningOp<dfg::IdentityOp>())
      value = identity.getX();
    auto reduce = value.getDefiningOp<dist::AllReduceOp>();
    if (!reduce || reduce.getCompression() || reduce.getAggregator())
      return {};
    return reduce.getGradients()[llvm::cast<OpResult>(value).getResultNumber()];
  }

  /// Whether `value` is computed from examples: what is fed whole is the same in every batch.
  bool seesData(Value value) {
    return sees(value, seeing, [&](Operation *op) {
      auto feed = llvm::dyn_cast<dfg::PlaceholderOp>(op);
      return feed && flow.isBatched(feed);
    });
  }

  /// Whether an example's part of a sum depends on other examples.
  bool isCoupled(Value value) {
    return sees(value, coupled, [](Operation *op) { return llvm::isa<dist::AllReduceOp, dist::AllGatherOp>(op); });
  }

  /// Whether `value` is computed from what such a node gives.
  static bool sees(Value value, llvm::DenseMap<Operation *, bool> &known, llvm::function_ref<bool(Operation *)> is) {
    SmallVector<Operation *> pending = {value.getDefiningOp()};
    llvm::SmallPtrSet<Operation *, 16> visited;
    bool found = false;
    while (!pending.empty() && !found) {
      Operation *op = pending.pop_back_val();
      if (!op || !visited.insert(op).second)
        continue;
      auto it = known.find(op);
      found = it != known.end() ? it->second : is(op);
      if (it == known.end() || it->second)
        for (Value operand : op->getOperands())
          pending.push_back(operand.getDefiningOp());
    }
    // What was looked at in vain is known for all of it.
    for (Operation *op : visited)
      if (!found)
        known[op] = false;
    known[value.getDefiningOp()] = found;
    return found;
  }

  std::string getEstimate(Value value) {
    // The first axis that grows with the batch has its rows.
    auto sizes = flow.getShapes().getShape(value);
    for (auto [axis, size] : llvm::enumerate(sizes.value_or(dfg::Dims())))
      if (size.dependsOnBatch())
        return "concat:" + std::to_string(axis);
    return getReplicated(value);
  }

  LogicalResult refuse(llvm::StringRef tensor, Value value, const std::string &why) {
    llvm::raw_string_ostream(refusal = "")
        << "'" << tensor << "' of " << replicas << " replicas (" << flow.explain(value)
        << "): the replicas' values do not make the whole batch's, for " << why;
    return failure();
  }

  bool isLoss(llvm::StringRef tensor) {
    StringAttr loss = graph.getLossAttr();
    return loss && (loss.getValue() == tensor || (loss.getValue() + ":0").str() == tensor);
  }

  bool isOnlySummary(llvm::StringRef tensor) {
    DictionaryAttr summaries = graph.getSummariesAttr();
    if (!summaries || !summaries.contains(tensor))
      return false;
    auto is = [&](llvm::StringRef name) { return name == tensor || (name + ":0").str() == tensor; };
    StringAttr loss = graph.getLossAttr();
    ArrayAttr fetches = graph.getFetchesAttr();
    return !(loss && is(loss)) &&
           !(fetches && llvm::any_of(fetches.getAsRange<StringAttr>(), [&](StringAttr name) { return is(name); }));
  }

  void dropSummary(llvm::StringRef tensor) {
    NamedAttrList left(graph.getSummariesAttr());
    left.erase(tensor);
    graph.setSummariesAttr(left.getDictionary(graph.getContext()));
  }

  dfg::GraphOp graph;
  const BatchFlow &flow;
  const SyncPolicies &policies;
  int64_t replicas;
  llvm::StringMap<Operation *> nodes;
  llvm::DenseMap<Operation *, bool> seeing, coupled; // as far as it was asked
  std::string refusal;                               // of the last tensor
};

/// Where a fetch is reduced anyway (a loss that a variable keeps), the name goes to what that gives.
void fetchReduced(dfg::GraphOp graph) {
  Block &block = graph.getBody().front();
  llvm::DenseMap<Value, std::pair<Operation *, Value>> reductions;
  for (auto reduce : block.getOps<dist::AllReduceOp>())
    if (!reduce.getCompression() && !reduce.getAggregator())
      for (auto [share, reduced] : llvm::zip(reduce.getGradients(), reduce.getReduced()))
        reductions[share] = {reduce, reduced};
  if (reductions.empty())
    return;
  llvm::StringSet<> fetched;
  for (llvm::StringRef tensor : getFetchedTensors(graph))
    if (tensor.consume_back(":0"))
      fetched.insert(tensor);
  OpBuilder builder(graph.getContext());
  for (Operation &node : llvm::make_early_inc_range(block)) {
    if (node.getNumResults() != 1 || !fetched.contains(dfg::getNodeName(&node)))
      continue;
    Value share = node.getResult(0);
    while (auto identity = share.getDefiningOp<dfg::IdentityOp>())
      if (reductions.contains(share))
        break;
      else
        share = identity->getOperand(0);
    auto reduction = reductions.find(share);
    if (reduction == reductions.end())
      continue;
    auto [reduce, reduced] = reduction->second;
    builder.setInsertionPointAfter(reduce);
    dfg::IdentityOp::create(builder, node.getLoc(), reduced.getType(), reduced);
    // Not the new node, which comes later in the block.
    fetched.erase(dfg::getNodeName(&node));
    leaveName(&node);
  }
}

struct DistJoinFetches : public impl::DistJoinFetchesBase<DistJoinFetches> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<SyncPolicies> policies = SyncPolicies::read(module);
    if (failed(policies))
      return signalPassFailure();
    for (auto graph : module.getOps<dfg::GraphOp>()) {
      if (getFetchedTensors(graph).empty())
        continue;
      fetchReduced(graph);
      FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
      if (failed(flow) || failed(FetchJoiner(graph, *flow, *policies).run()))
        return signalPassFailure();
    }
  }
};

} // namespace

std::vector<std::string> getFetchedTensors(dfg::GraphOp graph) {
  std::vector<std::string> tensors;
  auto add = [&](llvm::StringRef name) {
    std::string tensor = name.contains(':') ? name.str() : name.str() + ":0";
    if (!llvm::is_contained(tensors, tensor))
      tensors.push_back(std::move(tensor));
  };
  if (StringAttr loss = graph.getLossAttr())
    add(loss.getValue());
  if (ArrayAttr fetches = graph.getFetchesAttr())
    for (auto name : fetches.getAsRange<StringAttr>())
      add(name.getValue());
  if (DictionaryAttr summaries = graph.getSummariesAttr())
    for (NamedAttribute summary : summaries)
      add(summary.getName().getValue());
  return tensors;
}

} // namespace distc
