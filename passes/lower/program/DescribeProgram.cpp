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
    OpBuilder b(topology);
    auto tasks =
        llvm::map_to_vector(topology.getTasks().getAsRange<dist::TaskAttr>(), [](dist::TaskAttr task) -> Attribute {
          return drt::TaskAttr::get(task.getContext(), task.getJob(), task.getIndex(), task.getHost().getValue(),
                                    task.getNumReplicas(), task.getFirstReplica());
        });
    FlatSymbolRefAttr globalStep;
    for (auto variable : module.getOps<dfg::VariableOp>())
      if (variable.getSymName() == "global_step")
        globalStep = FlatSymbolRefAttr::get(variable.getSymNameAttr());
    auto placeholders = llvm::cast_or_null<ArrayAttr>(module->removeAttr(dfg::kPlaceholdersAttr));
    const auto batch = static_cast<int64_t>(replicaBatch * topology.getReplicas());
    drt::ProgramOp::create(b, topology.getLoc(), b.getStringAttr(graph), b.getStringAttr(strategy),
                           b.getStringAttr(target), b.getI64IntegerAttr(batch), b.getArrayAttr(tasks), globalStep,
                           placeholders, cores > 0 ? b.getI64IntegerAttr(cores) : IntegerAttr(),
                           /*arena_bytes=*/IntegerAttr(), /*variable_bytes=*/IntegerAttr(),
                           joint ? b.getUnitAttr() : UnitAttr());
    topology.erase();
  }
};

} // namespace
} // namespace distc
