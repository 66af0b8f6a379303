//===- AppliedStrategy.cpp - What dist-apply-strategy left in a module ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/strategy/AppliedStrategy.h"
#include "dialects/dfg/Dfg.h"
#include "mlir/IR/Builders.h"

#include <charconv>
#include <cstdlib>

using namespace mlir;

namespace distc {
namespace {

using autodist::proto::Aggregator;
using autodist::proto::AllReduceSynchronizer;
using autodist::proto::PSSynchronizer;
using strategies::Strategy;

/// A ratio that was written as 0.1 is 0.1, and not the float that is next to it.
double toDouble(float ratio) {
  char text[32];
  *std::to_chars(text, text + sizeof text - 1, ratio).ptr = '\0';
  return std::strtod(text, nullptr);
}

StringAttr toText(MLIRContext *context, llvm::StringRef text) {
  return text.empty() ? StringAttr() : StringAttr::get(context, text);
}

// ---- Messages to attributes --------------------------------------------------------------------------

dist::ReductionAttr getReduction(MLIRContext *context, const Aggregator &aggregator) {
  if (aggregator.kind() == Aggregator::MEAN)
    return dist::ReductionAttr::get(context, dist::Reduction::Mean);
  if (aggregator.kind() == Aggregator::SUM)
    return dist::ReductionAttr::get(context, dist::Reduction::Sum);
  return {};
}

/// Kinds have the numbers of the runtime, which has no AUTO.
dist::AggregatorAttr getAggregator(MLIRContext *context, const Aggregator &aggregator) {
  if (aggregator.kind() < Aggregator::MEDIAN)
    return {};
  return dist::AggregatorAttr::get(context, static_cast<dist::AggregatorKind>(aggregator.kind() + 1), aggregator.f(),
                                   aggregator.m());
}

dist::CompressionAttr getCompression(MLIRContext *context, const AllReduceSynchronizer &entry) {
  auto kind = static_cast<dist::Compressor>(entry.compressor());
  if (kind == dist::Compressor::None)
    return {};
  int64_t rank = 0;
  FloatAttr ratio;
  if (kind == dist::Compressor::PowerSGD)
    rank = entry.power_sgd_rank();
  if (kind == dist::Compressor::TopK && entry.top_k_ratio() > 0)
    ratio = FloatAttr::get(Float64Type::get(context), toDouble(entry.top_k_ratio()));
  return dist::CompressionAttr::get(context, kind, rank, ratio);
}

dist::PartsAttr getParts(MLIRContext *context, const Strategy::Node &node) {
  if (node.partitioner().empty())
    return {};
  SmallVector<int64_t> counts;
  SmallVector<llvm::StringRef> axes;
  llvm::StringRef(node.partitioner()).split(axes, ',');
  // That it is numbers was checked when the strategy was read.
  for (llvm::StringRef axis : axes) {
    int64_t count = 1;
    if (axis.trim().getAsInteger(10, count) || count < 1)
      count = 1;
    counts.push_back(count);
  }
  SmallVector<Attribute> syncs;
  for (const Strategy::Node &part : node.part_config())
    if (dist::SyncAttr sync = getSync(context, part))
      syncs.push_back(sync);
  return dist::PartsAttr::get(context, DenseI64ArrayAttr::get(context, counts),
                              syncs.empty() ? ArrayAttr() : ArrayAttr::get(context, syncs));
}

dist::StrategyAttr getStrategy(MLIRContext *context, const Strategy &strategy) {
  Builder builder(context);
  SmallVector<Attribute> replicas;
  for (const std::string &device : strategy.graph_config().replicas())
    replicas.push_back(builder.getStringAttr(device));
  StringAttr coupling;
  if (strategy.graph_config().coupling() != Strategy::GraphConfig::AUTO)
    coupling = builder.getStringAttr(strategy.graph_config().coupling() == Strategy::GraphConfig::REPLICA ? "replica"
                                                                                                          : "whole");
  FloatAttr decay;
  if (strategy.variable_averages_decay() != 0)
    decay = builder.getF32FloatAttr(strategy.variable_averages_decay());
  return dist::StrategyAttr::get(context, builder.getStringAttr(strategy.id()), toText(context, strategy.builder()),
                                 toText(context, strategy.path()),
                                 replicas.empty() ? ArrayAttr() : builder.getArrayAttr(replicas), coupling,
                                 strategy.accumulate_steps(), strategy.replicas_to_aggregate(), decay);
}

// ---- Attributes to messages --------------------------------------------------------------------------

void setAggregator(dist::SyncAttr sync, Aggregator &aggregator) {
  if (dist::ReductionAttr reduction = sync.getReduction())
    aggregator.set_kind(reduction.getValue() == dist::Reduction::Sum ? Aggregator::SUM : Aggregator::MEAN);
  if (dist::AggregatorAttr of = sync.getAggregator()) {
    aggregator.set_kind(static_cast<Aggregator::Kind>(static_cast<int>(of.getKind()) - 1));
    aggregator.set_f(static_cast<int32_t>(of.getF()));
    aggregator.set_m(static_cast<int32_t>(of.getM()));
  }
}

void setSync(dist::SyncAttr sync, Strategy::Node &node) {
  const bool aggregates = sync.getReduction() || sync.getAggregator();
  if (sync.getKind() == dist::SyncKind::Server) {
    PSSynchronizer &entry = *node.mutable_pssynchronizer();
    if (StringAttr destination = sync.getDestination())
      entry.set_reduction_destination(destination.str());
    entry.set_local_replication(sync.getProxy());
    entry.set_sync(!sync.getAsync());
    entry.set_staleness(static_cast<int32_t>(sync.getStaleness()));
    if (aggregates)
      setAggregator(sync, *entry.mutable_aggregator());
    return;
  }
  AllReduceSynchronizer &entry = *node.mutable_allreducesynchronizer();
  entry.set_group(static_cast<int32_t>(sync.getGroup()));
  entry.set_spec(static_cast<AllReduceSynchronizer::Spec>(sync.getSpec()));
  entry.set_sharded_stage(static_cast<int32_t>(sync.getShardedStage()));
  if (dist::CompressionAttr compression = sync.getCompression()) {
    entry.set_compressor(static_cast<AllReduceSynchronizer::Compressor>(compression.getKind()));
    entry.set_power_sgd_rank(static_cast<int32_t>(compression.getRank()));
    if (FloatAttr ratio = compression.getRatio())
      entry.set_top_k_ratio(static_cast<float>(ratio.getValueAsDouble()));
  }
  if (aggregates)
    setAggregator(sync, *entry.mutable_aggregator());
}

void setParts(dist::PartsAttr parts, Strategy::Node &node) {
  node.set_partitioner(llvm::join(
      llvm::map_range(parts.getCounts().asArrayRef(), [](int64_t count) { return std::to_string(count); }), ","));
  if (ArrayAttr syncs = parts.getSyncs())
    for (auto [number, sync] : llvm::enumerate(syncs.getAsRange<dist::SyncAttr>())) {
      Strategy::Node &part = *node.add_part_config();
      part.set_var_name(node.var_name() + "/part_" + std::to_string(number));
      setSync(sync, part);
    }
}

} // namespace

dist::SyncAttr getSync(MLIRContext *context, const Strategy::Node &node) {
  if (node.has_allreducesynchronizer()) {
    const AllReduceSynchronizer &entry = node.allreducesynchronizer();
    return dist::SyncAttr::get(context, dist::SyncKind::AllReduce, entry.group(), static_cast<dist::Spec>(entry.spec()),
                               getCompression(context, entry), entry.sharded_stage(), StringAttr(), false, false, 0,
                               getReduction(context, entry.aggregator()), getAggregator(context, entry.aggregator()));
  }
  if (node.has_pssynchronizer()) {
    const PSSynchronizer &entry = node.pssynchronizer();
    return dist::SyncAttr::get(context, dist::SyncKind::Server, 0, dist::Spec::Auto, {}, 0,
                               toText(context, entry.reduction_destination()), !entry.sync(), entry.local_replication(),
                               entry.staleness(), getReduction(context, entry.aggregator()),
                               getAggregator(context, entry.aggregator()));
  }
  return {};
}

FailureOr<AppliedStrategy> AppliedStrategy::read(ModuleOp module) {
  auto found = module->getAttrOfType<dist::StrategyAttr>(dist::kStrategyAttr);
  auto topology = module.lookupSymbol<dist::TopologyOp>(dist::kCluster);
  if (!found || !topology)
    return module.emitError("has no strategy and topology; run dist-apply-strategy first");
  auto strategy = std::make_shared<Strategy>();
  strategy->set_id(found.getId().str());
  if (StringAttr builder = found.getBuilder())
    strategy->set_builder(builder.str());
  if (StringAttr path = found.getPath())
    strategy->set_path(path.str());
  if (ArrayAttr replicas = found.getReplicas())
    for (auto device : replicas.getAsRange<StringAttr>())
      strategy->mutable_graph_config()->add_replicas(device.str());
  if (StringAttr coupling = found.getCoupling())
    strategy->mutable_graph_config()->set_coupling(coupling.getValue() == "replica" ? Strategy::GraphConfig::REPLICA
                                                                                    : Strategy::GraphConfig::WHOLE);
  strategy->set_accumulate_steps(static_cast<int32_t>(found.getAccumulate()));
  strategy->set_replicas_to_aggregate(static_cast<int32_t>(found.getRequired()));
  if (FloatAttr decay = found.getAveragesDecay())
    strategy->set_variable_averages_decay(decay.getValue().convertToFloat());
  for (auto variable : module.getOps<dfg::VariableOp>()) {
    auto sync = variable->getAttrOfType<dist::SyncAttr>(dist::kSyncAttr);
    auto parts = variable->getAttrOfType<dist::PartsAttr>(dist::kPartsAttr);
    if (!sync && !parts)
      continue;
    Strategy::Node &node = *strategy->add_node_config();
    node.set_var_name(variable.getSymName().str());
    if (sync)
      setSync(sync, node);
    if (parts)
      setParts(parts, node);
  }
  return AppliedStrategy{std::move(strategy), topology};
}

void AppliedStrategy::write(ModuleOp module, const Strategy &strategy) {
  MLIRContext *context = module.getContext();
  module->setAttr(dist::kStrategyAttr, getStrategy(context, strategy));
  llvm::StringMap<const Strategy::Node *> entries;
  for (const Strategy::Node &node : strategy.node_config())
    entries[node.var_name()] = &node;
  for (auto variable : module.getOps<dfg::VariableOp>()) {
    const Strategy::Node *node = entries.lookup(variable.getSymName());
    auto set = [&](llvm::StringRef name, Attribute value) {
      if (value)
        variable->setAttr(name, value);
      else
        variable->removeAttr(name);
    };
    set(dist::kSyncAttr, node ? getSync(context, *node) : dist::SyncAttr());
    set(dist::kPartsAttr, node ? getParts(context, *node) : dist::PartsAttr());
  }
}

} // namespace distc
