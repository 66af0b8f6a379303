//===- DescribeProgram.cpp - What the program's tables say of the plan --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/graph/ListNames.h"
#include "passes/graph/Passes.h"
#include "passes/lower/Passes.h"

#include <set>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DESCRIBEPROGRAM
#include "passes/lower/Passes.h.inc"

namespace {

/// "GPU:1" of "/job:worker/task:0/device:GPU:1" and of the older "/gpu:1"; empty where no accelerator is named.
std::string getAccelerator(llvm::StringRef device) {
  llvm::StringRef last = device.rsplit('/').second;
  last.consume_front_insensitive("device:");
  auto [kind, number] = last.split(':');
  const bool isAccelerator = kind.equals_insensitive("gpu") || kind.equals_insensitive("tpu");
  return isAccelerator && !number.empty() && number != "*" ? kind.upper() + ":" + number.str() : std::string();
}

/// Who divided a model among devices hears that its replica is one.
void remarkDevices(ModuleOp module) {
  std::set<std::string> devices;
  Operation *first = nullptr;
  module.walk([&](Operation *op) {
    auto device = op->getAttrOfType<StringAttr>(dfg::kDeviceAttr);
    if (std::string name = device ? getAccelerator(device.getValue()) : ""; !name.empty()) {
      devices.insert(name);
      first = first ? first : op;
    }
  });
  if (devices.size() < 2)
    return;
  InFlightDiagnostic remark = mlir::emitRemark(first->getLoc());
  remark << "the graph divides its nodes among the devices";
  listNames(*remark.getUnderlyingDiagnostic(), devices);
  remark << ", which place nothing here: a replica is one device, and computes all of them";
}

struct DescribeProgram : impl::DescribeProgramBase<DescribeProgram> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<dist::TopologyOp> found = dist::getTopology(module);
    if (failed(found))
      return signalPassFailure();
    dist::TopologyOp topology = *found;
    remarkDevices(module);
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
