//===- Synchronizer.cpp - Puts synchronization behind raw gradients ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/Synchronizer.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/synchronize/BucketOrder.h"
#include "passes/distribute/synchronize/SparseGradients.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

/// What the members of one collective have in common.
struct Synchronizer::BucketKey {
  unsigned wave;
  int group;
  Type elementType;
  dist::Reduction reduction, batches;
  dist::Spec spec;
  dist::CompressionAttr compression;
  dist::AggregatorAttr aggregator;
  /// What only updates beside the training step need would be computed in it with the bucket's others.
  bool inStep;
  auto tie() const {
    return std::tuple(wave, group, elementType.getAsOpaquePointer(), reduction, batches, spec,
                      compression.getAsOpaquePointer(), aggregator.getAsOpaquePointer(), inStep);
  }
  bool operator<(const BucketKey &other) const { return tie() < other.tie(); }
};

Synchronizer::Synchronizer(dfg::GraphOp graph, const BatchFlow &flow, const RawGradients &gradients,
                           const SyncPolicies &policies, const strategies::StepNodes &step, UpdatesOf which)
    : block(graph.getBody().front()), flow(flow), gradients(gradients), policies(policies), step(step), which(which),
      accumulateSteps(which == UpdatesOf::EachBatch ? 1 : policies.accumulateSteps) {
  // Names of their own, beside those of updates at each batch.
  if (accumulateSteps > 1)
    buckets = static_cast<uint32_t>(llvm::count_if(block, [](Operation &op) { return dist::isCollective(&op); }));
  copyWhatForwardNeeds();
}

void Synchronizer::run(const UpdatePlacement &placement) {
  this->placement = &placement;
  // Indices are gathered with their rows, and either may be made behind nodes that take the other: again with what is
  // known of both then, until nothing changes: of rows that are made of other rows, one at least each time.
  bool changed = true;
  for (size_t round = 0; changed && round <= gradients.values.size() + 1; ++round) {
    llvm::DenseMap<Operation *, unsigned> found = findWaves(
        block,
        [&](Operation *consumer, Value value, unsigned wave) -> std::optional<unsigned> {
          if (!gradients.contains(value))
            return std::nullopt;
          Value rows = gradients.values.contains(value) ? value : gradients.find(consumer, value);
          return rows ? std::max(wave, getWave(rows)) : wave;
        },
        consumers);
    changed = found != waves;
    waves = std::move(found);
  }
  SmallVector<SmallVector<Operation *>> order = sortIntoWaves(block, waves);
  SmallVector<Members> members(order.size());
  for (ArrayRef<Operation *> ops : order)
    for (Operation *op : ops)
      for (Value value : op->getResults())
        if (gradients.values.contains(value))
          members[getWave(value)].emplace_back(op, value);
  // Nodes of later waves move behind the first in their order; each wave gets its collectives.
  for (auto [wave, ops] : llvm::enumerate(order)) {
    if (wave > 0)
      for (Operation *op : ops)
        op->moveBefore(&block, block.end());
    if (ops.empty())
      continue;
    lastTake = ops.back();
    insertCollectives(members[wave]);
  }
  for (Operation *op : consumers)
    for (OpOperand &operand : op->getOpOperands()) {
      bool isIndices = !gradients.values.contains(operand.get()) && gradients.indices.contains(operand.get());
      Value reduced =
          isIndices ? joinedIndices.lookup(gradients.find(op, operand.get())) : replacements.lookup(operand.get());
      if (reduced)
        operand.set(reduced);
    }
}

unsigned Synchronizer::getWave(Value value) const {
  const RawGradient &gradient = gradients.values.find(value)->second;
  Operation *indices = gradient.indices ? gradient.indices.getDefiningOp() : nullptr;
  return std::max(waves.lookup(value.getDefiningOp()), indices ? waves.lookup(indices) : 0);
}

/// Nodes of the path whose value the replica's own part of the step needs as well: those that lead to a value with
/// the batch's axis, or to one that is reduced; and those that updates need which happen more often than the path's, or
/// less. The path takes a copy of them.
void Synchronizer::copyWhatForwardNeeds() {
  consumers.insert(gradients.updates.begin(), gradients.updates.end());
  if (gradients.path.empty())
    return;
  // What is made of the replica's part and reduced by itself, where the step goes on with the whole batch's.
  llvm::DenseSet<Operation *> needed, coupled;
  for (Operation &op : llvm::reverse(block)) {
    bool onPath = gradients.path.contains(&op);
    if (isOfOtherUpdates(&op))
      needed.insert(&op);
    auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op);
    if (reduce && reduce.getCoupling())
      coupled.insert(&op);
    for (Value result : op.getResults()) {
      const bool isPart = flow.get(result).kind == Flow::Partial;
      if (isPart && llvm::any_of(result.getUsers(), [&](Operation *user) { return coupled.contains(user); }))
        coupled.insert(&op);
      bool feeds = (onPath && gradients.contains(result)) || llvm::any_of(result.getUsers(), [&](Operation *user) {
                     // The path's own rows and reductions are not forward's.
                     return needed.contains(user) ||
                            (!gradients.path.contains(user) &&
                             (coupled.contains(user) || llvm::any_of(user->getResults(), [&](Value value) {
                                return flow.get(value).kind == Flow::Sharded || gradients.contains(value);
                              })));
                   });
      if (feeds)
        needed.insert(&op);
    }
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
    copy->setLoc(getLocation(dfg::getNodeName(&op) + "/synchronized"));
    for (auto [from, to] : llvm::zip(op.getResults(), copy->getResults()))
      replacements[from] = to;
    consumers.insert(copy);
  }
  // At once, so that the order sees what the copies depend on.
  for (Operation *op : consumers)
    for (OpOperand &operand : op->getOpOperands())
      if (Value copy = replacements.lookup(operand.get()); copy && !gradients.contains(operand.get()))
        operand.set(copy);
  replacements.clear();
}

/// Whether a node off the path is an update that happens at each batch, where the path's do not, or where they do,
/// another node.
bool Synchronizer::isOfOtherUpdates(Operation *op) const {
  if (policies.accumulateSteps == 1)
    return false;
  if (which == UpdatesOf::AllBatches)
    return op->hasAttr(dist::kEachBatchAttr);
  return !gradients.path.contains(op) && !llvm::is_contained(gradients.updates, op);
}

Synchronizer::BucketKey Synchronizer::getKey(Operation *op, Value value) const {
  const RawGradient &gradient = gradients.values.find(value)->second;
  const SyncPolicy &policy = policies.get(gradient.variable);
  return {waves.lookup(op),   policy.group,      getElementTypeOrSelf(value.getType()),
          gradient.reduction, gradient.batches,  policy.spec,
          policy.compression, policy.aggregator, !step.isKnown() || step.contains(op)};
}

/// Whether `node` and what it is computed from may stand before `op`; adds what has to move, in order.
static bool mayStandBefore(Operation *node, Operation *op, llvm::SetVector<Operation *> &moved) {
  if (!node || moved.contains(node) || (node != op && node->isBeforeInBlock(op)))
    return true;
  if (node == op || !llvm::isa<dfg::NodeInterface>(node) || !isMemoryEffectFree(node) ||
      node->hasAttr(dfg::kControlAttr))
    return false;
  for (Value operand : node->getOperands())
    if (!mayStandBefore(operand.getDefiningOp(), op, moved))
      return false;
  moved.insert(node);
  return true;
}

/// A bucket's collective after its last member, in the order in which buckets become whole.
void Synchronizer::insertCollectives(const Members &members) {
  std::map<BucketKey, SmallVector<Value>> groups;
  auto isAlone = [&](Value value) {
    const RawGradient &gradient = gradients.values.find(value)->second;
    return gradient.indices || policies.get(gradient.variable).place;
  };
  auto forEachMember = [&](auto visit) {
    for (auto [op, value] : members)
      visit(op, value);
  };
  forEachMember([&](Operation *op, Value value) {
    if (!isAlone(value))
      groups[getKey(op, value)].push_back(value);
  });
  forEachMember([&](Operation *op, Value value) {
    BucketKey key = getKey(op, value);
    if (!isAlone(value)) {
      ArrayRef<Value> group = groups[key];
      if (group.back() == value)
        reduce(op, key, group);
      return;
    }
    const RawGradient &gradient = gradients.values.find(value)->second;
    // Behind both. Where indices come later than values, which nodes in between may use already, they come earlier now.
    if (Operation *def = gradient.indices ? gradient.indices.getDefiningOp() : nullptr;
        def && op->isBeforeInBlock(def)) {
      llvm::SetVector<Operation *> moved;
      if (mayStandBefore(def, op, moved))
        for (Operation *node : moved)
          node->moveBefore(op);
      else
        op = def;
    }
    if (const SyncPolicy &policy = policies.get(gradient.variable);
        policy.place && (policy.async || placement->get(value)))
      serve(op, key, value);
    else if (gradient.indices)
      gather(op, key, value);
    else
      reduce(op, key, value);
  });
}

/// The values' sums or means over several batches, where the strategy has an update wait for them.
SmallVector<Value> Synchronizer::accumulate(OpBuilder &builder, const BucketKey &key, ArrayRef<Value> members) {
  if (accumulateSteps == 1)
    return llvm::to_vector(members);
  SmallVector<llvm::StringRef> variables;
  for (Value member : members)
    variables.push_back(gradients.values.find(member)->second.variable);
  auto op = dist::AccumulateOp::create(builder, getLocation("accumulate/" + llvm::Twine(accumulations++)),
                                       TypeRange(ValueRange(members)), key.batches, accumulateSteps, members,
                                       builder.getStrArrayAttr(variables));
  return llvm::to_vector(ValueRange(op.getAccumulated()));
}

void Synchronizer::reduce(Operation *after, const BucketKey &key, ArrayRef<Value> members) {
  OpBuilder builder(after->getContext());
  builder.setInsertionPointAfter(after);
  SmallVector<llvm::StringRef> variables;
  for (Value member : members)
    variables.push_back(gradients.values.find(member)->second.variable);
  SmallVector<Value> values = accumulate(builder, key, members);
  // Rules compare and weigh in float32 at least.
  Type element = getElementTypeOrSelf(values.front().getType());
  const bool widens = key.aggregator && llvm::isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  auto castTo = [&](Value value, llvm::StringRef suffix, Type to) -> Value {
    auto type = llvm::cast<TensorType>(value.getType()).clone(to);
    return dfg::CastOp::create(builder, getLocation("all_reduce/" + llvm::Twine(buckets) + suffix), type, value);
  };
  if (widens)
    for (auto [number, value] : llvm::enumerate(values))
      value = castTo(value, "/wide_" + std::to_string(number), builder.getF32Type());
  auto op = dist::AllReduceOp::create(builder, getLocation("all_reduce/" + llvm::Twine(buckets)), key.reduction,
                                      buckets, key.group, values, builder.getStrArrayAttr(variables), key.spec,
                                      key.compression, key.aggregator);
  SmallVector<Value> results(op.getReduced());
  if (widens)
    for (auto [number, result] : llvm::enumerate(results))
      result = castTo(result, "/narrow_" + std::to_string(number), element);
  ++buckets;
  for (auto [member, reduced] : llvm::zip(members, results))
    replace(member, reduced);
}

/// A tensor type whose number of rows is not known.
static Type getRowsType(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() == 0)
    return value.getType();
  SmallVector<int64_t> sizes(type.getShape());
  sizes[0] = ShapedType::kDynamic;
  return type.clone(sizes);
}

void Synchronizer::gather(Operation *after, const BucketKey &key, Value values) {
  const RawGradient &gradient = gradients.values.find(values)->second;
  OpBuilder builder(after->getContext());
  builder.setInsertionPointAfter(after);
  Value indices = gradient.indices, rows = values;
  if (accumulateSteps > 1) {
    auto join = [&](dist::Reduction reduction, Value part) -> Value {
      return dist::AccumulateOp::create(builder, getLocation("accumulate/" + llvm::Twine(accumulations++)),
                                        getRowsType(part), reduction, accumulateSteps, part,
                                        builder.getStrArrayAttr(gradient.variable), true)
          .getAccumulated()[0];
    };
    indices = join(dist::Reduction::Sum, indices);
    rows = join(key.batches, rows);
  }
  auto op = dist::AllGatherSlicesOp::create(builder, getLocation("all_gather_slices/" + llvm::Twine(buckets)),
                                            getRowsType(indices), getRowsType(rows), key.reduction, buckets, key.group,
                                            indices, rows, gradient.variable, key.spec, DenseI64ArrayAttr());
  ++buckets;
  joinedIndices[values] = op.getAllIndices();
  replace(values, op.getAllValues());
}

/// Push, and take where the reduced gradient is used.
void Synchronizer::serve(Operation *after, const BucketKey &key, Value value) {
  const RawGradient &gradient = gradients.values.find(value)->second;
  const SyncPolicy &policy = policies.get(gradient.variable);
  OpBuilder builder(after->getContext());
  builder.setInsertionPointAfter(after);
  unsigned number = accumulators[gradient.variable]++;
  std::string name = "synchronization/" + gradient.variable.str() + (number ? "_" + std::to_string(number) : "");
  SmallVector<Value> members;
  if (gradient.indices)
    members.push_back(gradient.indices);
  members.push_back(value);
  SmallVector<Value> pushed;
  SmallVector<Type> taken;
  for (Value member : members) {
    taken.push_back(gradient.indices ? getRowsType(member) : member.getType());
    if (accumulateSteps == 1 || policy.async) {
      pushed.push_back(member);
      continue;
    }
    auto steps =
        dist::AccumulateOp::create(builder, getLocation("accumulate/" + llvm::Twine(accumulations++)), taken.back(),
                                   member == gradient.indices ? dist::Reduction::Sum : key.batches, accumulateSteps,
                                   member, builder.getStrArrayAttr(gradient.variable), gradient.indices != nullptr);
    pushed.push_back(steps.getAccumulated()[0]);
  }
  int64_t required = policy.async ? 1 : policies.required;
  // The chief takes from the variable's server; a server has what it takes itself, also of another's variable.
  dist::PlaceAttr site = policy.async ? policy.place : placement->get(value);
  dist::PlaceAttr place = site == placement->getChief() ? policy.place : site;
  bool apart = gradient.indices && !policy.async && !canAddRows(gradients, value, consumers);
  auto push = dist::PushOp::create(builder, getLocation(name + "/push"), key.reduction, name, place, required, pushed,
                                   gradient.variable, policy.staleness, policy.async, apart, /*aggregator=*/nullptr);
  // Whoever takes a gradient waits for it: not before its own work of the wave is done.
  builder.setInsertionPointAfter(lastTake == after ? push : lastTake);
  auto take = dist::TakeOp::create(builder, getLocation(name + "/take"), taken, key.reduction, name, place, required,
                                   gradient.variable, policy.aggregator, policy.async, apart, /*rows=*/nullptr);
  lastTake = take;
  take->setAttr(dist::kPlaceAttr, site);
  if (gradient.indices)
    joinedIndices[value] = take.getGradient().front();
  replace(value, take.getGradient().back());
}

void Synchronizer::replace(Value from, Value to) { replacements.insert({from, to}); }

Location Synchronizer::getLocation(const llvm::Twine &name) const {
  return NameLoc::get(StringAttr::get(block.getParent()->getContext(), name));
}

} // namespace distc
