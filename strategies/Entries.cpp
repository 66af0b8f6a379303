//===- Entries.cpp - What builders write for a variable --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Entries.h"
#include "strategies/Compressors.h"
#include "strategies/Partition.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace distc::strategies {

/// PyTorch's DistributedDataParallel closes its first bucket at 1 MiB, so that communication begins early.
static constexpr int64_t kFirstBucketBytes = 1 << 20;

std::vector<Parameter> getServerParameters() {
  return {Parameter::flag("sync", "true", "whether an update waits for the gradients of all replicas"),
          Parameter::integer("staleness", "0", "steps that a replica may be ahead of the slowest"),
          Parameter::flag("local_proxy_variable", "false", "whether replicas read a copy in their own task")};
}

std::vector<Parameter> getAllReduceParameters(llvm::StringRef bucketMb) {
  return {Parameter::integer("chunk_size", "128", "gradients a group", 1),
          Parameter::integer("bucket_mb", bucketMb, "MiB a group, from the last variable back; 0: any"),
          Parameter::choice("spec", "AUTO", "how: AUTO, NCCL or RING", {"AUTO", "NCCL", "RING"}),
          Parameter::choice("all_reduce_alg", "auto",
                            "between tasks on processors: auto (by size), ring, doubling or halving",
                            {"auto", "ring", "doubling", "halving"}),
          Parameter::choice("compressor", "NoneCompressor",
                            "what is sent: none, fp16, fp16_ef, bf16, bf16_ef, power_sgd, top_k, or AutoDist's names",
                            getCompressorNames()),
          Parameter::integer("power_sgd_rank", "1", "columns of PowerSGD's factors", 1),
          Parameter::fraction("top_k_ratio", "0.01", "the share of elements that top_k sends")};
}

std::vector<Parameter> getDivisorParameters() {
  return {Parameter::integer("max_shards", "1024", "parts of a variable; one that no fewer divide stays whole", 2)};
}

std::vector<Parameter> getPlacedPartsParameters() {
  return join({Parameter::choice("placement", "load_balancing", "of parts: load_balancing, round_robin or hash",
                                 {"load_balancing", "round_robin", "hash"})},
              getServerParameters());
}

std::unique_ptr<Placement> makeAskedPlacement(const BuildState &build) {
  int servers = build.resources.getReductionDevices().size();
  llvm::StringRef name = build.arguments.get("placement");
  if (name == "round_robin")
    return makeRoundRobinPlacement(servers);
  return name == "hash" ? makeHashPlacement(servers) : makeGreedyPlacement(servers);
}

std::vector<Parameter> join(std::vector<Parameter> first, const std::vector<Parameter> &second) {
  llvm::append_range(first, second);
  return first;
}

Entries::Entries(BuildState &build, std::unique_ptr<Placement> placement)
    : build(build), placement(std::move(placement)), destinations(build.resources.getReductionDevices()) {}

std::pair<llvm::SmallVector<Strategy::Node *>, llvm::SmallVector<int64_t>>
Entries::addNodes(const VariableFacts &variable, Split split) {
  Strategy::Node *node = build.strategy.add_node_config();
  node->set_var_name(variable.name);
  if (split.impossible)
    leftWhole.push_back(variable.name);
  if (split.shards < 2)
    return {{node}, {variable.bytes}};
  int64_t size = variable.shape[split.axis];
  Partition partition = Partition::make(split.axis, size, split.shards);
  node->set_partitioner(partition.print(variable.shape.size()));
  llvm::SmallVector<Strategy::Node *> nodes;
  llvm::SmallVector<int64_t> bytes;
  for (int64_t i = 0; i < split.shards; ++i) {
    nodes.push_back(node->add_part_config());
    nodes.back()->set_var_name(getShardName(variable.name, i));
    bytes.push_back(variable.bytes / size * partition.sizes[i]);
  }
  return {std::move(nodes), std::move(bytes)};
}

void Entries::addToServers(const VariableFacts &variable, Split split) {
  auto [nodes, bytes] = addNodes(variable, split);
  for (auto [node, server] : llvm::zip(nodes, placement->place(variable.name, bytes))) {
    auto *synchronizer = node->mutable_pssynchronizer();
    synchronizer->set_reduction_destination(destinations[server]);
    synchronizer->set_sync(build.arguments.getFlag("sync"));
    synchronizer->set_staleness(build.arguments.getInteger("staleness"));
    synchronizer->set_local_replication(build.arguments.getFlag("local_proxy_variable"));
  }
}

void Entries::addAllReduced(const VariableFacts &variable, Split split, int shardedStage) {
  AllReduceSynchronizer::Spec spec = AllReduceSynchronizer::AUTO;
  AllReduceSynchronizer::Spec_Parse(build.arguments.get("spec").str(), &spec);
  // What processors do says more than the name that all devices know.
  if (llvm::StringRef algorithm = build.arguments.get("all_reduce_alg"); algorithm != "auto")
    AllReduceSynchronizer::Spec_Parse(algorithm.upper(), &spec);
  AllReduceSynchronizer::Compressor compressor = getCompressor(build.arguments.get("compressor"));
  auto [nodes, bytes] = addNodes(variable, split);
  for (auto [node, size] : llvm::zip(nodes, bytes)) {
    AllReduceSynchronizer *synchronizer = node->mutable_allreducesynchronizer();
    synchronizer->set_spec(spec);
    synchronizer->set_sharded_stage(shardedStage);
    // Rows are gathered, not added: there is nothing to compress by a sum's rules.
    if (variable.gradient == Gradient::Dense) {
      synchronizer->set_compressor(compressor);
      if (compressor == AllReduceSynchronizer::PowerSGDCompressor)
        synchronizer->set_power_sgd_rank(build.arguments.getInteger("power_sgd_rank"));
      if (compressor == AllReduceSynchronizer::TopKCompressor)
        synchronizer->set_top_k_ratio(build.arguments.getFraction("top_k_ratio"));
    }
    reduced.push_back({synchronizer, &variable, size});
  }
}

void Entries::numberGroups() {
  if (reduced.empty())
    return;
  struct Group {
    int number;
    int64_t variables = 0, bytes = 0;
  };
  int64_t maxVariables = build.arguments.getInteger("chunk_size");
  int64_t maxBytes = build.arguments.getInteger("bucket_mb") << 20;
  // Of each kind, the group that is being filled.
  std::map<std::pair<llvm::StringRef, Gradient>, Group> open;
  int next = 0;
  // Gradients become ready from the last variable to the first.
  if (maxBytes)
    std::reverse(reduced.begin(), reduced.end());
  for (const Reduced &entry : reduced) {
    std::pair<llvm::StringRef, Gradient> kind(entry.variable->type, entry.variable->gradient);
    auto [group, isNew] = open.try_emplace(kind, Group{next});
    next += isNew;
    entry.synchronizer->set_group(group->second.number);
    group->second.bytes += entry.bytes;
    int64_t limit = group->second.number == 0 ? std::min(kFirstBucketBytes, maxBytes) : maxBytes;
    if (++group->second.variables >= maxVariables || (maxBytes && group->second.bytes >= limit))
      open.erase(group);
  }
}

void Entries::finish() {
  numberGroups();
  if (leftWhole.empty())
    return;
  size_t shown = std::min<size_t>(leftWhole.size(), 4);
  std::string names = llvm::join(llvm::ArrayRef(leftWhole).take_front(shown), ", ");
  if (shown < leftWhole.size())
    names += " and " + std::to_string(leftWhole.size() - shown) + " more";
  build.remarks.push_back("left whole, as the strategy cannot split them: " + names);
}

} // namespace distc::strategies
