//===- ColocateServers.cpp - Servers share the processes of their hosts' workers -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/servers/Roles.h"
#include "passes/distribute/servers/Serving.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "strategies/StrategyCheck.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTCOLOCATESERVERS
#include "passes/distribute/Passes.h.inc"

namespace {

struct DistColocateServers : public impl::DistColocateServersBase<DistColocateServers> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<AppliedStrategy> applied = AppliedStrategy::read(module);
    if (failed(applied))
      return signalPassFailure();
    if (strategies::servesAlone(*applied->strategy)) {
      const std::string obstacle = findServingObstacle(*applied);
      if (!obstacle.empty() && strategies::needsServer(*applied->strategy)) {
        if (whereSupported)
          return;
        module.emitError(obstacle);
        return signalPassFailure();
      }
      if (!obstacle.empty())
        keepInStep(module, *applied);
    }
    if (whereSupported && findLoneServer(applied->topology))
      return;
    llvm::DenseMap<Attribute, dist::PlaceAttr> owners;
    if (failed(chooseOwners(applied->topology, owners)))
      return signalPassFailure();
    for (auto variable : module.getOps<dfg::VariableOp>())
      if (dist::PlaceAttr owner = owners.lookup(getPlace(variable)))
        variable->setAttr(dist::kPlaceAttr, owner);
  }

private:
  /// A server that holds variables on a host where no worker is; null where there is none.
  dist::TaskAttr findLoneServer(dist::TopologyOp topology) {
    llvm::DenseSet<Attribute> hosts, used;
    for (auto task : topology.getTasks().getAsRange<dist::TaskAttr>())
      if (task.getJob() != "ps")
        hosts.insert(task.getHost());
    for (auto variable : getOperation().getOps<dfg::VariableOp>())
      used.insert(getPlace(variable));
    for (auto task : topology.getTasks().getAsRange<dist::TaskAttr>())
      if (task.getJob() == "ps" && !hosts.contains(task.getHost()) && used.contains(getTaskPlace(task)))
        return task;
    return {};
  }

  static dist::PlaceAttr getTaskPlace(dist::TaskAttr task) {
    return dist::PlaceAttr::get(task.getContext(), task.getJob(), task.getIndex());
  }

  /// The servers of a host go round its workers. They leave the topology.
  LogicalResult chooseOwners(dist::TopologyOp topology, llvm::DenseMap<Attribute, dist::PlaceAttr> &owners) {
    if (dist::TaskAttr server = findLoneServer(topology))
      return topology.emitError() << "server ps:" << server.getIndex() << " is on host '" << server.getHost().getValue()
                                  << "', which has no replica: a process of servers alone is not supported yet by "
                                     "executables; give the host a device (cpus: [0]), or let reduction_destination "
                                     "name a host with replicas";
    Builder builder(topology.getContext());
    SmallVector<Attribute> workers;
    llvm::DenseMap<Attribute, SmallVector<int64_t>> workersOf; // a host
    for (auto task : topology.getTasks().getAsRange<dist::TaskAttr>())
      if (task.getJob() != "ps") {
        workersOf[task.getHost()].push_back(workers.size());
        workers.push_back(task);
      }
    llvm::DenseMap<Attribute, size_t> next;
    for (auto task : topology.getTasks().getAsRange<dist::TaskAttr>())
      if (ArrayRef<int64_t> there = workersOf[task.getHost()]; task.getJob() == "ps" && !there.empty())
        owners[getTaskPlace(task)] =
            dist::PlaceAttr::get(builder.getContext(), "worker", there[next[task.getHost()]++ % there.size()]);
    topology.setTasksAttr(builder.getArrayAttr(workers));
    return success();
  }
};

} // namespace
} // namespace distc
