//===- CoupleReplicas.cpp - Collectives where values depend on other replicas' rows -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/Numbers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchConversions.h"
#include "passes/distribute/flow/FixedDecisions.h"
#include "passes/distribute/replicate/HalfRange.h"
#include "passes/distribute/servers/Serving.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "passes/distribute/synchronize/BucketOrder.h"
#include "passes/distribute/synchronize/FunctionUpdates.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "passes/distribute/synchronize/ShardedUpdates.h"
#include "passes/distribute/synchronize/SparseGradients.h"
#include "passes/graph/ListNames.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/DebugLog.h"
#include <map>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTCOUPLEREPLICAS
#include "passes/distribute/Passes.h.inc"

namespace {

/// Gives what some values are computed from, in block order, forms of the batch's flow for which there are rules.
class Coupler {
public:
  Coupler(dfg::GraphOp graph, BatchFlow &flow, BatchConversions &conversions)
      : graph(graph), flow(flow), conversions(conversions), updates(graph->getParentOfType<ModuleOp>()) {}

  /// `joinDistinct`: also distinct values (Unique), which the synchronization of sparse gradients joins by itself.
  /// `except`: nodes that stay as they are.
  void prove(ArrayRef<Value> wanted, bool joinDistinct, const llvm::DenseSet<Operation *> &except = {}) {
    llvm::DenseSet<Operation *> needed = findNeeded(wanted);
    for (Operation *op : except)
      needed.erase(op);
    summed = findSummed();
    SmallVector<Operation *> nodes;
    for (Operation &op : graph.getBody().front())
      nodes.push_back(&op);
    for (Operation *op : nodes) {
      // What has an operand of other sizes now has to be looked at, too.
      if (!needed.contains(op) && !llvm::isa<dfg::UpdateInterface>(op) && hasWholeOperand(op))
        needed.insert(op);
      if (needed.contains(op))
        visit(op, joinDistinct);
    }
    // What else uses a value that is reduced anyway.
    summed = findSummed();
    for (auto [partial, reduced] : conversions.getAllReduced())
      partial.replaceUsesWithIf(
          reduced, [&](OpOperand &use) { return !needed.contains(use.getOwner()) && !isSummed(use.getOwner()); });
  }

  /// What the values are computed of, themselves too.
  static llvm::DenseSet<Operation *> findNeeded(ArrayRef<Value> wanted) {
    llvm::DenseSet<Operation *> needed;
    SmallVector<Operation *> pending;
    auto add = [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (op && !dfg::isHandle(value.getType()) && !llvm::isa<dfg::UpdateInterface>(op) && needed.insert(op).second)
        pending.push_back(op);
    };
    llvm::for_each(wanted, add);
    while (!pending.empty())
      llvm::for_each(pending.pop_back_val()->getOperands(), add);
    return needed;
  }

private:
  bool hasWholeOperand(Operation *op) const {
    auto isWhole = [](const std::optional<dfg::Dims> &sizes) {
      return sizes && llvm::any_of(*sizes, [](dfg::Dim size) { return size.dependsOnWholeBatch(); });
    };
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return isWhole(flow.getShapes().getShape(operand)) || isWhole(flow.getShapes().getElements(operand));
    });
  }

  /// What makes of partial sums others that are reduced (three times a sum, beside the sum itself): of a whole sum they
  /// would be reduced twice.
  llvm::DenseSet<Operation *> findSummed() const {
    llvm::DenseSet<Operation *> found;
    SmallVector<Value> pending;
    for (auto [partial, reduced] : conversions.getAllReduced())
      pending.push_back(partial);
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val().getDefiningOp();
      if (op && found.insert(op).second)
        llvm::copy_if(op->getOperands(), std::back_inserter(pending),
                      [&](Value operand) { return flow.get(operand).kind == Flow::Partial; });
    }
    return found;
  }

  bool isSummed(Operation *op) const { return llvm::isa<dist::AllReduceOp>(op) || summed.contains(op); }

  void visit(Operation *op, bool joinDistinct) {
    // A reduction of an earlier round has what it reduces.
    for (OpOperand &operand : op->getOpOperands())
      if (Value reduced = conversions.getReduced(operand.get()); reduced && !isSummed(op))
        operand.set(reduced);
    if (isProven(op) || isFunctionOfSums(op) || isGatheredPart(op))
      return;
    bool isDistinct =
        isUnique(op) || llvm::any_of(op->getOperands(), [&](Value operand) { return distinct.contains(operand); });
    if (isDistinct && !joinDistinct) {
      distinct.insert(op->result_begin(), op->result_end());
      return;
    }
    if (canChange(op))
      convert(op);
  }

  /// A replica's own maximum over its rows, and the row that is made of it: an earlier round's (joinReduction).
  static bool isGatheredPart(Operation *op) {
    auto isRow = [](Operation *node) {
      return llvm::isa<dfg::ExpandDimsOp>(node) && !node->use_empty() &&
             llvm::all_of(node->getUsers(), llvm::IsaPred<dist::AllGatherOp>);
    };
    return isRow(op) || (!op->use_empty() && llvm::all_of(op->getUsers(), isRow));
  }

  bool canChange(Operation *op) {
    auto isHandle = [](Type type) { return dfg::isHandle(type); };
    if (llvm::any_of(op->getOperandTypes(), isHandle) || llvm::any_of(op->getResultTypes(), isHandle))
      return readsInFunctions(op);
    return llvm::isa<dfg::OpaqueOp>(op) || op->hasTrait<dfg::DrawsNumbers>() || isMemoryEffectFree(op);
  }

  /// Conditions and loops that read variables, whose values all replicas have, and update none. A loop gives the
  /// handles again that it takes.
  bool readsInFunctions(Operation *op) {
    bool runsFunctions = false;
    dfg::getSourceAttributes(op).walk([&](dfg::FuncAttr) { runsFunctions = true; });
    // Who reads of an iterator or a queue changes it.
    auto isVariable = [](Type type) { return !dfg::isHandle(type) || llvm::isa<dfg::RefType>(type); };
    return llvm::isa<dfg::OpaqueOp>(op) && runsFunctions && llvm::all_of(op->getOperandTypes(), isVariable) &&
           !updates.find(op);
  }

  bool isProven(Operation *op) {
    fits = succeeded(conversions.revisit(op));
    return fits && llvm::none_of(op->getResults(), [&](Value result) { return flow.get(result).kind == Flow::Local; });
  }

  /// One that is made whole where something needs it: updates may see reduced values only at their end. An operation
  /// that is not known and takes a share's sizes (SparseReshape) is not made again there.
  bool isFunctionOfSums(Operation *op) const {
    auto isSize = [&](Value operand) {
      const Flow &at = flow.get(operand);
      return at.kind == Flow::Replicated && !at.zero && at.scale != 0;
    };
    if (llvm::isa<dfg::OpaqueOp>(op) && llvm::any_of(op->getOperands(), isSize))
      return false;
    // Code is generated for slices whose places are known: sizes are made whole as sizes, and not added up.
    if (llvm::isa<dfg::StridedSliceGradOp>(op) && llvm::any_of(op->getOperands().slice(1, 2), isSize))
      return false;
    return fits && llvm::none_of(op->getResults(), [&](Value result) { return flow.hasBatchSize(result); }) &&
           llvm::none_of(op->getOperands(), [&](Value operand) {
             const Flow &at = flow.get(operand);
             return at.kind == Flow::Sharded || (at.kind == Flow::Local && flow.hasBatchSize(operand));
           });
  }

  bool isSharded(Value value) const { return flow.get(value).kind == Flow::Sharded; }

  bool tryOperands(Operation *op, ArrayRef<Value> operands) {
    if (llvm::is_contained(operands, Value()))
      return false;
    op->setOperands(operands);
    return isProven(op);
  }

  /// Tries what costs least first: a few numbers reduced, own rows taken, some of the operands gathered, all of them.
  void convert(Operation *op) {
    const SmallVector<Value> original(op->getOperands());
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands())
      operands.push_back(makeComparable(op, operand));
    if (!llvm::is_contained(operands, Value())) {
      // Also where no operand is another one: functions of sums are made whole where they are.
      if (tryOperands(op, operands) || tryRows(op, operands))
        return;
      op->setOperands(operands);
      if (conversions.joinReduction(op) && isProven(op))
        return;
      if (tryGathers(op, operands))
        return;
    }
    op->setOperands(original);
    isProven(op);
  }

  /// What is not sharded as the whole batch has it; what is, of scale 0. Parameters that say how large stay the
  /// share's.
  Value makeComparable(Operation *op, OpOperand &operand) {
    const Flow &at = flow.get(operand.get());
    if (at.kind == Flow::Sharded)
      return conversions.rescale(operand.get());
    if (isParameterOperand(op, operand.getOperandNumber()) && at.kind == Flow::Replicated)
      return operand.get();
    return conversions.makeWhole(operand.get());
  }

  /// The replica's own rows, of operands that have all.
  bool tryRows(Operation *op, ArrayRef<Value> operands) {
    constexpr size_t kMaxChoices = 32;
    SmallVector<SmallVector<Value>> choices = {{}};
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operands[operand.getOperandNumber()];
      SmallVector<Value> forms;
      auto sizes = flow.getShapes().getShape(value);
      if (sizes && flow.isWhole(value) && !isParameterOperand(op, operand.getOperandNumber()))
        for (auto [axis, size] : llvm::enumerate(*sizes))
          if (size.isMultipleOfWholeBatch())
            forms.push_back(conversions.takeRows(value, static_cast<int64_t>(axis)));
      forms.push_back(value);
      SmallVector<SmallVector<Value>> longer;
      for (const SmallVector<Value> &choice : choices)
        for (Value form : forms)
          if (longer.size() < kMaxChoices) {
            longer.push_back(choice);
            longer.back().push_back(form);
          }
      choices = std::move(longer);
    }
    for (const SmallVector<Value> &choice : choices)
      if (ArrayRef(choice) != operands && tryOperands(op, choice))
        return true;
    return false;
  }

  /// The last of several sharded operands, or another one, or all, and with them the sizes that are parameters.
  bool tryGathers(Operation *op, ArrayRef<Value> operands) {
    unsigned numSharded = llvm::count_if(operands, [&](Value operand) { return isSharded(operand); });
    for (size_t i = operands.size(); numSharded > 1 && i-- > 0;) {
      if (!isSharded(operands[i]))
        continue;
      SmallVector<Value> some(operands);
      // An operand that occurs twice is gathered once.
      some[i] = conversions.makeWhole(operands[i]);
      if (tryOperands(op, some))
        return true;
    }
    SmallVector<Value> all;
    for (Value operand : operands)
      all.push_back(conversions.makeWhole(operand));
    return tryOperands(op, all);
  }

  dfg::GraphOp graph;
  BatchFlow &flow;
  BatchConversions &conversions;
  FunctionUpdates updates;
  llvm::DenseSet<Value> distinct;
  llvm::DenseSet<Operation *> summed;
  bool fits = true;
};

/// Erases nodes whose values nothing that runs for an effect is made of, and no fetch, and which control edges alone
/// keep in the step: gradients of what is no variable's, and the identities of them, which TensorFlow has wait for all
/// others. What waits for them waits for what they wait for, themselves or through what they are made of (gradients
/// that are taken behind an update). What is made of something that an update, a check or a message wrote stays: who
/// waits for it has that run (the result of a metric, which its two counters are added for). In the older control flow
/// what waits for a node of a branch runs where that branch is taken: it waits for what the node is made of; what
/// chooses the branch (who reads a Switch, a Merge) stays.
void eraseUnneeded(dfg::GraphOp graph, const strategies::StepNodes &step) {
  Block &block = graph.getBody().front();
  llvm::StringSet<> named;
  auto name = [&](llvm::StringRef tensor) { named.insert(tensor.split(':').first); };
  for (const std::string &tensor : getFetchedTensors(graph))
    name(tensor);
  for (StringAttr node : {graph.getTrainOpAttr(), graph.getInitOpAttr()})
    if (node)
      name(node.getValue());
  llvm::DenseSet<Operation *> behindEffects = dfg::findBehind(
      block, [](Operation *op) { return op->hasTrait<dfg::Reports>() || llvm::isa<dfg::UpdateInterface>(op); });
  auto isSwitch = [](Operation *op) { return dfg::getKind(op) == "Switch"; };
  llvm::DenseSet<Operation *> inBranches = dfg::findBehind(block, isSwitch);
  llvm::StringSet<> waitedFor;
  if (!inBranches.empty())
    for (Operation &op : block)
      for (llvm::StringRef before : dfg::getControlInputs(&op))
        waitedFor.insert(before);
  auto chooses = [&](Operation *op) {
    return inBranches.contains(op) && waitedFor.contains(dfg::getNodeName(op)) &&
           (dfg::getKind(op) == "Merge" ||
            llvm::any_of(op->getOperands(), [&](Value operand) { return isSwitch(operand.getDefiningOp()); }));
  };
  // An edge that says when a node runs is none of what its value is made of, unless it reads what was written.
  llvm::DenseSet<Operation *> made;
  for (Operation &op : block)
    if (behindEffects.contains(&op) && (!isMemoryEffectFree(&op) || llvm::any_of(op.getOperands(), [&](Value operand) {
          return made.contains(operand.getDefiningOp());
        })))
      made.insert(&op);
  auto mayGo = [&](Operation *op) {
    // The result of a saver, which waits as well, is no value of the step.
    bool isForOrder =
        llvm::isa<dfg::IdentityOp>(op) && !dfg::getControlInputs(op).empty() &&
        llvm::all_of(op->getOperands(), [&](Value operand) { return step.contains(operand.getDefiningOp()); });
    return step.isKnown() && (step.contains(op) || isForOrder) && op->getNumResults() > 0 && op->getNumOperands() > 0 &&
           isMemoryEffectFree(op) && !made.contains(op) && !chooses(op) && !named.contains(dfg::getNodeName(op));
  };
  SmallVector<Operation *> unneeded;
  llvm::DenseSet<Operation *> gone;
  for (Operation &op : llvm::reverse(block))
    if (mayGo(&op) && llvm::all_of(op.getUsers(), [&](Operation *user) { return gone.contains(user); })) {
      gone.insert(&op);
      unneeded.push_back(&op);
    }
  if (gone.empty())
    return;
  llvm::StringMap<SmallVector<llvm::StringRef>> inherited;
  Builder builder(graph.getContext());
  for (Operation &op : block) {
    llvm::SetVector<llvm::StringRef> control;
    bool changes = false;
    for (llvm::StringRef before : dfg::getControlInputs(&op)) {
      auto it = inherited.find(before);
      if (it == inherited.end()) {
        control.insert(before);
        continue;
      }
      control.insert(it->second.begin(), it->second.end());
      changes = true;
    }
    if (gone.contains(&op)) {
      for (Value operand : op.getOperands()) {
        Operation *before = operand.getDefiningOp();
        if (!before || dfg::isHandle(operand.getType()))
          continue;
        if (gone.contains(before)) {
          const SmallVector<llvm::StringRef> &further = inherited[dfg::getNodeName(before)];
          control.insert(further.begin(), further.end());
        } else if (behindEffects.contains(before) || inBranches.contains(before)) {
          control.insert(dfg::getNodeName(before));
        }
      }
      inherited[dfg::getNodeName(&op)] = control.takeVector();
    } else if (changes && control.empty())
      op.removeAttr(dfg::kControlAttr);
    else if (changes)
      op.setAttr(dfg::kControlAttr, builder.getStrArrayAttr(control.getArrayRef()));
  }
  // Users come first.
  for (Operation *op : unneeded)
    op->erase();
}

/// Sorts the block so that reductions of values that do not need each other are one collective: behind each wave of
/// nodes its reductions, one an element type and way of reducing.
void mergeReductions(dfg::GraphOp graph) {
  Block &block = graph.getBody().front();
  auto isCoupling = [](Operation *op) {
    auto reduce = llvm::dyn_cast_or_null<dist::AllReduceOp>(op);
    return (reduce && reduce.getCoupling()) || llvm::isa_and_nonnull<dist::AllGatherOp>(op);
  };
  llvm::DenseSet<Operation *> consumers;
  for (Operation &op : block)
    if (isCoupling(&op))
      for (Operation *user : op.getUsers())
        consumers.insert(user);
  llvm::DenseMap<Operation *, unsigned> waves = findWaves(
      block,
      [&](Operation *, Value value, unsigned wave) {
        return isCoupling(value.getDefiningOp()) ? std::optional(wave) : std::nullopt;
      },
      consumers);
  SmallVector<SmallVector<Operation *>> order = sortIntoWaves(block, waves);
  OpBuilder builder(graph.getContext());
  for (auto [wave, ops] : llvm::enumerate(order)) {
    std::map<std::pair<const void *, dist::Reduction>, SmallVector<dist::AllReduceOp>> alike;
    SmallVector<dist::AllReduceOp> firsts;
    for (Operation *op : ops) {
      if (wave > 0)
        op->moveBefore(&block, block.end());
      auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op);
      if (!reduce || !reduce.getCoupling())
        continue;
      auto &members = alike[{getElementTypeOrSelf(reduce.getGradients().front().getType()).getAsOpaquePointer(),
                             reduce.getReduction()}];
      if (members.empty())
        firsts.push_back(reduce);
      members.push_back(reduce);
    }
    Operation *last = ops.empty() ? nullptr : ops.back();
    for (dist::AllReduceOp first : firsts) {
      ArrayRef<dist::AllReduceOp> members = alike[{
          getElementTypeOrSelf(first.getGradients().front().getType()).getAsOpaquePointer(), first.getReduction()}];
      if (members.size() == 1)
        continue;
      SmallVector<Value> values, results;
      SmallVector<Attribute> names;
      for (dist::AllReduceOp member : members) {
        llvm::append_range(values, member.getGradients());
        llvm::append_range(results, member.getReduced());
        llvm::append_range(names, member.getVariables());
      }
      LDBG("dist-couple-replicas") << members.size() << " reductions are one, behind " << dfg::getNodeName(last);
      builder.setInsertionPointAfter(last);
      auto merged = dist::AllReduceOp::create(builder, first.getLoc(), first.getReduction(), /*bucket=*/0, /*group=*/-1,
                                              values, builder.getArrayAttr(names), dist::Spec::Auto,
                                              dist::CompressionAttr(), dist::AggregatorAttr(), /*coupling=*/true);
      for (auto [old, result] : llvm::zip(results, merged.getReduced()))
        old.replaceAllUsesWith(result);
      // `last` may be one of them.
      last = merged;
      for (dist::AllReduceOp member : members)
        member.erase();
    }
  }
}

struct DistCoupleReplicas : public impl::DistCoupleReplicasBase<DistCoupleReplicas> {
  using DistCoupleReplicasBase::DistCoupleReplicasBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<SyncPolicies> policies = SyncPolicies::read(module);
    if (failed(policies))
      return signalPassFailure();
    if (FailureOr<AppliedStrategy> strategy = AppliedStrategy::read(module); succeeded(strategy))
      serving = getServing(module, *strategy);
    bool changed = false;
    if (policies->replicas > 1)
      for (auto graph : module.getOps<dfg::GraphOp>())
        if (failed(nameSqueezedAxes(graph, changed)))
          return signalPassFailure();
    // Values of the replicas' own may have been asked for. Of one replica they are the whole batch's, where it
    // synchronizes at all.
    const bool synchronizes = policies->replicas > 1 || policies->accumulateSteps > 1 || policies->hasSync ||
                              policies->hasAsync || serving.has_value();
    if (synchronizes && !module->hasAttr(dist::kCouplingAttr))
      for (auto graph : module.getOps<dfg::GraphOp>())
        if (failed(couple(graph, *policies, changed)))
          return signalPassFailure();
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  /// Values of the step and of fetches that replicas' shares do not make, and of whose operands some are to be changed.
  struct Wanted {
    SmallVector<Value> values;
    /// Of those that an update depends on.
    SmallVector<Obstacle> obstacles;
  };

  LogicalResult couple(dfg::GraphOp graph, SyncPolicies policies, bool &changed) {
    strategies::StepNodes step(graph);
    if (policies.replicas > 1 && !isLoose(policies))
      if (failed(keepHalvesInRange(graph, policies.replicas, changed)))
        return failure();
    constexpr unsigned kMaxRounds = 16;
    bool joinDistinct = false, coupled = false;
    // Other nodes change with those that matter, and collectives for what nothing needs would cost like any.
    bool isPruned = false;
    for (unsigned round = 0; round < kMaxRounds; ++round) {
      FailureOr<BatchFlow> computed = BatchFlow::compute(graph);
      if (failed(computed))
        return failure();
      BatchFlow flow = std::move(*computed);
      if (round == 0 && policies.replicas > 1 && failed(checkDecisions(graph, flow)))
        return failure();
      Wanted wanted = findWanted(graph, flow, step, policies);
      if (wanted.values.empty() && policies.replicas > 1 && isInStep(policies)) {
        FailureOr<bool> inTurn = updatesInTurn(graph, flow, step, policies);
        if (failed(inTurn) || (*inTurn && failed(keepInStep(graph, "gradients are computed from what updates of their "
                                                                   "own step leave"))))
          return failure();
        policies.serves = policies.serves && !*inTurn;
        changed |= *inTurn;
      }
      if (wanted.values.empty()) {
        if (policies.replicas > 1 && failed(checkSizes(graph, flow, step)))
          return failure();
        break;
      }
      if (policies.replicas > 1 && isInStep(policies)) {
        if (failed(keepInStep(graph, "values of the step depend on other replicas' examples")))
          return failure();
        policies.serves = false;
        changed = true;
        continue;
      }
      // Of values of their own it is estimated how they add up, for which numbers would have to be taken at their word.
      if (flow.getFixedBatch() && (policies.replicas == 1 || isLoose(policies)))
        break;
      // One replica's own are the whole batch's.
      if (policies.replicas == 1) {
        setOwnValues(changed);
        break;
      }
      if (isLoose(policies))
        return useOwnValues(graph, flow, wanted, changed);
      if (!isPruned) {
        isPruned = changed = true;
        eraseUnneeded(graph, step);
        continue;
      }
      BatchConversions conversions(graph, flow, policies.replicas);
      // First the loss and its gradients: of one that is the whole batch's they often are sums over the batch again,
      // and what an optimizer makes of them (a norm of all, rows that it scales) needs nothing more.
      llvm::DenseSet<Operation *> behind = findBehindGradients(graph, flow);
      bool progress = false;
      if (!behind.empty()) {
        Coupler(graph, flow, conversions).prove(wanted.values, joinDistinct, behind);
        progress = conversions.eraseUnused();
      }
      if (!progress) {
        Coupler(graph, flow, conversions).prove(wanted.values, joinDistinct);
        progress = conversions.eraseUnused();
      }
      // Nothing but the updates' operands themselves is left.
      if (!progress) {
        for (const Obstacle &obstacle : wanted.obstacles)
          makeOperandWhole(flow, conversions, obstacle);
        makeFetchesWhole(graph, flow, step, policies, conversions);
        for (dfg::AssertOp assertion : findAssertions(graph, flow, step))
          if (Value whole = conversions.makeWhole(assertion.getCondition()))
            assertion.getConditionMutable().assign(whole);
        progress = conversions.eraseUnused();
      }
      coupled |= progress;
      if (!progress && joinDistinct)
        break;
      joinDistinct = !progress;
    }
    if (policies.replicas > 1 && !isLoose(policies) && failed(gatherAllRows(graph, policies, coupled)))
      return failure();
    if (!coupled)
      return success();
    changed = true;
    if (failed(writeKnownElements(graph)))
      return failure();
    mergeReductions(graph);
    numberBuckets(graph);
    remark(graph);
    return success();
  }

  /// Rows that are reshaped to a number of elements, which no share of them has (all rows that dist-open-batch has of a
  /// replica's own): also for what no update and no fetch needs.
  static LogicalResult gatherAllRows(dfg::GraphOp graph, const SyncPolicies &policies, bool &coupled) {
    auto isStatic = [](Value value) {
      auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
      return type && type.hasStaticShape();
    };
    SmallVector<dfg::ReshapeOp> all;
    for (auto reshape : graph.getOps<dfg::ReshapeOp>())
      if (isStatic(reshape->getResult(0)) && !isStatic(reshape->getOperand(0)))
        all.push_back(reshape);
    if (all.empty())
      return success();
    FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
    if (failed(flow))
      return failure();
    BatchConversions conversions(graph, *flow, policies.replicas);
    for (dfg::ReshapeOp reshape : all)
      if (flow->get(reshape->getOperand(0)).kind == Flow::Sharded && flow->hasBatchSize(reshape->getOperand(0)))
        if (Value whole = conversions.makeWhole(reshape->getOperand(0))) {
          reshape->setOperand(0, whole);
          coupled = true;
        }
    return success();
  }

  /// What compares the sizes of tensors whose rows meet in forward (a concatenation's operands) may be given those of
  /// all rows and of a share, where one of the tensors was gathered, and would end the run. Where what it gives is
  /// known, that is written in its place.
  static LogicalResult writeKnownElements(dfg::GraphOp graph) {
    SmallVector<dfg::ConcatOffsetOp> all(graph.getOps<dfg::ConcatOffsetOp>());
    if (all.empty())
      return success();
    FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
    if (failed(flow))
      return failure();
    SmallVector<Operation *> replaced;
    NodeNames names(graph.getBody().front());
    for (dfg::ConcatOffsetOp op : all) {
      SmallVector<DenseElementsAttr> constants;
      for (Value result : op->getResults()) {
        std::optional<SmallVector<int64_t>> elements = flow->getShapes().getConstants(result);
        if (!elements)
          break;
        Type element = getElementTypeOrSelf(result.getType());
        auto type = RankedTensorType::get({static_cast<int64_t>(elements->size())}, element);
        constants.push_back(
            DenseElementsAttr::get(type, llvm::map_to_vector(*elements, [&](int64_t number) -> Attribute {
                                     return IntegerAttr::get(element, number);
                                   })));
      }
      if (constants.size() != op->getNumResults())
        continue;
      OpBuilder builder(op);
      for (auto [number, constant] : llvm::enumerate(constants)) {
        const std::string name = dfg::getNodeName(op).str() + "/known_" + std::to_string(number);
        auto known = dfg::ConstOp::create(builder, NameLoc::get(builder.getStringAttr(names.take(name))),
                                          constant.getType(), constant);
        op->getResult(number).replaceAllUsesWith(known.getResult());
      }
      replaced.push_back(op);
    }
    dfg::eraseNodes(graph.getBody().front(), replaced);
    return success();
  }

  /// Squeeze without axes takes those of size 1: of a share of one example, the batch's, too, and what follows would be
  /// of another rank than the whole batch's.
  static LogicalResult nameSqueezedAxes(dfg::GraphOp graph, bool &changed) {
    SmallVector<dfg::SqueezeOp> squeezes;
    for (auto squeeze : graph.getOps<dfg::SqueezeOp>())
      if (squeeze.getSqueezeDims().empty())
        squeezes.push_back(squeeze);
    dfg::ShapeContext shapes;
    if (squeezes.empty())
      return success();
    if (failed(shapes.run(graph.getBody().front())))
      return failure();
    for (dfg::SqueezeOp squeeze : squeezes) {
      std::optional<dfg::Dims> sizes = shapes.getShape(squeeze->getOperand(0));
      if (!sizes || llvm::none_of(*sizes, [](dfg::Dim size) { return size.dependsOnBatch(); }) ||
          !llvm::all_of(*sizes, [](dfg::Dim size) { return size.isKnown(); }))
        continue;
      SmallVector<int64_t> axes;
      for (auto [axis, size] : llvm::enumerate(*sizes))
        if (size == dfg::Dim(1))
          axes.push_back(axis);
      changed = true;
      OpBuilder builder(squeeze);
      if (!axes.empty()) {
        squeeze.setSqueezeDimsAttr(builder.getI64ArrayAttr(axes));
        continue;
      }
      Value value = squeeze->getOperand(0);
      auto identity = dfg::IdentityOp::create(builder, squeeze.getLoc(), squeeze->getResult(0).getType(), value);
      identity->setDiscardableAttrs(squeeze->getDiscardableAttrDictionary());
      squeeze->replaceAllUsesWith(identity->getResults());
      squeeze.erase();
    }
    return success();
  }

  Wanted findWanted(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step,
                    const SyncPolicies &policies) {
    Wanted wanted;
    wanted.obstacles = findObstacles(graph, flow, step, policies);
    // What all replicas have as the whole batch does is refused for another reason, of which no collective would help.
    llvm::erase_if(wanted.obstacles, [&](const Obstacle &obstacle) { return flow.isWhole(obstacle.value); });
    for (const Obstacle &obstacle : wanted.obstacles)
      wanted.values.push_back(obstacle.value);
    for (auto [node, value] : findUnjoinable(graph, flow, step, policies))
      wanted.values.push_back(value);
    // An assertion is about the whole batch. It alone is no reason for replicas to use their own values.
    if (policies.replicas > 1 && !isLoose(policies))
      for (dfg::AssertOp assertion : findAssertions(graph, flow, step))
        wanted.values.push_back(assertion.getCondition());
    return wanted;
  }

  /// Assertions of the step whose conditions each share would have to itself.
  static SmallVector<dfg::AssertOp> findAssertions(dfg::GraphOp graph, const BatchFlow &flow,
                                                   const strategies::StepNodes &step) {
    SmallVector<dfg::AssertOp> found;
    for (auto assertion : graph.getOps<dfg::AssertOp>())
      if (step.contains(assertion) && !holdsOfShares(assertion.getCondition(), flow))
        found.push_back(assertion);
    return found;
  }

  /// Whether a condition holds of the whole batch where it holds of each share: what is asked of every example.
  static bool holdsOfShares(Value condition, const BatchFlow &flow) {
    auto isSame = [&](Value value) {
      const Flow &at = flow.get(value);
      return at.kind == Flow::Replicated && (at.zero || at.scale == 0);
    };
    if (isSame(condition))
      return true;
    Operation *op = condition.getDefiningOp();
    if (llvm::isa_and_nonnull<dfg::AllOp>(op))
      return flow.get(op->getOperand(0)).kind == Flow::Sharded || isSame(op->getOperand(0));
    auto holds = [&](Value operand) { return holdsOfShares(operand, flow); };
    if (llvm::isa_and_nonnull<dfg::LogicalOrOp>(op))
      return llvm::any_of(op->getOperands(), isSame) && llvm::all_of(op->getOperands(), holds);
    return llvm::isa_and_nonnull<dfg::LogicalAndOp, dfg::IdentityOp>(op) && llvm::all_of(op->getOperands(), holds);
  }

  /// Whether servers that serve on their own make updates of a gradient of each replica.
  bool isInStep(const SyncPolicies &policies) const {
    return serving && !serving->async && serving->staleness == 0 && serving->required == policies.replicas;
  }

  bool isLoose(const SyncPolicies &policies) const {
    return serving || policies.hasAsync || policies.staleness > 0 || policies.required != policies.replicas;
  }

  /// Servers that wait for a gradient of every replica (replicas_to_aggregate is their number) make synchronous
  /// updates, and of replicas that need each other's examples, or what updates make of them, none may be ahead: all
  /// take each step together.
  LogicalResult keepInStep(dfg::GraphOp graph, llvm::StringRef reason) {
    FailureOr<AppliedStrategy> applied = AppliedStrategy::read(getOperation());
    if (failed(applied))
      return failure();
    strategies::Strategy strategy = *applied->strategy;
    strategy.clear_replicas_to_aggregate();
    AppliedStrategy::write(getOperation(), strategy);
    serving.reset();
    graph.emitRemark(reason) << ", so that replicas take each step together: with replicas_to_aggregate the number of "
                                "replicas, every update "
                                "is the one that it would be otherwise";
    return success();
  }

  /// Whether a replica can push a gradient only when an update of the same step has been made: a second pass over the
  /// batch.
  static FailureOr<bool> updatesInTurn(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step,
                                       const SyncPolicies &policies) {
    FailureOr<RawGradients> gradients = findRawGradients(graph, flow, step, policies, UpdatesOf::AllBatches);
    if (failed(gradients))
      return failure();
    llvm::DenseSet<Operation *> behind;
    llvm::StringSet<> updated;
    for (Operation &op : graph.getBody().front()) {
      if (!step.contains(&op))
        continue;
      bool isBehind = gradients->path.contains(&op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                        return behind.contains(operand.getDefiningOp());
                      });
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
      for (OpOperand &operand : op.getOpOperands())
        if (dfg::VarHandleOp handle =
                dfg::isHandle(operand.get().getType()) ? dfg::getVariableHandle(operand.get()) : dfg::VarHandleOp()) {
          isBehind |= updated.contains(handle.getVariable()) && !llvm::isa<dfg::VarHandleOp, dfg::IdentityOp>(op);
          if (update && llvm::is_contained(update.getWrittenOperands(), operand.getOperandNumber()))
            updated.insert(handle.getVariable());
        }
      if (isBehind || update)
        behind.insert(&op);
    }
    return llvm::any_of(gradients->values,
                        [&](const auto &gradient) { return behind.contains(gradient.first.getDefiningOp()); });
  }

  /// What is computed from reductions over the batch that the loss is not computed from, which gradients are.
  static llvm::DenseSet<Operation *> findBehindGradients(dfg::GraphOp graph, const BatchFlow &flow) {
    llvm::DenseSet<Operation *> forward, behind;
    Value loss = getLoss(graph);
    if (!loss)
      return behind;
    Block &block = graph.getBody().front();
    for (Operation &op : llvm::reverse(block))
      if (&op == loss.getDefiningOp() ||
          llvm::any_of(op.getUsers(), [&](Operation *user) { return forward.contains(user); }))
        forward.insert(&op);
    llvm::DenseSet<Operation *> gradients;
    for (Operation &op : block) {
      if (forward.contains(&op))
        continue;
      auto isBehind = [&](Value operand) {
        return gradients.contains(operand.getDefiningOp()) || behind.contains(operand.getDefiningOp());
      };
      auto isFloat = [](Value value) { return llvm::isa<FloatType>(getElementTypeOrSelf(value.getType())); };
      auto hasBatchSize = [&](Value value) { return flow.hasBatchSize(value); };
      if (llvm::any_of(op.getOperands(), isBehind))
        behind.insert(&op);
      else if (op.getNumResults() > 0 && llvm::all_of(op.getResults(), isFloat) &&
               llvm::any_of(op.getOperands(), hasBatchSize) && llvm::none_of(op.getResults(), hasBatchSize))
        gradients.insert(&op);
    }
    return behind;
  }

  static void forEachFetch(dfg::GraphOp graph, llvm::function_ref<void(Operation *, Value)> visit) {
    llvm::StringMap<Operation *> nodes;
    for (Operation &op : graph.getBody().front())
      nodes[dfg::getNodeName(&op)] = &op;
    for (const std::string &tensor : getFetchedTensors(graph)) {
      Operation *node = nodes.lookup(llvm::StringRef(tensor).split(':').first);
      if (Value value = node ? getTensor(node, tensor) : Value())
        visit(node, value);
    }
  }

  /// Fetches that dist-join-fetches cannot make the whole batch's of.
  static SmallVector<std::pair<Operation *, Value>> findUnjoinable(dfg::GraphOp graph, const BatchFlow &flow,
                                                                   const strategies::StepNodes &step,
                                                                   const SyncPolicies &policies) {
    llvm::DenseSet<Value> functions;
    if (computesFetchesOfReduced(flow, policies))
      functions = findFunctionsOfSums(graph, flow);
    auto isJoinable = [&](Value value) {
      const Flow &at = flow.get(value);
      bool isMean = at.zero || at.scale == 0;
      switch (at.kind) {
      case Flow::Replicated:
      case Flow::Partial:
        return isMean || at.scale == 1;
      case Flow::Sharded:
        return isMean && (at.batch.uniform || at.batch.segments.size() == 1);
      case Flow::Local:
        break;
      }
      if (!functions.contains(value) || !policies.serves)
        return functions.contains(value);
      // Replicas that servers on their own serve have only values of their own, but for what an update makes; the loss
      // is each step's.
      const bool isUpdates = step.contains(value.getDefiningOp());
      return value == getLoss(graph) ? !isUpdates && isSumOfMeans(value, flow) : isUpdates || isSumOfMeans(value, flow);
    };
    SmallVector<std::pair<Operation *, Value>> found;
    forEachFetch(graph, [&](Operation *node, Value value) {
      if (!isJoinable(value))
        found.emplace_back(node, value);
    });
    return found;
  }

  static void makeOperandWhole(const BatchFlow &flow, BatchConversions &conversions, const Obstacle &obstacle) {
    if (!obstacle.update)
      return;
    for (OpOperand &operand : obstacle.update->getOpOperands())
      // A sum over a batch that the graph fixes is refused.
      if (!dfg::isHandle(operand.get().getType()) &&
          (flow.get(operand.get()).kind != Flow::Partial || flow.growsNot(operand.get()) || !flow.getFixedBatch()))
        if (Value whole = conversions.makeWhole(operand.get()))
          operand.set(whole);
  }

  /// The name of a fetch goes to its value as the whole batch has it.
  static void makeFetchesWhole(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step,
                               const SyncPolicies &policies, BatchConversions &conversions) {
    OpBuilder builder(graph.getContext());
    for (auto [node, value] : findUnjoinable(graph, flow, step, policies)) {
      Value whole = node->getNumResults() == 1 ? conversions.makeWhole(value) : Value();
      if (!whole || whole == value)
        continue;
      builder.setInsertionPointAfterValue(whole);
      dfg::IdentityOp::create(builder, node->getLoc(), whole.getType(), whole);
      leaveName(node);
    }
  }

  /// Replicas that do not wait for all others in every step have no value of theirs to use.
  LogicalResult useOwnValues(dfg::GraphOp graph, const BatchFlow &flow, const Wanted &wanted, bool &changed) {
    FailureOr<AppliedStrategy> applied = AppliedStrategy::read(getOperation());
    if (failed(applied))
      return failure();
    Value value = wanted.values.front();
    Operation *cause = flow.get(value).cause ? flow.get(value).cause : value.getDefiningOp();
    auto say = [&](InFlightDiagnostic diagnostic, llvm::StringRef end) {
      diagnostic << "node '" << dfg::getNodeName(cause)
                 << "' depends on examples of other replicas, and with staleness, backup workers or asynchronous "
                    "servers a replica does not wait for them: "
                 << end;
    };
    if (applied->strategy->graph_config().coupling() == strategies::Strategy::GraphConfig::WHOLE) {
      say(cause->emitError(), "coupling=whole cannot be; take coupling=replica, or a synchronous strategy");
      return failure();
    }
    say(cause->emitRemark(), "each replica uses its own share's (coupling=replica)");
    setOwnValues(changed);
    return success();
  }

  void setOwnValues(bool &changed) {
    getOperation()->setAttr(dist::kCouplingAttr, StringAttr::get(&getContext(), "replica"));
    changed = true;
  }

  /// Where replicas meet in a step besides its gradients, and why.
  void remark(dfg::GraphOp graph) {
    constexpr size_t kShown = 3;
    // Each node once, whatever of it is reduced.
    llvm::SmallSetVector<StringRef, 8> reduced, gathered;
    for (Operation &op : graph.getBody().front()) {
      if (auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op); reduce && reduce.getCoupling()) {
        for (auto name : reduce.getVariables().getAsRange<StringAttr>())
          reduced.insert(name.getValue());
      } else if (auto gather = llvm::dyn_cast<dist::AllGatherOp>(op)) {
        gathered.insert(gather.getName());
      }
    }
    // Sizes of the whole batch are known without the others.
    if (reduced.empty() && gathered.empty())
      return;
    InFlightDiagnostic diagnostic = graph.emitRemark() << "values of the step depend on other replicas' examples: ";
    auto say = [&](StringRef what, ArrayRef<StringRef> names) {
      diagnostic << what << (names.size() == 1 ? " is" : " are");
      listNames(*diagnostic.getUnderlyingDiagnostic(), names, kShown);
    };
    if (!reduced.empty())
      say("all-reduced", reduced.getArrayRef());
    if (!gathered.empty())
      say(reduced.empty() ? "gathered" : ", gathered", gathered.getArrayRef());
    diagnostic << "; with coupling=replica in the strategy each replica uses its own share's instead";
  }

  static LogicalResult refuseDecision(Location location, StringRef name, const BatchFlow &flow) {
    return emitError(location)
           << "'" << name << "' is decided by a number that may be the size of the batch, which the graph fixes to the "
           << flow.getFixedBatch()
           << " rows of each replica: in a graph of all replicas' rows it may go the other way; leave the "
              "placeholders' first size open (None), decide by another number, or say coupling=replica in the strategy";
  }

  /// Of a batch that the graph fixes: conditions and loops that were decided by a number that may be its size. A loop
  /// over all elements along an axis of rows that is not the batch's has as many iterations of any batch.
  static LogicalResult checkDecisions(dfg::GraphOp graph, const BatchFlow &flow) {
    auto decisions = graph->getAttrOfType<DictionaryAttr>(dfg::kDecidedByRowsAttr);
    if (!decisions || !flow.getFixedBatch())
      return success();
    llvm::StringMap<Operation *> nodes;
    for (Operation &op : graph.getBody().front())
      nodes[dfg::getNodeName(&op)] = &op;
    auto isOther = [&](StringRef tensor, int64_t axis) {
      Operation *node = nodes.lookup(tensor.split(':').first);
      Value value = node ? getTensor(node, tensor) : Value();
      return value && flow.get(value).kind == Flow::Sharded && flow.get(value).batch.axis != axis;
    };
    for (NamedAttribute decision : decisions) {
      auto reads = llvm::cast<ArrayAttr>(decision.getValue());
      bool isLoopOverOthers = false;
      for (size_t i = 0; i + 1 < reads.size(); i += 2)
        isLoopOverOthers |=
            isOther(llvm::cast<StringAttr>(reads[i]).getValue(), llvm::cast<IntegerAttr>(reads[i + 1]).getInt());
      if (isLoopOverOthers)
        continue;
      return refuseDecision(graph.getLoc(), decision.getName().getValue(), flow);
    }
    return success();
  }

  /// Of a batch that the graph fixes: numbers that may be its size stay as they are. Beside what was made the whole
  /// batch's that is refused: the sample is larger than the number says.
  static LogicalResult checkSizes(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step) {
    llvm::SmallSetVector<StringRef, 8> numbers;
    SmallVector<Value> fetched;
    forEachFetch(graph, [&](Operation *, Value value) { fetched.push_back(value); });
    llvm::DenseSet<Operation *> ofFetches = Coupler::findNeeded(fetched);
    auto isNeeded = [&](Operation *op) { return step.contains(op) || ofFetches.contains(op); };
    if (flow.getFixedBatch())
      if (Operation *decided = findFixedDecision(graph, flow.getFixedBatch(), isNeeded))
        return refuseDecision(decided->getLoc(), dfg::getNodeName(decided), flow);
    for (Operation *draw : flow.findUnseenDraws(graph.getBody().front()))
      if (isNeeded(draw))
        return draw->emitError()
               << "node '" << dfg::getNodeName(draw)
               << "' draws as many rows of random numbers as the batch has, which the graph fixes to the "
               << flow.getFixedBatch()
               << " rows of each replica, and nothing shows whether it draws them for the examples: for those of all "
                  "replicas there are more; leave the placeholders' first size open (None) and take it of tf.shape, "
                  "give the graph's number as --batch, or say coupling=replica in the strategy";
    for (Operation &op : graph.getBody().front()) {
      if (isNeeded(&op) && flow.findDecision(&op))
        return refuseDecision(op.getLoc(), dfg::getNodeName(&op), flow);
      if (isNeeded(&op) && flow.mayCountRows(&op))
        return op.emitError()
               << "node '" << dfg::getNodeName(&op) << "' "
               << (llvm::isa<dfg::SumOp>(op) ? "adds up copies whose number"
                                             : "combines a mean over the batch with a number that")
               << " may be the batch's size, which the graph fixes to the " << flow.getFixedBatch()
               << " rows of each replica: of all replicas' rows there are more; leave the placeholders' "
                  "first size open (None) and take it of tf.shape, or say coupling=replica in the strategy";
      if (!step.contains(&op))
        continue;
      if (Operation *number = flow.findSampleSize(&op))
        return op.emitError()
               << "node '" << dfg::getNodeName(&op) << "' combines the number '" << dfg::getNodeName(number)
               << "' with a mean or sum over the batch, which the graph fixes to the " << flow.getFixedBatch()
               << " rows of each replica: it may be the size of the sample, which all replicas' rows are; "
                  "leave the placeholders' first size open (None) and take it of tf.shape, or say "
                  "coupling=replica in the strategy";
      if (Operation *number = flow.findFixedSize(&op))
        numbers.insert(dfg::getNodeName(number));
    }
    if (numbers.empty())
      return success();
    InFlightDiagnostic warning =
        graph.emitWarning() << "the graph fixes its batch to the " << flow.getFixedBatch()
                            << " rows of each replica, and nothing shows whether what it computes with that number "
                               "counts examples: it is left as it is at";
    listNames(*warning.getUnderlyingDiagnostic(), numbers.getArrayRef());
    warning << "; where it does, leave the placeholders' first size open (None) and take it of tf.shape";
    return success();
  }

  std::optional<Serving> serving; // servers in the replicas' process, on their own: replicas are not in step
};

} // namespace
} // namespace distc
