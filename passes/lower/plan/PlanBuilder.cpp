//===- PlanBuilder.cpp - One entry as a plan: order, synchronization, updates ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/plan/PlanBuilder.h"
#include "dialects/dfg/GatheredVariables.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Servers.h"
#include "passes/lower/entries/ShareTypes.h"
#include "passes/lower/entries/SplitDraws.h"
#include "passes/lower/kernels/RangeKernel.h"
#include "passes/lower/plan/Addresses.h"
#include "runtime/include/drt/drt.h"

using namespace mlir;

namespace distc::lower {

/// Variables up to this many elements are copied where they are read, if the entry updates them.
static constexpr int64_t kSmallVariable = 16;

/// Nodes whose result is their first operand's memory.
static bool handsOn(Operation *op) { return op->hasTrait<dfg::Forwards>() || op->hasTrait<dfg::Reshapes>(); }

static bool isAllReduce(Operation *op) { return llvm::isa<dist::AllReduceOp, dist::ReduceScatterOp>(op); }

PlanBuilder::PlanBuilder(ModuleOp module, dfg::FuncOp entry, const LoweringTable &table)
    : EntryLowering(module.getContext(), table), module(module), entry(entry) {
  for (auto variable : module.getOps<drt::VariableOp>())
    variables[variable.getSymName()] = variable;
}

llvm::StringRef PlanBuilder::variableName(Value handle) {
  if (auto share = handle.getDefiningOp<dist::ShareHandleOp>())
    handle = share.getHandle();
  dfg::VarHandleOp node = dfg::getVariableHandle(handle);
  return node ? node.getVariable() : llvm::StringRef();
}

void PlanBuilder::analyze() {
  Block &body = entry.getBody().front();
  unsigned position = 0;
  for (Operation &op : body) {
    positions[&op] = position++;
    if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op))
      for (unsigned operand : update.getWrittenOperands())
        updated.insert(variableName(op.getOperand(operand)));
  }
  // The last node that reads a variable's memory, through nodes that hand it on; updates read at their own time.
  for (auto read : body.getOps<dfg::ReadVariableOp>()) {
    unsigned &last = lastReader[variableName(read.getHandle())];
    SmallVector<Value> aliases = {read.getValue()};
    while (!aliases.empty())
      for (Operation *user : aliases.pop_back_val().getUsers()) {
        if (handsOn(user))
          aliases.push_back(user->getResult(0));
        else if (!llvm::isa<dfg::UpdateInterface>(user))
          last = std::max(last, positions[user]);
      }
  }
  for (Operation &node : body) {
    if (!isAllReduce(&node))
      continue;
    Operation *reduce = &node;
    unsigned start = positions[reduce];
    SmallVector<Value> aliases(reduce->getResults());
    while (!aliases.empty())
      for (Operation *user : aliases.pop_back_val().getUsers()) {
        if (handsOn(user) || llvm::isa<dist::TakeShareOp>(user))
          aliases.push_back(user->getResult(0));
        else if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(user))
          for (unsigned operand : update.getWrittenOperands())
            start = std::max(start, lastReader.lookup(variableName(user->getOperand(operand))));
      }
    buckets[reduce].op = reduce;
    startPositions.push_back({start, reduce});
  }
  llvm::stable_sort(startPositions, llvm::less_first());
}

LogicalResult PlanBuilder::build() {
  dfg::readGatheredVariables(entry.getBody().front());
  if (!isForDevices)
    splitDraws(entry.getBody().front());
  analyze();
  builder.setInsertionPoint(entry);
  auto name = entry->getAttrOfType<StringAttr>(dfg::kEntryAttr);
  auto plan = drt::EntryOp::create(builder, entry.getLoc(), name ? name.getValue() : entry.getSymName());
  builder.setInsertionPointToStart(&plan.getBody().front());
  if (failed(beginServed()))
    return failure();
  for (Operation &node : entry.getBody().front()) {
    if (auto ret = llvm::dyn_cast<dfg::ReturnOp>(node)) {
      if (failed(flushUpdates()))
        return failure();
      emitFetches(ret);
      if (failed(endServed()))
        return failure();
      break;
    }
    if (!lowered.contains(&node) && failed(lowerNode(&node))) {
      // Goes on where something can stand for what the node gives, so that one report names all nodes without code.
      missing = true;
      if (!standIn(&node))
        return failure();
    }
    startReadyBuckets(positions[&node]);
  }
  // What follows would complain of what the stand-ins lack.
  if (missing)
    return failure();
  // Every replica starts and waits for every bucket, also one that nothing needed.
  for (auto &[op, bucket] : buckets)
    waitFor(bucket);
  for (auto gather : llvm::to_vector(llvm::make_first_range(gatheredRows)))
    receiveRows(gather);
  while (!gathers.empty())
    waitForGather(gathers.begin()->first(), entry.getLoc());
  if (missing)
    return failure();
  // Fetches take effect at the end. Taken down first: a walk would meet again what it moves there.
  for (drt::FetchOp fetch : llvm::to_vector(plan.getBody().front().getOps<drt::FetchOp>()))
    fetch->moveBefore(&plan.getBody().front(), plan.getBody().front().end());
  return success();
}

bool PlanBuilder::standIn(Operation *node) {
  for (Value result : node->getResults()) {
    auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
    if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
      return false;
    if (!values.count(result))
      set(result, tensor::EmptyOp::create(builder, node->getLoc(), type.getShape(), type.getElementType()));
  }
  return true;
}

LogicalResult PlanBuilder::lowerNode(Operation *node) {
  notePadding(node);
  // A node that uses what a waiting update gives needs it done. (Handles are no values.)
  for (Value operand : node->getOperands())
    if (auto update = operand.getDefiningOp<dfg::UpdateInterface>())
      if (!values.count(operand) && failed(flushUpdates()))
        return failure();
  if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(node)) {
    for (unsigned operand : update.getWrittenOperands()) {
      if (variableName(node->getOperand(operand)).empty())
        return node->emitError() << "node '" << dfg::getNodeName(node)
                                 << "' updates a variable that is not known when code is generated";
      waitingVariables.insert(variableName(node->getOperand(operand)));
    }
    waiting.push_back(update);
    return success();
  }
  if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(node)) {
    if (waitingVariables.contains(variableName(read.getHandle())) && failed(flushUpdates()))
      return failure();
    lowerRead(read, read.getHandle());
    return success();
  }
  if (auto pull = llvm::dyn_cast<dist::PullOp>(node)) {
    // Where no updates run beside it, the variable is there.
    if (!values.count(pull.getValue()))
      lowerRead(node, pull.getHandle());
    return success();
  }
  if (auto pull = llvm::dyn_cast<dist::PullRowsOp>(node)) {
    if (waitingVariables.contains(variableName(pull.getHandle())) && failed(flushUpdates()))
      return failure();
    return pullRows(pull);
  }
  if (llvm::isa<dist::PushOp, dist::TakeOp, dist::TokensOp>(node))
    return success();
  if (llvm::isa<dfg::VarHandleOp, dfg::GroupOp, dist::ShareHandleOp, dist::AllReduceOp>(node) ||
      (llvm::isa<dfg::IdentityOp>(node) && dfg::isHandle(node->getOperand(0).getType())))
    return success();
  if (auto slices = llvm::dyn_cast<dist::AllGatherSlicesOp>(node))
    return gatherSlices(slices);
  if (auto rows = llvm::dyn_cast<dist::AllGatherOp>(node);
      rows && !isEmpty(llvm::dyn_cast<RankedTensorType>(rows.getAllRows().getType())))
    return gatherRows(rows);
  if (llvm::isa<dist::TakeShareOp, dist::ReduceScatterOp>(node))
    return checkShares(node);
  if (llvm::isa<dist::AccumulateOp>(node)) {
    lowerAccumulate(node);
    return success();
  }
  if (auto gather = llvm::dyn_cast<dist::AllGatherVariablesOp>(node)) {
    // Updates that it gathers may be done already.
    for (Value handle : gather.getHandles())
      waitingVariables.insert(variableName(handle));
    waitingGathers.push_back(node);
    return success();
  }
  if (auto placeholder = llvm::dyn_cast<dfg::PlaceholderOp>(node)) {
    if (failed(getStaticType(node)))
      return failure();
    lowerPlaceholder(placeholder);
    return success();
  }
  if (auto placeholder = llvm::dyn_cast<dfg::PlaceholderWithDefaultOp>(node)) {
    Value value = get(placeholder.getInput());
    // On devices it is its default.
    if (!isForDevices && !isEmpty(typeOf(value)))
      value = drt::FeedOrOp::create(builder, node->getLoc(), value.getType(), dfg::getNodeName(node), value,
                                    DenseI64ArrayAttr());
    set(placeholder.getResult(), value);
    return success();
  }

  if (auto loop = llvm::dyn_cast<dfg::WhileOp>(node))
    return lowerLoop(*this, loop, module, table, symbolNames.make(entry.getSymName() + "_loop_", loops));
  return lowerComputation(node);
}

void PlanBuilder::lowerPlaceholder(dfg::PlaceholderOp node) {
  auto share = node->getAttrOfType<StringAttr>("dist.feed");
  bool batched = share && share.getValue() == "sharded";
  auto feed = drt::FeedOp::create(builder, node.getLoc(), node.getResult().getType(), dfg::getNodeName(node), batched);
  for (StringRef fact : {dfg::kUnsignedFeedAttr, dfg::kValidityAttr})
    if (Attribute said = node->getDiscardableAttr(fact))
      feed->setDiscardableAttr(fact, said);
  set(node.getResult(), feed);
}

void PlanBuilder::lowerRead(Operation *node, Value handle) {
  llvm::StringRef name = variableName(handle);
  auto type = llvm::cast<RankedTensorType>(variable(name).getType());
  if (variable(name).getOwner() && node->use_empty())
    return; // what is named by control edges alone
  auto running = llvm::cast<drt::EntryOp>(builder.getInsertionBlock()->getParentOp());
  if (variable(name).getOwner() && variable(name).getOwner() != running.getTask()) {
    // Only its update does, which has it from the plan's variable.
    node->emitError() << "node '" << dfg::getNodeName(node) << "' reads variable '" << name << "', which task "
                      << *variable(name).getOwner() << " alone holds";
    missing = true;
  }
  waitForGather(name, node->getLoc());
  Value value = drt::ReadOp::create(builder, node->getLoc(), type, name);
  if (updated.contains(name) && type.getNumElements() <= kSmallVariable)
    value = drt::CopyOp::create(builder, node->getLoc(), type, value, DenseI64ArrayAttr());
  set(node->getResult(0), value);
}

Value PlanBuilder::get(Value graphValue) {
  if (Value value = values.lookup(graphValue))
    return value;
  if (Operation *reduce = graphValue.getDefiningOp(); reduce && isAllReduce(reduce))
    return resultsOf(buckets[reduce])[llvm::cast<OpResult>(graphValue).getResultNumber()];
  if (auto gather = graphValue.getDefiningOp<dist::AllGatherOp>(); gather && gatheredRows.contains(gather))
    return receiveRows(gather);
  // Goes on with some value, so that the node says what is wrong and not what follows from it.
  Operation *producer = graphValue.getDefiningOp();
  missing = true;
  producer->emitError() << "node '" << dfg::getNodeName(producer) << "' gives no value in entry '" << entry.getSymName()
                        << "', and another one needs it";
  Value none =
      tensor::EmptyOp::create(builder, producer->getLoc(), llvm::cast<ShapedType>(graphValue.getType()).getShape(),
                              llvm::cast<ShapedType>(graphValue.getType()).getElementType());
  set(graphValue, none);
  return none;
}

// ---- Parameter servers ----------------------------------------------------------------------------

LogicalResult PlanBuilder::beginServed() {
  Block &body = entry.getBody().front();
  auto pushes = body.getOps<dist::PushOp>();
  auto takes = body.getOps<dist::TakeOp>();
  if (!pushes.empty() && failed(pullServed()))
    return failure();
  if (!takes.empty()) {
    SmallVector<Attribute> names;
    SmallVector<Value> taken;
    SmallVector<Type> types;
    for (dist::TakeOp take : takes)
      for (auto [i, part] : llvm::enumerate(take.getGradient())) {
        if (failed(getStaticType(take, i)))
          return failure();
        names.push_back(take.getAccumulatorAttr());
        taken.push_back(part);
        types.push_back(part.getType());
      }
    auto take = drt::TakeOp::create(builder, entry.getLoc(), types, builder.getArrayAttr(names), DenseI64ArrayAttr());
    for (auto [value, gradient] : llvm::zip(taken, take.getGradients()))
      set(value, gradient);
  }
  return success();
}

LogicalResult PlanBuilder::pullServed() {
  Block &body = entry.getBody().front();
  llvm::MapVector<Attribute, SmallVector<dist::PullOp>> pulls; // of each variable
  for (auto pull : body.getOps<dist::PullOp>())
    pulls[FlatSymbolRefAttr::get(pull.getContext(), variableName(pull.getHandle()))].push_back(pull);
  SmallVector<dist::PullRowsOp> rows(body.getOps<dist::PullRowsOp>());
  if (failed(lowerChoices(rows)))
    return failure();
  SmallVector<Attribute> names, tables;
  SmallVector<Type> types;
  SmallVector<Value> indices;
  for (auto &[name, ofVariable] : pulls) {
    names.push_back(name);
    types.push_back(variable(llvm::cast<FlatSymbolRefAttr>(name).getValue()).getType());
  }
  for (dist::PullRowsOp pull : rows) {
    FailureOr<RankedTensorType> type = getStaticType(pull);
    FailureOr<Value> numbers = failed(type) ? FailureOr<Value>(failure()) : getRowNumbers(pull);
    if (failed(numbers))
      return failure();
    tables.push_back(FlatSymbolRefAttr::get(pull.getContext(), variableName(pull.getHandle())));
    indices.push_back(*numbers);
    types.push_back(*type);
    lowered.insert(pull);
    notePadding(pull);
  }
  auto pulled =
      drt::PullOp::create(builder, entry.getLoc(), types, builder.getArrayAttr(names),
                          tables.empty() ? ArrayAttr() : builder.getArrayAttr(tables), indices, DenseI64ArrayAttr());
  for (auto [ofVariable, value] : llvm::zip(pulls, pulled.getValues()))
    for (dist::PullOp pull : ofVariable.second)
      set(pull.getValue(), value);
  for (auto [pull, value] : llvm::zip(rows, pulled.getValues().drop_front(pulls.size())))
    set(pull.getRows(), value);
  return success();
}

LogicalResult PlanBuilder::lowerChoices(ArrayRef<dist::PullRowsOp> pulls) {
  SmallVector<Value> needed;
  for (dist::PullRowsOp pull : pulls)
    needed.push_back(pull.getIndices());
  llvm::DenseSet<Operation *> choices;
  while (!needed.empty())
    if (Operation *def = needed.pop_back_val().getDefiningOp(); def && choices.insert(def).second)
      llvm::append_range(needed, def->getOperands());
  for (Operation &node : entry.getBody().front())
    if (choices.contains(&node)) {
      if (failed(lowerNode(&node)))
        return failure();
      lowered.insert(&node);
    }
  return success();
}

LogicalResult PlanBuilder::endServed() {
  Block &body = entry.getBody().front();
  auto pushes = body.getOps<dist::PushOp>();
  if (pushes.empty())
    return success();
  SmallVector<Attribute> names;
  SmallVector<Attribute> aggregators;
  SmallVector<bool> means, joined;
  SmallVector<Value> gradients;
  bool anyAggregator = false;
  for (dist::PushOp push : pushes) {
    const bool isSparse = push.getGradient().size() == 2, isMean = push.getReduction() == dist::Reduction::Mean;
    for (Value part : push.getGradient()) {
      names.push_back(push.getAccumulatorAttr());
      means.push_back(isMean && !isSparse);
      joined.push_back(isSparse);
      anyAggregator |= push.getAggregatorAttr() != nullptr;
      aggregators.push_back(push.getAggregatorAttr() ? Attribute(push.getAggregatorAttr()) : builder.getUnitAttr());
      gradients.push_back(get(part));
    }
    // Here it is known what is padding, and whose data an index comes from. The server chooses the rows of a shard.
    if (drt::VariableOp table = isSparse ? variable(push.getVariable()) : drt::VariableOp()) {
      ArrayRef<int64_t> shape = llvm::cast<RankedTensorType>(table.getType()).getShape();
      if (failed(checkIndices(push, 0, table.getFullShape().value_or(shape).take_front())))
        return failure();
    }
    // The replica's own rows are scaled, not all of them.
    if (isSparse && isMean)
      gradients.back() = scaleRows(push.getLoc(), gradients.back(), static_cast<int64_t>(push.getRequired()));
  }
  dist::PushOp first = *pushes.begin();
  const bool anyJoined = llvm::is_contained(joined, true);
  drt::PushOp::create(builder, entry.getLoc(), builder.getArrayAttr(names), builder.getDenseBoolArrayAttr(means),
                      anyJoined ? builder.getDenseBoolArrayAttr(joined) : DenseBoolArrayAttr(), first.getRequired(),
                      first.getStaleness(), first.getAsync(),
                      anyAggregator ? builder.getArrayAttr(aggregators) : ArrayAttr(), gradients);
  for (dist::TokensOp tokens : body.getOps<dist::TokensOp>())
    drt::TakeTokenOp::create(builder, tokens.getLoc());
  return success();
}

// ---- Buckets ---------------------------------------------------------------------------------------

void PlanBuilder::startReadyBuckets(unsigned position) {
  for (; passedStarts < startPositions.size() && startPositions[passedStarts].first <= position; ++passedStarts)
    if (Bucket &bucket = buckets[startPositions[passedStarts].second]; bucket.number < 0)
      start(bucket);
}

static int32_t getAlgorithm(dist::Spec spec) {
  switch (spec) {
  case dist::Spec::Ring:
    return DRT_ALL_REDUCE_RING;
  case dist::Spec::Doubling:
    return DRT_ALL_REDUCE_DOUBLING;
  case dist::Spec::Halving:
    return DRT_ALL_REDUCE_HALVING;
  case dist::Spec::Auto:
  case dist::Spec::Nccl:
    return DRT_ALL_REDUCE_AUTO;
  }
  llvm_unreachable("no such spec");
}

void PlanBuilder::start(Bucket &bucket) {
  Operation *op = bucket.op;
  SmallVector<Value> gradients = llvm::map_to_vector(op->getOperands(), [&](Value gradient) { return get(gradient); });
  bucket.number = startedBuckets++;
  auto emit = [&](dist::Reduction reduction, ArrayAttr variables) {
    return drt::AllReduceStartOp::create(builder, op->getLoc(), bucket.number, reduction == dist::Reduction::Mean,
                                         variables, gradients);
  };
  if (auto scatter = llvm::dyn_cast<dist::ReduceScatterOp>(op)) {
    drt::AllReduceStartOp started = emit(scatter.getReduction(), scatter.getVariables());
    started.setScatter(true);
    started.setOwnersAttr(scatter.getOwnersAttr());
    if (isForDevices)
      started.setRoomAttr(getRoom(gradients));
    return;
  }
  auto reduce = llvm::cast<dist::AllReduceOp>(op);
  drt::AllReduceStartOp started = emit(reduce.getReduction(), reduce.getVariables());
  if (!isForDevices) // where NCCL chooses
    started.setAlgorithm(getAlgorithm(reduce.getSpec()));
  if (auto compression = reduce.getCompressionAttr())
    started.setCompressionAttr(compression);
  if (auto aggregator = reduce.getAggregatorAttr())
    started.setAggregatorAttr(aggregator);
}

void PlanBuilder::waitFor(Bucket &bucket) {
  if (bucket.waited)
    return;
  if (bucket.number < 0)
    start(bucket);
  drt::AllReduceWaitOp::create(builder, bucket.op->getLoc(), bucket.number);
  bucket.waited = true;
}

ArrayRef<Value> PlanBuilder::resultsOf(Bucket &bucket) {
  if (bucket.results.empty()) {
    waitFor(bucket);
    auto result =
        drt::AllReduceResultOp::create(builder, bucket.op->getLoc(), bucket.op->getResultTypes(), bucket.number);
    llvm::append_range(bucket.results, result.getResults());
  }
  return bucket.results;
}

std::pair<PlanBuilder::Bucket *, unsigned> PlanBuilder::findMember(Value graphValue) {
  while (Operation *op = graphValue.getDefiningOp()) {
    if (isAllReduce(op))
      return {&buckets[op], llvm::cast<OpResult>(graphValue).getResultNumber()};
    if (!handsOn(op) && !llvm::isa<dist::TakeShareOp>(op))
      break;
    graphValue = op->getOperand(0);
  }
  return {nullptr, 0};
}

// ---- Updates -------------------------------------------------------------------------------------------

LogicalResult PlanBuilder::flushUpdates() {
  SmallVector<dfg::UpdateInterface> updates = std::exchange(waiting, {});
  waitingVariables.clear();
  // What an update gives is read behind it, and behind the gather of what it made shares of: at the end, unless a later
  // update writes the variable again.
  llvm::StringMap<unsigned> lastUpdate;
  for (auto [i, update] : llvm::enumerate(updates))
    for (unsigned operand : update.getWrittenOperands())
      lastUpdate[variableName(update->getOperand(operand))] = i;
  auto isLast = [&](dfg::UpdateInterface update, unsigned i) {
    return lastUpdate.lookup(variableName(update->getOperand(update.getWrittenOperands().front()))) == i;
  };
  for (auto [i, update] : llvm::enumerate(updates)) {
    if (failed(emitUpdate(update)))
      return failure();
    if (!isLast(update, i))
      setUpdated(update);
  }
  startGathers();
  for (auto [i, update] : llvm::enumerate(updates))
    if (isLast(update, i))
      setUpdated(update);
  return success();
}

void PlanBuilder::setUpdated(dfg::UpdateInterface update) {
  for (Value result : update->getResults()) {
    if (!llvm::isa<TensorType>(result.getType()) || result.use_empty())
      continue;
    llvm::StringRef name = variableName(update->getOperand(update.getWrittenOperands().front()));
    waitForGather(name, update->getLoc());
    set(result, drt::ReadOp::create(builder, update->getLoc(), variable(name).getType(), name));
  }
}

bool PlanBuilder::updatesNothing(dfg::UpdateInterface node) {
  Operation *op = node;
  auto written =
      llvm::cast<RankedTensorType>(variable(variableName(op->getOperand(node.getWrittenOperands().front()))).getType());
  return isEmpty(written) ||
         (node.getIndicesOperand() >= 0 && isEmpty(typeOf(get(op->getOperand(node.getIndicesOperand())))));
}

LogicalResult PlanBuilder::emitUpdate(dfg::UpdateInterface node) {
  Operation *op = node;
  bool sparse = node.getIndicesOperand() >= 0;
  int gradientOperand = node.getGradientOperand();
  if (updatesNothing(node))
    return success();
  SmallVector<unsigned> written = node.getWrittenOperands();
  auto [bucket, member] =
      gradientOperand >= 0 ? findMember(op->getOperand(gradientOperand)) : std::pair<Bucket *, unsigned>{nullptr, 0};
  // A bucket whose whole result was needed anyway is read from there.
  if (bucket && (sparse || !bucket->results.empty()))
    bucket = nullptr;
  if (bucket)
    waitFor(*bucket);

  // Where one of them is a share, all are: a replica works on its own.
  RankedTensorType share;
  int64_t whole = 0;
  for (unsigned operand : written)
    if (auto [type, elements] = getShare(op->getOperand(operand)); type)
      std::tie(share, whole) = std::pair(type, elements);

  // Whoever alone holds what is written does it.
  auto place = op->getAttrOfType<dist::PlaceAttr>(dist::kPlaceAttr);
  IntegerAttr owner = place ? builder.getI64IntegerAttr(place.getIndex()) : IntegerAttr();
  RangeKernel kernel(node, bucket != nullptr || sparse);
  SmallVector<Attribute> names;
  for (unsigned operand : written) {
    llvm::StringRef name = variableName(op->getOperand(operand));
    names.push_back(FlatSymbolRefAttr::get(op->getContext(), name));
    if (IntegerAttr holder = variable(name).getOwnerAttr())
      owner = holder;
    kernel.addVariable(operand, share ? share : llvm::cast<RankedTensorType>(variable(name).getType()));
  }
  SmallVector<Value> arguments;
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    if (llvm::is_contained(written, number) || ((bucket || sparse) && static_cast<int>(number) == gradientOperand) ||
        static_cast<int>(number) == node.getIndicesOperand())
      continue;
    auto taken = operand.get().getDefiningOp<dist::TakeShareOp>();
    Value tensor = get(taken ? taken.getValue() : operand.get());
    auto type = llvm::cast<RankedTensorType>(tensor.getType());
    if (TypedAttr splat = getSplat(tensor)) {
      kernel.addConstant(number, splat);
    } else {
      arguments.push_back(tensor);
      kernel.addArgument(number, taken ? share.clone(type.getElementType()) : type);
    }
  }
  FailureOr<drt::KernelOp> function =
      kernel.build(module, symbolNames.make("update_" + entry.getSymName() + "_", kernels));
  if (failed(function))
    return failure();

  OpBuilder &b = builder;
  if (sparse) {
    FailureOr<std::pair<Value, Value>> slices = getSlices(node);
    if (failed(slices))
      return failure();
    int64_t depth =
        node.hasIndexVectors() ? llvm::cast<RankedTensorType>(slices->first.getType()).getShape().back() : 1;
    drt::SparseUpdateOp::create(b, op->getLoc(), function->getSymName(), b.getArrayAttr(names), depth, slices->first,
                                slices->second, arguments, /*sorted=*/false, /*distinct=*/false, owner);
  } else {
    drt::UpdateOp::create(b, op->getLoc(), function->getSymName(), b.getArrayAttr(names),
                          bucket ? b.getI32IntegerAttr(bucket->number) : IntegerAttr(),
                          bucket ? b.getI64IntegerAttr(member) : IntegerAttr(), share ? whole : kernel.getCount(),
                          arguments, share ? b.getI64IntegerAttr(share.getNumElements()) : IntegerAttr(), owner);
  }
  return success();
}

// ---- Shares ----------------------------------------------------------------------------------------------

std::pair<RankedTensorType, int64_t> PlanBuilder::getShare(Value handle) {
  drt::VariableOp held = variable(variableName(handle));
  auto type = llvm::cast<RankedTensorType>(held.getType());
  if (held.getShares()) {
    int64_t elements = 1;
    for (int64_t size : held.getFullShapeAttr().asArrayRef())
      elements *= size;
    return {type, elements};
  }
  auto share = handle.getDefiningOp<dist::ShareHandleOp>();
  if (!share)
    return {};
  auto ref = llvm::cast<dfg::RefType>(share.getShare().getType());
  return {llvm::cast<RankedTensorType>(ref.getValueType()), type.getNumElements()};
}

LogicalResult PlanBuilder::checkShares(Operation *node) {
  for (Operation *user : node->getUsers())
    if (!llvm::isa<dfg::UpdateInterface>(user) && !handsOn(user))
      return user->emitError() << "node '" << dfg::getNodeName(user)
                               << "' works on a share of a gradient, which only updates of shares do; "
                               << "shard the updates in stage 1";
  return success();
}

void PlanBuilder::startGathers() {
  for (Operation *op : std::exchange(waitingGathers, {})) {
    auto gather = llvm::cast<dist::AllGatherVariablesOp>(op);
    SmallVector<Attribute> names;
    SmallVector<Value> handles(gather.getHandles());
    for (Value handle : handles) {
      names.push_back(FlatSymbolRefAttr::get(op->getContext(), variableName(handle)));
      gathers[variableName(handle)] = startedBuckets;
    }
    drt::GatherStartOp::create(builder, op->getLoc(), startedBuckets++, builder.getArrayAttr(names),
                               gather.getOwnersAttr(), isForDevices ? getRoom(handles) : DenseI64ArrayAttr());
  }
}

DenseI64ArrayAttr PlanBuilder::getRoom(ArrayRef<Value> values) {
  FailureOr<drt::ProgramOp> program = drt::getProgram(entry);
  if (failed(program)) {
    missing = true;
    return {};
  }
  const int64_t replicas = program->getNumReplicas();
  return builder.getDenseI64ArrayAttr(llvm::map_to_vector(values, [&](Value value) {
    auto ref = llvm::dyn_cast<dfg::RefType>(value.getType());
    auto whole = llvm::cast<RankedTensorType>(ref ? ref.getValueType() : value.getType());
    return replicas * getDeviceShare(whole, replicas).getNumElements();
  }));
}

void PlanBuilder::waitForGather(llvm::StringRef variable, Location loc) {
  auto found = gathers.find(variable);
  if (found == gathers.end())
    return;
  int32_t number = found->second;
  drt::AllReduceWaitOp::create(builder, loc, number);
  SmallVector<std::string> arrived;
  for (auto &entry : gathers)
    if (entry.second == number)
      arrived.push_back(entry.first().str());
  for (llvm::StringRef name : arrived)
    gathers.erase(name);
}

// ---- Gradient accumulation ---------------------------------------------------------------------------------

void PlanBuilder::lowerAccumulate(Operation *node) {
  auto accumulate = llvm::cast<dist::AccumulateOp>(node);
  SmallVector<Value> gradients =
      llvm::map_to_vector(accumulate.getGradients(), [&](Value gradient) { return get(gradient); });
  int32_t first = accumulators;
  int64_t steps = accumulate.getSteps();
  accumulators += gradients.size();
  // All batches but an update's last keep their gradients; nothing follows from them.
  if (auto name = entry->getAttrOfType<StringAttr>(dfg::kEntryAttr); name && name.getValue() == "accumulate") {
    drt::AccumulateOp::create(builder, node->getLoc(), first, steps, accumulate.getSlices(), gradients);
  } else {
    SmallVector<Type> types;
    for (Value gradient : gradients) {
      auto type = llvm::cast<RankedTensorType>(gradient.getType());
      SmallVector<int64_t> shape(type.getShape());
      if (accumulate.getSlices())
        shape[0] *= steps;
      types.push_back(type.clone(shape));
    }
    double scale = accumulate.getReduction() == dist::Reduction::Mean ? 1.0 / static_cast<double>(steps) : 1.0;
    auto sums = drt::AccumulatedOp::create(builder, node->getLoc(), types, builder.getI32IntegerAttr(first),
                                           builder.getI64IntegerAttr(steps), builder.getF64FloatAttr(scale),
                                           accumulate.getSlicesAttr(), gradients, DenseI64ArrayAttr());
    for (auto [result, sum] : llvm::zip(accumulate.getAccumulated(), sums.getAccumulated()))
      set(result, sum);
  }
}

// ---- Fetches ---------------------------------------------------------------------------------------------

void PlanBuilder::emitFetches(dfg::ReturnOp ret) {
  auto names = entry->getAttrOfType<ArrayAttr>(dfg::kFetchesAttr);
  auto joins = entry->getAttrOfType<ArrayAttr>(dfg::kEntryJoinsAttr);
  for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
    Value tensor = get(value);
    auto type = llvm::dyn_cast<RankedTensorType>(tensor.getType());
    Location loc = ret.getLoc();
    if (getStorage(tensor).getDefiningOp<arith::ConstantOp>())
      tensor = elementwise(loc, type, tensor, [](dfg::ScalarBuilder &, ValueRange x) { return x[0]; });
    int32_t join = type.getRank() == 0 && llvm::isa<FloatType>(type.getElementType()) ? DRT_JOIN_MEAN : DRT_JOIN_FIRST;
    int32_t axis = 0;
    if (joins) {
      auto [kind, number] = llvm::cast<StringAttr>(joins[i]).getValue().split(':');
      join = llvm::StringSwitch<int32_t>(kind)
                 .Case("concat", DRT_JOIN_CONCAT)
                 .Case("mean", DRT_JOIN_MEAN)
                 .Case("sum", DRT_JOIN_SUM)
                 .Case("batch", DRT_JOIN_BATCH)
                 .Default(DRT_JOIN_FIRST);
      (void)number.getAsInteger(10, axis);
    }
    drt::FetchOp::create(builder, loc, llvm::cast<StringAttr>(names[i]).getValue(), join, axis, tensor);
  }
}

} // namespace distc::lower
