//===- LegalizeForTensorFlow.cpp - A worker's graph of stock operations -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/BatchNodes.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTLEGALIZEFORTENSORFLOW
#include "passes/distribute/Passes.h.inc"

namespace {

class Legalizer {
public:
  Legalizer(WorkerGraph &worker, int64_t batch) : worker(worker), batch(batch) {}

  LogicalResult run() {
    for (auto take : worker.block.getOps<dist::TakeOp>())
      if (take.getAggregatorAttr())
        worker.servers.aggregated.insert(take.getAccumulator());
    if (failed(findReads(worker)))
      return failure();
    pruneChiefsWork(worker);
    findProxies(worker);
    guardUpdates();
    countUpdates();
    for (Operation &op : worker.block)
      if (auto key = getIssueKey(&op))
        issues[*key].push_back(&op);
    for (auto &[key, issue] : issues)
      if (failed(legalize(issue)))
        return failure();
    for (auto &[key, issue] : issues)
      for (Operation *op : issue)
        erase(op);
    if (Operation *guard = worker.servers.guard)
      for (Operation *take : worker.servers.takes)
        StockNodes::addControl(take, guard);
    orderUpdates(worker);
    finishProxies(worker);
    legalizeSlots(worker);
    if (failed(joinReplicas(worker)))
      return failure();
    describeFeeds();
    waitFor(worker.graph.getInitOpAttr(), worker.initNodes);
    waitFor(worker.graph.getTrainOpAttr(), worker.stepNodes);
    endStepTogether();
    dropDeadControl();
    if (failed(drawAlike(worker)))
      return failure();
    placeNodes(worker);
    return success();
  }

private:
  /// Gradients are there at the last batch of an update only, where that takes several: because replicas add theirs up,
  /// or because servers wait for more than one of each.
  void guardUpdates() {
    int64_t number = 1, pushes = 1;
    for (auto accumulate : worker.block.getOps<dist::AccumulateOp>())
      number = std::max<int64_t>(number, accumulate.getSteps());
    for (auto push : worker.block.getOps<dist::PushOp>())
      if (!push.getAsync() && !push->hasAttr(dist::kPlaceAttr))
        pushes = std::max<int64_t>(pushes, llvm::divideCeil(push.getRequired(), worker.replicas));
    // Also where nothing is pushed: a replica that has read what servers hold says so once an update.
    if (number * pushes > 1 && worker.hasPlaces())
      worker.servers.guard = countBatches(worker, number * pushes).guard;
  }

  /// What changes without seeing the batch does so once for all batches of an update.
  void countUpdates() {
    auto accumulates = worker.block.getOps<dist::AccumulateOp>();
    if (accumulates.empty())
      return;
    strategies::StepNodes step(worker.graph);
    dist::BatchNodes nodes = dist::findBatchNodes(worker.block, [&](Operation *op) { return step.contains(op); });
    Operation *guard = countBatches(worker, (*accumulates.begin()).getSteps()).guard;
    for (Operation &op : worker.block)
      if (llvm::isa<dfg::UpdateInterface>(op) && step.contains(&op) && !nodes.seeBatch.contains(&op))
        StockNodes::addControl(&op, guard);
  }

  /// What local replicas issue alike has the same key.
  static std::optional<std::string> getIssueKey(Operation *op) {
    if (!llvm::isa_and_nonnull<dist::DISTDialect>(op->getDialect()))
      return std::nullopt;
    std::string which =
        llvm::TypeSwitch<Operation *, std::string>(op)
            .Case<dist::AllReduceOp, dist::AllGatherOp, dist::AllGatherSlicesOp, dist::ReduceScatterOp,
                  dist::AllGatherVariablesOp>([](auto collective) { return std::to_string(collective.getBucket()); })
            .Default([](Operation *other) {
              llvm::StringRef name = dfg::getNodeName(other);
              if (llvm::StringRef rest = name; rest.consume_front("replica_"))
                name = rest.split('/').second;
              return name.str();
            });
    return (op->getName().getStringRef() + " " + which).str();
  }

  LogicalResult legalize(const Issue &issue) {
    llvm::StringRef scope = dfg::getNodeName(issue.front());
    scope.consume_front("replica_0/");
    worker.nodes.setPlace(issue.back(), scope.empty() ? "synchronize" : scope);
    return llvm::TypeSwitch<Operation *, LogicalResult>(issue.front())
        .Case([&](dist::AllReduceOp) { return legalizeReduction(worker, issue); })
        .Case([&](dist::AllGatherOp) { return legalizeGatherRows(worker, issue); })
        .Case([&](dist::TakeRowsOp) { return legalizeTakeRows(worker, issue); })
        .Case<dist::WholeSizeOp, dist::RescaleOp>([&](auto) { return legalizeWholeSize(worker, issue); })
        .Case([&](dist::AllGatherSlicesOp) { return legalizeGather(worker, issue); })
        .Case([&](dist::ReduceScatterOp) { return legalizeReduceScatter(worker, issue); })
        .Case([&](dist::TakeShareOp) { return legalizeTakeShare(worker, issue); })
        .Case([&](dist::ShareHandleOp) { return legalizeShareHandle(worker, issue); })
        .Case([&](dist::AllGatherVariablesOp) { return legalizeGatherVariables(worker, issue); })
        .Case([&](dist::AccumulateOp) { return legalizeAccumulate(worker, issue); })
        .Case([&](dist::PushOp) { return legalizePush(worker, issue); })
        .Case([&](dist::TakeOp) { return legalizeTake(worker, issue); })
        .Case([&](dist::TokensOp) { return legalizeTokens(worker, issue); })
        .Case([&](dist::PullOp) { return legalizePull(worker, issue); })
        .Case([&](dist::PullRowsOp) { return legalizePullRows(worker, issue); })
        .Case([&](dist::OwnRowsOp) { return legalizeOwnRows(worker, issue); })
        .Default([](Operation *op) {
          return op->emitOpError() << "has no form in TensorFlow yet; use a strategy without it";
        });
  }

  /// Whether the whole batch's loss is the sum of the shares' losses, and not their mean.
  bool isLossSum() {
    StringAttr loss = worker.graph.getLossAttr();
    auto joins = worker.graph->getAttrOfType<DictionaryAttr>(dist::kJoinsAttr);
    if (!loss || !joins)
      return false;
    std::string tensor = loss.getValue().contains(':') ? loss.str() : loss.str() + ":0";
    auto join = joins.getAs<StringAttr>(tensor);
    return join && join.getValue() == "sum";
  }

  /// What a program that feeds the graph must know of the worker's share.
  void describeFeeds() {
    Builder builder(worker.graph.getContext());
    SmallVector<Attribute> byRows;
    for (auto placeholder : worker.block.getOps<dfg::PlaceholderOp>())
      if (auto share = placeholder->getAttrOfType<StringAttr>(dist::kFeedAttr))
        if (share.getValue() == dist::kSharded)
          byRows.push_back(builder.getStringAttr(dfg::getNodeName(placeholder) + ":0"));
    int64_t numbers[] = {worker.replicas, worker.task.getFirstReplica(), worker.taskReplicas, batch,
                         worker.servers.isLoose};
    worker.graph.setMoreCollectionsAttr(
        builder.getDictionaryAttr({builder.getNamedAttr("distc_feeds_by_rows", builder.getArrayAttr(byRows)),
                                   builder.getNamedAttr("distc_loss_is_sum", builder.getI64ArrayAttr({isLossSum()})),
                                   builder.getNamedAttr("distc_share", builder.getI64ArrayAttr(numbers))}));
  }

  void erase(Operation *op) {
    worker.nodes.forget(op);
    op->erase();
  }

  /// The group that is the endpoint; null where the graph has none. Where it is an operation of its own, a group that
  /// waits for it takes its name.
  Operation *getEndpointGroup(StringAttr name) {
    Operation *node = name ? worker.nodes.find(name.getValue()) : nullptr;
    if (!node || llvm::isa<dfg::GroupOp>(node))
      return node;
    std::string inner = (name.getValue() + "/alone").str();
    worker.nodes.rename(node, inner);
    renamed[name] = StringAttr::get(name.getContext(), inner);
    worker.nodes.setPlaceAtEnd("");
    return worker.nodes.group(name.getValue(), node);
  }

  /// The endpoint is done when `others` are.
  void waitFor(StringAttr endpoint, ArrayRef<Operation *> others) {
    if (others.empty())
      return;
    if (Operation *node = getEndpointGroup(endpoint))
      StockNodes::addControl(node, others);
  }

  /// Sessions whose graphs have collectives run them under one step number. A session that ends its step takes away
  /// what servers hold for that number, of the others as well: none may end before all are done with the servers.
  void endStepTogether() {
    Operation *train =
        worker.hasCollectives() && worker.hasPlaces() ? getEndpointGroup(worker.graph.getTrainOpAttr()) : nullptr;
    if (!train)
      return;
    worker.nodes.setPlaceAtEnd("synchronization/end");
    auto one = RankedTensorType::get({1}, Float32Type::get(train->getContext()));
    Value zero = worker.nodes.constant("zero", DenseElementsAttr::get(one, 0.0f));
    worker.meetDeadCollectives();
    Operation *barrier = worker.collective("Reduce", zero, dist::Spec::Auto).getDefiningOp();
    SmallVector<Attribute> before;
    for (Operation *op : {barrier, train})
      if (auto control = op->getAttrOfType<ArrayAttr>(dfg::kControlAttr))
        before.append(control.begin(), control.end());
    barrier->removeAttr(dfg::kControlAttr);
    Operation *waits = worker.batches.empty() ? barrier : meetAtEachBatch(barrier);
    waits->setAttr(dfg::kControlAttr, ArrayAttr::get(train->getContext(), before));
    train->removeAttr(dfg::kControlAttr);
    StockNodes::addControl(train, barrier);
  }

  /// What `barrier` waits for where nodes are dead at all batches but an update's last. Servers are told of that by
  /// messages too, so that it must wait for the dead: of nodes that wait for dead ones a Merge alone runs.
  Operation *meetAtEachBatch(Operation *barrier) {
    Operation *merge = worker.meetAtEachBatch();
    StockNodes::addControl(barrier, merge);
    return merge;
  }

  /// Control edges to what is gone, and to what has another name.
  void dropDeadControl() {
    for (Operation &op : worker.block) {
      auto control = op.getAttrOfType<ArrayAttr>(dfg::kControlAttr);
      if (!control)
        continue;
      SmallVector<Attribute> names;
      for (auto name : control.getAsRange<StringAttr>()) {
        // An endpoint that took its operation's name waits for it, all others mean the operation.
        if (llvm::isa<dfg::GroupOp>(op) && worker.excluded.contains(name.getValue()))
          continue;
        if (auto alias = worker.aliases.find(name.getValue()); alias != worker.aliases.end()) {
          for (Operation *node : alias->second)
            names.push_back(StringAttr::get(op.getContext(), dfg::getNodeName(node)));
          continue;
        }
        StringAttr other = renamed.lookup(name);
        if (other && dfg::getNodeName(&op) != name.getValue())
          names.push_back(other);
        else if (worker.nodes.find(name.getValue()))
          names.push_back(name);
      }
      if (names.empty())
        op.removeAttr(dfg::kControlAttr);
      else
        op.setAttr(dfg::kControlAttr, ArrayAttr::get(op.getContext(), names));
    }
  }

  WorkerGraph &worker;
  int64_t batch;
  llvm::MapVector<std::string, Issue, std::map<std::string, unsigned>> issues;
  llvm::DenseMap<StringAttr, StringAttr> renamed;
};

struct DistLegalizeForTensorFlow : public impl::DistLegalizeForTensorFlowBase<DistLegalizeForTensorFlow> {
  using DistLegalizeForTensorFlowBase::DistLegalizeForTensorFlowBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<dist::TopologyOp> topology = dist::getTopology(module);
    if (failed(topology))
      return signalPassFailure();
    SmallVector<dist::TaskAttr> workers;
    for (auto task : topology->getTasks().getAsRange<dist::TaskAttr>())
      if (task.getNumReplicas() > 0)
        workers.push_back(task);
    if (worker < 0 || worker >= static_cast<int64_t>(workers.size())) {
      module.emitError() << "has no worker " << worker << "; there are " << workers.size();
      return signalPassFailure();
    }
    for (auto graph : module.getOps<dfg::GraphOp>()) {
      WorkerGraph state(graph, *topology, workers[worker], workers);
      if (failed(Legalizer(state, batch).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace distc
