//===- PartitionVariables.cpp - Splits variables into shards ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/partition/ShardCollections.h"
#include "passes/distribute/partition/ShardRewriter.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "passes/distribute/strategy/Places.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTPARTITIONVARIABLES
#include "passes/distribute/Passes.h.inc"

namespace {

using strategies::Strategy;

/// The strategy's entry of a shard; that of the whole variable where it has none of its own.
Strategy::Node getShardEntry(const ShardedVariable &variable, int64_t shard) {
  const Strategy::Node &whole = *variable.entry;
  Strategy::Node entry = whole.part_config_size() ? whole.part_config(shard) : whole;
  entry.clear_partitioner();
  entry.clear_part_config();
  entry.set_var_name(variable.getShardName(shard));
  return entry;
}

struct DistPartitionVariables : public impl::DistPartitionVariablesBase<DistPartitionVariables> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<AppliedStrategy> applied = AppliedStrategy::read(module);
    if (failed(applied))
      return signalPassFailure();
    const Strategy &strategy = *applied->strategy;
    FailureOr<Shards> shards = Shards::find(module, strategy);
    if (failed(shards) || (!shards->empty() && failed(split(strategy, *shards, Places(applied->topology)))))
      return signalPassFailure();
    AppliedStrategy::write(module, getStrategyOfShards(strategy, *shards));
  }

private:
  LogicalResult split(const Strategy &strategy, const Shards &shards, const Places &places) {
    ModuleOp module = getOperation();
    WholeValues wholeValues(module);
    for (Operation &scope : module.getOps())
      for (Region &region : scope.getRegions())
        if (!region.empty() && failed(ShardRewriter(region.front(), shards, wholeValues).run()))
          return failure();
    for (auto graph : module.getOps<dfg::GraphOp>())
      splitCollections(graph, shards);
    return splitVariables(shards, places);
  }

  LogicalResult splitVariables(const Shards &shards, const Places &places) {
    SymbolTable symbols(getOperation());
    for (const auto &[symbol, variable] : shards) {
      auto whole = symbols.lookup<dfg::VariableOp>(symbol);
      OpBuilder builder(whole);
      for (int64_t shard = 0; shard < variable.getCount(); ++shard) {
        std::string name = variable.getShardName(shard);
        if (symbols.lookup(name))
          return whole.emitError() << "variable '" << variable.name << "' cannot be split: the graph has a variable '"
                                   << name << "' already; leave its partitioner out";
        auto part = llvm::cast<dfg::VariableOp>(builder.clone(*whole));
        part.setSymName(name);
        part.setType(variable.getShardType(shard));
        part->setLoc(NameLoc::get(builder.getStringAttr(name)));
        part->setAttr(dist::kSliceAttr, dist::SliceAttr::get(&getContext(), symbol,
                                                             builder.getDenseI64ArrayAttr(variable.type.getShape()),
                                                             builder.getDenseI64ArrayAttr(variable.getOffsets(shard))));
        Strategy::Node entry = getShardEntry(variable, shard);
        if (!entry.has_pssynchronizer())
          continue;
        FailureOr<dist::PlaceAttr> place = places.find(getOperation(), entry);
        if (failed(place))
          return failure();
        part->setAttr(dist::kPlaceAttr, *place);
      }
      whole.erase();
    }
    return success();
  }

  /// Entries of shards instead of those of split variables; none has a partitioner.
  static Strategy getStrategyOfShards(const Strategy &strategy, const Shards &shards) {
    Strategy result = strategy;
    result.clear_node_config();
    for (const Strategy::Node &node : strategy.node_config()) {
      const ShardedVariable *variable = shards.find(node.var_name());
      if (variable) {
        for (int64_t shard = 0; shard < variable->getCount(); ++shard)
          *result.add_node_config() = getShardEntry(*variable, shard);
        continue;
      }
      Strategy::Node *whole = result.add_node_config();
      *whole = node;
      whole->clear_partitioner();
      whole->clear_part_config();
    }
    return result;
  }
};

} // namespace
} // namespace distc
