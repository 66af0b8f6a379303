//===- VerifyOrder.cpp - Refuses plans whose accesses could meet in the wrong order ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Servers.h"
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/PlanOrder.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_VERIFYORDER
#include "passes/lower/Passes.h.inc"

namespace {

InFlightDiagnostic withNote(InFlightDiagnostic diagnostic, Operation *earlier, const Twine &note) {
  diagnostic.attachNote(earlier->getLoc()) << note << " (" << earlier->getName() << ")";
  return diagnostic;
}

StringRef describe(drt::Extent extent) {
  switch (extent.cut) {
  case drt::Extent::Whole:
    return "all elements";
  case drt::Extent::Range:
    return "each replica's range";
  case drt::Extent::Rows:
    return "each replica's rows by index";
  case drt::Extent::Matmul:
    return "each replica's rows of a matmul";
  case drt::Extent::Share:
    return "each replica's share";
  }
  llvm_unreachable("all cuts are above");
}

/// The memory of the arena, by place: whose it is, as the entry goes on.
class ArenaOwners {
public:
  /// `value` takes [place, place + bytes). Returns who has lost memory by that.
  SmallVector<Value> take(Value value, int64_t place, int64_t bytes) {
    SmallVector<Value> lost;
    auto it = owners.upper_bound(place);
    if (it != owners.begin() && std::prev(it)->second.end > place)
      --it;
    while (it != owners.end() && it->first < place + bytes) {
      lost.push_back(it->second.value);
      it = owners.erase(it);
    }
    if (bytes > 0)
      owners[place] = {place + bytes, value};
    return lost;
  }

private:
  struct Owner {
    int64_t end;
    Value value;
  };
  std::map<int64_t, Owner> owners; // by their first byte
};

/// One entry. Each check returns a diagnostic at the operation that comes too early or too late.
class EntryVerifier {
public:
  EntryVerifier(drt::EntryOp entry) : entry(entry), order(entry) {
    for (auto variable : entry->getParentOfType<ModuleOp>().getOps<drt::VariableOp>()) {
      auto name = FlatSymbolRefAttr::get(variable.getSymNameAttr());
      types[name] = variable.getType();
      if (variable.getOwner())
        owners[name] = static_cast<int64_t>(*variable.getOwner());
    }
  }

  LogicalResult verify() {
    for (Operation &op : entry.getBody().front()) {
      if (failed(verifyKnown(&op)) || failed(verifyValues(&op)) || failed(verifyBuckets(&op)))
        return failure();
      if (auto access = dyn_cast<drt::AccessInterface>(op))
        if (failed(verifyRaces(access)) || failed(verifyShares(access)) || failed(verifyArriving(access)))
          return failure();
      met = order.getMetBefore(&op);
      order.advance(&op);
      if (failed(recordWrites(&op)))
        return failure();
    }
    return verifyEnd();
  }

private:
  // What nothing is known of cannot be ordered.
  LogicalResult verifyKnown(Operation *op) {
    if (op->getNumRegions() != 0)
      return op->emitOpError("has a region, and what runs in it cannot be ordered; kernels are outlined before");
    if (isa<drt::AccessInterface>(op) || op->hasTrait<OpTrait::ConstantLike>() || drt::isView(op))
      return success();
    return op->emitOpError("does not say what memory it accesses (drt's AccessInterface), so it cannot be ordered");
  }

  // A tensor is read while its memory still holds it.
  LogicalResult verifyValues(Operation *op) {
    if (drt::isView(op))
      return success();
    for (Value operand : op->getOperands()) {
      Value storage = getStorage(operand);
      if (auto read = storage.getDefiningOp<drt::ReadOp>())
        if (auto write = writes.find(read.getVariableAttr());
            write != writes.end() && write->second.number > readAfter.lookup(storage))
          return withNote(op->emitOpError("reads the old value of ") << read.getVariable() << ", which is gone",
                          write->second.op, "it was written here");
      if (auto taken = overwritten.find(storage); taken != overwritten.end()) {
        if (isa<drt::AllReduceStartOp>(taken->second))
          return withNote(op->emitOpError("reads a gradient that is being reduced in place"), taken->second,
                          "its bucket was started here");
        return withNote(op->emitOpError("reads memory of the arena that another result lies in"), taken->second,
                        "it was written over here");
      }
    }
    if (auto update = dyn_cast<drt::UpdateOp>(op))
      return verifyArguments(op, update.getVariables(), update.getArguments());
    if (auto update = dyn_cast<drt::SparseUpdateOp>(op))
      return verifyArguments(op, update.getVariables(), update.getArguments());
    if (auto update = dyn_cast<drt::MatmulUpdateOp>(op))
      return verifyArguments(op, update.getVariables(), update.getArguments());
    return success();
  }

  // Range kernels take their variables and arguments as distinct memory.
  LogicalResult verifyArguments(Operation *op, ArrayAttr variables, ValueRange arguments) {
    for (Value argument : arguments)
      if (auto read = getStorage(argument).getDefiningOp<drt::ReadOp>())
        if (llvm::is_contained(variables, read.getVariableAttr()))
          return op->emitOpError("writes ")
                 << read.getVariable() << " while it reads its old value from the same memory";
    return success();
  }

  LogicalResult verifyRaces(drt::AccessInterface op) {
    std::optional<Race> race = order.findRace(op);
    if (!race)
      return success();
    FlatSymbolRefAttr variable = order.getSharedVariable(race->now);
    std::string what = variable                ? ("variable " + variable.getValue()).str()
                       : race->now.bucket >= 0 ? "bucket " + std::to_string(race->now.bucket)
                                               : "a tensor of every replica";
    return withNote(op->emitOpError(race->now.writes ? "writes " : "reads ")
                        << what << " (" << describe(race->now.extent) << ") while another replica may still "
                        << (race->before.writes ? "write" : "read") << " it (" << describe(race->before.extent)
                        << "); the replicas do not meet between",
                    race->earlier, "the other access");
  }

  LogicalResult verifyBuckets(Operation *op) {
    auto start = [&](int64_t bucket) -> LogicalResult {
      if (auto [it, isNew] = buckets.try_emplace(bucket, Bucket{op}); !isNew)
        return withNote(op->emitOpError("starts bucket ") << bucket << " again", it->second.start,
                        "it was started here");
      return success();
    };
    auto needsWait = [&](int64_t bucket) -> LogicalResult {
      auto it = buckets.find(bucket);
      if (it == buckets.end())
        return op->emitOpError("names bucket ") << bucket << ", which was not started before";
      if (!it->second.waited)
        return withNote(op->emitOpError("reads bucket ") << bucket << " before the wait for it", it->second.start,
                        "it was started here");
      return success();
    };
    if (auto reduce = dyn_cast<drt::AllReduceStartOp>(op))
      return start(reduce.getBucket());
    if (auto gather = dyn_cast<drt::GatherStartOp>(op))
      return start(gather.getBucket());
    auto push = dyn_cast<drt::PushRowsOp>(op);
    if (auto pull = dyn_cast<drt::PullRowsOp>(op); pull || push) {
      const int32_t bucket = pull ? pull.getBucket() : push.getBucket();
      if (failed(start(bucket)))
        return failure();
      buckets.find(bucket)->second.waited = true;
      return success();
    }
    if (auto wait = dyn_cast<drt::AllReduceWaitOp>(op)) {
      auto it = buckets.find(wait.getBucket());
      if (it == buckets.end())
        return op->emitOpError("waits for bucket ") << wait.getBucket() << ", which was not started before";
      it->second.waited = true;
      if (failed(verifyPipeline(wait)))
        return failure();
      if (auto gather = dyn_cast<drt::GatherStartOp>(it->second.start))
        for (auto variable : gather.getVariables().getAsRange<FlatSymbolRefAttr>())
          gathered.erase(variable);
      return success();
    }
    if (auto result = dyn_cast<drt::AllReduceResultOp>(op))
      return succeeded(needsWait(result.getBucket())) ? verifyScattered(op, result.getBucket(), nullptr) : failure();
    if (auto update = dyn_cast<drt::UpdateOp>(op); update && update.getBucket())
      return succeeded(needsWait(*update.getBucket())) ? verifyScattered(op, *update.getBucket(), update) : failure();
    return success();
  }

  // What `pipelined` means: from the wait for a bucket on, new values of its variables arrive. They do when their owner
  // has updated them, before whatever communication comes behind their gather.
  LogicalResult verifyPipeline(drt::AllReduceWaitOp wait) {
    const int64_t number = wait.getBucket();
    for (auto &[started, bucket] : buckets) {
      auto gather = dyn_cast<drt::GatherStartOp>(bucket.start);
      if (!gather || !gather.getPipelined() || started > number || !finished.insert(started).second)
        continue;
      for (auto &[before, other] : buckets)
        if (auto start = dyn_cast<drt::AllReduceStartOp>(other.start);
            start && start.getPipelined() && before < started && !other.waited)
          return withNote(wait.emitOpError("waits for bucket ")
                              << number << ", but values of bucket " << before << " come first",
                          start, "nothing has waited for it");
      for (auto &[variable, coming] : arriving)
        if (coming.bucket < started && !coming.updated)
          return withNote(wait.emitOpError("waits for bucket ")
                              << number << ", but the values of " << cast<FlatSymbolRefAttr>(variable).getValue()
                              << " come first, and it is not updated before",
                          coming.wait, "they are let come here");
    }
    Operation *start = buckets.find(number)->second.start;
    if (auto gather = dyn_cast<drt::GatherStartOp>(start))
      for (auto variable : gather.getVariables().getAsRange<FlatSymbolRefAttr>())
        arriving.erase(variable);
    auto reduce = dyn_cast<drt::AllReduceStartOp>(start);
    if (!reduce || !reduce.getPipelined())
      return success();
    for (auto [name, gradient] : llvm::zip(reduce.getNames(), reduce.getGradients())) {
      auto variable = FlatSymbolRefAttr::get(cast<StringAttr>(name));
      if (types.lookup(variable) != gradient.getType())
        return reduce.emitOpError("is pipelined, and the gradient of ")
               << variable.getValue() << " is " << gradient.getType() << ", which is not its type";
      arriving[variable] = {number, wait};
    }
    return success();
  }

  LogicalResult verifyArriving(drt::AccessInterface op) {
    if (auto gather = dyn_cast<drt::GatherStartOp>(op.getOperation()))
      for (auto variable : gather.getVariables().getAsRange<FlatSymbolRefAttr>()) {
        auto coming = arriving.find(variable);
        if (gather.getPipelined() != (coming != arriving.end()))
          return op->emitOpError("takes the value of ")
                 << variable.getValue()
                 << (gather.getPipelined() ? " piece by piece, of which no bucket is pipelined"
                                           : " whole, which comes piece by piece");
        if (gather.getPipelined() && !coming->second.updated)
          return withNote(op->emitOpError("takes the value of ") << variable.getValue() << ", which was not updated",
                          coming->second.wait, "the wait for its gradient");
      }
    for (const drt::Access &access : op.getAccesses()) {
      FlatSymbolRefAttr variable = order.getSharedVariable(access);
      auto coming = variable ? arriving.find(variable) : arriving.end();
      if (coming == arriving.end() || isa<drt::GatherStartOp>(op.getOperation()))
        continue;
      if (auto update = dyn_cast<drt::UpdateOp>(op.getOperation());
          update && !access.tensor && isUpdateOf(update, variable, coming->second)) {
        updatedNow.insert(variable);
        continue;
      }
      return withNote(op->emitOpError("accesses ")
                          << variable.getValue() << " while its new value may arrive: the bucket is pipelined",
                      coming->second.wait, "it is let come here");
    }
    for (Attribute variable : std::exchange(updatedNow, {}))
      arriving[variable].updated = true;
    return success();
  }

  struct Arriving;
  bool isUpdateOf(drt::UpdateOp update, FlatSymbolRefAttr variable, const Arriving &coming) {
    if (coming.updated || update.getShare() || !update.getOwner() ||
        update.getBucket() != static_cast<uint32_t>(coming.bucket))
      return false;
    auto start = cast<drt::AllReduceStartOp>(buckets.find(coming.bucket)->second.start);
    const uint64_t member = *update.getMember();
    return member < start.getNames().size() && cast<StringAttr>(start.getNames()[member]) == variable.getAttr();
  }

  // A scattered gradient is there for its owner, or in shares, and nobody has it whole.
  LogicalResult verifyScattered(Operation *op, int64_t bucket, drt::UpdateOp update) {
    auto start = dyn_cast<drt::AllReduceStartOp>(buckets.find(bucket)->second.start);
    if (!start || !start.getScatter())
      return success();
    std::optional<ArrayRef<int64_t>> owned = start.getOwners();
    const uint64_t member = update ? update.getMember().value_or(0) : 0;
    const bool reads = update && (!owned ? update.getShare().has_value()
                                         : member < owned->size() && update.getOwner() &&
                                               static_cast<int64_t>(*update.getOwner()) == (*owned)[member]);
    if (reads)
      return success();
    return withNote(op->emitOpError("reads of bucket ")
                        << bucket << " what this task may not have: each has "
                        << (owned ? "the gradients that it owns" : "its shares") << " only",
                    start, "it is scattered here");
  }

  // Between tasks: a variable of which each task wrote some shares, or that its owner wrote, is whole behind a gather
  // of it. What one task alone has memory for is nobody else's to access; servers that serve on their own are asked.
  LogicalResult verifyShares(drt::AccessInterface op) {
    if (isa<drt::PullOp>(op.getOperation()))
      return success();
    const bool isGather = isa<drt::GatherStartOp>(op.getOperation());
    for (const drt::Access &access : op.getAccesses()) {
      FlatSymbolRefAttr variable = order.getSharedVariable(access);
      if (!variable)
        continue;
      if (auto held = owners.find(variable); held != owners.end()) {
        if (access.owner != held->second && entry.getTask() != held->second)
          return op->emitOpError("accesses ")
                 << variable.getValue() << " in every task, but task " << held->second << " alone holds it";
        continue;
      }
      if (auto moving = gathered.find(variable); moving != gathered.end())
        return withNote(op->emitOpError("accesses ") << variable.getValue() << " while its shares arrive",
                        moving->second, "the gather was started here");
      auto partial = shares.find(variable);
      if (partial == shares.end() || isGather)
        continue;
      const Partial &part = partial->second;
      if (part.owner < 0 && access.extent.cut != drt::Extent::Share)
        return withNote(op->emitOpError("accesses ")
                            << variable.getValue() << ", of which this task has its own shares only",
                        part.op, "shares were updated here, and not gathered since");
      if (part.owner >= 0 && access.owner != part.owner)
        return withNote(op->emitOpError("accesses ")
                            << variable.getValue() << ", whose new value task " << part.owner << " alone has",
                        part.op, "it was updated here, and not gathered since");
    }
    return success();
  }

  // A gather moves what was written: shares, or everything from the task that wrote.
  LogicalResult verifyGather(drt::GatherStartOp gather) {
    for (auto [i, variable] : llvm::enumerate(gather.getVariables().getAsRange<FlatSymbolRefAttr>())) {
      auto partial = shares.find(variable);
      const int64_t from = gather.getOwners() ? (*gather.getOwners())[i] : -1;
      if (partial != shares.end() && partial->second.owner != from)
        return withNote(gather.emitOpError("takes ")
                            << variable.getValue() << " from where it was not updated: " << describeOwner(from),
                        partial->second.op, "it was updated here by " + describeOwner(partial->second.owner));
    }
    return success();
  }

  static std::string describeOwner(int64_t owner) {
    return owner < 0 ? std::string("all tasks, in shares") : "task " + std::to_string(owner);
  }

  LogicalResult recordWrites(Operation *op) {
    ++number;
    if (auto read = dyn_cast<drt::ReadOp>(op))
      readAfter[read.getResult()] = number;
    if (auto access = dyn_cast<drt::AccessInterface>(op))
      for (const drt::Access &made : access.getAccesses())
        if (made.writes && made.variable) {
          writes[made.variable] = {op, number};
          const bool isPart = made.extent.cut == drt::Extent::Share || made.owner >= 0;
          if (isPart && !owners.contains(made.variable) && order.getSharedVariable(made))
            shares[made.variable] = {op, made.owner};
        }
    if (auto gather = dyn_cast<drt::GatherStartOp>(op); gather && failed(verifyGather(gather)))
      return failure();
    if (auto gather = dyn_cast<drt::GatherStartOp>(op))
      for (auto variable : gather.getVariables().getAsRange<FlatSymbolRefAttr>()) {
        gathered[variable] = op;
        shares.erase(variable);
      }
    if (auto start = dyn_cast<drt::AllReduceStartOp>(op))
      for (Value gradient : start.getGradients())
        overwritten[getStorage(gradient)] = op;
    return recordPlaces(op);
  }

  LogicalResult recordPlaces(Operation *op) {
    // What other replicas read stays until they are past it: they may be behind. What is fetched stays until the end.
    if (auto access = dyn_cast<drt::AccessInterface>(op); access && order.replicasShareMemory())
      for (const drt::Access &made : access.getAccesses())
        if (made.ofOthers && made.tensor && !made.writes)
          keep(getStorage(made.tensor), op, number);
    if (auto fetch = dyn_cast<drt::FetchOp>(op))
      keep(getStorage(fetch.getValue()), op, kToTheEnd);
    auto at = op->getAttrOfType<DenseI64ArrayAttr>("at");
    if (!at)
      return success();
    if (auto start = dyn_cast<drt::AllReduceStartOp>(op)) {
      // From here on the whole bucket is written, padding too.
      if (start.getGradients().empty())
        return success();
      Value first = getStorage(start.getGradients().front());
      if (failed(takePlace(op, first, at[0], getMemberOffsets(start).back())))
        return failure();
      keep(first, op, kToTheEnd);
      return success();
    }
    for (auto [result, place] : llvm::zip_equal(op->getResults(), at.asArrayRef()))
      if (failed(takePlace(op, result, place, getTensorBytes(cast<RankedTensorType>(result.getType())))))
        return failure();
    return success();
  }

  void keep(Value tensor, Operation *op, unsigned until) {
    InUse &use = inUse[tensor];
    if (!use.op || until >= use.until)
      use = {op, until};
  }

  LogicalResult takePlace(Operation *op, Value value, int64_t place, int64_t bytes) {
    for (Value lost : arena.take(value, place, bytes)) {
      if (auto user = inUse.find(lost); user != inUse.end() && user->second.until >= met)
        return withNote(op->emitOpError("writes memory of the arena that other replicas, or the runtime, may still "
                                        "read"),
                        user->second.op, "it is read here");
      overwritten.try_emplace(lost, op);
    }
    return success();
  }

  LogicalResult verifyEnd() {
    for (auto &[variable, coming] : arriving)
      return coming.wait->emitOpError("lets values of ")
             << cast<FlatSymbolRefAttr>(variable).getValue() << " come, which no gather has waited for";
    for (auto &[number, bucket] : buckets)
      if (!bucket.waited)
        return bucket.start->emitOpError("starts bucket ") << number << ", which nothing waits for";
    for (auto &[variable, part] : shares) {
      StringRef name = cast<FlatSymbolRefAttr>(variable).getValue();
      if (part.owner < 0)
        return part.op->emitOpError("updates shares of ") << name << ", which are not gathered";
      return part.op->emitOpError("updates ")
             << name << " in task " << part.owner << " alone, and the others are not given its new value";
    }
    return success();
  }

  struct Write {
    Operation *op;
    unsigned number;
  };
  // What tasks have of a variable that not all of them wrote.
  struct Partial {
    Operation *op;
    int64_t owner; // -1: each its shares
  };
  struct Bucket {
    Operation *start;
    bool waited = false;
  };
  // A variable of a pipelined bucket, from the wait for the gradient to that for the value.
  struct Arriving {
    int64_t bucket;
    Operation *wait;
    bool updated = false;
  };

  drt::EntryOp entry;
  PlanOrder order;
  unsigned number = 0;                       // of the operation, from 1
  unsigned met = 0;                          // every replica is past the operations before this number
  llvm::DenseMap<Attribute, Write> writes;   // the last of each variable
  llvm::DenseMap<Value, unsigned> readAfter; // the number of each drt.read
  llvm::MapVector<int64_t, Bucket> buckets;
  llvm::DenseMap<Attribute, Type> types; // of variables
  llvm::MapVector<Attribute, Arriving> arriving;
  llvm::SmallSetVector<Attribute, 2> updatedNow;   // by the operation that is verified
  llvm::DenseSet<int64_t> finished;                // pipelined gathers that a wait was behind
  llvm::DenseMap<Attribute, int64_t> owners;       // of variables that one task alone holds
  llvm::MapVector<Attribute, Partial> shares;      // variables that were written in part, and are not gathered
  llvm::DenseMap<Attribute, Operation *> gathered; // variables on their way
  llvm::DenseMap<Value, Operation *> overwritten;  // tensors that are gone: by what
  ArenaOwners arena;
  static constexpr unsigned kToTheEnd = ~0u;
  struct InUse {
    Operation *op = nullptr;
    unsigned until = 0; // every replica is past the operation of this number
  };
  llvm::DenseMap<Value, InUse> inUse; // of tensors that others read
};

/// Where servers serve on their own: that replicas meet nowhere but at them, and what goes from one to the other.
class ServingVerifier {
public:
  explicit ServingVerifier(ArrayRef<drt::EntryOp> entries) : entries(entries) {}

  LogicalResult verify() {
    for (drt::EntryOp entry : entries)
      for (Operation &op : entry.getBody().front())
        if (isa<drt::PullOp, drt::PushOp, drt::TakeTokenOp, drt::TakeOp>(op) && failed(collect(entry, &op)))
          return failure();
    if (!push && !take)
      return success();
    if (!push || !take || !pull)
      return (push ? push.getOperation() : take.getOperation())
          ->emitOpError("is in a program that does not pull variables, push gradients and take them");
    if (step == update)
      return push.emitOpError("is in the entry that takes the gradients; an update is an entry of its own");
    auto isTaken = [&](auto taken) { return push.getTakenType(taken.index()) == taken.value(); };
    if (push.getNames() != take.getNames() || !llvm::all_of(llvm::enumerate(take.getGradients().getTypes()), isTaken))
      return withNote(take.emitOpError("does not take what is pushed: names and types differ"), push,
                      "it is pushed here");
    // Asynchronous replicas wait for nobody, others for a token.
    if (push.getAsync() == static_cast<bool>(token))
      return push.emitOpError(token ? "is asynchronous, and a token is waited for"
                                    : "counts for an update that nothing waits for; a step ends with a token");
    return success(succeeded(verifyUpdate()) && succeeded(verifyStep()));
  }

private:
  LogicalResult collect(drt::EntryOp entry, Operation *op) {
    auto keep = [&](auto &kept, drt::EntryOp &in, auto found) -> LogicalResult {
      if (kept)
        return withNote(op->emitOpError("is there twice"), kept, "the other one");
      kept = found;
      if (in && in != entry)
        return op->emitOpError("is in another entry than what pulls, pushes and takes tokens");
      in = entry;
      return success();
    };
    if (auto found = dyn_cast<drt::PullOp>(op))
      return keep(pull, step, found);
    if (auto found = dyn_cast<drt::PushOp>(op))
      return keep(push, step, found);
    if (auto found = dyn_cast<drt::TakeTokenOp>(op))
      return keep(token, step, found);
    return keep(take, update, cast<drt::TakeOp>(op));
  }

  // One replica runs it, of which nobody else knows.
  LogicalResult verifyUpdate() {
    for (Operation &op : update.getBody().front()) {
      if (auto access = dyn_cast<drt::AccessInterface>(op)) {
        if (failed(meetsNobody(access)))
          return failure();
        for (const drt::Access &made : access.getAccesses())
          if (made.writes && made.variable)
            updated.insert(made.variable);
      }
      if (isa<drt::FeedOp>(op) && cast<drt::FeedOp>(op).getBatched())
        return op.emitOpError("is fed a replica's share, but an update belongs to none");
    }
    return success();
  }

  LogicalResult verifyStep() {
    bool pulled = false, pushed = false;
    for (Operation &op : step.getBody().front()) {
      auto access = dyn_cast<drt::AccessInterface>(op);
      if (!access)
        continue;
      if (failed(meetsNobody(access)))
        return failure();
      if (pushed && !isa<drt::FetchOp, drt::TakeTokenOp>(op))
        return withNote(op.emitOpError("stands behind the push, which says what the step has computed"), push,
                        "the push");
      if (isa<drt::PullOp>(op)) {
        pulled = true;
        continue;
      }
      if (isa<drt::PushOp>(op)) {
        if (!pulled)
          return push.emitOpError("gives gradients before variables are pulled");
        pushed = true;
      }
      if (isa<drt::TakeTokenOp>(op) && !pushed)
        return op.emitOpError("waits for an update before gradients are pushed");
      SmallVector<drt::Access> accesses = access.getAccesses();
      for (const drt::Access &made : accesses) {
        FlatSymbolRefAttr variable = made.variable;
        if (made.tensor)
          if (auto read = getStorage(made.tensor).getDefiningOp<drt::ReadOp>())
            variable = read.getVariableAttr();
        if (variable && (made.writes || updated.contains(variable)))
          return op.emitOpError(made.writes ? "writes " : "reads ")
                 << "variable " << variable.getValue()
                 << (made.writes ? ", which only an update does where servers serve on their own"
                                 : ", which an update may write meanwhile; replicas pull it");
      }
    }
    return success();
  }

  static LogicalResult meetsNobody(drt::AccessInterface op) {
    if (!op.meetsBefore() && !op.meetsAfter() &&
        (!op->hasTrait<drt::Synchronizes>() || isa<drt::TakeTokenOp>(op.getOperation())))
      return success();
    return op.emitOpError(
        "waits for the other replicas, which are each at their own pace where servers serve on their own");
  }

  ArrayRef<drt::EntryOp> entries;
  drt::EntryOp step, update;
  drt::PullOp pull;
  drt::PushOp push;
  drt::TakeTokenOp token;
  drt::TakeOp take;
  llvm::DenseSet<Attribute> updated;
};

struct VerifyOrder : impl::VerifyOrderBase<VerifyOrder> {
  void runOnOperation() override {
    if (failed(ServingVerifier(getEntries(getOperation())).verify()))
      return signalPassFailure();
    for (drt::EntryOp entry : getEntries(getOperation()))
      if (failed(EntryVerifier(entry).verify()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace distc
