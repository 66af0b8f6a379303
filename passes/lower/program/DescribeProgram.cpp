//===- DescribeProgram.cpp - What the program's tables say of the plan --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/graph/Passes.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DESCRIBEPROGRAM
#include "passes/lower/Passes.h.inc"

namespace {

struct DescribeProgram : impl::DescribeProgramBase<DescribeProgram> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<dist::TopologyOp> found = dist::getTopology(module);
    if (failed(found))
      return signalPassFailure();
    dist::TopologyOp topology = *found;
    Builder b(&getContext());
    auto entry = [&](StringRef name, Attribute value) { return b.getNamedAttr(name, value); };
    SmallVector<Attribute> tasks;
    for (Attribute attr : topology.getTasks()) {
      auto task = llvm::cast<dist::TaskAttr>(attr);
      tasks.push_back(b.getDictionaryAttr(
          {entry("job", b.getStringAttr(task.getJob())), entry("index", b.getI64IntegerAttr(task.getIndex())),
           entry("host", task.getHost()), entry("first_replica", b.getI64IntegerAttr(task.getFirstReplica())),
           entry("num_replicas", b.getI64IntegerAttr(task.getNumReplicas()))}));
    }
    SmallVector<NamedAttribute> entries = {
        entry("graph", b.getStringAttr(graph)),
        entry("strategy", b.getStringAttr(strategy)),
        entry("target", b.getStringAttr(target)),
        entry("global_batch", b.getI64IntegerAttr(replicaBatch * topology.getReplicas())),
        entry("tasks", b.getArrayAttr(tasks)),
        entry("num_replicas", b.getI64IntegerAttr(topology.getReplicasAttr().getInt())),
    };
    if (auto placeholders = module->removeAttr(kPlaceholdersAttr))
      entries.push_back(entry("placeholders", placeholders));
    for (auto variable : module.getOps<dfg::VariableOp>())
      if (variable.getSymName() == "global_step")
        entries.push_back(entry("global_step", FlatSymbolRefAttr::get(variable.getSymNameAttr())));
    module->setAttr(drt::kProgramAttr, b.getDictionaryAttr(entries));
    topology.erase();
  }
};

} // namespace
} // namespace distc
