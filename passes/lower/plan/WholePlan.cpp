//===- WholePlan.cpp - Whether a module is a plan that can be told of --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/WholePlan.h"

#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/ScopeNames.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

/// The variables that an attribute names, in arrays of arrays as well.
void collectVariables(Attribute attribute, SmallVectorImpl<StringRef> &names) {
  if (auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(attribute))
    names.push_back(symbol.getValue());
  else if (auto array = dyn_cast_or_null<ArrayAttr>(attribute))
    for (Attribute member : array)
      collectVariables(member, names);
}

namespace {

/// The variables and tasks that operations name are there.
LogicalResult checkReferences(ModuleOp module, int64_t numTasks) {
  llvm::StringSet<> known;
  auto checkOwner = [&](Operation *op, int64_t owner) -> LogicalResult {
    if (owner >= 0 && owner < numTasks)
      return success();
    return op->emitError() << "task " << owner << " owns a variable, and there are " << numTasks;
  };
  for (auto variable : module.getOps<drt::VariableOp>()) {
    known.insert(variable.getSymName());
    if (variable.getOwner() && failed(checkOwner(variable, static_cast<int64_t>(*variable.getOwner()))))
      return failure();
  }
  for (drt::EntryOp entry : getEntries(module))
    for (Operation &op : entry.getBody().front()) {
      SmallVector<StringRef> names;
      collectVariables(op.getAttr("variables"), names);
      auto members = op.getAttrOfType<ArrayAttr>("variables");
      const bool isEmpty = names.empty() || (isa<drt::UpdateGroupOp>(op) && llvm::any_of(members, [](Attribute member) {
                                               auto written = dyn_cast<ArrayAttr>(member);
                                               return !written || written.empty();
                                             }));
      if (getScopeCategory(&op) == "update" && isEmpty)
        return op.emitError("an update names no variable");
      if (auto read = dyn_cast<drt::ReadOp>(op))
        names.push_back(read.getVariable());
      for (StringRef name : names)
        if (!known.contains(name))
          return op.emitError() << "the plan has no variable '" << name << "'";
      if (auto owners = op.getAttrOfType<DenseI64ArrayAttr>("owners"))
        for (int64_t owner : owners.asArrayRef())
          if (failed(checkOwner(&op, owner)))
            return failure();
    }
  return success();
}

} // namespace

LogicalResult checkWholePlan(ModuleOp module) {
  FailureOr<drt::ProgramOp> program = drt::getProgram(module);
  if (failed(program))
    return failure();
  if (!module->getAttrOfType<IntegerAttr>("drt.arena_bytes"))
    return module.emitError("is no whole plan: it has no drt.arena_bytes; run drt-plan-memory");
  return checkReferences(module, program->getTasks().size());
}

} // namespace distc
