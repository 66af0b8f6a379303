//===- ShardedUpdates.cpp - Each replica updates its share, or each owner its variables ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/ShardedUpdates.h"
#include "dialects/dfg/Gathers.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/servers/Roles.h"
#include "passes/distribute/synchronize/RawGradients.h"

using namespace mlir;

namespace distc {
namespace {

/// An update that is split, or that one worker does for all, and what of the graph changes with it.
struct Candidate {
  dfg::UpdateInterface update;
  llvm::StringRef variable;
  /// Of the gradient, the update and the slots: a share's, or the whole's where it has an owner.
  RankedTensorType share;
  dist::PlaceAttr owner;
  SmallVector<llvm::StringRef> slots;
  /// Of rows: nobody else needs the variable, and these nodes read rows of it.
  bool isTable = false;
  SmallVector<Operation *> gathers;
  /// Of a table whose rule is spelled out: what changes its slots alone (a decay of all rows, rows that are added).
  SmallVector<Operation *> ofSlots;
};

class Sharder {
public:
  Sharder(dfg::GraphOp graph, const SyncPolicies &policies, const strategies::StepNodes &step)
      : block(graph.getBody().front()), module(graph->getParentOfType<ModuleOp>()), policies(policies), step(step),
        init(graph, graph.getInitOpAttr()), loss(graph, graph.getLossAttr()), fetches(graph, graph.getFetchesAttr()),
        summaries(graph, getSummaryNames(graph)), builder(graph.getContext()) {
    for (auto variable : module.getOps<dfg::VariableOp>())
      variables[variable.getSymName()] = variable;
  }

  void run() {
    readHandles();
    for (Operation &op : block)
      if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
          update && policies.get(getUpdatedVariable(update)).owner)
        slotUpdates.insert_range(findSlotUpdates(update));
    for (Operation &op : block)
      if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op))
        consider(update);
    // What an owner has no memory for is everyone's from here on.
    for (auto &entry : variables)
      if (auto place = entry.second->getAttrOfType<dist::PlaceAttr>(dist::kPlaceAttr); place && !isServer(place))
        entry.second->removeAttr(dist::kPlaceAttr);
    for (Candidate &candidate : candidates) {
      if (candidate.isTable) {
        giveTableToOwner(candidate);
        continue;
      }
      shardGradient(candidate);
      if (candidate.owner) {
        giveToOwner(candidate);
        continue;
      }
      shardUpdate(candidate);
      for (llvm::StringRef slot : candidate.slots)
        shardSlot(slot, candidate.share);
    }
    gatherVariables();
    remark("updates that are not sharded", leftWhole);
    remark("updates that every worker does itself, not the owner alone", leftToAll);
    remark("gradients that are all-reduced, not reduce-scattered, as more than the update needs all of them",
           reducedWhole);
  }

private:
  bool isInStep(Operation *op) const { return !step.isKnown() || step.contains(op); }

  /// Whether something runs it: what nothing does is not in a program.
  bool isNeeded(Operation *op) const {
    return isInStep(op) || init.contains(op) || loss.contains(op) || fetches.contains(op) || summaries.contains(op);
  }

  static ArrayAttr getSummaryNames(dfg::GraphOp graph) {
    SmallVector<Attribute> names;
    if (DictionaryAttr tags = graph.getSummariesAttr())
      for (NamedAttribute summary : tags)
        names.push_back(summary.getName());
    return ArrayAttr::get(graph.getContext(), names);
  }

  /// One remark for all, which names the first of them.
  void remark(llvm::StringRef what, ArrayRef<std::string> which) {
    if (which.empty())
      return;
    constexpr size_t kNamed = 5;
    InFlightDiagnostic remark = block.getParentOp()->emitRemark() << which.size() << " " << what << ": ";
    llvm::interleave(
        which.take_front(kNamed), [&](const std::string &text) { remark << text; }, [&] { remark << ", "; });
    if (which.size() > kNamed)
      remark << ", ...";
  }

  void readHandles() {
    for (Operation &op : block) {
      for (Value operand : op.getOperands()) {
        if (!dfg::isHandle(operand.getType()))
          continue;
        if (auto handle = dfg::getVariableHandle(operand))
          users[handle.getVariable()].insert(&op);
      }
      if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op))
        handles[handle.getVariable()].push_back(handle);
    }
  }

  void consider(dfg::UpdateInterface update) {
    llvm::StringRef name = getUpdatedVariable(update);
    const SyncPolicy &policy = policies.get(name);
    // Rows that are added to a table are the rule of gradient descent.
    const bool isRule = update.isOptimizerUpdate() || (policy.owner && update.getIndicesOperand() >= 0);
    if ((policy.shardedStage == 0 && !policy.owner) || policy.place || !isRule || !isInStep(update) ||
        slotUpdates.contains(update))
      return;
    Candidate candidate{update, name, {}, policy.owner, {}};
    if (std::string why = findObstacle(candidate); !why.empty())
      (policy.owner ? leftToAll : leftWhole).push_back("'" + name.str() + "': " + why);
    else
      candidates.push_back(std::move(candidate));
  }

  /// What else of the step changes slots of an update that leaves them to it, and nothing besides.
  SmallVector<Operation *> findSlotUpdates(dfg::UpdateInterface update) {
    llvm::SetVector<Operation *> found;
    llvm::SmallSetVector<llvm::StringRef, 4> slots;
    const auto written = update.getWrittenOperands(); // a vector of its own: it must outlive the range
    for (unsigned operand : ArrayRef(written).drop_front())
      if (auto handle = dfg::getVariableHandle(update->getOperand(operand)))
        slots.insert(handle.getVariable());
    for (llvm::StringRef slot : slots)
      for (Operation *user : users[slot]) {
        auto other = llvm::dyn_cast<dfg::UpdateInterface>(user);
        if (!other || other == update || !isInStep(user) || (llvm::isa<dfg::AssignOp>(user) && !isInStepAsKnown(user)))
          continue;
        const bool isOfSlots = llvm::all_of(other.getWrittenOperands(), [&](unsigned operand) {
          auto handle = dfg::getVariableHandle(user->getOperand(operand));
          return handle && slots.contains(handle.getVariable());
        });
        if (isOfSlots && llvm::all_of(user->getResults(), [](Value result) { return result.use_empty(); }))
          found.insert(user);
      }
    return found.takeVector();
  }

  /// Why the update cannot be split; empty where it can.
  std::string findObstacle(Candidate &candidate) {
    dfg::UpdateInterface update = candidate.update;
    if (update.getIndicesOperand() >= 0) {
      if (!candidate.owner)
        return "its gradient is sparse";
      candidate.isTable = true;
    }
    if (candidate.owner) {
      candidate.ofSlots = findSlotUpdates(update);
      candidate.isTable |= !candidate.ofSlots.empty();
    }
    dfg::VariableOp variable = variables.lookup(candidate.variable);
    auto type = variable ? llvm::dyn_cast<RankedTensorType>(variable.getType()) : RankedTensorType();
    if (!type || !type.hasStaticShape())
      return "its size is not known";
    if (type.getNumElements() == 0)
      return "it has no elements";
    for (Operation *user : users[candidate.variable])
      if (user != update && llvm::isa<dfg::UpdateInterface, dfg::OpaqueOp, dfg::CallOp>(user) &&
          (llvm::isa<dfg::AssignOp>(user) ? isInStepAsKnown(user) : isInStep(user)))
        return "node '" + dfg::getNodeName(user).str() + "' may update it as well";
    for (OpOperand &operand : update->getOpOperands()) {
      auto scalar = llvm::dyn_cast<RankedTensorType>(operand.get().getType());
      if (!dfg::isHandle(operand.get().getType()) &&
          static_cast<int>(operand.getOperandNumber()) != update.getGradientOperand() && !candidate.owner &&
          (!scalar || scalar.getRank() != 0))
        return "operand " + std::to_string(operand.getOperandNumber()) + " of its update is no scalar";
    }
    for (Value result : update->getResults())
      if (!result.use_empty())
        return "its new value is used by node '" + dfg::getNodeName(*result.getUsers().begin()).str() + "'";
    const SmallVector<unsigned> written = update.getWrittenOperands();
    for (unsigned operand : ArrayRef(written).drop_front()) {
      auto handle = dfg::getVariableHandle(update->getOperand(operand));
      dfg::VariableOp slot = handle ? variables.lookup(handle.getVariable()) : dfg::VariableOp();
      if (!slot || (slot.getType() != type && !candidate.owner))
        return "a slot of it has another type";
      if (!candidate.owner && (slot->hasAttr(dist::kSliceAttr) || slot->hasAttr(dist::kSharesAttr)))
        return "its slot '" + slot.getSymName().str() + "' is a part of a variable already";
      if (Operation *user = findReader(slot.getSymName(), candidate))
        return "node '" + dfg::getNodeName(user).str() + "' computes with its slot '" + slot.getSymName().str() + "'";
      candidate.slots.push_back(slot.getSymName());
    }
    if (candidate.isTable)
      if (std::string why = findRowReaders(candidate); !why.empty())
        return why;
    candidate.share =
        candidate.owner
            ? type
            : RankedTensorType::get(llvm::divideCeil(type.getNumElements(), policies.replicas), type.getElementType());
    return "";
  }

  /// Finds the nodes that read rows of a table; why it must be where they are, or empty.
  std::string findRowReaders(Candidate &candidate) {
    if (policies.get(candidate.variable).proxy)
      return "workers have a copy of it (local_proxy_variable)";
    if (policies.averagesDecay > 0)
      return "moving averages are kept of it";
    if (candidate.update.hasIndexVectors())
      return "its rows are named by coordinates";
    auto needs = [](Operation *user) {
      return "node '" + dfg::getNodeName(user).str() + "' needs more of it than rows along its first axis";
    };
    for (Operation *user : users[candidate.variable]) {
      const bool isAside = llvm::isa<dfg::AssignOp, dfg::OpaqueOp>(user) && !isInStepAsKnown(user);
      if (user == candidate.update || isAside || !isNeeded(user) ||
          llvm::isa<dfg::IsInitializedOp, dfg::IdentityOp>(user))
        continue;
      if (llvm::isa<dfg::ResourceGatherOp>(user)) {
        if (!dfg::takesRows(user) || init.contains(user))
          return needs(user);
        candidate.gathers.push_back(user);
        continue;
      }
      if (!llvm::isa<dfg::ReadVariableOp>(user))
        return needs(user);
      SmallVector<Operation *> pending = {user};
      while (!pending.empty()) {
        Operation *op = pending.pop_back_val();
        if (isEndpoint(op))
          return needs(op);
        for (OpOperand &use : op->getUses()) {
          Operation *reader = use.getOwner();
          if (!isNeeded(reader))
            continue;
          if (llvm::isa<dfg::IdentityOp>(reader))
            pending.push_back(reader);
          else if (!readsRows(use) || init.contains(reader))
            return needs(reader);
          else if (user->isBeforeInBlock(candidate.update) && candidate.update->isBeforeInBlock(reader))
            return "node '" + dfg::getNodeName(reader).str() + "' reads rows of its old value behind its update";
          else
            candidate.gathers.push_back(reader);
        }
      }
    }
    return "";
  }

  /// Whether a node's value itself is asked for.
  bool isEndpoint(Operation *op) {
    auto graph = llvm::cast<dfg::GraphOp>(block.getParentOp());
    auto is = [&](Attribute name) {
      auto text = llvm::dyn_cast_or_null<StringAttr>(name);
      return text && text.getValue().split(':').first == dfg::getNodeName(op);
    };
    return is(graph.getLossAttr()) || (graph.getFetchesAttr() && llvm::any_of(graph.getFetchesAttr(), is)) ||
           llvm::any_of(getSummaryNames(graph), is);
  }

  static bool readsRows(OpOperand &use) { return use.getOperandNumber() == 0 && dfg::takesRows(use.getOwner()); }

  /// A node that needs the whole slot; savers, views and initializers do not.
  Operation *findReader(llvm::StringRef slot, Candidate &candidate) {
    for (Operation *user : users[slot]) {
      // A share's type is another than the whole's, also where nothing runs.
      if (user == candidate.update || llvm::is_contained(candidate.ofSlots, user) ||
          (candidate.owner && !isNeeded(user)) || llvm::isa<dfg::IsInitializedOp, dfg::IdentityOp>(user))
        continue;
      if (llvm::isa<dfg::AssignOp>(user) && !isInStepAsKnown(user))
        continue;
      if (llvm::isa<dfg::OpaqueOp>(user) && !isInStepAsKnown(user))
        continue;
      // Rows of a table's slot the owner is asked for.
      if (llvm::isa<dfg::ResourceGatherOp>(user) && candidate.isTable && dfg::takesRows(user) && !init.contains(user)) {
        candidate.gathers.push_back(user);
        continue;
      }
      if (!llvm::isa<dfg::ReadVariableOp>(user))
        return user;
      SmallVector<Operation *> pending = {user};
      while (!pending.empty()) {
        Operation *op = pending.pop_back_val();
        if (fetches.contains(op) || loss.contains(op))
          return op;
        if (candidate.owner && !isNeeded(op))
          continue;
        if (op == user || llvm::isa<dfg::IdentityOp>(op))
          llvm::append_range(pending, op->getUsers());
        else if (!llvm::isa<dfg::OpaqueOp>(op))
          return op;
      }
    }
    return nullptr;
  }

  /// Without a training operation an assignment is taken for an initializer.
  bool isInStepAsKnown(Operation *op) const { return step.isKnown() && step.contains(op); }

  Location getLocation(const llvm::Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }

  /// Stage 2, and owners: the member leaves its all-reduce, where nothing else needs the whole gradient. Else a share
  /// of it is taken.
  void shardGradient(Candidate &candidate) {
    // A rule of the old value alone (a decay) sees none.
    if (candidate.update.getGradientOperand() < 0)
      return;
    OpOperand &operand = candidate.update->getOpOperand(candidate.update.getGradientOperand());
    Value gradient = operand.get();
    auto reduce = gradient.getDefiningOp<dist::AllReduceOp>();
    bool scatters = candidate.owner || policies.get(candidate.variable).shardedStage > 1;
    if (scatters && (!reduce || !gradient.hasOneUse() || reduce.getCompression() || reduce.getAggregator())) {
      reducedWhole.push_back(candidate.variable.str());
      scatters = false;
    }
    if (scatters) {
      scattered[reduce].push_back({&operand, candidate.share, candidate.owner});
      return;
    }
    if (candidate.owner)
      return;
    builder.setInsertionPoint(candidate.update);
    operand.set(dist::TakeShareOp::create(builder, getLocation(dfg::getNodeName(candidate.update) + "/gradient_share"),
                                          candidate.share, gradient));
  }

  void shardUpdate(Candidate &candidate) {
    Operation *update = candidate.update;
    builder.setInsertionPoint(update);
    auto type = dfg::RefType::get(builder.getContext(), candidate.share);
    OpOperand &handle = update->getOpOperand(candidate.update.getWrittenOperands().front());
    updated.push_back({update, {handle.get(), candidate.variable}});
    handle.set(
        dist::ShareHandleOp::create(builder, getLocation(dfg::getNodeName(update) + "/share"), type, handle.get()));
    for (Value result : update->getResults())
      result.setType(candidate.share);
  }

  /// The owner alone updates it, and has its slots.
  void giveToOwner(Candidate &candidate) {
    Operation *update = candidate.update;
    Value handle = update->getOperand(candidate.update.getWrittenOperands().front());
    updated.push_back({update, {handle, candidate.variable}});
    update->setAttr(dist::kPlaceAttr, candidate.owner);
    for (llvm::StringRef slot : candidate.slots)
      variables.lookup(slot)->setAttr(dist::kPlaceAttr, candidate.owner);
  }

  /// The owner alone has the table and its slots; of others' rows it is asked.
  void giveTableToOwner(Candidate &candidate) {
    candidate.update->setAttr(dist::kPlaceAttr, candidate.owner);
    for (Operation *update : candidate.ofSlots)
      update->setAttr(dist::kPlaceAttr, candidate.owner);
    variables.lookup(candidate.variable)->setAttr(dist::kPlaceAttr, candidate.owner);
    for (llvm::StringRef slot : candidate.slots)
      variables.lookup(slot)->setAttr(dist::kPlaceAttr, candidate.owner);
    for (Operation *gather : candidate.gathers) {
      builder.setInsertionPoint(gather);
      Value source = gather->getOperand(0);
      while (!dfg::isHandle(source.getType()))
        source = source.getDefiningOp()->getOperand(0);
      auto pull = dist::PullRowsOp::create(builder, gather->getLoc(), gather->getResult(0).getType(), source,
                                           gather->getOperand(1), candidate.owner, builder.getI32IntegerAttr(0));
      if (Attribute control = gather->getAttr(dfg::kControlAttr))
        pull->setAttr(dfg::kControlAttr, control);
      gather->getResult(0).replaceAllUsesWith(pull.getRows());
      gather->erase();
    }
  }

  void shardSlot(llvm::StringRef name, RankedTensorType share) {
    dfg::VariableOp slot = variables.lookup(name);
    auto whole = llvm::cast<RankedTensorType>(slot.getType());
    slot->setAttr(dist::kSliceAttr,
                  dist::SliceAttr::get(builder.getContext(), builder.getStringAttr(name),
                                       builder.getDenseI64ArrayAttr(whole.getShape()),
                                       builder.getDenseI64ArrayAttr(SmallVector<int64_t>(whole.getRank(), 0))));
    slot->setAttr(dist::kSharesAttr, builder.getI64IntegerAttr(policies.replicas));
    slot.setType(share);
    for (dfg::VarHandleOp handle : handles[name])
      retype(handle.getHandle(), dfg::RefType::get(builder.getContext(), share));
    for (Operation *user : users[name]) {
      if (auto assign = llvm::dyn_cast<dfg::AssignOp>(user)) {
        builder.setInsertionPoint(assign);
        assign.getValueMutable().set(dist::TakeShareOp::create(
            builder, getLocation(dfg::getNodeName(assign) + "/share"), share, assign.getValue()));
        for (Value result : user->getResults())
          retype(result, share);
      } else if (llvm::isa<dfg::ReadVariableOp>(user)) {
        retype(user->getResult(0), share);
      }
    }
  }

  /// Views of the value have its type.
  void retype(Value value, Type type) {
    value.setType(type);
    for (Operation *user : value.getUsers())
      if (llvm::isa<dfg::IdentityOp>(user))
        retype(user->getResult(0), type);
  }

  /// Values behind the last update of their group, or before the first node that reads one of them.
  void gatherVariables() {
    for (auto &[reduce, members] : scattered)
      scatter(llvm::cast<dist::AllReduceOp>(reduce), members);
    llvm::DenseMap<Operation *, std::pair<Value, llvm::StringRef>> updates(updated.begin(), updated.end());
    llvm::DenseMap<int, unsigned> left;
    for (const auto &[update, variable] : updated)
      ++left[policies.get(variable.second).group];
    llvm::MapVector<int, SmallVector<std::pair<Value, llvm::StringRef>>> pending;
    llvm::StringMap<int> groupOf;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto it = updates.find(&op);
      for (Value operand : op.getOperands()) {
        auto handle = dfg::isHandle(operand.getType()) ? dfg::getVariableHandle(operand) : dfg::VarHandleOp();
        auto group = handle && !llvm::isa<dist::ShareHandleOp, dfg::IdentityOp>(op) ? groupOf.find(handle.getVariable())
                                                                                    : groupOf.end();
        if (group != groupOf.end() && !pending[group->second].empty()) {
          builder.setInsertionPoint(&op);
          gather(pending[group->second], groupOf);
        }
      }
      if (it == updates.end())
        continue;
      int group = policies.get(it->second.second).group;
      pending[group].push_back(it->second);
      groupOf[it->second.second] = group;
      if (--left[group] == 0) {
        builder.setInsertionPointAfter(&op);
        gather(pending[group], groupOf);
      }
    }
  }

  void gather(SmallVectorImpl<std::pair<Value, llvm::StringRef>> &members, llvm::StringMap<int> &groupOf) {
    SmallVector<Value> values;
    SmallVector<llvm::StringRef> names;
    SmallVector<int64_t> owners;
    for (auto [handle, name] : members) {
      values.push_back(handle);
      names.push_back(name);
      if (dist::PlaceAttr owner = policies.get(name).owner)
        owners.push_back(owner.getIndex());
      groupOf.erase(name);
    }
    members.clear();
    dist::AllGatherVariablesOp::create(builder, getLocation("all_gather_variables/" + llvm::Twine(gathers++)), 0,
                                       values, builder.getStrArrayAttr(names), getOwners(owners));
  }

  /// None where each has shares.
  DenseI64ArrayAttr getOwners(ArrayRef<int64_t> owners) {
    return owners.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(owners);
  }

  struct ScatteredMember {
    OpOperand *operand;
    RankedTensorType share;
    dist::PlaceAttr owner;
  };
  using Scattered = SmallVector<ScatteredMember>;
  void scatter(dist::AllReduceOp reduce, const Scattered &members) {
    SmallVector<Value> gradients;
    SmallVector<Type> shares;
    SmallVector<Attribute> names;
    llvm::DenseSet<unsigned> gone;
    SmallVector<int64_t> owners;
    for (auto [operand, share, owner] : members) {
      unsigned number = llvm::cast<OpResult>(operand->get()).getResultNumber();
      gone.insert(number);
      gradients.push_back(reduce.getGradients()[number]);
      names.push_back(reduce.getVariables()[number]);
      shares.push_back(share);
      if (owner)
        owners.push_back(owner.getIndex());
    }
    builder.setInsertionPoint(reduce);
    auto op =
        dist::ReduceScatterOp::create(builder, getLocation("reduce_scatter/" + llvm::Twine(reduce.getBucket())), shares,
                                      reduce.getReduction(), reduce.getBucket(), reduce.getGroup(), gradients,
                                      builder.getArrayAttr(names), reduce.getSpec(), getOwners(owners));
    for (auto [member, share] : llvm::zip(members, op.getShares()))
      member.operand->set(share);
    SmallVector<Value> rest;
    SmallVector<Attribute> restNames;
    for (auto [number, gradient] : llvm::enumerate(reduce.getGradients()))
      if (!gone.contains(number)) {
        rest.push_back(gradient);
        restNames.push_back(reduce.getVariables()[number]);
      }
    if (!rest.empty()) {
      auto left = dist::AllReduceOp::create(builder, reduce.getLoc(), reduce.getReduction(), reduce.getBucket(),
                                            reduce.getGroup(), rest, builder.getArrayAttr(restNames), reduce.getSpec(),
                                            reduce.getCompressionAttr(), reduce.getAggregatorAttr());
      unsigned next = 0;
      for (auto [number, reduced] : llvm::enumerate(reduce.getReduced()))
        if (!gone.contains(number))
          reduced.replaceAllUsesWith(left.getReduced()[next++]);
    }
    reduce.erase();
  }

  Block &block;
  ModuleOp module;
  const SyncPolicies &policies;
  const strategies::StepNodes &step;
  strategies::StepNodes init, loss, fetches, summaries;
  OpBuilder builder;
  llvm::StringMap<dfg::VariableOp> variables;
  llvm::StringMap<llvm::SetVector<Operation *>> users;
  llvm::StringMap<SmallVector<dfg::VarHandleOp>> handles;
  SmallVector<Candidate> candidates;
  llvm::MapVector<Operation *, Scattered> scattered;
  SmallVector<std::pair<Operation *, std::pair<Value, llvm::StringRef>>> updated;
  llvm::DenseSet<Operation *> slotUpdates; // which belong to the update of another variable
  std::vector<std::string> leftWhole, leftToAll, reducedWhole;
  unsigned gathers = 0;
};

} // namespace

void shardUpdates(dfg::GraphOp graph, const SyncPolicies &policies, const strategies::StepNodes &step) {
  Sharder(graph, policies, step).run();
}

void numberBuckets(dfg::GraphOp graph) {
  Builder builder(graph.getContext());
  int32_t next = 0;
  for (Operation &op : graph.getBody().front())
    if (dist::isCollective(&op))
      op.setAttr("bucket", builder.getI32IntegerAttr(next++));
}

} // namespace distc
