//===- InsertSynchronizers.cpp - All-reduces raw gradients ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/distribute/BucketOrder.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/RawGradients.h"
#include "strategies/StrategyFile.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTINSERTSYNCHRONIZERS
#include "passes/distribute/Passes.h.inc"

namespace {

/// The strategy's entries that all-reduce, by variable.
using Entries = llvm::StringMap<autodist::proto::AllReduceSynchronizer>;

/// What the members of one collective have in common.
struct BucketKey {
  unsigned wave;
  int group;
  Type elementType;
  dist::Reduction reduction;
  dist::Spec spec;
  dist::CompressionAttr compression;
  auto tie() const {
    return std::tuple(wave, group, elementType.getAsOpaquePointer(), reduction, spec, compression.getAsOpaquePointer());
  }
  bool operator<(const BucketKey &other) const { return tie() < other.tie(); }
};

class Synchronizer {
public:
  Synchronizer(Block &block, const BatchFlow &flow, RawGradients &gradients, const Entries &entries)
      : block(block), flow(flow), gradients(gradients), entries(entries) {}

  void run() {
    copyWhatForwardNeeds();
    waves = findWaves(
        block, [&](Value value) { return gradients.values.contains(value); }, consumers);
    SmallVector<SmallVector<Operation *>> order = sortIntoWaves();
    // Nodes of later waves move behind the first in their order; each wave gets its collectives.
    for (auto [wave, ops] : llvm::enumerate(order)) {
      if (wave > 0)
        for (Operation *op : ops)
          op->moveBefore(&block, block.end());
      insertCollectives(ops);
    }
    for (Operation *op : consumers)
      for (OpOperand &operand : op->getOpOperands())
        if (Value reduced = replacements.lookup(operand.get()))
          operand.set(reduced);
  }

private:
  /// Nodes of the path whose value the replica's own part of the step needs as well: those that lead to a value with
  /// the batch's axis, or to one that is reduced. The path takes a copy of them.
  void copyWhatForwardNeeds() {
    consumers.insert(gradients.updates.begin(), gradients.updates.end());
    if (gradients.path.empty())
      return;
    llvm::DenseSet<Operation *> needed;
    for (Operation &op : llvm::reverse(block))
      for (Value result : op.getResults()) {
        bool feeds = llvm::any_of(result.getUsers(), [&](Operation *user) {
          return needed.contains(user) || llvm::any_of(user->getResults(), [&](Value value) {
                   return flow.get(value).kind == Flow::Sharded || gradients.values.contains(value);
                 });
        });
        if (feeds)
          needed.insert(&op);
      }
    OpBuilder builder(block.getParent()->getContext());
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!gradients.path.contains(&op))
        continue;
      if (!needed.contains(&op)) {
        consumers.insert(&op);
        continue;
      }
      builder.setInsertionPointAfter(&op);
      Operation *copy = builder.clone(op);
      copy->setLoc(NameLoc::get(builder.getStringAttr(dfg::getNodeName(&op) + "/synchronized")));
      for (auto [from, to] : llvm::zip(op.getResults(), copy->getResults()))
        replacements[from] = to;
      consumers.insert(copy);
    }
    // At once, so that the order sees what the copies depend on.
    for (Operation *op : consumers)
      for (OpOperand &operand : op->getOpOperands())
        if (Value copy = replacements.lookup(operand.get()))
          operand.set(copy);
    replacements.clear();
  }

  SmallVector<SmallVector<Operation *>> sortIntoWaves() {
    SmallVector<SmallVector<Operation *>> order(1);
    for (Operation &op : block) {
      unsigned wave = waves.lookup(&op);
      if (wave >= order.size())
        order.resize(wave + 1);
      order[wave].push_back(&op);
    }
    return order;
  }

  BucketKey getKey(Operation *op, Value value) const {
    const RawGradient &gradient = gradients.values.find(value)->second;
    BucketKey key{waves.lookup(op), -1, getElementTypeOrSelf(value.getType()), gradient.reduction,
                  dist::Spec::Auto, {}};
    if (auto entry = entries.find(gradient.variable); entry != entries.end()) {
      key.group = entry->second.group();
      key.spec = static_cast<dist::Spec>(entry->second.spec());
      if (auto kind = static_cast<dist::Compressor>(entry->second.compressor()); kind != dist::Compressor::None)
        key.compression = dist::CompressionAttr::get(op->getContext(), kind, 0, {});
    }
    return key;
  }

  /// A bucket's collective after its last member, in the order in which buckets become whole.
  void insertCollectives(ArrayRef<Operation *> ops) {
    std::map<BucketKey, SmallVector<Value>> buckets;
    auto forEachMember = [&](auto visit) {
      for (Operation *op : ops)
        for (Value value : op->getResults())
          if (gradients.values.contains(value))
            visit(op, value);
    };
    forEachMember([&](Operation *op, Value value) { buckets[getKey(op, value)].push_back(value); });
    forEachMember([&](Operation *op, Value value) {
      BucketKey key = getKey(op, value);
      ArrayRef<Value> members = buckets[key];
      if (members.back() == value)
        reduce(op, key, members);
    });
  }

  void reduce(Operation *after, const BucketKey &key, ArrayRef<Value> members) {
    OpBuilder builder(after->getContext());
    builder.setInsertionPointAfter(after);
    SmallVector<llvm::StringRef> variables;
    for (Value member : members)
      variables.push_back(gradients.values.find(member)->second.variable);
    std::string name = "all_reduce/" + std::to_string(buckets);
    auto op = dist::AllReduceOp::create(builder, NameLoc::get(builder.getStringAttr(name)), key.reduction, buckets++,
                                        key.group, members, builder.getStrArrayAttr(variables), key.spec,
                                        key.compression, dist::AggregatorAttr());
    for (auto [member, reduced] : llvm::zip(members, op.getReduced()))
      replacements[member] = reduced;
  }

  Block &block;
  const BatchFlow &flow;
  RawGradients &gradients;
  const Entries &entries;
  llvm::DenseSet<Operation *> consumers;
  llvm::DenseMap<Value, Value> replacements;
  llvm::DenseMap<Operation *, unsigned> waves;
  uint32_t buckets = 0;
};

struct DistInsertSynchronizers : public impl::DistInsertSynchronizersBase<DistInsertSynchronizers> {
  using DistInsertSynchronizersBase::DistInsertSynchronizersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto text = module->getAttrOfType<StringAttr>(dist::kStrategyAttr);
    auto topology = module.lookupSymbol<dist::TopologyOp>(dist::kCluster);
    if (!text || !topology) {
      module.emitError("has no strategy and topology; run dist-apply-strategy first");
      return signalPassFailure();
    }
    if (topology.getReplicas() == 1)
      return;
    llvm::Expected<strategies::Strategy> strategy = strategies::parseStrategy(text.getValue(), dist::kStrategyAttr);
    if (!strategy) {
      module.emitError(llvm::toString(strategy.takeError()));
      return signalPassFailure();
    }
    Entries entries;
    llvm::StringSet<> variables;
    for (const auto &node : strategy->node_config()) {
      variables.insert(node.var_name());
      if (node.has_allreducesynchronizer())
        entries[node.var_name()] = node.allreducesynchronizer();
    }
    for (auto graph : module.getOps<dfg::GraphOp>())
      if (failed(synchronize(graph, entries, variables)))
        return signalPassFailure();
  }

private:
  LogicalResult synchronize(dfg::GraphOp graph, const Entries &entries, const llvm::StringSet<> &variables) {
    llvm::FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
    if (failed(flow))
      return failure();
    strategies::StepNodes step(graph);
    llvm::FailureOr<RawGradients> gradients = findRawGradients(graph, *flow, step, variables);
    if (failed(gradients))
      return failure();
    if (remarks)
      for (const auto &[value, gradient] : gradients->values)
        value.getDefiningOp()->emitRemark() << "'" << gradient.variable << "' is synchronized here: node '"
                                            << dfg::getNodeName(value.getDefiningOp()) << "', " << flow->explain(value);
    Synchronizer(graph.getBody().front(), *flow, *gradients, entries).run();
    return success();
  }
};

} // namespace
} // namespace distc
