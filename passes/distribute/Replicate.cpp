//===- Replicate.cpp - Topology and shares of the batch ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/BatchFlow.h"
#include "passes/distribute/Passes.h"
#include "strategies/Builder.h"
#include "strategies/StrategyCheck.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTREPLICATE
#include "passes/distribute/Passes.h.inc"

namespace {

using strategies::Resources;
using strategies::Strategy;

/// A task a host with replicas, in the order of replicas; `each`: a task a replica. Puts the replicas of a host
/// together.
dist::TopologyOp makeTopology(OpBuilder &builder, const Strategy &strategy, const Resources &resources) {
  llvm::MapVector<llvm::StringRef, SmallVector<llvm::StringRef>> hosts;
  std::vector<std::string> all;
  if (strategy.graph_config().replicas_size())
    all.assign(strategy.graph_config().replicas().begin(), strategy.graph_config().replicas().end());
  else
    all = resources.getReplicaDevices();
  for (llvm::StringRef device : all)
    hosts[device.rsplit(':').first.rsplit(':').first].push_back(device);

  SmallVector<Attribute> tasks;
  int64_t next = 0;
  auto addTask = [&](llvm::StringRef host, ArrayRef<llvm::StringRef> devices) {
    tasks.push_back(dist::TaskAttr::get(builder.getContext(), "worker", tasks.size(), builder.getStringAttr(host),
                                        builder.getStrArrayAttr(devices), devices.size(), next));
    next += devices.size();
  };
  for (const auto &[host, devices] : hosts) {
    if (!resources.oneProcessPerReplica) {
      addTask(host, devices);
      continue;
    }
    for (llvm::StringRef device : devices)
      addTask(host, device);
  }
  return dist::TopologyOp::create(builder, builder.getUnknownLoc(), dist::kCluster, next, builder.getArrayAttr(tasks));
}

struct DistReplicate : public impl::DistReplicateBase<DistReplicate> {
  using DistReplicateBase::DistReplicateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<Resources> resources = getResources();
    std::optional<Strategy> plan = resources ? getStrategy(*resources) : std::nullopt;
    if (!plan)
      return signalPassFailure();
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    makeTopology(builder, *plan, *resources);
    module->setAttr(dist::kStrategyAttr, builder.getStringAttr(strategies::printStrategy(*plan)));
    for (auto graph : module.getOps<dfg::GraphOp>()) {
      llvm::FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
      if (failed(flow))
        return signalPassFailure();
      markShares(graph, *flow);
    }
  }

private:
  std::optional<Resources> getResources() {
    ModuleOp module = getOperation();
    Resources found;
    if (module.lookupSymbol(dist::kCluster)) {
      module.emitError("the graph is distributed already: it has a topology");
      return std::nullopt;
    }
    if (resources.empty() == (replicas == 0)) {
      module.emitError("says nothing of the machines, or says it twice: give either resources=FILE or replicas=N");
      return std::nullopt;
    }
    if (replicas < 0) {
      module.emitError() << "replicas=" << replicas << ": at least one replica is needed";
      return std::nullopt;
    }
    if (!resources.empty()) {
      std::variant<Resources, std::string> read = strategies::readResources(resources);
      if (auto *error = std::get_if<std::string>(&read)) {
        module.emitError(*error);
        return std::nullopt;
      }
      found = std::move(std::get<Resources>(read));
    } else {
      found = Resources::local(replicas, servers);
    }
    found.oneProcessPerReplica = oneProcessPerReplica;
    return found;
  }

  std::optional<Strategy> getStrategy(const Resources &resources) {
    ModuleOp module = getOperation();
    strategies::GraphFacts facts = strategies::computeGraphFacts(module);
    bool isFile = !strategies::isBuilderSpec(strategy) && llvm::sys::fs::exists(strategy);
    llvm::Expected<Strategy> plan =
        isFile ? strategies::readStrategy(strategy) : strategies::buildStrategy(strategy, facts, resources);
    std::vector<std::string> remarks;
    llvm::Error error = plan ? strategies::checkAgainstGraph(*plan, facts, remarks) : plan.takeError();
    if (!error)
      error = strategies::checkAgainstResources(*plan, resources);
    if (!error)
      error = strategies::checkSupported(*plan);
    if (error) {
      module.emitError(llvm::toString(std::move(error)));
      return std::nullopt;
    }
    for (const std::string &remark : remarks)
      module.emitRemark(remark);
    return std::move(*plan);
  }

  void markShares(dfg::GraphOp graph, const BatchFlow &flow) {
    Builder builder(graph.getContext());
    for (Operation &op : graph.getBody().front()) {
      if (auto feed = llvm::dyn_cast<dfg::PlaceholderOp>(op))
        op.setAttr(dist::kShareAttr, builder.getStringAttr(flow.isBatched(feed) ? dist::kSharded : dist::kWhole));
      else if (llvm::isa<dfg::RandomUniformOp, dfg::RandomStandardNormalOp, dfg::TruncatedNormalOp,
                         dfg::RandomUniformIntOp>(op) &&
               flow.get(op.getResult(0)).kind == Flow::Sharded)
        op.setAttr(dist::kSeedAttr, builder.getStringAttr("replica"));
    }
  }
};

} // namespace
} // namespace distc
