//===- Unroll.cpp - All replicas of one task in one graph -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchConversions.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTUNROLL
#include "passes/distribute/Passes.h.inc"

namespace {

/// What every replica takes part in, and what is the same in all of them after it.
bool isSynchronizer(Operation *op) { return op->hasTrait<dist::GivesAll>() || llvm::isa<dist::PushOp>(op); }

bool givesShare(Operation *op) { return op->hasTrait<dist::GivesShare>(); }

/// What stands for more than arithmetic on the replicas' values.
bool needsTasks(Operation *op) {
  return givesShare(op) || op->hasTrait<dist::OfServers>() ||
         llvm::isa<dist::AllReduceOp, dist::AllGatherVariablesOp>(op);
}

class Unroller {
public:
  Unroller(Block &block, const BatchFlow &flow, int64_t replicas, bool keepSynchronizers)
      : block(block), flow(flow), builder(block.getParent()->getContext()), replicas(replicas),
        keepSynchronizers(keepSynchronizers), maps(replicas), copies(replicas) {
    for (auto variable : block.getParentOp()->getParentOfType<ModuleOp>().getOps<dfg::VariableOp>())
      if (variable->hasAttr(dist::kSharesAttr))
        shares.insert(variable.getSymName());
  }

  LogicalResult run() {
    SmallVector<Operation *> originals;
    for (Operation &op : llvm::make_early_inc_range(block))
      originals.push_back(llvm::isa<dist::RescaleOp, dist::WholeSizeOp>(op) && !keepSynchronizers ? multiply(&op)
                                                                                                  : &op);
    if (failed(findOwn(originals)))
      return failure();
    SmallVector<Operation *> replaced;
    for (Operation *op : originals) {
      builder.setInsertionPointAfter(op);
      if (keepSynchronizers && isSynchronizer(op)) {
        copyAndShare(op);
      } else if (auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op); reduce && !reduce.getAggregator()) {
        if (failed(expand(reduce)))
          return failure();
      } else if (auto gather = llvm::dyn_cast<dist::AllGatherSlicesOp>(op)) {
        expand(gather);
      } else if (auto rows = llvm::dyn_cast<dist::AllGatherOp>(op)) {
        rows.getAllRows().replaceAllUsesWith(
            join(dfg::getNodeName(op), "/rows", rows.getRows(), rows.getAllRows().getType()));
      } else if (auto take = llvm::dyn_cast<dist::TakeRowsOp>(op); take && !keepSynchronizers) {
        expand(take);
      } else if (op->hasAttr(dist::kSeedAttr) && !keepSynchronizers) {
        if (failed(expandDraw(op)))
          return failure();
      } else if (!keepSynchronizers && needsTasks(op)) {
        return op->emitOpError("has no form in which all replicas are one graph; unroll with keep-synchronizers");
      } else if (isOwn(op)) {
        copy(op);
      } else {
        useFirstReplica(op);
        continue;
      }
      replaced.push_back(op);
    }
    closeLoops();
    // Users first.
    for (Operation *op : replaced)
      op->dropAllReferences();
    for (Operation *op : llvm::reverse(replaced))
      op->erase();
    return success();
  }

private:
  /// What replicas have of their own. A loop of version 1 is gone through again: its Merges depend on what is made
  /// behind them, and a loop with anything of a replica's own is its own as a whole, for what enters and leaves it is
  /// one frame's.
  LogicalResult findOwn(ArrayRef<Operation *> nodes) {
    llvm::FailureOr<dfg::Frames> found = dfg::Frames::find(block);
    if (failed(found))
      return failure();
    frames = std::move(*found);
    size_t before;
    do {
      before = own.size() + ownFrames.size();
      for (Operation *op : nodes) {
        if (!givesOwn(op))
          continue;
        own.insert(op->result_begin(), op->result_end());
        if (dfg::Frame *frame = frames.lookup(op))
          ownFrames.insert(frame);
        if (StringAttr name = dfg::getNodeNameAttr(op); name && isPivot(op))
          ownPivots.insert(name);
      }
    } while (!frames.empty() && own.size() + ownFrames.size() > before);
    return success();
  }

  /// What the nodes of one branch of a condition of version 1 wait for, if they have no operand that says so.
  static bool isPivot(Operation *op) {
    auto isSwitch = [](Operation *op) { return dfg::getKind(op) == "Switch"; };
    return isSwitch(op) ||
           llvm::any_of(op->getOperands(), [&](Value operand) { return isSwitch(operand.getDefiningOp()); });
  }

  bool givesOwn(Operation *op) const {
    if (keepSynchronizers ? isSynchronizer(op) : op->hasTrait<dist::GivesAll>())
      return false;
    if (!keepSynchronizers && (llvm::isa<dist::TakeRowsOp>(op) || op->hasAttr(dist::kSeedAttr)))
      return true;
    return isOwn(op);
  }

  bool isOwn(Operation *op) const {
    return (keepSynchronizers ? isDerivedPerReplica(op) : isPerReplica(op)) || runsInOwn(op);
  }

  /// Of a loop's frame, or of a branch, that is a replica's own: a constant, for example.
  bool runsInOwn(Operation *op) const {
    if (llvm::isa<dfg::UpdateInterface>(op))
      return false;
    if (dfg::Frame *frame = frames.lookup(op); frame && ownFrames.contains(frame))
      return true;
    return !ownPivots.empty() && op->getNumResults() > 0 &&
           llvm::any_of(dfg::getControl(op), [&](Attribute name) { return ownPivots.contains(name); });
  }

  /// A copy's operands that are made behind it: their copies were made later.
  void closeLoops() {
    for (int64_t replica = 0; replica < replicas; ++replica)
      for (Operation *copy : copies[replica])
        for (OpOperand &operand : copy->getOpOperands())
          operand.set(maps[replica].lookupOrDefault(operand.get()));
  }

  /// An update happens once. Anything else is a replica's own where its value is, or where it uses such a value (a
  /// shape).
  bool isPerReplica(Operation *op) const {
    if (llvm::isa<dfg::UpdateInterface>(op))
      return false;
    return llvm::any_of(op->getResults(), [&](Value value) { return flow.get(value).kind != Flow::Replicated; }) ||
           llvm::any_of(op->getOperands(), [&](Value value) { return own.contains(value); });
  }

  /// The same where synchronizers stay, whose results the batch's flow does not know all of: a replica's own begins at
  /// what is fed and drawn, and at shares. An update of a share is each replica's.
  bool isDerivedPerReplica(Operation *op) const {
    if (givesShare(op) || isShare(op))
      return true;
    auto isOwn = [&](Value value) { return own.contains(value); };
    if (llvm::isa<dfg::UpdateInterface>(op))
      return isOwn(op->getOperand(0));
    if (op->getNumOperands() > 0 && llvm::any_of(op->getOperands(), isOwn))
      return true;
    return (op->getNumOperands() == 0 || op->hasAttr(dist::kSeedAttr)) &&
           llvm::any_of(op->getResults(), [&](Value value) { return flow.get(value).kind != Flow::Replicated; });
  }

  /// A slot of which each replica has its share.
  bool isShare(Operation *op) const {
    auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op);
    return handle && shares.contains(handle.getVariable());
  }

  /// What a shared node uses of the replicas' is the same in all of them.
  void useFirstReplica(Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(maps.front().lookupOrDefault(operand.get()));
  }

  void copy(Operation *op) {
    for (int64_t replica = 0; replica < replicas; ++replica) {
      Operation *clone = builder.clone(*op, maps[replica]);
      clone->setAttr(dist::kReplicaAttr, builder.getI64IntegerAttr(replica));
      copies[replica].push_back(clone);
    }
  }

  /// One operation a replica, whose results are the same.
  void copyAndShare(Operation *op) {
    SmallVector<Value> results(op->getResults());
    copy(op);
    for (Value result : results)
      result.replaceAllUsesWith(maps.front().lookup(result));
    for (IRMapping &map : maps)
      for (Value result : results)
        map.erase(result);
  }

  NameLoc getLocation(const llvm::Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }

  /// The N-th part of a sum over replicas, of floating-point numbers.
  Value divideByReplicas(llvm::StringRef name, Value sum) {
    auto type = llvm::cast<FloatType>(getElementTypeOrSelf(sum.getType()));
    auto scalar = RankedTensorType::get({}, type);
    Value factor = dfg::ConstOp::create(builder, getLocation(name + "/share"), scalar,
                                        DenseElementsAttr::get(scalar, builder.getFloatAttr(type, 1.0 / replicas)));
    return dfg::MulOp::create(builder, getLocation(name + "/mean"), sum.getType(), sum, factor);
  }

  Value makeAxis(llvm::StringRef name) {
    auto type = RankedTensorType::get({}, builder.getI32Type());
    return dfg::ConstOp::create(builder, getLocation(name + "/axis"), type, DenseElementsAttr::get(type, int32_t(0)));
  }

  Value join(llvm::StringRef name, llvm::StringRef suffix, Value member, Type type, Value axis = {}) {
    SmallVector<Value> values;
    for (IRMapping &map : maps)
      values.push_back(map.lookupOrDefault(member));
    values.push_back(axis ? axis : makeAxis(name));
    return dfg::ConcatV2Op::create(builder, getLocation(name + suffix), TypeRange(type), values);
  }

  /// In place of what makes a share's sizes or values the whole batch's.
  Operation *multiply(Operation *op) {
    builder.setInsertionPoint(op);
    llvm::StringRef name = dfg::getNodeName(op);
    DenseElementsAttr factors = getWholeFactors(op, replicas);
    Value replicas = dfg::ConstOp::create(builder, getLocation(name + "/replicas"), factors.getType(), factors);
    Operation *product =
        dfg::MulOp::create(builder, op->getLoc(), op->getResult(0).getType(), op->getOperand(0), replicas);
    op->replaceAllUsesWith(product);
    op->erase();
    return product;
  }

  /// Each replica has its part of the rows that all have.
  void split(llvm::StringRef name, Value all, Value rows) {
    SmallVector<Type> types(replicas, rows.getType());
    auto parts = dfg::SplitOp::create(builder, getLocation(name + "/split"), types, makeAxis(name), all);
    for (auto [map, part] : llvm::zip(maps, parts->getResults()))
      map.map(rows, part);
  }

  void expand(dist::TakeRowsOp take) {
    split(dfg::getNodeName(take), maps.front().lookupOrDefault(take.getAllRows()), take.getRows());
  }

  /// The numbers of the whole batch's rows are drawn at once: generators begin at the first row.
  LogicalResult expandDraw(Operation *op) {
    Value rows = op->getResult(0), sizes = maps.front().lookupOrDefault(op->getOperand(0));
    auto type = llvm::dyn_cast<RankedTensorType>(rows.getType());
    if (!type)
      return op->emitOpError("has numbers for each row of the batch, of unknown rank; give its result a shape");
    llvm::StringRef name = dfg::getNodeName(op);
    auto element = llvm::cast<IntegerType>(getElementTypeOrSelf(sizes.getType()));
    SmallVector<APInt> factors(type.getRank(), APInt(element.getWidth(), 1));
    factors.front() = APInt(element.getWidth(), replicas);
    auto factorsType = RankedTensorType::get({type.getRank()}, element);
    Value counts = dfg::ConstOp::create(builder, getLocation(name + "/replicas"), factorsType,
                                        DenseElementsAttr::get(factorsType, factors));
    Operation *all = builder.clone(*op, maps.front());
    all->removeAttr(dist::kSeedAttr);
    dfg::removeNotedShapes(all);
    all->setOperand(0, dfg::MulOp::create(builder, getLocation(name + "/whole"), sizes.getType(), sizes, counts));
    all->moveAfter(all->getOperand(0).getDefiningOp());
    SmallVector<int64_t> dims(type.getShape());
    dims.front() = ShapedType::isDynamic(dims.front()) ? dims.front() : dims.front() * replicas;
    all->getResult(0).setType(type.clone(dims));
    builder.setInsertionPointAfter(all);
    split(name, all->getResult(0), rows);
    return success();
  }

  /// The replicas' rows behind each other, and the N-th part of their values for a mean.
  void expand(dist::AllGatherSlicesOp gather) {
    std::string name = dfg::getNodeName(gather).str();
    Value axis = makeAxis(name);
    Value indices = join(name, "/indices", gather.getIndices(), gather.getAllIndices().getType(), axis);
    Value rows = join(name, "/values", gather.getValues(), gather.getAllValues().getType(), axis);
    if (gather.getReduction() == dist::Reduction::Mean && llvm::isa<FloatType>(getElementTypeOrSelf(rows.getType())))
      rows = divideByReplicas(name, rows);
    gather.getAllIndices().replaceAllUsesWith(indices);
    gather.getAllValues().replaceAllUsesWith(rows);
  }

  /// The sum over the replicas' values, and its N-th part for a mean.
  LogicalResult expand(dist::AllReduceOp reduce) {
    for (auto [index, member] : llvm::enumerate(reduce.getGradients())) {
      std::string name =
          (dfg::getNodeName(reduce) + "/" + llvm::cast<StringAttr>(reduce.getVariables()[index]).getValue()).str();
      SmallVector<Value> values;
      for (IRMapping &map : maps)
        values.push_back(map.lookupOrDefault(member));
      Value sum = dfg::AddNOp::create(builder, getLocation(name + "/sum"), TypeRange(member.getType()), values);
      if (reduce.getReduction() == dist::Reduction::Mean) {
        if (!llvm::isa<FloatType>(getElementTypeOrSelf(member.getType())))
          return reduce.emitOpError() << "cannot take the mean of integers, of variable '" << name << "'";
        sum = divideByReplicas(name, sum);
      }
      reduce.getReduced()[index].replaceAllUsesWith(sum);
    }
    return success();
  }

  Block &block;
  const BatchFlow &flow;
  OpBuilder builder;
  int64_t replicas;
  bool keepSynchronizers;
  SmallVector<IRMapping> maps;
  /// Of each replica.
  SmallVector<SmallVector<Operation *>> copies;
  llvm::DenseSet<Value> own;
  dfg::Frames frames;
  llvm::DenseSet<dfg::Frame *> ownFrames;
  llvm::DenseSet<Attribute> ownPivots;
  llvm::StringSet<> shares;
};

struct DistUnroll : public impl::DistUnrollBase<DistUnroll> {
  using DistUnrollBase::DistUnrollBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<dist::TopologyOp> topology = dist::getTopology(module);
    if (failed(topology))
      return signalPassFailure();
    int64_t count = replicas > 0 ? static_cast<int64_t>(replicas) : topology->getReplicas();
    for (auto graph : module.getOps<dfg::GraphOp>()) {
      llvm::FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
      if (failed(flow) || failed(Unroller(graph.getBody().front(), *flow, count, keepSynchronizers).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace distc
