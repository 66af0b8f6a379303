//===- VerifyStreamOrder.cpp - Whether a device's streams keep the plan's order ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/ScopeNames.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_VERIFYSTREAMORDER
#include "passes/lower/Passes.h.inc"

namespace {

/// Bytes of the arena, from `begin` to before `end`.
struct Extent {
  int64_t begin, end;
  std::string getText() const { return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")"; }
};

/// What lies where: extents that do not overlap, each with what was written there last. An extent is written once and
/// cut by later ones, so that all writes together take as many steps as there are of them.
template <class Content> class Places {
public:
  void write(Extent extent, Content content) {
    if (extent.begin == extent.end)
      return;
    erase(extent);
    places.insert({extent.begin, {extent.end, content}});
  }

  void erase(Extent extent) {
    cut(extent.begin);
    cut(extent.end);
    places.erase(places.lower_bound(extent.begin), places.lower_bound(extent.end));
  }

  /// The first of what lies in the extent.
  const Content *find(Extent extent) const {
    auto next = places.upper_bound(extent.begin);
    if (next != places.begin() && std::prev(next)->second.end > extent.begin)
      return &std::prev(next)->second.content;
    return next != places.end() && next->first < extent.end ? &next->second.content : nullptr;
  }

  /// The content that the whole extent has; null where there are several, or none in a part of it. An extent that was
  /// written as one has not been cut, or is not whole.
  const Content *findWhole(Extent extent) const {
    auto next = places.upper_bound(extent.begin);
    if (next == places.begin() || std::prev(next)->second.end < extent.end)
      return nullptr;
    return &std::prev(next)->second.content;
  }

private:
  struct Place {
    int64_t end;
    Content content;
  };

  /// No extent goes across `at`.
  void cut(int64_t at) {
    auto next = places.lower_bound(at);
    if (next == places.begin() || std::prev(next)->second.end <= at)
      return;
    Place &front = std::prev(next)->second;
    Place back{front.end, front.content};
    front.end = at;
    places.insert(next, {at, back});
  }

  std::map<int64_t, Place> places; // by begin
};

std::string describe(Operation *op) { return "'" + getScopeName(op) + "'"; }

/// Names of a group's variables, as [[@w, @m], [@v]].
template <class Use> void forEachVariable(drt::UpdateGroupOp group, Use use) {
  for (auto [member, names] : llvm::enumerate(group.getVariables()))
    for (auto name : cast<ArrayAttr>(names).getAsRange<FlatSymbolRefAttr>())
      use(member, name.getValue());
}

/// Follows one entry in the order in which its host code enqueues.
class StreamOrder {
public:
  /// `inShares`: variables of which a replica has its share alone.
  explicit StreamOrder(const llvm::StringSet<> &inShares) : inShares(inShares) {}

  LogicalResult verify(Block &body) {
    for (Operation &op : body)
      if (failed(visit(&op)))
        return failure();
    return visitEnd();
  }

private:
  /// The value that lies somewhere, or the bucket that was reduced there.
  struct Written {
    Value value;
    Operation *by;
  };

  LogicalResult visit(Operation *op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](drt::ReadOp read) {
          versions[read] = updates.lookup(read.getVariable());
          return success();
        })
        // Addresses.
        .Case<drt::FeedOp, drt::RandomStateOp, drt::ReplicaIndexOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
              tensor::CastOp>([](Operation *) { return success(); })
        .Case([&](drt::FetchOp fetch) {
          fetches.push_back(fetch);
          return success();
        })
        .Case([&](drt::AllReduceStartOp start) { return visitStart(start); })
        .Case([&](drt::GatherStartOp start) { return visitGather(start); })
        .Case([&](drt::AllReduceWaitOp wait) { return visitWait(wait); })
        .Case([&](drt::AllReduceResultOp result) { return checkReduced(result, result.getBucket()); })
        .Case([&](drt::UpdateGroupOp group) { return visitUpdates(group); })
        .Case([&](drt::AccumulateOp accumulate) { return readAll(accumulate, accumulate.getGradients()); })
        .Case([&](drt::AssertOp check) { return readAll(check, check->getOperands()); })
        .Case([&](drt::RandomAdvanceOp advance) { return visitAdvance(advance); })
        .Default([&](Operation *) { return isPlaced(op) ? visitWork(op) : refuseUnknown(op); });
  }

  LogicalResult refuseUnknown(Operation *op) {
    if (op->hasTrait<OpTrait::ConstantLike>())
      return success();
    return op->emitOpError("has no known place in the order of a device's streams");
  }

  // ---- The compute stream -----------------------------------------------------------------

  LogicalResult visitWork(Operation *op) {
    for (OpResult result : op->getResults()) {
      FailureOr<Extent> extent = getExtent(op, result);
      if (failed(extent) || failed(checkReductions(op, *extent, "writes")))
        return failure();
      arena.write(*extent, {result, op});
    }
    // Behind the writes, so that an operand or another result in the same place shows.
    for (OpResult result : op->getResults())
      if (failed(read(op, result)))
        return failure();
    return readAll(op, op->getOperands());
  }

  LogicalResult readAll(Operation *op, ValueRange values) {
    for (Value value : values)
      if (failed(read(op, value)))
        return failure();
    return success();
  }

  LogicalResult read(Operation *op, Value value) {
    auto storage = dyn_cast<OpResult>(getStorage(value));
    if (!storage)
      return success();
    Operation *maker = storage.getOwner();
    if (auto variable = dyn_cast<drt::ReadOp>(maker))
      return readVariable(op, variable);
    if (advanced.contains(storage))
      return op->emitError() << describe(op) << " draws from a state behind drt.random_advance";
    auto result = dyn_cast<drt::AllReduceResultOp>(maker);
    if (!result && !isPlaced(maker))
      return success();
    FailureOr<Extent> extent = getExtent(op, storage);
    if (failed(extent) || failed(checkReductions(op, *extent, "reads")))
      return failure();
    if (extent->begin == extent->end)
      return success();
    Written wanted{result ? Value() : storage, result ? buckets.at(result.getBucket()) : maker};
    return checkContent(op, *extent, wanted);
  }

  LogicalResult readVariable(Operation *op, drt::ReadOp read) {
    if (failed(checkWhole(op, read.getVariable(), "reads")))
      return failure();
    if (versions.lookup(read) == updates.lookup(read.getVariable()))
      return success();
    return op->emitError() << describe(op) << " reads variable '" << read.getVariable()
                           << "' behind its update, for the value from before: that has to be copied in front of the "
                              "update";
  }

  LogicalResult checkContent(Operation *op, Extent extent, Written wanted) {
    const Written *found = arena.findWhole(extent);
    if (found && found->by == wanted.by && found->value == wanted.value)
      return success();
    if (!found)
      found = findOther(extent, wanted);
    InFlightDiagnostic error = op->emitError() << describe(op) << " reads bytes " << extent.getText()
                                               << " of the arena for what " << describe(wanted.by) << " writes, ";
    if (!found)
      return error << "but not all of them have been written";
    if (isa<drt::AllReduceStartOp>(found->by))
      error << "behind their reduction in place; what it reads has to be copied in front of that";
    else if (found->by == op)
      error << "and writes a result there itself";
    else
      error << "but " << describe(found->by) << " has written there since";
    error.attachNote(found->by->getLoc()) << "is written here";
    return error;
  }

  /// Of what lies in the extent, something that is not wanted.
  const Written *findOther(Extent extent, Written wanted) {
    const Written *first = arena.find(extent);
    if (first && (first->by != wanted.by || first->value != wanted.value))
      return first;
    // Its front may be whole: whatever cut it lies at the end.
    const Written *last = arena.find({extent.end - 1, extent.end});
    return last && (last->by != wanted.by || last->value != wanted.value) ? last : nullptr;
  }

  LogicalResult visitUpdates(drt::UpdateGroupOp group) {
    if (failed(readAll(group, group->getOperands())) || failed(checkMembers(group)) || failed(checkShares(group)))
      return failure();
    if (group.getBucket()) {
      FailureOr<drt::AllReduceStartOp> start = getStart(group, *group.getBucket());
      if (failed(start))
        return failure();
      for (int64_t member : group.getMembers().value_or(ArrayRef<int64_t>())) {
        FailureOr<Extent> extent = getMember(group, *start, member);
        if (failed(extent) || failed(checkReductions(group, *extent, "reads")) ||
            failed(checkContent(group, *extent, {Value(), *start})))
          return failure();
      }
    }
    forEachVariable(group, [&](size_t, StringRef name) {
      ++updates[name];
      if (group.getShares() && !inShares.contains(name))
        parted.insert({name, group});
    });
    return success();
  }

  /// What is updated is there, and so is the gradient: this replica's share of it may be all that there is.
  LogicalResult checkShares(drt::UpdateGroupOp group) {
    LogicalResult checked = success();
    forEachVariable(group, [&](size_t, StringRef name) {
      if (succeeded(checked))
        checked = checkWhole(group, name, "updates");
    });
    return failed(checked) || group.getShares() || !group.getBucket() ? checked
                                                                      : checkReduced(group, *group.getBucket());
  }

  LogicalResult checkReduced(Operation *op, int32_t bucket) {
    FailureOr<drt::AllReduceStartOp> start = getStart(op, bucket);
    if (succeeded(start) && start->getScatter())
      return op->emitError() << describe(op) << " takes all of the gradients of bucket " << bucket
                             << ", of which this replica has its share alone";
    return LogicalResult(start);
  }

  /// Whether all of a variable is there.
  LogicalResult checkWhole(Operation *op, StringRef variable, StringRef verb) {
    auto found = parted.find(variable);
    if (found == parted.end())
      return checkGathers(op, variable, verb);
    InFlightDiagnostic error = op->emitError()
                               << describe(op) << " " << verb << " variable '" << variable
                               << "', of which this replica has updated its share alone: drt.gather_start and "
                                  "drt.all_reduce_wait have to stand between";
    error.attachNote(found->second->getLoc()) << "is updated here";
    return error;
  }

  LogicalResult checkGathers(Operation *op, StringRef variable, StringRef verb) {
    for (drt::GatherStartOp gather : gathering)
      for (auto name : gather.getVariables().getAsRange<FlatSymbolRefAttr>())
        if (name.getValue() == variable) {
          InFlightDiagnostic error = op->emitError() << describe(op) << " " << verb << " variable '" << variable
                                                     << "' while the communication stream gathers its shares: "
                                                        "drt.all_reduce_wait has to stand between";
          error.attachNote(gather.getLoc()) << "the gather starts here";
          return error;
        }
    return success();
  }

  /// Members of a launch run side by side: one's variables are no other's concern.
  LogicalResult checkMembers(drt::UpdateGroupOp group) {
    llvm::StringMap<size_t> writers;
    StringRef twice;
    forEachVariable(group, [&](size_t member, StringRef name) {
      if (auto [it, isFirst] = writers.try_emplace(name, member); !isFirst && it->second != member)
        twice = name;
    });
    if (!twice.empty())
      return group.emitError() << describe(group) << " updates variable '" << twice
                               << "' twice in one launch, which has no order";
    const size_t members = group.getVariables().size(), reads = group.getReads().size();
    auto check = [&](Value value, std::optional<size_t> member) -> LogicalResult {
      auto read = getStorage(value).getDefiningOp<drt::ReadOp>();
      auto writer = read ? writers.find(read.getVariable()) : writers.end();
      if (writer == writers.end() || members == 1 || writer->second == member)
        return success();
      return group.emitError() << describe(group) << " reads variable '" << read.getVariable()
                               << "', which another member of the same launch updates";
    };
    for (Value argument : group.getArguments()) // of all members
      if (failed(check(argument, std::nullopt)))
        return failure();
    for (auto [number, value] : llvm::enumerate(group.getReads()))
      if (failed(check(value, number / (reads / members))))
        return failure();
    return success();
  }

  LogicalResult visitAdvance(drt::RandomAdvanceOp advance) {
    if (failed(readAll(advance, advance.getStates())))
      return failure();
    for (Value state : advance.getStates())
      advanced.insert(state);
    return success();
  }

  /// Fetches are copied before anything more is waited for.
  LogicalResult visitEnd() {
    for (drt::FetchOp fetch : fetches)
      if (failed(read(fetch, fetch.getValue())))
        return failure();
    for (auto &[variable, group] : parted)
      return group->emitError() << describe(group) << " updates this replica's share of variable '" << variable
                                << "', and nothing gathers the others'";
    return success();
  }

  // ---- The communication stream ----------------------------------------------------------------

  LogicalResult visitStart(drt::AllReduceStartOp start) {
    if (!buckets.insert({start.getBucket(), start}).second || gathers.count(start.getBucket()))
      return start.emitOpError("starts bucket ") << start.getBucket() << " a second time";
    if (start.getGradients().empty())
      return success();
    if (!start.getAt())
      return start.emitOpError("has no place in the arena; run drt-plan-memory");
    for (auto [member, gradient] : llvm::enumerate(start.getGradients())) {
      FailureOr<Extent> place = getMember(start, start, member), extent = getExtent(start, getStorage(gradient));
      if (failed(place) || failed(extent) || failed(read(start, gradient)))
        return failure();
      if (place->begin != extent->begin)
        return start.emitOpError("reduces member ") << member << " at " << place->getText()
                                                    << " of the arena, but its gradient lies at " << extent->getText();
    }
    Extent whole = getWhole(start);
    if (failed(checkReductions(start, whole, "reduces")))
      return failure();
    arena.write(whole, {Value(), start});
    reducing.write(whole, start);
    underWay.push_back(start);
    return success();
  }

  LogicalResult visitGather(drt::GatherStartOp gather) {
    if (!gathers.insert({gather.getBucket(), gather}).second || buckets.count(gather.getBucket()))
      return gather.emitOpError("starts bucket ") << gather.getBucket() << " a second time";
    for (auto name : gather.getVariables().getAsRange<FlatSymbolRefAttr>()) {
      if (inShares.contains(name.getValue()))
        return gather.emitOpError("gathers variable '")
               << name.getValue() << "', of which each replica holds its share alone";
      if (failed(checkGathers(gather, name.getValue(), "gathers")))
        return failure();
    }
    // Whoever reads it waits, and so does the entry's end.
    for (auto name : gather.getVariables().getAsRange<FlatSymbolRefAttr>()) {
      parted.erase(name.getValue());
      ++updates[name.getValue()];
    }
    gathering.push_back(gather);
    underWay.push_back(gather);
    return success();
  }

  /// The stream takes one bucket after the other: those that were started before are done, too.
  LogicalResult visitWait(drt::AllReduceWaitOp wait) {
    auto gather = gathers.find(wait.getBucket());
    Operation *start = gather == gathers.end() ? nullptr : gather->second.getOperation();
    if (!start) {
      FailureOr<drt::AllReduceStartOp> reduction = getStart(wait, wait.getBucket());
      if (failed(reduction))
        return failure();
      start = *reduction;
    }
    auto *found = llvm::find(underWay, start);
    if (found == underWay.end())
      return success();
    for (Operation *done : llvm::make_range(underWay.begin(), std::next(found)))
      if (auto reduction = dyn_cast<drt::AllReduceStartOp>(done))
        reducing.erase(getWhole(reduction));
      else
        llvm::erase(gathering, cast<drt::GatherStartOp>(done));
    underWay.erase(underWay.begin(), std::next(found));
    return success();
  }

  LogicalResult checkReductions(Operation *op, Extent extent, StringRef verb) {
    const drt::AllReduceStartOp *found = reducing.find(extent);
    if (!found || extent.begin == extent.end)
      return success();
    drt::AllReduceStartOp start = *found;
    InFlightDiagnostic error = op->emitError()
                               << describe(op) << " " << verb << " bytes " << extent.getText()
                               << " of the arena while the communication stream reduces bucket " << start.getBucket()
                               << " there: drt.all_reduce_wait has to stand between";
    error.attachNote(start.getLoc()) << "the reduction starts here";
    return error;
  }

  FailureOr<drt::AllReduceStartOp> getStart(Operation *op, int32_t bucket) {
    auto found = buckets.find(bucket);
    if (found != buckets.end())
      return found->second;
    return op->emitOpError("names bucket ") << bucket << ", which was not started before";
  }

  // ---- Places ----------------------------------------------------------------------------------

  static Extent getWhole(drt::AllReduceStartOp start) {
    int64_t place = start.getGradients().empty() ? 0 : (*start.getAt())[0];
    return {place, place + (start.getGradients().empty() ? 0 : getMemberOffsets(start).back())};
  }

  static FailureOr<Extent> getMember(Operation *op, drt::AllReduceStartOp start, uint64_t member) {
    if (member >= start.getGradients().size())
      return op->emitOpError("names member ")
             << member << " of bucket " << start.getBucket() << ", which has " << start.getGradients().size();
    if (!start.getAt())
      return start.emitOpError("has no place in the arena; run drt-plan-memory");
    int64_t begin = (*start.getAt())[0] + getMemberOffsets(start)[member];
    auto type = cast<RankedTensorType>(start.getGradients()[member].getType());
    return Extent{begin, begin + getTensorBytes(type)};
  }

  /// The rows of all replicas, behind this one's.
  static FailureOr<Extent> getJoined(Operation *op, drt::AllReduceStartOp start, RankedTensorType type) {
    if (!start.getAt())
      return start.emitOpError("has no place in the arena; run drt-plan-memory");
    const int64_t end = getWhole(start).end,
                  own = getTensorBytes(cast<RankedTensorType>(start.getGradients()[0].getType()));
    const int64_t bytes = own * static_cast<int64_t>(start.getGather());
    if (getTensorBytes(type) != bytes)
      return op->emitOpError("takes ") << type << " for the joined rows of bucket " << start.getBucket()
                                       << ", which have " << bytes << " bytes";
    return Extent{end - bytes, end};
  }

  FailureOr<Extent> getExtent(Operation *op, Value storage) {
    auto result = dyn_cast<OpResult>(storage);
    if (!result)
      return op->emitOpError("has an operand that lies nowhere");
    if (auto reduced = dyn_cast<drt::AllReduceResultOp>(result.getOwner())) {
      FailureOr<drt::AllReduceStartOp> start = getStart(op, reduced.getBucket());
      if (succeeded(start) && start->getGather())
        return getJoined(op, *start, cast<RankedTensorType>(result.getType()));
      return failed(start) ? FailureOr<Extent>(failure()) : getMember(op, *start, result.getResultNumber());
    }
    auto places = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>("at");
    if (!isPlaced(result.getOwner()) || !places || places.size() <= result.getResultNumber())
      return result.getOwner()->emitOpError("has no place in the arena; run drt-plan-memory");
    int64_t begin = places[result.getResultNumber()];
    return Extent{begin, begin + getTensorBytes(cast<RankedTensorType>(result.getType()))};
  }

  const llvm::StringSet<> &inShares;
  /// Variables of which replicas have updated a share each, and none has gathered them: the update.
  llvm::MapVector<StringRef, drt::UpdateGroupOp> parted;
  Places<Written> arena;
  Places<drt::AllReduceStartOp> reducing;
  std::map<int32_t, drt::AllReduceStartOp> buckets; // started, by number
  std::map<int32_t, drt::GatherStartOp> gathers;    // likewise
  SmallVector<Operation *> underWay;                // of both, not waited for, in their order
  SmallVector<drt::GatherStartOp> gathering;        // of those
  llvm::StringMap<unsigned> updates;                // of a variable so far
  llvm::DenseMap<Operation *, unsigned> versions;   // of what a drt.read gives
  llvm::DenseSet<Value> advanced;                   // states of random operations
  SmallVector<drt::FetchOp> fetches;
};

struct VerifyStreamOrder : impl::VerifyStreamOrderBase<VerifyStreamOrder> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    drt::EntryOp entry = getOperation();
    llvm::StringSet<> inShares;
    for (auto variable : entry->getParentOfType<ModuleOp>().getOps<drt::VariableOp>())
      if (variable.getShares())
        inShares.insert(variable.getSymName());
    if (failed(StreamOrder(inShares).verify(entry.getBody().front())))
      signalPassFailure();
  }
};

} // namespace
} // namespace distc
