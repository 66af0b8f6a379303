//===- VariableAverages.cpp - Moving averages of variables ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/VariableAverages.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/synchronize/RawGradients.h"

using namespace mlir;

namespace distc {
namespace {

class Averages {
public:
  Averages(dfg::GraphOp graph, const SyncPolicies &policies, const strategies::StepNodes &step)
      : graph(graph), block(graph.getBody().front()), policies(policies), step(step),
        init(graph, graph.getInitOpAttr()), builder(graph.getContext()) {}

  LogicalResult run() {
    auto module = graph->getParentOfType<ModuleOp>();
    llvm::StringMap<dfg::VariableOp> byWhole; // of shards too
    for (auto variable : module.getOps<dfg::VariableOp>()) {
      variables[variable.getSymName()] = variable;
      byWhole.try_emplace(getWhole(variable), variable);
    }
    separate(graph.getTrainOpAttr());
    separate(graph.getInitOpAttr());
    readUpdates();
    for (auto &[name, updates] : updated) {
      const llvm::StringRef whole = getWhole(variables.lookup(name));
      if (dfg::VariableOp own = byWhole.lookup(getAverage(whole)))
        return own.emitError("variable_averages keeps moving averages of all that is trained, and the graph has one "
                             "of its own of variable '")
               << whole << "', which would have the same name: leave variable_averages out of the strategy";
    }
    for (auto &[name, updates] : updated)
      add(name, updates);
    waitFor(graph.getInitOpAttr(), ofInit);
    waitFor(graph.getTrainOpAttr(), ofStep);
    return success();
  }

private:
  /// The name of the variable that it is, or is a shard of.
  static llvm::StringRef getWhole(dfg::VariableOp variable) {
    auto slice = variable->getAttrOfType<dist::SliceAttr>(dist::kSliceAttr);
    return slice ? slice.getWhole().getValue() : variable.getSymName();
  }

  static std::string getAverage(llvm::StringRef variable) { return variable.str() + "/ExponentialMovingAverage"; }

  /// What gives a variable its new value in a step.
  struct Updates {
    Value handle;
    SmallVector<llvm::StringRef> names;
  };

  void readUpdates() {
    for (Operation &op : block) {
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
      if (!update)
        continue;
      // A share's handle leads to its variable.
      Value handle = op.getOperand(update.getWrittenOperands().front());
      if (auto share = handle.getDefiningOp<dist::ShareHandleOp>())
        handle = share.getHandle();
      auto variable = dfg::getVariableHandle(handle);
      if (!variable || !policies.hasEntry(variable.getVariable()))
        continue;
      if (init.contains(&op) && llvm::isa<dfg::AssignOp>(op))
        initializers[variable.getVariable()] = llvm::cast<dfg::AssignOp>(op);
      else if (!step.isKnown() || step.contains(&op))
        addUpdate(variable, &op);
    }
    // Shares of the variable are updated; this makes them it.
    for (auto gather : block.getOps<dist::AllGatherVariablesOp>())
      for (Value handle : gather.getHandles())
        if (auto variable = dfg::getVariableHandle(handle); variable && updated.count(variable.getVariable()))
          addUpdate(variable, gather);
  }

  void addUpdate(dfg::VarHandleOp variable, Operation *op) {
    Updates &updates = updated[variable.getVariable()];
    updates.handle = variable.getHandle();
    if (llvm::StringRef name = dfg::getNodeName(op); !name.empty())
      updates.names.push_back(name);
  }

  Location getLocation(const llvm::Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }

  void add(llvm::StringRef name, const Updates &updates) {
    dfg::VariableOp variable = variables.lookup(name);
    dfg::AssignOp initializer = initializers.lookup(name);
    auto type = llvm::dyn_cast<RankedTensorType>(variable.getType());
    if (!initializer || !type || !llvm::isa<FloatType>(type.getElementType())) {
      variable.emitRemark() << "no moving average is kept of variable '" << name << "': "
                            << (initializer ? "it is no tensor of floats" : "the init op does not initialize it");
      return;
    }
    std::string average = getAverage(name);
    builder.setInsertionPointAfter(variable);
    auto added = dfg::VariableOp::create(builder, variable.getLoc(), average, type, "resource", false);
    dist::PlaceAttr place = policies.get(name).place;
    if (place)
      added->setAttr(dist::kPlaceAttr, place);
    // Of a shard: a shard of the whole variable's average.
    if (auto slice = variable->getAttrOfType<dist::SliceAttr>(dist::kSliceAttr))
      added->setAttr(dist::kSliceAttr,
                     dist::SliceAttr::get(builder.getContext(),
                                          builder.getStringAttr(getAverage(slice.getWhole().getValue())),
                                          slice.getShape(), slice.getOffsets()));
    auto mark = [&](Operation *op) {
      if (place)
        op->setAttr(dist::kPlaceAttr, place);
      return op;
    };
    // From the initial value.
    builder.setInsertionPointAfter(initializer);
    auto ref = dfg::RefType::get(builder.getContext(), type);
    auto averageHandle = dfg::VarHandleOp::create(builder, getLocation(average), ref, average);
    dfg::setSourceAttribute(averageHandle, "shared_name", builder.getStringAttr(average));
    mark(dfg::AssignOp::create(builder, getLocation(average + "/Assign"), Type(), averageHandle,
                               initializer.getValue()));
    ofInit.push_back(average + "/Assign");
    // Behind all updates of the step.
    builder.setInsertionPointToEnd(&block);
    // A reference is read where it is used.
    bool isReference = variable.getKind() == "ref";
    Location here = getLocation(average + "/value");
    Operation *value = mark(dfg::ReadVariableOp::create(builder, here, type, updates.handle, isReference));
    if (isReference)
      value = mark(dfg::IdentityOp::create(builder, here, type, value->getResult(0)));
    if (!updates.names.empty())
      value->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(updates.names));
    Operation *old = mark(dfg::ReadVariableOp::create(builder, getLocation(average + "/old"), type, averageHandle,
                                                      /*implicit=*/false));
    auto scalar = RankedTensorType::get({}, type.getElementType());
    auto rate =
        DenseElementsAttr::get(scalar, builder.getFloatAttr(type.getElementType(), 1.0 - policies.averagesDecay));
    Value constant = dfg::ConstOp::create(builder, getLocation(average + "/rate"), scalar, rate);
    Operation *difference = mark(dfg::SubOp::create(builder, getLocation(average + "/difference"), type,
                                                    old->getResult(0), value->getResult(0)));
    Operation *step =
        mark(dfg::MulOp::create(builder, getLocation(average + "/step"), type, difference->getResult(0), constant));
    mark(
        dfg::AssignSubOp::create(builder, getLocation(average + "/update"), Type(), averageHandle, step->getResult(0)));
    ofStep.push_back(average + "/update");
  }

  /// The endpoint waits for `names`, and stands behind them.
  void waitFor(StringAttr endpoint, ArrayRef<std::string> names) {
    if (!endpoint || names.empty())
      return;
    for (Operation &op : block) {
      if (dfg::getNodeName(&op) != endpoint.getValue().split(':').first)
        continue;
      SmallVector<llvm::StringRef> control = dfg::getControlInputs(&op);
      control.append(names.begin(), names.end());
      op.setAttr(dfg::kControlAttr, builder.getStrArrayAttr(control));
      if (op.use_empty() && endpoint == graph.getTrainOpAttr())
        op.moveBefore(&block, block.end());
      return;
    }
  }

  /// An update that is the endpoint itself is one of those that the averages, or their first values, stand behind: its
  /// name goes to a group. Who waits for it waits for the update as before.
  void separate(StringAttr endpoint) {
    if (!endpoint)
      return;
    const std::string name = endpoint.getValue().split(':').first.str();
    auto found = llvm::find_if(block, [&](Operation &op) { return dfg::getNodeName(&op) == name; });
    if (found == block.end() || !llvm::isa<dfg::UpdateInterface>(*found))
      return;
    const std::string update = getFreeName(block, name + "/update");
    for (Operation &op : block) {
      SmallVector<llvm::StringRef> control = dfg::getControlInputs(&op);
      if (!llvm::is_contained(control, name))
        continue;
      std::replace(control.begin(), control.end(), llvm::StringRef(name), llvm::StringRef(update));
      op.setAttr(dfg::kControlAttr, builder.getStrArrayAttr(control));
    }
    builder.setInsertionPointToEnd(&block);
    Operation *group = dfg::GroupOp::create(builder, found->getLoc());
    found->setLoc(getLocation(update));
    group->setAttr(dfg::kControlAttr, builder.getStrArrayAttr({llvm::StringRef(update)}));
  }

  dfg::GraphOp graph;
  Block &block;
  const SyncPolicies &policies;
  const strategies::StepNodes &step;
  strategies::StepNodes init;
  OpBuilder builder;
  llvm::StringMap<dfg::VariableOp> variables;
  llvm::StringMap<dfg::AssignOp> initializers;
  llvm::MapVector<llvm::StringRef, Updates> updated;
  std::vector<std::string> ofInit, ofStep;
};

} // namespace

LogicalResult addVariableAverages(dfg::GraphOp graph, const SyncPolicies &policies, const strategies::StepNodes &step) {
  return Averages(graph, policies, step).run();
}

} // namespace distc
