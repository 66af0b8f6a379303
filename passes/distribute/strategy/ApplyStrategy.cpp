//===- ApplyStrategy.cpp - The strategy, the tasks, and where variables are --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "passes/distribute/strategy/GraphFacts.h"
#include "passes/distribute/strategy/Places.h"
#include "strategies/LoadStrategy.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTAPPLYSTRATEGY
#include "passes/distribute/Passes.h.inc"

namespace {

using strategies::Resources;
using strategies::Strategy;

class TopologyBuilder {
public:
  TopologyBuilder(OpBuilder &builder, const Strategy &strategy, const Resources &resources)
      : builder(builder), strategy(strategy), resources(resources) {}

  /// Workers, then servers.
  dist::TopologyOp build() {
    addWorkers();
    addServers();
    return dist::TopologyOp::create(builder, builder.getUnknownLoc(), dist::kCluster, replicas,
                                    builder.getArrayAttr(tasks));
  }

private:
  void addTask(llvm::StringRef job, int64_t index, llvm::StringRef host, ArrayRef<llvm::StringRef> devices,
               int64_t count) {
    tasks.push_back(dist::TaskAttr::get(builder.getContext(), job, index, builder.getStringAttr(host),
                                        builder.getStrArrayAttr(devices), count, replicas));
    replicas += count;
  }

  /// A task a host with replicas, in the order of replicas, or a task a replica. Puts the replicas of a host together.
  void addWorkers() {
    std::vector<std::string> all(strategy.graph_config().replicas().begin(), strategy.graph_config().replicas().end());
    if (all.empty())
      all = resources.getReplicaDevices();
    llvm::MapVector<llvm::StringRef, SmallVector<llvm::StringRef>> hosts;
    for (llvm::StringRef device : all)
      hosts[getDeviceHost(device)].push_back(device);
    for (const auto &[host, devices] : hosts) {
      if (!resources.oneProcessPerReplica) {
        addTask("worker", tasks.size(), host, devices, devices.size());
        continue;
      }
      for (llvm::StringRef device : devices)
        addTask("worker", tasks.size(), host, device, 1);
    }
  }

  /// The servers that were asked for, from host to host, and one for each other host that holds variables. A host's
  /// workers hold none for others: a server waits for gradients while a worker computes.
  void addServers() {
    llvm::StringSet<> hosts;
    int64_t next = 0;
    for (; next < resources.servers; ++next) {
      llvm::StringRef host = resources.hosts[next % resources.hosts.size()].address;
      addTask("ps", next, host, {}, 0);
      hosts.insert(host);
    }
    forEachDestination(strategy, [&](llvm::StringRef destination) {
      if (!isServerName(destination) && hosts.insert(getDeviceHost(destination)).second)
        addTask("ps", next++, getDeviceHost(destination), {}, 0);
    });
  }

  OpBuilder &builder;
  const Strategy &strategy;
  const Resources &resources;
  SmallVector<Attribute> tasks;
  int64_t replicas = 0;
};

struct DistApplyStrategy : public impl::DistApplyStrategyBase<DistApplyStrategy> {
  using DistApplyStrategyBase::DistApplyStrategyBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<Resources> resources = getResources();
    std::optional<Strategy> plan = resources ? getStrategy(*resources) : std::nullopt;
    if (!plan)
      return signalPassFailure();
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    dist::TopologyOp topology = TopologyBuilder(builder, *plan, *resources).build();
    if (failed(placeVariables(*plan, Places(topology))))
      return signalPassFailure();
    // Of one replica the own values are the whole batch's.
    if (plan->graph_config().coupling() == Strategy::GraphConfig::REPLICA && topology.getReplicas() > 1)
      module->setAttr(dist::kCouplingAttr, builder.getStringAttr("replica"));
    AppliedStrategy::write(module, *plan);
  }

private:
  std::optional<Resources> getResources() {
    ModuleOp module = getOperation();
    Resources found;
    if (Operation *named = module.lookupSymbol(dist::kCluster)) {
      if (llvm::isa<dist::TopologyOp>(named))
        module.emitError("the graph is distributed already: it has a topology");
      else
        named->emitError() << "variable '" << dist::kCluster
                           << "' has the name that the tasks of a distributed graph have: give it another one";
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
    FailureOr<strategies::GraphFacts> facts = computeGraphFacts(module);
    if (failed(facts))
      return std::nullopt;
    std::vector<std::string> remarks;
    llvm::Expected<Strategy> plan = strategies::loadStrategy(strategy, *facts, resources, remarks);
    if (!plan) {
      module.emitError(llvm::toString(plan.takeError()));
      return std::nullopt;
    }
    for (const std::string &remark : remarks)
      module.emitRemark(remark);
    return std::move(*plan);
  }

  /// Marks each variable that a server holds, and its slots.
  LogicalResult placeVariables(const Strategy &strategy, const Places &places) {
    llvm::StringMap<dist::PlaceAttr> held;
    for (const Strategy::Node &node : strategy.node_config()) {
      // A shard has its own place.
      if (!node.has_pssynchronizer() || !node.partitioner().empty())
        continue;
      FailureOr<dist::PlaceAttr> place = places.find(getOperation(), node);
      if (failed(place))
        return failure();
      held[node.var_name()] = *place;
    }
    if (held.empty())
      return success();
    llvm::StringMap<dist::PlaceAttr> slots;
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      for (auto update : graph.getBody().front().getOps<dfg::UpdateInterface>()) {
        SmallVector<unsigned> written = update.getWrittenOperands();
        auto variable = dfg::getVariableHandle(update->getOperand(written.front()));
        auto place = variable ? held.find(variable.getVariable()) : held.end();
        if (place == held.end())
          continue;
        for (unsigned operand : ArrayRef(written).drop_front())
          if (auto slot = dfg::getVariableHandle(update->getOperand(operand)))
            slots[slot.getVariable()] = place->second;
      }
    for (auto variable : getOperation().getOps<dfg::VariableOp>())
      for (const llvm::StringMap<dist::PlaceAttr> *table : {&held, &slots})
        if (auto place = table->find(variable.getSymName()); place != table->end())
          variable->setAttr(dist::kPlaceAttr, place->second);
    return success();
  }
};

} // namespace
} // namespace distc
