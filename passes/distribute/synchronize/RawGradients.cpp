//===- RawGradients.cpp - What must be reduced before updates ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/RawGradients.h"
#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/flow/DescribeUnproven.h"
#include "passes/distribute/flow/OperandRoles.h"
#include "passes/distribute/synchronize/BehindUpdates.h"
#include "passes/distribute/synchronize/FunctionUpdates.h"
#include "passes/distribute/synchronize/MinimumCut.h"
#include "passes/distribute/synchronize/SparseGradients.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include <deque>

using namespace mlir;

namespace distc {
namespace {

bool addsTerms(Operation *op) {
  return op->hasTrait<dfg::Adds>() || op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::AddNOp, dfg::SubOp>(op);
}

class Walk {
public:
  Walk(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step, const SyncPolicies &policies,
       UpdatesOf which)
      : graph(graph), flow(flow), step(step), policies(policies), which(which),
        accumulateSteps(which == UpdatesOf::EachBatch ? 1 : policies.accumulateSteps),
        functions(graph->getParentOfType<ModuleOp>()) {}

  LogicalResult run() {
    findCoupled();
    findLoss();
    if (accumulateSteps > 1 || flow.isEstimated())
      findForward();
    SmallVector<Operation *> entries, others;
    for (Operation &op : graph.getBody().front()) {
      if (failed(checkUnknownUpdate(&op)))
        return failure();
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
      if (!update || op.hasAttr(dist::kEachBatchAttr) != (which == UpdatesOf::EachBatch))
        continue;
      llvm::StringRef variable = getUpdatedVariable(&op);
      // Statistics of a replica that waits for no other are its own.
      if (policies.hasAsync && !policies.hasEntry(variable) && !policies.get(variable).place)
        continue;
      found.updates.push_back(&op);
      (policies.hasEntry(variable) ? entries : others).push_back(&op);
    }
    // Before the walk: it ends at their rows, whichever update it comes from.
    const SmallVector<Operation *> entriesFirst = llvm::to_vector(llvm::concat<Operation *>(entries, others));
    for (Operation *op : entriesFirst)
      if (failed(findSparse(llvm::cast<dfg::UpdateInterface>(op))))
        return failure();
    if (failed(findAddedGradients(entriesFirst)))
      return failure();
    findGradients();
    for (ArrayRef<Operation *> updates : {ArrayRef(entries), ArrayRef(others)}) {
      for (Operation *op : updates)
        if (failed(start(op)))
          return failure();
      if (failed(drain()))
        return failure();
    }
    if (failed(moveForward()) || failed(findBatchReductions()))
      return failure();
    return makeFetchesWhole();
  }

  RawGradients found;
  /// Where it is not null: takes what is refused.
  SmallVector<Obstacle> *obstacles = nullptr;

private:
  struct Item {
    Value value;
    Operation *update;
    /// Where it came from may work on the rows of a sparse gradient: of shapes nothing is asked.
    bool ofRows = false;
  };

  /// Whether what is wrong at `op` matters: a step runs it.
  bool isInStep(Operation *op) const { return !step.isKnown() || step.contains(op); }

  static bool isInteger(Value value) { return getElementTypeOrSelf(value.getType()).isInteger(); }

  /// Whether what reaches an update is one batch's of one replica (servers synchronize that, too), sum or mean alike.
  bool isAlone() const { return policies.replicas == 1 && accumulateSteps == 1; }

  /// Whether replicas give gradients to servers, and have nothing that these make of them when they do.
  bool pushesGradients() const { return policies.serves || policies.hasSync || policies.hasAsync; }

  bool isReplicated(Value value) const {
    const Flow &at = flow.get(value);
    return at.kind == Flow::Replicated;
  }

  /// What is computed from other replicas' examples: behind the collectives that couple replicas, or that an update at
  /// each batch needs.
  void findCoupled() {
    for (Operation &op : graph.getBody().front()) {
      if (llvm::isa<dist::AllReduceOp, dist::AllGatherOp, dist::AllGatherSlicesOp>(op) ||
          llvm::any_of(op.getOperands(), [&](Value operand) { return coupled.contains(operand); }))
        coupled.insert(op.result_begin(), op.result_end());
    }
  }

  void findLoss() {
    loss = getLoss(graph);
    if (loss)
      scaleOfLoss = flow.get(loss).scale;
  }

  /// What the loss is computed from, and the loss.
  void findForward() {
    if (!loss)
      return;
    SmallVector<Value> work = {loss};
    while (!work.empty())
      if (Value value = work.pop_back_val(); ofForward.insert(value).second)
        if (Operation *op = value.getDefiningOp())
          llvm::append_range(work, op->getOperands());
  }

  bool isOfBatch(Value value) const {
    return !dfg::isHandle(value.getType()) && (flow.get(value).kind != Flow::Replicated || coupled.contains(value));
  }

  bool isOfRows(Value value) const { return flow.get(value).kind == Flow::Sharded || flow.hasBatchSize(value); }

  /// Of several losses (those of replicas that use their own statistics, or of several batches) the average of their
  /// gradients is wanted, and a function of gradients (clipping) is one of the average. A gradient is computed
  /// backwards from what the loss was computed from; what follows sees gradients alone. So gradients are the fewest
  /// values that all comes through which updates see of a batch, and of as few those nearest to the loss: a minimum
  /// cut. What replicas have parts of, and couple, is no gradient before it is whole.
  void findGradients() {
    if (ofForward.empty())
      return;
    llvm::DenseSet<Value> sources, sinks;
    for (Operation *update : found.updates)
      sinks.insert(update->operand_begin(), update->operand_end());
    const llvm::DenseSet<Value> parts = findCoupledParts();
    MinimumCut graphOfValues;
    llvm::MapVector<Value, unsigned> vertices;
    for (Operation &op : graph.getBody().front())
      for (Value value : op.getResults()) {
        if (!isOfBatch(value) || ofForward.contains(value) || found.contains(value))
          continue;
        const unsigned vertex =
            graphOfValues.addVertex(/*canCut=*/!isOfRows(value) && (!parts.contains(value) || sinks.contains(value)));
        vertices[value] = vertex;
        bool hasOther = false, isSource = false;
        for (Value operand : op.getOperands())
          if (auto known = vertices.find(operand); known != vertices.end()) {
            graphOfValues.addEdge(known->second, vertex);
            hasOther = true;
          } else if (!dfg::isHandle(operand.getType()) && isOfBatch(operand)) {
            hasOther = true;
            isSource |= !found.contains(operand);
          }
        if (isSource || !hasOther) {
          graphOfValues.addSource(vertex);
          sources.insert(value);
        }
      }
    for (Operation *update : found.updates)
      for (Value operand : update->getOperands())
        // Rows that an update is given are no gradient of the batch; what is wrong with them is said where they are
        // met.
        if (auto known = vertices.find(operand); known != vertices.end() && !isOfRows(operand))
          graphOfValues.addSink(known->second);
    llvm::DenseSet<unsigned> cut = graphOfValues.find();
    for (auto [value, vertex] : vertices)
      if (cut.contains(vertex))
        gradientsOfOneLoss.insert(value);
    for (auto [value, vertex] : vertices)
      if (!cut.contains(vertex) &&
          (sources.contains(value) || llvm::any_of(value.getDefiningOp()->getOperands(),
                                                   [&](Value operand) { return beforeGradients.contains(operand); })))
        beforeGradients.insert(value);
  }

  /// Values without rows of which a collective that couples replicas makes whole ones.
  llvm::DenseSet<Value> findCoupledParts() {
    llvm::DenseSet<Value> parts;
    if (!coupled.empty())
      for (Operation &op : llvm::reverse(graph.getBody().front()))
        for (Value value : op.getResults())
          if (!isOfRows(value) && llvm::any_of(value.getUsers(), [&](Operation *user) {
                return isCoupling(user) ||
                       llvm::any_of(user->getResults(), [&](Value result) { return parts.contains(result); });
              }))
            parts.insert(value);
    return parts;
  }

  /// Whether a local value is of one loss alone, so that of several its average is wanted.
  bool isOfOneLoss(Value value) const { return gradientsOfOneLoss.contains(value) || ofForward.contains(value); }

  /// The gradients of several batches' losses, or of those that replicas have of their own shares, that are neither
  /// sums over the batch nor means of it (a quotient of sums, a norm of a mean) are averaged, as their losses are. None
  /// for the loss that is a sum over the batch and something else (a penalty): of several batches there would be
  /// several of that, or less than all of the sum. `own`: the flow of one replica.
  std::optional<int> averageBatches(llvm::StringRef variable, Value value, const BatchFlow &own) {
    if (loss && addsSum(loss, own))
      return std::nullopt;
    if (!saidMean) {
      InFlightDiagnostic remark = value.getDefiningOp()->emitRemark()
                                  << "the gradient of variable '" << variable << "' is ";
      if (accumulateSteps > 1)
        remark << "accumulated over " << accumulateSteps << " batches";
      else
        remark << "made of those of " << policies.replicas << " replicas' own shares";
      remark << ", whose losses are not seen to be sums or means over the batch: it is the mean of theirs, as are "
                "others like it";
    }
    saidMean = true;
    return 0;
  }

  /// Whether a sum over the batch is among the terms of a value.
  static bool addsSum(Value value, const BatchFlow &own, int depth = 12) {
    const Flow &at = own.get(value);
    if (at.kind != Flow::Sharded && at.scale == 1)
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || depth == 0)
      return false;
    auto isTerm = [&](Value operand) { return addsSum(operand, own, depth - 1); };
    if (addsTerms(op) || isCoupling(op))
      return llvm::any_of(op->getOperands(), isTerm);
    // A multiple of it, by the same number in each batch.
    auto isSame = [&](Value operand) {
      return own.get(operand).kind == Flow::Replicated && own.get(operand).scale == 0;
    };
    return llvm::isa<dfg::MulOp, dfg::RealDivOp, dfg::NegOp>(op) && llvm::any_of(op->getOperands(), isTerm) &&
           llvm::count_if(op->getOperands(), isSame) + 1 == op->getNumOperands();
  }

  /// How the gradients of several batches become one: as they would in one replica alone, whatever it is that this one
  /// has of others.
  LogicalResult findBatchReductions() {
    if (accumulateSteps == 1 || obstacles)
      return success();
    for (auto &[value, gradient] : found.values)
      gradient.batches = gradient.reduction;
    if (failed(expectLinear()))
      return failure();
    if (llvm::none_of(graph.getBody().front(), [](Operation &op) { return isCoupling(&op); }))
      return success();
    llvm::FailureOr<BatchFlow> own = BatchFlow::computeOfOneReplica(graph);
    if (failed(own))
      return failure();
    for (auto &[value, gradient] : found.values) {
      if (policies.get(gradient.variable).reduction)
        continue;
      const Flow &at = own->get(value);
      // Rows are as many as the examples: those of a sum have no factor, those of a mean are divided by the batch's
      // size.
      std::optional<int> scale = at.zero ? std::optional<int>(gradient.indices ? -1 : 0) : at.scale;
      if (scale && gradient.indices)
        ++*scale;
      bool isKnown =
          gradient.indices ? at.kind == Flow::Sharded : at.kind == Flow::Partial || at.kind == Flow::Replicated;
      // Of a gradient, which is linear in the loss, as of the loss.
      if (!isKnown || (scale != 0 && scale != 1)) {
        FailureOr<std::optional<int>> written = getWrittenScale();
        if (failed(written))
          return failure();
        const bool isKnownLoss = (*written == 0 || *written == 1) && !ofForward.contains(value);
        // What is known to grow otherwise than the loss does is linear in no gradient of it: a sum of the squares that
        // an optimizer makes of a table's rows.
        if (isKnownLoss && isKnown && scale && !at.zero)
          return value.getDefiningOp()->emitError()
                 << "the gradient of variable '" << gradient.variable << "' is accumulated over " << accumulateSteps
                 << " batches, but node '" << dfg::getNodeName(value.getDefiningOp())
                 << "' adds up over one of them what is no linear function of its gradients; take accumulate_steps=1, "
                    "or coupling=replica";
        scale = isKnownLoss ? *written : averageBatches(gradient.variable, value, *own);
        if (!scale)
          return value.getDefiningOp()->emitError()
                 << "the gradient of variable '" << gradient.variable << "' is accumulated over " << accumulateSteps
                 << " batches, but whether those of node '" << dfg::getNodeName(value.getDefiningOp())
                 << "', which depends on other replicas' examples, are parts of a sum or of a mean is not known; take "
                    "accumulate_steps=1, or coupling=replica";
      }
      gradient.batches = *scale == 0 ? dist::Reduction::Mean : dist::Reduction::Sum;
    }
    return success();
  }

  /// Gradients of several batches are added up, and what is no linear function of those of one cannot be: a gradient
  /// that is computed with what another one makes of its variable (two networks in turn, written as functions), and one
  /// that is clipped by a norm that replicas make whole because rows meet it. That sums over the batch are gradients,
  /// and parts of others (behind a batch normalization), is another matter: those are linear in them.
  LogicalResult expectLinear() {
    /// Which gradient, or sum of all replicas' behind the loss, a value is made of, and whether linearly.
    struct Made {
      Value of;
      bool isLinear;
    };
    llvm::DenseMap<Value, Made> madeOf;
    auto isBehindLoss = [&](Value whole) {
      auto result = llvm::dyn_cast<OpResult>(whole);
      if (!loss || !result || ofForward.contains(whole) ||
          !llvm::isa<dist::AllReduceOp, dist::AllGatherOp>(result.getOwner()))
        return false;
      // What forward has, too, may be made whole for backward alone, and so may a number of examples.
      bool isSame = true;
      for (Value part = result.getOwner()->getOperand(result.getResultNumber());
           !isSame || !ofForward.contains(part);) {
        Operation *op = part.getDefiningOp();
        SmallVector<Value> linear, others;
        if (op)
          sortOperands(op, linear, others);
        if (llvm::isa_and_nonnull<dfg::CastOp>(op) && isInteger(op->getOperand(0)))
          return false;
        if (linear.size() != 1)
          return true;
        isSame &= op->hasTrait<dfg::Forwards>();
        part = linear.front();
      }
      return false;
    };
    auto get = [&](Value value) {
      Made made = madeOf.lookup_or(value, Made{{}, true});
      const bool isSeed = found.values.contains(value) || isBehindLoss(value);
      return isSeed && made.isLinear ? Made{value, true} : made;
    };
    for (Operation &op : graph.getBody().front()) {
      SmallVector<Value> linear, others;
      sortOperands(&op, linear, others);
      Made made{{}, true};
      unsigned factors = 0;
      for (Value operand : op.getOperands())
        if (Made of = get(operand); of.of) {
          made = {of.of, made.isLinear && of.isLinear && llvm::is_contained(linear, operand)};
          ++factors;
        }
      if (!made.of)
        continue;
      // What couples replicas adds, joins and cuts.
      if (llvm::isa<dist::DISTDialect>(op.getDialect())) {
        for (OpResult result : op.getResults())
          if (Made of = get(op.getOperand(std::min(result.getResultNumber(), op.getNumOperands() - 1))); of.of)
            madeOf.insert({result, of});
        continue;
      }
      if (getLinearity(&op) == dfg::Linearity::Each)
        made.isLinear &= factors == 1;
      else // and of what is no gradient there is nothing added
        made.isLinear &= llvm::all_of(linear, [&](Value operand) {
          return get(operand).of || flow.get(operand).zero || (isOfBatch(operand) && !ofForward.contains(operand));
        });
      for (Value result : op.getResults()) {
        madeOf.insert({result, made});
        auto gradient = found.values.find(result);
        if (made.isLinear || gradient == found.values.end())
          continue;
        InFlightDiagnostic error = op.emitError() << "the gradient of variable '" << gradient->second.variable
                                                  << "' is accumulated over " << accumulateSteps
                                                  << " batches, but node '" << dfg::getNodeName(&op) << "' is made of ";
        if (auto other = found.values.find(made.of); other != found.values.end())
          return error << "the gradient of variable '" << other->second.variable
                       << "' of one of them; take accumulate_steps=1";
        return error << "what all replicas have of one of them behind the loss (node '"
                     << dfg::getNodeName(made.of.getDefiningOp())
                     << "'), and not linearly; take accumulate_steps=1, or coupling=replica";
      }
    }
    return success();
  }

  /// A fetch that is a function of sums over the batch (the root of a mean) is computed from the whole batch's, like
  /// what leads to an update. Replicas that servers on their own serve have only values of their own, of whose sums of
  /// means the mean is as good.
  LogicalResult makeFetchesWhole() {
    if (policies.replicas == 1 || which == UpdatesOf::EachBatch || !computesFetchesOfReduced(flow, policies))
      return success();
    llvm::StringSet<> fetched;
    for (const std::string &tensor : getFetchedTensors(graph))
      fetched.insert(tensor);
    llvm::DenseSet<Value> functions = findFunctionsOfSums(graph, flow);
    for (Operation &op : graph.getBody().front())
      for (OpResult result : op.getResults())
        if (functions.contains(result) && !seesRows(result) && !(policies.serves && isSumOfMeans(result, flow)) &&
            fetched.contains((dfg::getNodeName(&op) + ":" + llvm::Twine(result.getResultNumber())).str()))
          queue.push_back({result, nullptr});
    return drain();
  }

  LogicalResult findSparse(dfg::UpdateInterface update) {
    if (update.getIndicesOperand() < 0 ||
        llvm::all_of(update->getOperands(), [&](Value operand) { return isReplicated(operand); }))
      return success();
    llvm::StringRef variable = getUpdatedVariable(update);
    Value indices = update->getOperand(update.getIndicesOperand());
    Value values = update->getOperand(update.getGradientOperand());
    const SyncPolicy &policy = policies.get(variable);
    if (policy.async && !servesItself(policy)) {
      take(indices, values, policy.reduction.value_or(dist::Reduction::Sum), variable);
      found.indexUses[{update, indices}] = values;
      return success();
    }
    // What is dense on the way, or the same everywhere, is found by the walk.
    std::optional<SparseGradient> gradient =
        findSparseGradient(update, flow, /*throughFunctions=*/true, [&](Operation *op) { return meetsOneLoss(op); });
    return gradient ? takeSparse(*gradient, update) : success();
  }

  /// Whether rows meet here what the loss of one batch, or of a replica's own share, is computed from (the sum of its
  /// weights, which divides them): of several losses' rows, each would meet that of all.
  bool meetsOneLoss(Operation *op) const {
    return (accumulateSteps > 1 || flow.isEstimated()) && llvm::any_of(op->getOperands(), [&](Value operand) {
             return ofForward.contains(operand) && isOfBatch(operand) && !isOfRows(operand);
           });
  }

  /// Rows that an optimizer adds up itself, of distinct numbers or of all of a table's, and goes on with: each replica
  /// has rows of its own, of which no sum or mean is anything. What is no function of rows (a sum that is linear in
  /// them) is found by the walk.
  LogicalResult findAddedGradients(ArrayRef<Operation *> updates) {
    // Nearest first, and what a single number (a norm over several tables' rows) is made of last: rows are those of the
    // table that is updated by them.
    llvm::MapVector<Operation *, Operation *> updateOf;
    SmallVector<std::pair<Operation *, Operation *>> ofNumbers;
    auto reach = [&](Operation *op, Operation *update) {
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (!def || found.contains(operand) || ofForward.contains(operand))
          continue;
        auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
        if (type && type.hasStaticShape() && type.getNumElements() == 1)
          ofNumbers.push_back({def, update});
        else
          updateOf.insert({def, update});
      }
    };
    for (Operation *update : updates)
      if (const SyncPolicy &policy = policies.get(getUpdatedVariable(update)); !policy.async || servesItself(policy))
        updateOf.insert({update, update});
    for (size_t at = 0, number = 0; at < updateOf.size() || number < ofNumbers.size();) {
      if (at < updateOf.size()) {
        auto [op, update] = *std::next(updateOf.begin(), at++);
        reach(op, update);
      } else {
        updateOf.insert(ofNumbers[number++]);
      }
    }
    llvm::DenseMap<Value, Operation *> owners;
    for (auto [op, update] : updateOf) {
      std::optional<SparseGradient> gradient =
          findAddedRows(op, flow, [&](Operation *node) { return meetsOneLoss(node); });
      if (!gradient)
        continue;
      // What has rows of the batch still is none of a table.
      if (flow.hasBatchSize(op->getResult(0)))
        continue;
      Operation *owner = owners.insert({gradient->values, update}).first->second;
      const Flow &at = flow.get(op->getResult(0));
      if (at.kind == Flow::Replicated || (at.kind == Flow::Partial && (at.zero || at.scale == 0 || at.scale == 1)))
        continue;
      if (failed(takeSparse(*gradient, llvm::cast<dfg::UpdateInterface>(owner), op)))
        return failure();
    }
    return success();
  }

  /// `adder`: the node that adds up the rows, where it is not the update.
  LogicalResult takeSparse(SparseGradient &gradient, dfg::UpdateInterface update, Operation *adder = nullptr) {
    const llvm::StringRef variable = getOwner(update);
    // Each replica has rows of other indices: joined, none is outvoted.
    if (policies.get(variable).aggregator && policies.replicas > 1)
      return update->emitError()
             << "the gradient of variable '" << variable
             << "' is sparse, rows of which each replica has others, and its aggregator, "
             << policies.get(variable).aggregator
             << ", has no rule for these; let a strategy file say aggregator AUTO for this "
                "variable, or make its gradient dense (a matmul with one_hot, in place of a gather)";
    std::optional<int> scale = flow.get(gradient.values).scale;
    if (flow.get(gradient.values).zero || isAlone())
      scale = 0;
    // Of one replica's batches, and of replicas' own shares, as of their losses.
    if (scale != 0 && scale != -1 && (flow.isEstimated() || (accumulateSteps > 1 && policies.replicas == 1)))
      if ((scale =
               scaleOfLoss == 0 || scaleOfLoss == 1 ? scaleOfLoss : averageBatches(variable, gradient.values, flow)))
        --*scale;
    // The whole batch's rows are the replicas' rows, divided by N where each was divided by its share of the batch.
    if (!scale || (*scale != 0 && *scale != -1))
      return refuse({gradient.values, update},
                    "depends on the batch's size in a way that neither a sum nor a mean over replicas makes whole");
    // Rows that are written as they are, are no sum.
    const bool adds = adder || !update->hasTrait<dfg::Overwrites>();
    if (*scale == 0 && adds && failed(checkFixedSum({gradient.values, update})))
      return failure();
    dist::Reduction reduction = *scale == 0 ? dist::Reduction::Sum : dist::Reduction::Mean;
    FailureOr<dist::Reduction> wanted = getWanted({gradient.values, update}, variable, reduction);
    if (failed(wanted))
      return failure();
    if (policies.get(variable).place) {
      wholeRows.insert({gradient.values, {*wanted, variable, gradient.indices}});
      chooseOwnRows(gradient);
    }
    // Rows are joined with their indices, and replaced where they are used; dist-separate-rows gives each table its
    // own.
    if (auto known = found.values.find(gradient.values);
        known != found.values.end() && known->second.indices != gradient.indices)
      return update->emitError() << "the rows of variable '" << variable << "' are those of variable '"
                                 << known->second.variable << "', by other indices";
    take(gradient.indices, gradient.values, *wanted, variable);
    found.path.insert(gradient.path.begin(), gradient.path.end());
    for (Operation *op : gradient.path)
      found.indexUses[{op, gradient.indices}] = gradient.values;
    found.indexUses[{adder ? adder : update.getOperation(), gradient.indices}] = gradient.values;
    return success();
  }

  /// The variable whose sparse gradient `update` is made of: what that updates, or where the strategy does not name
  /// this (a slot of the optimizer's), a variable that it names and that is updated by it.
  llvm::StringRef getOwner(Operation *update) const {
    const llvm::StringRef own = getUpdatedVariable(update);
    if (policies.hasEntry(own))
      return own;
    llvm::SetVector<Operation *> reached;
    reached.insert(update);
    for (size_t at = 0; at < reached.size(); ++at) {
      Operation *op = reached[at];
      if (llvm::isa<dfg::UpdateInterface>(op)) {
        const llvm::StringRef variable = getUpdatedVariable(op);
        if (policies.hasEntry(variable))
          return variable;
        auto isVariable = [&](Value operand) {
          auto handle = dfg::getVariableHandle(operand);
          return handle && handle.getVariable() == variable;
        };
        for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
          if (llvm::any_of(next->getOperands(), isVariable))
            reached.insert(next);
      }
      // A number (a norm) scales gradients of others.
      for (Value result : op->getResults())
        if (auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
            !type || !type.hasStaticShape() || type.getNumElements() != 1)
          reached.insert(result.getUsers().begin(), result.getUsers().end());
    }
    return own;
  }

  void take(Value indices, Value values, dist::Reduction reduction, llvm::StringRef variable) {
    found.values.insert({values, {reduction, variable, indices}});
    found.indices.insert({indices, values});
    madeOfRows.reset();
  }

  /// An operation without semantics, or a function that a condition or a loop runs, may update a variable: then it must
  /// not depend on a replica's share.
  LogicalResult checkUnknownUpdate(Operation *op) {
    if (!isInStep(op) || llvm::all_of(op->getOperands(), [&](Value operand) { return isReplicated(operand); }))
      return success();
    if (UnknownUpdate kind = getUnknownUpdate(op); kind != UnknownUpdate::None) {
      InFlightDiagnostic error = op->emitError()
                                 << "node '" << dfg::getNodeName(op) << "' updates variable '" << getUpdatedVariable(op)
                                 << "' by operation '" << llvm::cast<dfg::OpaqueOp>(op).getOp()
                                 << "' from a share of the batch: ";
      if (kind == UnknownUpdate::Sparse)
        return error << "distc does not know the operation, so its sparse gradient cannot be synchronized";
      return error << "distc does not know the operation, so it cannot be synchronized";
    }
    Operation *update = functions.find(op);
    if (!update || isAlone())
      return success();
    InFlightDiagnostic error = op->emitError() << "node '" << dfg::getNodeName(op) << "' runs a function whose node '"
                                               << dfg::getNodeName(update)
                                               << "' updates a variable, and is given a share of the batch: ";
    if (llvm::isa<dfg::CallOp>(op))
      return error << "inline calls first (dfg-inline-calls)";
    return error
           << "updates in conditions and loops cannot be synchronized; choose the value that is assigned by tf.where, "
              "and assign it outside";
  }

  LogicalResult start(Operation *op) {
    const SyncPolicy &policy = policies.get(getUpdatedVariable(op));
    for (Value operand : op->getOperands()) {
      if (dfg::isHandle(operand.getType()))
        continue;
      if (!policy.async || servesItself(policy))
        queue.push_back({operand, op});
      else if (!isReplicated(operand) && !found.contains(operand) &&
               failed(refuse({operand, op}, "still carries the batch's axis: it is not a sum or mean over the batch")))
        return failure();
    }
    return success();
  }

  /// Whether what updates a variable without synchronization is a task of the executable, which is given gradients and
  /// computes all that follows. To a server of TensorFlow's own each replica sends what its part of the graph computes.
  static bool servesItself(const SyncPolicy &policy) { return policy.owner != nullptr; }

  /// What a server that updates by one replica's gradient alone is given of it: whatever it is, it is whole.
  bool takesAsItIs(Item item) {
    if (!item.update)
      return false;
    const SyncPolicy &policy = policies.get(getUpdatedVariable(item.update));
    const Flow &at = flow.get(item.value);
    if (!policy.async || at.kind == Flow::Replicated || at.kind == Flow::Sharded || flow.hasBatchSize(item.value) ||
        (servesItself(policy) && hasOpenSizes(item.value)))
      return false;
    dist::Reduction reduction =
        at.kind == Flow::Partial && at.scale == 1 ? dist::Reduction::Sum : dist::Reduction::Mean;
    found.values.insert({item.value, {reduction, getUpdatedVariable(item.update), {}}});
    return true;
  }

  /// Whether sizes of a value are not known: they may be others in each replica.
  bool hasOpenSizes(Value value) const {
    auto sizes = flow.getShapes().getShape(value);
    return sizes && llvm::any_of(*sizes, [](dfg::Dim size) { return !size.isKnown(); });
  }

  LogicalResult drain() {
    while (!queue.empty()) {
      Item item = queue.front();
      queue.pop_front();
      if (visited.insert(item.value).second && failed(visit(item)))
        return failure();
    }
    return success();
  }

  LogicalResult visit(Item item) {
    const Flow &at = flow.get(item.value);
    if (found.contains(item.value))
      return success();
    if (auto rows = wholeRows.find(item.value); rows != wholeRows.end()) {
      take(rows->second.indices, item.value, rows->second.reduction, rows->second.variable);
      return success();
    }
    switch (at.kind) {
    case Flow::Replicated:
      if (accumulateSteps > 1 && coupled.contains(item.value) && !at.zero) {
        // Of rows there may be others in each batch. Without a loss no value is known for a gradient.
        const bool canAdd = loss && !isInteger(item.value) && !isOfRows(item.value) && !hasOpenSizes(item.value);
        const bool isOfOne = isOfOneLoss(item.value) || beforeGradients.contains(item.value);
        if (canAdd && isOfOne && (at.scale == 0 || at.scale == 1))
          return reduce(item, at.scale == 0 ? dist::Reduction::Mean : dist::Reduction::Sum);
        if (Operation *op = item.value.getDefiningOp(); canAdd && !isOfOne && !isCoupling(op)) {
          walkThrough(op, item.update);
          return success();
        }
        return refuse(item, "is one batch's in all replicas, and how it adds up over accumulate_steps batches is not "
                            "known; take accumulate_steps=1, or coupling=replica");
      }
      if (at.scale == 0 && item.update && failed(checkFixedSum(item)))
        return failure();
      // With values of the replicas' own, a size is the share's. What is computed with a size (n - 1) is another
      // number.
      if (at.zero || at.scale == 0 || (!at.scale && ((item.ofRows && isInteger(item.value)) || flow.isEstimated())))
        return success();
      if (at.scale == 1)
        return reduce(item, dist::Reduction::Sum);
      return refuse(item,
                    "depends on the batch's size in a way that neither a sum nor a mean over replicas makes whole");
    case Flow::Sharded:
      // Rows that are made of a sparse gradient's become those of all replicas with it.
      if (walksThroughRows(item))
        return success();
      return refuse(item, "still carries the batch's axis: it is not a sum or mean over the batch");
    case Flow::Partial:
      if (at.zero)
        return success();
      // Of several batches' rows: the sum of one batch's squares is no part of that of all. Servers are given the rows,
      // whatever an optimizer makes of them beside its state.
      if ((accumulateSteps > 1 || pushesGradients()) && isOfSparseRows(item.value)) {
        walkThrough(item.value.getDefiningOp(), item.update);
        return success();
      }
      if (at.scale == 0)
        return item.update && failed(checkFixedSum(item)) ? failure() : reduce(item, dist::Reduction::Mean);
      if (at.scale == 1) {
        // A fetch is left as it is, and refused.
        if (!item.update && flow.getFixedBatch() && !flow.growsNot(item.value))
          return success();
        return failed(checkFixedSum(item)) ? failure() : reduce(item, dist::Reduction::Sum);
      }
      // A norm over rows that were divided by the batch's size: no sum of the replicas' norms, but that of all rows.
      if (isOfSparseRows(item.value)) {
        walkThrough(item.value.getDefiningOp(), item.update);
        return success();
      }
      return refuse(item,
                    "depends on the batch's size in a way that neither a sum nor a mean over replicas makes whole");
    case Flow::Local:
      // What coupled a value that has another form since gives nothing that could be made whole.
      if (Operation *op = item.value.getDefiningOp(); op && isCoupling(op))
        return refuseUnproven(item);
      if (walksThroughRows(item))
        return success();
      // A function of values that can be made whole sees the whole batch's from now on; one of rows cannot.
      if (!flow.isEstimated() && seesRows(item.value))
        return refuseUnproven(item);
      if (isOfOneLoss(item.value)) {
        // A condition on one batch's values: the values are whole.
        if (isAlone() && isInteger(item.value) && !hasOpenSizes(item.value)) {
          walkThrough(item.value.getDefiningOp(), item.update);
          return success();
        }
        if (flow.isEstimated() || policies.replicas == 1)
          return reduceOfOneLoss(item);
        // Beside a penalty, the average is that of the means and the penalty.
        if (isSumOfMeans(item.value, flow)) {
          walkThrough(item.value.getDefiningOp(), item.update);
          return success();
        }
        return refuse(item,
                      "is a function of one batch's values, of which each replica has its share's part, and over "
                      "accumulate_steps batches its average is wanted; take accumulate_steps=1, or coupling=replica");
      }
      walkThrough(item.value.getDefiningOp(), item.update);
      return success();
    }
    return success();
  }

  /// Whether a value is computed from the rows or indices of a sparse gradient by what works on rows.
  bool isMadeOfRows(Value value) {
    if (!madeOfRows) {
      madeOfRows.emplace();
      for (const auto &[indices, values] : found.indices) {
        madeOfRows->insert(indices);
        madeOfRows->insert(values);
      }
      for (const auto &[values, gradient] : wholeRows)
        madeOfRows->insert(values);
      for (Operation &op : graph.getBody().front())
        if (worksOnRows(&op) &&
            llvm::any_of(op.getOperands(), [&](Value operand) { return madeOfRows->contains(operand); }))
          madeOfRows->insert(op.result_begin(), op.result_end());
    }
    return madeOfRows->contains(value);
  }

  /// Goes on from rows that are made of a sparse gradient's.
  bool walksThroughRows(Item item) {
    if (!isMadeOfRows(item.value))
      return false;
    walkThrough(item.value.getDefiningOp(), item.update, /*ofRows=*/true);
    return true;
  }

  /// Whether a local value has the batch's axis, or is computed from what has.
  bool seesRows(Value value) {
    if (flow.hasBatchSize(value))
      return true;
    return llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value operand) {
      const Flow &at = flow.get(operand);
      if (found.contains(operand) || isMadeOfRows(operand))
        return false;
      return at.kind == Flow::Sharded || (at.kind == Flow::Local && flow.hasBatchSize(operand));
    });
  }

  /// Whether a sharded value is made of rows of sparse gradients and their numbers alone, or a partial one sums up such
  /// rows.
  bool isOfSparseRows(Value value) const {
    auto rows = found.values.find(value);
    if (wholeRows.contains(value) || found.indices.contains(value) ||
        (rows != found.values.end() && rows->second.indices))
      return true;
    Operation *op = value.getDefiningOp();
    const bool isSharded = flow.get(value).kind == Flow::Sharded;
    if (!op || (isSharded && !worksOnRows(op)))
      return false;
    bool any = false;
    for (Value operand : op->getOperands()) {
      Flow::Kind kind = flow.get(operand).kind;
      if (kind == Flow::Sharded && !isOfSparseRows(operand))
        return false;
      any |= kind == Flow::Sharded || (kind == Flow::Partial && isOfSparseRows(operand));
    }
    return any;
  }

  void walkThrough(Operation *op, Operation *update, bool ofRows = false) {
    found.path.insert(op);
    for (Value operand : op->getOperands())
      if (!dfg::isHandle(operand.getType()))
        queue.push_back({operand, update, ofRows});
  }

  /// Whether the loss, as its author wrote it, is a sum (1) or a mean (0) over the batch; none where it is neither.
  FailureOr<std::optional<int>> getWrittenScale() {
    if (!writtenScale && loss) {
      FailureOr<BatchFlow> own = BatchFlow::computeOfOneReplica(graph);
      if (failed(own))
        return failure();
      writtenScale = own->get(loss).scale;
    }
    return writtenScale;
  }

  /// What becomes of a value whose parts `proven` makes whole. An aggregator is said of each replica's own gradient, as
  /// of its share's loss. What is computed with other replicas' examples (in front of a batch normalization, of a loss
  /// divided by all weights) is a part of the whole gradient, and no gradient of a share's loss: what is said of the
  /// loss changes it by as much as it changes the loss.
  FailureOr<dist::Reduction> getWanted(Item item, llvm::StringRef variable, dist::Reduction proven) {
    const SyncPolicy &policy = policies.get(variable);
    if ((!policy.reduction && !policy.aggregator) || !coupled.contains(item.value))
      return policy.reduction.value_or(proven);
    FailureOr<std::optional<int>> written = getWrittenScale();
    if (failed(written))
      return failure();
    auto scaleOf = [](dist::Reduction reduction) { return reduction == dist::Reduction::Sum ? 1 : 0; };
    if (*written == 0 || *written == 1) {
      const int said = policy.reduction ? scaleOf(*policy.reduction) : **written;
      const int scale = scaleOf(proven) + said - **written;
      const bool isOwn = scaleOf(proven) == **written;
      if ((scale == 0 || scale == 1) && (isOwn || !policy.aggregator))
        return scale == 1 ? dist::Reduction::Sum : dist::Reduction::Mean;
    } else if (policy.reduction == proven) {
      return proven;
    }
    // No collective more would change it.
    if (!item.update || !isInStep(item.update) || obstacles)
      return proven;
    return item.update->emitError()
           << "the aggregator of variable '" << variable << "' takes each replica's own gradient, but node '"
           << dfg::getNodeName(item.value.getDefiningOp())
           << "' gives a part of that of the whole batch, computed with other replicas' examples; take "
              "aggregator=auto, or coupling=replica";
  }

  LogicalResult reduce(Item item, dist::Reduction reduction) {
    // What no update is walked to from is named by itself.
    llvm::StringRef variable =
        item.update ? getUpdatedVariable(item.update) : dfg::getNodeName(item.value.getDefiningOp());
    FailureOr<dist::Reduction> wanted = getWanted(item, variable, reduction);
    if (failed(wanted))
      return failure();
    found.values.insert({item.value, {*wanted, variable, {}}});
    reducedFor.insert({item.value, item.update});
    return success();
  }

  LogicalResult reduceOfOneLoss(Item item) {
    if (isInteger(item.value) || hasOpenSizes(item.value))
      return refuse(item,
                    "is of rows that the examples choose, and each replica's have others, of which no sum or mean "
                    "is anything; take coupling=whole, and servers that keep replicas in step");
    std::optional<int> scale = flow.get(item.value).scale;
    if (scale != 0 && scale != 1)
      scale = isAlone() ? 0 : scaleOfLoss;
    if (scale != 0 && scale != 1 && item.update && policies.get(getUpdatedVariable(item.update)).reduction)
      return reduce(item, dist::Reduction::Mean); // or what the strategy says
    if (scale != 0 && scale != 1 && (policies.replicas == 1 || flow.isEstimated()) && item.update)
      scale = averageBatches(getUpdatedVariable(item.update), item.value, flow);
    if (scale != 0 && scale != 1)
      return refuse(item,
                    "is of one batch or of one replica's share, and the loss is a sum over the batch and something "
                    "else, so that those of several are neither parts of a sum nor of a mean; take a mean over "
                    "the batch, or name an aggregator, mean or sum, in the strategy");
    return reduce(item, *scale == 1 ? dist::Reduction::Sum : dist::Reduction::Mean);
  }

  /// Moves reductions towards the loss, over nodes that are linear in partial values, until
  /// - no reduced value is made of another one: a gradient and a linear function of it are one reduction, and what is
  ///   reduced in place has no other reader;
  /// - none that is accumulated over several batches is computed behind an update, which runs at the last of them, and
  ///   none of those that servers are given.
  LogicalResult moveForward() {
    const bool accumulates = accumulateSteps > 1;
    llvm::DenseSet<Operation *> behind;
    if (accumulates || pushesGradients())
      behind = findBehindUpdates(graph, step).byState;
    for (bool moved = true; moved;) {
      moved = false;
      llvm::DenseSet<Operation *> ofReduced;
      for (Operation &op : graph.getBody().front())
        if (isLinearInPartials(&op) && llvm::any_of(op.getOperands(), [&](Value operand) {
              return found.contains(operand) || ofReduced.contains(operand.getDefiningOp());
            }))
          ofReduced.insert(&op);
      SmallVector<Value> values;
      for (const auto &[value, gradient] : found.values)
        if (Operation *op = value.getDefiningOp();
            reducedFor.contains(value) && (ofReduced.contains(op) || (behind.contains(op) && isLinearInPartials(op))))
          values.push_back(value);
      for (Value value : values) {
        found.values.erase(value);
        walkThrough(value.getDefiningOp(), reducedFor.lookup(value));
        moved = true;
      }
      // What was seen on the way to a value that moved is looked at again.
      visited.clear();
      if (failed(drain()))
        return failure();
    }
    if (accumulates)
      for (const auto &[value, gradient] : found.values)
        for (Value part : {value, gradient.indices})
          if (part && behind.contains(part.getDefiningOp()))
            return part.getDefiningOp()->emitError()
                   << "the gradient of variable '" << gradient.variable << "' is accumulated over " << accumulateSteps
                   << " batches, but node '" << dfg::getNodeName(part.getDefiningOp())
                   << "', which it is made of, waits for an update of the same step, which runs once for all of them; "
                      "take accumulate_steps=1, or update behind the gradients";
    return success();
  }

  /// Whether `op` makes a partial value of partial ones and of what is the same in every replica.
  bool isLinearInPartials(Operation *op) const {
    return op->getNumResults() > 0 && !llvm::isa<dfg::UpdateInterface>(op) &&
           llvm::all_of(op->getResults(), [&](Value result) { return flow.get(result).kind == Flow::Partial; }) &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             Flow::Kind kind = flow.get(operand).kind;
             return kind == Flow::Partial ||
                    (kind == Flow::Replicated && (accumulateSteps == 1 || !coupled.contains(operand)));
           });
  }

  bool isObstacle(Item item) {
    if (obstacles)
      obstacles->push_back({item.value, item.update});
    return obstacles != nullptr;
  }

  LogicalResult refuse(Item item, llvm::StringRef why) {
    if (!isInStep(item.update) || takesAsItIs(item) || isObstacle(item))
      return success();
    Operation *op = item.value.getDefiningOp();
    InFlightDiagnostic error = item.update->emitError()
                               << "variable '" << getUpdatedVariable(item.update)
                               << "' cannot be synchronized: the value of node '" << dfg::getNodeName(op) << "' ("
                               << flow.explain(item.value) << "), which its update '" << dfg::getNodeName(item.update)
                               << "' depends on, " << why;
    error.attachNote(op->getLoc()) << "the value is made here by '" << op->getName() << "'";
    return error;
  }

  /// Where the graph fixes its batch, a number beside a sum over it may count the rows without being seen to do so.
  LogicalResult checkFixedSum(Item item) {
    if (!flow.getFixedBatch() || isAlone() || flow.isEstimated() || flow.growsNot(item.value) ||
        policies.get(getUpdatedVariable(item.update)).reduction)
      return success();
    return refuse(item, ("is a sum over the batch, which the graph fixes to the " + llvm::Twine(flow.getFixedBatch()) +
                         " rows of each replica: of such a sum no number is seen to be that of its terms; leave the "
                         "placeholders' first size open (None), divide the sum by the number of rows, or name an "
                         "aggregator, mean or sum, in the strategy")
                            .str());
  }

  LogicalResult refuseUnproven(Item item) {
    if (!isInStep(item.update) || takesAsItIs(item) || isObstacle(item))
      return success();
    Operation *cause = flow.get(item.value).cause;
    InFlightDiagnostic error = cause->emitError()
                               << "variable '" << getUpdatedVariable(item.update)
                               << "' cannot be synchronized: its update '" << dfg::getNodeName(item.update)
                               << "' depends on node '" << dfg::getNodeName(cause) << "' (" << cause->getName() << "), "
                               << describeUnproven(cause, flow)
                               << "; with coupling=replica in the strategy each replica uses its own";
    error.attachNote(item.update->getLoc()) << "the update is here";
    return error;
  }

  dfg::GraphOp graph;
  const BatchFlow &flow;
  const strategies::StepNodes &step;
  const SyncPolicies &policies;
  const UpdatesOf which;
  /// Batches whose gradients make one of the updates.
  const int64_t accumulateSteps;
  FunctionUpdates functions;
  /// What is computed from other replicas' examples.
  llvm::DenseSet<Value> coupled;
  Value loss;                      // null where there is none
  std::optional<int> writtenScale; // getWrittenScale
  bool saidMean = false;           // averageBatches
  /// Where gradients are of several losses: what the loss is computed from, and the gradients.
  llvm::DenseSet<Value> ofForward, gradientsOfOneLoss;
  /// What is computed from the batch and from no gradient, but is none of the forward values.
  llvm::DenseSet<Value> beforeGradients;
  /// 0: the loss is a mean over the batch, as are gradients of several losses over them; 1: a sum.
  std::optional<int> scaleOfLoss;
  /// Of sparse gradients that servers are pushed: all replicas' rows, for what needs them (a norm).
  llvm::DenseMap<Value, RawGradient> wholeRows;
  std::optional<llvm::DenseSet<Value>> madeOfRows; // from those found so far
  /// The update that each dense value was found from.
  llvm::DenseMap<Value, Operation *> reducedFor;
  std::deque<Item> queue;
  llvm::DenseSet<Value> visited;
};

} // namespace

llvm::StringRef getUpdatedVariable(Operation *op) {
  auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
  unsigned written = update ? update.getWrittenOperands().front() : 0;
  auto handle = dfg::getVariableHandle(op->getOperand(written));
  return handle ? handle.getVariable() : "";
}

llvm::FailureOr<RawGradients> findRawGradients(dfg::GraphOp graph, const BatchFlow &flow,
                                               const strategies::StepNodes &step, const SyncPolicies &policies,
                                               UpdatesOf which) {
  Walk walk(graph, flow, step, policies, which);
  if (failed(walk.run()))
    return failure();
  return std::move(walk.found);
}

bool computesFetchesOfReduced(const BatchFlow &flow, const SyncPolicies &policies) {
  return !flow.isEstimated() && !policies.hasAsync && policies.accumulateSteps == 1 &&
         policies.required == policies.replicas;
}

bool isSumOfMeans(Value value, const BatchFlow &flow, int depth) {
  const Flow &at = flow.get(value);
  switch (at.kind) {
  case Flow::Partial:
    return at.zero || at.scale == 0;
  case Flow::Replicated:
    return at.zero || at.scale == 0;
  case Flow::Sharded:
    return false;
  case Flow::Local:
    break;
  }
  Operation *op = value.getDefiningOp();
  return depth > 0 && op && addsTerms(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isSumOfMeans(operand, flow, depth - 1); });
}

llvm::DenseSet<Value> findFunctionsOfSums(dfg::GraphOp graph, const BatchFlow &flow) {
  llvm::DenseSet<Value> functions;
  auto isWhole = [&](Value value) {
    const Flow &at = flow.get(value);
    bool isSum = at.zero || at.scale == 0 || (at.kind == Flow::Partial && at.scale == 1);
    return (isSum && at.kind != Flow::Sharded && at.kind != Flow::Local) || functions.contains(value);
  };
  for (Operation &op : graph.getBody().front())
    for (OpResult result : op.getResults())
      if (flow.get(result).kind == Flow::Local && llvm::isa<dfg::ShapeInterface>(op) && !isCoupling(&op) &&
          !flow.hasBatchSize(result) && llvm::all_of(op.getOperands(), isWhole))
        functions.insert(result);
  return functions;
}

llvm::SmallVector<Obstacle> findObstacles(dfg::GraphOp graph, const BatchFlow &flow, const strategies::StepNodes &step,
                                          const SyncPolicies &policies) {
  SmallVector<Obstacle> obstacles;
  // Another error is of another kind, and comes again when gradients are found.
  ScopedDiagnosticHandler silent(graph.getContext(), [](Diagnostic &) { return success(); });
  for (UpdatesOf which : {UpdatesOf::EachBatch, UpdatesOf::AllBatches}) {
    if (which == UpdatesOf::EachBatch && (policies.accumulateSteps == 1 || policies.replicas == 1))
      continue;
    Walk walk(graph, flow, step, policies, which);
    walk.obstacles = &obstacles;
    (void)walk.run();
  }
  return obstacles;
}

} // namespace distc
