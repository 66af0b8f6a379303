//===- SyncPolicy.cpp - How a strategy synchronizes each variable ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/strategy/SyncPolicy.h"
#include "dialects/dfg/Dfg.h"
#include "passes/distribute/servers/Roles.h"
#include "passes/distribute/servers/Serving.h"
#include "passes/distribute/strategy/AppliedStrategy.h"

#include <limits>

using namespace mlir;

namespace distc {
namespace {

SyncPolicy getPolicy(dist::SyncAttr sync) {
  SyncPolicy policy;
  policy.group = sync.getKind() == dist::SyncKind::AllReduce ? static_cast<int>(sync.getGroup()) : -1;
  policy.spec = sync.getSpec();
  policy.compression = sync.getCompression();
  policy.aggregator = sync.getAggregator();
  if (dist::ReductionAttr reduction = sync.getReduction())
    policy.reduction = reduction.getValue();
  policy.shardedStage = static_cast<int>(sync.getShardedStage());
  policy.async = sync.getAsync();
  policy.proxy = sync.getProxy();
  policy.staleness = sync.getStaleness();
  return policy;
}

} // namespace

void SyncPolicies::setPlace(llvm::StringRef variable, dist::PlaceAttr place) {
  SyncPolicy &policy = variables[variable];
  (isServer(place) ? policy.place : policy.owner) = place;
}

/// Whether a gradient is synchronized alike whatever is in its group: top_k chooses among a group's elements, and the
/// factors that power_sgd begins with are drawn for a group.
static bool mayRegroup(const SyncPolicy &policy) {
  const dist::Compressor kind = policy.compression ? policy.compression.getKind() : dist::Compressor::None;
  return !policy.aggregator && !policy.place && kind != dist::Compressor::TopK && kind != dist::Compressor::PowerSGD;
}

void SyncPolicies::formBuckets(ModuleOp module, AppliedStrategy &applied, int64_t bucketBytes, bool eachApart) {
  // As DistributedDataParallel's buckets: the last variable's gradient is ready first, and the first group is small so
  // that something is on its way early.
  constexpr int64_t kFirstBytes = 1 << 20;
  // Of what goes to owners, or one variable's: its parts are ready at once, and where they have several owners a link
  // carries both ways.
  constexpr int64_t kOwnedBytes = 4 << 20;
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  // Within one task nothing is on its way: its replicas meet once.
  const bool severalTasks = applied.topology.getTasks().size() > 1;
  const bool travels = bucketBytes > 0 && (eachApart ? replicas > 1 : severalTasks);
  if (!travels && !hasOwners)
    return;
  llvm::StringMap<int64_t> bytes;
  for (auto variable : module.getOps<dfg::VariableOp>())
    if (auto type = llvm::dyn_cast<RankedTensorType>(variable.getType()); type && type.hasStaticShape())
      bytes[variable.getSymName()] = type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  // Those of owners are one kind, whatever groups the strategy has: it knows servers, which have none.
  constexpr int kOwned = -1;
  struct Member {
    llvm::StringRef name;
    llvm::StringRef variable; // that it is, or is a part of
  };
  llvm::MapVector<int, SmallVector<Member>> members;
  int last = -1;
  auto visit = [&](const strategies::Strategy::Node &node, llvm::StringRef variable) {
    const SyncPolicy &policy = variables.find(node.var_name())->second;
    last = std::max(last, policy.group);
    if (policy.owner || (travels && policy.group >= 0 && mayRegroup(policy)))
      members[policy.owner ? kOwned : policy.group].push_back({node.var_name(), variable});
  };
  for (const strategies::Strategy::Node &node : applied.strategy->node_config()) {
    visit(node, node.var_name());
    for (const strategies::Strategy::Node &part : node.part_config())
      visit(part, node.var_name());
  }
  // From the last of the strategy's groups back, as their gradients become ready.
  bool first = true;
  for (auto &[group, names] : llvm::reverse(members)) {
    const int64_t whole = group != kOwned ? bucketBytes : severalTasks ? std::max(bucketBytes, kOwnedBytes) : kAny;
    int64_t filled = 0, most = first && whole != kAny ? std::min(kFirstBytes, whole) : whole;
    int number = group == kOwned ? ++last : group;
    bool closed = false;
    llvm::StringRef previous;
    for (const auto &[name, variable] : llvm::reverse(names)) {
      const bool isNextPart = group == kOwned && variable == std::exchange(previous, variable);
      SyncPolicy &policy = variables[name];
      // A server chooses among the gradients of one variable: it has no other at hand.
      const bool alone = !mayRegroup(policy);
      if (closed || (filled > 0 && (alone || (!isNextPart && filled + bytes.lookup(name) > most)))) {
        number = ++last;
        filled = 0;
        most = whole;
      }
      policy.group = number;
      closed = alone;
      filled += std::max<int64_t>(bytes.lookup(name), 1);
    }
    first = false;
  }
}

std::optional<dist::Reduction> SyncPolicies::getCommonReduction() const {
  std::optional<dist::Reduction> common;
  for (const auto &entry : entries) {
    const std::optional<dist::Reduction> own = get(entry.getKey()).reduction;
    if (!own || (common && common != own))
      return std::nullopt;
    common = own;
  }
  return common;
}

FailureOr<SyncPolicies> SyncPolicies::read(ModuleOp module) {
  FailureOr<AppliedStrategy> applied = AppliedStrategy::read(module);
  if (failed(applied))
    return failure();
  const strategies::Strategy &strategy = *applied->strategy;
  SyncPolicies found;
  found.replicas = applied->topology.getReplicas();
  found.required = strategy.replicas_to_aggregate() > 0 ? strategy.replicas_to_aggregate() : found.replicas;
  found.accumulateSteps = std::max(1, strategy.accumulate_steps());
  found.averagesDecay = strategy.variable_averages_decay();
  auto add = [&](const llvm::Twine &name, dist::SyncAttr sync) {
    const std::string entry = name.str();
    found.entries.insert(entry);
    SyncPolicy &policy = found.variables[entry] = sync ? getPolicy(sync) : SyncPolicy();
    found.hasShares |= policy.shardedStage > 0;
  };
  for (auto variable : module.getOps<dfg::VariableOp>()) {
    auto sync = variable->getAttrOfType<dist::SyncAttr>(dist::kSyncAttr);
    auto parts = variable->getAttrOfType<dist::PartsAttr>(dist::kPartsAttr);
    if (sync || parts)
      add(variable.getSymName(), sync);
    if (parts && parts.getSyncs())
      for (auto [number, part] : llvm::enumerate(parts.getSyncs().getAsRange<dist::SyncAttr>()))
        add(variable.getSymName() + "/part_" + llvm::Twine(number), part);
  }
  for (auto variable : module.getOps<dfg::VariableOp>())
    if (auto place = variable->getAttrOfType<dist::PlaceAttr>(dist::kPlaceAttr))
      found.setPlace(variable.getSymName(), place);
  found.serves = getServing(module, *applied).has_value();
  for (auto &entry : found.variables) {
    SyncPolicy &policy = entry.second;
    found.hasOwners |= policy.owner != nullptr;
    if (!policy.place || !found.hasEntry(entry.first()))
      continue;
    (policy.async ? found.hasAsync : found.hasSync) = true;
    if (!policy.async)
      found.staleness = std::max(found.staleness, policy.staleness);
  }
  return found;
}

} // namespace distc
