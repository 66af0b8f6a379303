//===- Shards.cpp - Which variables are split, and how ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/partition/Shards.h"
#include "passes/distribute/strategy/GraphFacts.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

RankedTensorType ShardedVariable::getShardType(int64_t shard) const {
  SmallVector<int64_t> shape(type.getShape());
  shape[partition.axis] = partition.sizes[shard];
  return RankedTensorType::get(shape, type.getElementType());
}

SmallVector<int64_t> ShardedVariable::getOffsets(int64_t shard) const {
  SmallVector<int64_t> offsets(type.getRank(), 0);
  offsets[partition.axis] = partition.offsets[shard];
  return offsets;
}

const ShardedVariable *Shards::find(llvm::StringRef variable) const {
  auto name = names.find(variable);
  return name == names.end() ? nullptr : &variables.find(name->second)->second;
}

FailureOr<Shards> Shards::find(ModuleOp module, const strategies::Strategy &strategy) {
  Shards shards;
  if (failed(shards.addEntries(module, strategy)) || failed(shards.addSlots(module)))
    return failure();
  return shards;
}

LogicalResult Shards::addEntries(ModuleOp module, const strategies::Strategy &strategy) {
  llvm::StringMap<const strategies::Strategy::Node *> entries;
  for (const strategies::Strategy::Node &node : strategy.node_config())
    if (!node.partitioner().empty())
      entries[node.var_name()] = &node;
  if (entries.empty())
    return success();
  llvm::StringSet<> updated = findUpdatedVariables(module);
  for (auto variable : module.getOps<dfg::VariableOp>()) {
    llvm::StringRef name = variable.getSymName();
    auto entry = entries.find(name);
    if (entry == entries.end() || !updated.contains(name))
      continue;
    const strategies::Strategy::Node &node = *entry->second;
    auto type = llvm::dyn_cast<RankedTensorType>(variable.getType());
    if (!type || !type.hasStaticShape())
      return variable.emitError() << "variable '" << name << "' has no static shape (" << variable.getType()
                                  << "), so it cannot be split; leave partitioner \"" << node.partitioner() << "\" out";
    llvm::Expected<strategies::Partition> partition = strategies::parsePartitioner(node.partitioner(), type.getShape());
    if (!partition)
      return variable.emitError() << "the strategy's entry of variable '" << name
                                  << "': " << llvm::toString(partition.takeError());
    if (node.part_config_size() && node.part_config_size() != partition->getCount())
      return variable.emitError() << "the strategy's entry of variable '" << name << "' has " << node.part_config_size()
                                  << " part_config entries for the " << partition->getCount()
                                  << " shards of partitioner \"" << node.partitioner() << "\"; give one a shard";
    names[name] = variable.getSymNameAttr();
    variables[variable.getSymNameAttr()] = {name.str(), type, std::move(*partition), &node};
  }
  return success();
}

/// Slots are split like their variable.
LogicalResult Shards::addSlots(ModuleOp module) {
  if (empty())
    return success();
  SymbolTable symbols(module);
  auto visit = [&](dfg::UpdateInterface update) -> LogicalResult {
    SmallVector<unsigned> written = update.getWrittenOperands();
    auto handle = dfg::getVariableHandle(update->getOperand(written.front()));
    // By value: adding slots moves the table's rows.
    const ShardedVariable *found = handle ? find(handle.getVariable()) : nullptr;
    std::optional<ShardedVariable> variable = found ? std::optional(*found) : std::nullopt;
    for (unsigned operand : ArrayRef(written).drop_front()) {
      auto slot = dfg::getVariableHandle(update->getOperand(operand));
      const ShardedVariable *known = slot ? find(slot.getVariable()) : nullptr;
      if (!variable && !known)
        continue;
      if (!slot)
        return update.emitError() << "node '" << dfg::getNodeName(update) << "' updates variable '" << variable->name
                                  << "' with a slot that is not known here, so the variable cannot be split";
      llvm::StringRef name = slot.getVariable();
      auto slotVariable = symbols.lookup<dfg::VariableOp>(name);
      if (!variable || (known && known->partition.sizes != variable->partition.sizes) ||
          (known && known->partition.axis != variable->partition.axis) || slotVariable.getType() != variable->type)
        return update.emitError() << "node '" << dfg::getNodeName(update) << "' updates variable '"
                                  << (handle ? handle.getVariable() : "?") << "' with slot '" << name
                                  << "', which cannot be split as the variable is; leave the partitioner out";
      if (known)
        continue;
      names[name] = slotVariable.getSymNameAttr();
      variables[slotVariable.getSymNameAttr()] = {name.str(), variable->type, variable->partition, variable->entry};
    }
    return success();
  };
  for (Operation &scope : module.getOps())
    for (Region &region : scope.getRegions())
      for (auto update : region.getOps<dfg::UpdateInterface>())
        if (failed(visit(update)))
          return failure();
  return success();
}

} // namespace distc
