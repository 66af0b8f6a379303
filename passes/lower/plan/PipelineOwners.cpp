//===- PipelineOwners.cpp - Gradients to their owners, values back, at once ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Servers.h"
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/PlanOrder.h"
#include "llvm/Support/DebugLog.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_PIPELINEOWNERS
#include "passes/lower/Passes.h.inc"

namespace {

/// One entry: which of its buckets may be pipelined.
class Pipeline {
public:
  explicit Pipeline(drt::EntryOp entry) : block(entry.getBody().front()), order(entry) {
    for (auto variable : entry->getParentOfType<ModuleOp>().getOps<drt::VariableOp>())
      variables[FlatSymbolRefAttr::get(variable.getSymNameAttr())] = variable;
    unsigned position = 0;
    for (Operation &op : entry.getBody().front())
      record(&op, position++);
  }

  void mark() {
    for (auto &[number, bucket] : reduced)
      if (isPiecewise(bucket))
        pipelined.insert(number);
      else
        LDBG("drt-pipeline-owners") << "bucket " << number << " comes whole: not all of it is its owners' alone";
    // What cannot come so keeps others from it, with which it is gathered.
    while (dropOne())
      ;
    for (int32_t number : pipelined)
      reduced.lookup(number).start.setPipelined(true);
    for (auto &[number, gather] : gathers)
      if (isComplete(gather))
        gather.setPipelined(true);
    orderUpdates();
  }

private:
  struct Update {
    drt::UpdateOp op;
    unsigned position;
  };
  struct Bucket {
    drt::AllReduceStartOp start;
    llvm::SmallVector<Update> updates;
  };
  struct Accessed {
    Operation *op;
    unsigned position;
  };

  void record(Operation *op, unsigned position) {
    if (auto start = dyn_cast<drt::AllReduceStartOp>(op))
      reduced[start.getBucket()].start = start;
    else if (auto gather = dyn_cast<drt::GatherStartOp>(op))
      gathers[gather.getBucket()] = gather;
    else if (auto wait = dyn_cast<drt::AllReduceWaitOp>(op))
      waits.try_emplace(wait.getBucket(), position);
    else if (auto pull = dyn_cast<drt::PullRowsOp>(op))
      waits.try_emplace(pull.getBucket(), position);
    else if (auto push = dyn_cast<drt::PushRowsOp>(op))
      waits.try_emplace(push.getBucket(), position);
    else if (auto update = dyn_cast<drt::UpdateOp>(op); update && update.getBucket())
      reduced[*update.getBucket()].updates.push_back({update, position});
    if (auto access = dyn_cast<drt::AccessInterface>(op))
      for (const drt::Access &made : access.getAccesses())
        if (FlatSymbolRefAttr variable = order.getSharedVariable(made))
          accesses[variable].push_back({op, position});
  }

  drt::GatherStartOp gatherOf(FlatSymbolRefAttr variable) {
    for (auto &[number, gather] : gathers)
      if (llvm::is_contained(gather.getVariables(), variable))
        return gather;
    return nullptr;
  }

  static FlatSymbolRefAttr variableOf(drt::AllReduceStartOp start, size_t member) {
    return FlatSymbolRefAttr::get(cast<StringAttr>(start.getNames()[member]));
  }

  bool isPiecewise(Bucket &bucket) {
    drt::AllReduceStartOp start = bucket.start;
    if (!start || !start.getScatter() || !start.getOwners() || start.getCompression() || start.getAggregator() ||
        start.getGradients().empty() || bucket.updates.size() != start.getGradients().size())
      return false;
    llvm::DenseSet<int64_t> members;
    return llvm::all_of(bucket.updates, [&](Update update) {
      return members.insert(*update.op.getMember()).second && isPiecewise(start, update);
    });
  }

  // The only access to the variable between the wait for the gradients and the wait for the new value.
  bool isPiecewise(drt::AllReduceStartOp start, Update update) {
    const auto member = static_cast<size_t>(*update.op.getMember());
    if (member >= start.getGradients().size())
      return false;
    FlatSymbolRefAttr variable = variableOf(start, member);
    drt::VariableOp declared = variables.lookup(variable);
    drt::GatherStartOp gather = gatherOf(variable);
    auto type = cast<RankedTensorType>(start.getGradients()[member].getType());
    if (!declared || declared.getOwner() || declared.getShares() || !gather || update.op.getShare() ||
        update.op.getOwner() != (*start.getOwners())[member] ||
        static_cast<int64_t>(update.op.getCount()) != type.getNumElements() ||
        cast<RankedTensorType>(declared.getType()) != type)
      return false;
    // What it writes beside the variable is the owner's alone.
    unsigned found = 0;
    for (auto written : update.op.getVariables().getAsRange<FlatSymbolRefAttr>())
      if (drt::VariableOp other = variables.lookup(written); written == variable)
        ++found;
      else if (!other || !other.getOwner())
        return false;
    const unsigned from = waits.lookup(start.getBucket()), to = waits.lookup(gather.getBucket());
    return found == 1 && llvm::all_of(accesses.lookup(variable), [&](Accessed accessed) {
             return accessed.op == update.op || accessed.op == gather || accessed.position < from ||
                    accessed.position > to;
           });
  }

  /// Whether all variables of the gather come piece by piece.
  bool isComplete(drt::GatherStartOp gather) {
    return gather.getOwners() &&
           llvm::all_of(gather.getVariables().getAsRange<FlatSymbolRefAttr>(), [&](auto variable) {
             return llvm::any_of(pipelined, [&](int32_t number) {
               return llvm::is_contained(reduced.lookup(number).start.getNames(),
                                         StringAttr::get(variable.getContext(), variable.getValue()));
             });
           });
  }

  // The communication finishes a gather before it goes on to later buckets, so nobody may wait for any of these before
  // all is updated that is on its way.
  bool isFinished(drt::GatherStartOp gather) {
    unsigned first = ~0u;
    for (auto [number, position] : waits)
      if (number >= static_cast<int32_t>(gather.getBucket()))
        first = std::min(first, position);
    return llvm::all_of(pipelined, [&](int32_t number) {
      return number > static_cast<int32_t>(gather.getBucket()) ||
             llvm::all_of(reduced.lookup(number).updates, [&](Update update) { return update.position < first; });
    });
  }

  bool dropOne() {
    for (int32_t number : pipelined) {
      drt::AllReduceStartOp start = reduced.lookup(number).start;
      for (size_t i = 0; i < start.getNames().size(); ++i) {
        drt::GatherStartOp gather = gatherOf(variableOf(start, i));
        if (isComplete(gather) && isFinished(gather))
          continue;
        LDBG("drt-pipeline-owners") << "bucket " << number << " comes whole: gather " << gather.getBucket()
                                    << (isComplete(gather) ? " is finished before updates" : " has other variables");
        pipelined.remove(number);
        return true;
      }
    }
    return false;
  }

  // Owners update in the order in which gradients come: one that waits for the last is in the way of all others.
  void orderUpdates() {
    SmallVector<Operation *> run;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isPipelined(&op)) {
        run.push_back(&op);
        continue;
      }
      orderRun(run);
      run.clear();
    }
    orderRun(run);
  }

  /// Whether it is an update of a pipelined bucket, or the wait for it.
  bool isPipelined(Operation *op) {
    if (auto wait = dyn_cast<drt::AllReduceWaitOp>(op))
      return pipelined.contains(wait.getBucket());
    auto update = dyn_cast<drt::UpdateOp>(op);
    return update && update.getBucket() && pipelined.contains(*update.getBucket());
  }

  // Operations that follow one another, and may change places where none accesses what another writes.
  void orderRun(ArrayRef<Operation *> run) {
    llvm::DenseMap<Attribute, std::pair<Operation *, bool>> accessed; // by whom, and whether it is written
    for (Operation *op : run)
      for (const drt::Access &made : cast<drt::AccessInterface>(op).getAccesses())
        if (FlatSymbolRefAttr variable = order.getSharedVariable(made)) {
          auto [it, isNew] = accessed.try_emplace(variable, op, made.writes);
          if (!isNew && it->second.first != op && (made.writes || it->second.second))
            return;
          it->second.second |= made.writes;
        }
    auto key = [](Operation *op) -> std::pair<int64_t, int64_t> {
      if (auto wait = dyn_cast<drt::AllReduceWaitOp>(op))
        return {wait.getBucket(), -1};
      auto update = cast<drt::UpdateOp>(op);
      return {*update.getBucket(), *update.getMember()};
    };
    SmallVector<Operation *> sorted(run);
    llvm::stable_sort(sorted, [&](Operation *a, Operation *b) { return key(a) < key(b); });
    if (run.empty())
      return;
    Operation *behind = run.back()->getNextNode();
    for (Operation *op : sorted)
      op->moveBefore(behind);
  }

  Block &block;
  PlanOrder order; // knows what accesses are to
  llvm::DenseMap<Attribute, drt::VariableOp> variables;
  llvm::MapVector<int32_t, Bucket> reduced;
  llvm::MapVector<int32_t, drt::GatherStartOp> gathers;
  llvm::DenseMap<int32_t, unsigned> waits; // the first one's position
  llvm::DenseMap<Attribute, llvm::SmallVector<Accessed>> accesses;
  llvm::SmallSetVector<int32_t, 8> pipelined; // reduced buckets
};

struct PipelineOwners : impl::PipelineOwnersBase<PipelineOwners> {
  void runOnOperation() override {
    drt::ProgramOp program = drt::findProgram(getOperation());
    if (!program || program.getJoint() || program.getTaskReplicas().size() < 2)
      return;
    for (drt::EntryOp entry : getEntries(getOperation()))
      Pipeline(entry).mark();
  }
};

} // namespace
} // namespace distc
