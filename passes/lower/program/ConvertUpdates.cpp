//===- ConvertUpdates.cpp - Buckets, and the updates that read them -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Servers.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/Descriptors.h"
#include "passes/lower/program/EntryConverter.h"

using namespace mlir;

namespace distc {

static Type getElementType(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

static LogicalResult expectNext(Operation *op, uint32_t bucket, const EntryTables &tables) {
  if (bucket == tables.buckets.size())
    return success();
  return op->emitOpError("starts bucket ") << bucket << " as number " << tables.buckets.size()
                                           << "; buckets are numbered in the order in which they start";
}

namespace {

/// A drt_bucket, in the order of its fields.
struct BucketRow {
  StringRef name; // its number follows
  int32_t kind;
  Type element;
  int32_t reduction = DRT_REDUCE_SUM;
  int64_t place = 0; // in the arena
  int64_t count = 0;
  Attribute exchange = {}; // none: plain sums
  int32_t algorithm = DRT_ALL_REDUCE_AUTO;
  bool pipelined = false;
};

} // namespace

/// The entry's next bucket.
static void addBucket(ConstantTables &constants, EntryTables &tables, const BucketRow &row,
                      ArrayRef<Attribute> members) {
  const std::string number = std::to_string(tables.buckets.size());
  tables.buckets.push_back(constants.structure(
      {constants.string((row.name + " " + number).str()), constants.i32(row.kind), constants.i32(getDtype(row.element)),
       constants.i32(row.reduction), constants.i64(row.place), constants.i64(row.count), constants.i32(members.size()),
       constants.array("drt_" + tables.name + "_bucket_" + number, getRuntimeType<drt_member>(constants), members),
       row.exchange ? row.exchange : constants.null(), constants.i32(row.algorithm), constants.i32(row.pipelined)}));
}

LogicalResult EntryConverter::convertStart(drt::AllReduceStartOp op) {
  if (failed(expectNext(op, op.getBucket(), tables)))
    return failure();
  ConstantTables &constants = program.tables;
  // A bucket without members joins the replicas.
  Type element = op.getGradients().empty() ? builder.getF32Type() : getElementType(op.getGradients().front());
  for (Value gradient : op.getGradients())
    if (getElementType(gradient) != element)
      return op.emitOpError("has gradients of types ")
             << element << " and " << getElementType(gradient) << "; a bucket has one type";
  if (!op.getGradients().empty() && !op.getAt())
    return op.emitOpError("has no place in the arena; run drt-plan-memory");
  FailureOr<Attribute> exchange = describeExchange(constants, op);
  if (failed(exchange))
    return failure();
  SmallVector<Attribute> members;
  const SmallVector<int64_t> offsets = getMemberOffsets(op);
  const int64_t place = op.getGradients().empty() ? 0 : (*op.getAt())[0];
  for (auto [gradient, offset] : llvm::zip(op.getGradients(), offsets)) {
    auto result = llvm::dyn_cast<OpResult>(gradient);
    auto places = result ? result.getOwner()->getAttrOfType<DenseI64ArrayAttr>("at") : DenseI64ArrayAttr();
    if (places && places[result.getResultNumber()] != place + offset)
      return op.emitOpError() << "has a bucket at " << place << ", whose gradient at " << offset << " in it lies at "
                              << places[result.getResultNumber()];
  }
  const int64_t bytes = offsets.back();
  if (place > program.arenaBytes || bytes > program.arenaBytes - place)
    return op.emitOpError() << "has a place in the arena, " << place << ", behind whose " << program.arenaBytes
                            << " bytes it ends";
  for (size_t i = 0; i < op.getGradients().size(); ++i) {
    auto variable = program.variables.find(cast<StringAttr>(op.getNames()[i]).getValue());
    if (op.getPipelined() && variable == program.variables.end())
      return op.emitOpError("is pipelined, and has a gradient of ")
             << op.getNames()[i] << ", which is no variable of the program";
    members.push_back(describeMember(constants, op, i, offsets[i] / getElementBytes(element),
                                     op.getPipelined() ? variable->second : -1));
  }
  const int32_t kind = op.getGather()    ? DRT_BUCKET_GATHER_ROWS
                       : op.getScatter() ? DRT_BUCKET_REDUCE_SCATTER
                                         : DRT_BUCKET_ALL_REDUCE;
  const int64_t count =
      op.getGather() ? countElements(op.getGradients().front()) : offsets.back() / getElementBytes(element);
  addBucket(constants, tables,
            {.name = "bucket",
             .kind = kind,
             .element = element,
             .reduction = op.getMean() ? DRT_REDUCE_MEAN : DRT_REDUCE_SUM,
             .place = place,
             .count = count,
             .exchange = *exchange,
             .algorithm = static_cast<int32_t>(op.getAlgorithm()),
             .pipelined = op.getPipelined()},
            members);
  buckets[op.getBucket()] = op;
  callRuntime("drt_all_reduce_start", {number32(op.getBucket())});
  return success();
}

LogicalResult EntryConverter::convertGather(drt::GatherStartOp op) {
  if (failed(expectNext(op, op.getBucket(), tables)))
    return failure();
  ConstantTables &constants = program.tables;
  SmallVector<Attribute> members;
  int64_t bytes = 0;
  for (auto [i, variable] : llvm::enumerate(op.getVariables().getAsRange<FlatSymbolRefAttr>())) {
    if (!program.variables.contains(variable.getValue()))
      return op.emitOpError("gathers ") << variable << ", which is no variable of the program";
    auto type = cast<RankedTensorType>(program.symbols.lookup<drt::VariableOp>(variable.getValue()).getType());
    int64_t count = type.getNumElements();
    members.push_back(constants.structure({constants.string(variable.getValue()), constants.i64(0),
                                           constants.i64(count), constants.i64(1), constants.i64(count),
                                           constants.i64(op.getOwners() ? (*op.getOwners())[i] + 1 : 0),
                                           constants.i64(op.getRoom() ? (*op.getRoom())[i] : 0),
                                           constants.i64(program.variables.at(variable.getValue()))}));
    bytes += getTensorBytes(type);
  }
  addBucket(constants, tables,
            {.name = "gather",
             .kind = DRT_BUCKET_GATHER,
             .element = builder.getI8Type(),
             .count = bytes,
             .pipelined = op.getPipelined()},
            members);
  gathers.insert(op.getBucket());
  callRuntime("drt_all_reduce_start", {number32(op.getBucket())});
  return success();
}

/// Operands, then results.
static SmallVector<Value> allTensors(Operation *op) {
  SmallVector<Value> tensors(op->getOperands());
  llvm::append_range(tensors, op->getResults());
  return tensors;
}

LogicalResult EntryConverter::convertPushRows(drt::PushRowsOp op) {
  if (failed(expectNext(op, op.getBucket(), tables)))
    return failure();
  ConstantTables &constants = program.tables;
  int64_t count = 0;
  SmallVector<Attribute> members;
  for (auto [number, name, shards, indices, values] :
       llvm::enumerate(op.getNames().getAsRange<StringAttr>(), op.getShards().getAsRange<DenseI64ArrayAttr>(),
                       op.getIndices(), op.getValues())) {
    const int64_t given = countElements(indices);
    const int64_t rowBytes = getTensorBytes(cast<RankedTensorType>(values.getType())) / given;
    for (int64_t i = 0; i < shards.size(); i += 3)
      members.push_back(
          constants.structure({constants.string(name.getValue()), constants.i64(shards[i]),
                               constants.i64(shards[i + 1]), constants.i64(rowBytes), constants.i64(given),
                               constants.i64(shards[i + 2] + 1), constants.i64(0), constants.i64(number)}));
    count += given;
  }
  addBucket(constants, tables,
            {.name = "push",
             .kind = DRT_BUCKET_PUSH_ROWS,
             .element = getElementType(op.getIndices().front()),
             .count = count},
            members);
  callRuntime("drt_push_rows", {number32(op.getBucket()), storeAddresses(addressesOf(allTensors(op)))});
  return success();
}

LogicalResult EntryConverter::convertPullRows(drt::PullRowsOp op) {
  if (failed(expectNext(op, op.getBucket(), tables)))
    return failure();
  ConstantTables &constants = program.tables;
  SmallVector<Attribute> members;
  int64_t count = 0; // indices so far
  for (auto [symbol, indices, owner] :
       llvm::zip(op.getVariables().getAsRange<FlatSymbolRefAttr>(), op.getIndices(), op.getOwners())) {
    StringRef variable = symbol.getValue();
    if (!program.variables.contains(variable))
      return op.emitOpError("takes rows of ") << symbol << ", which is no variable of the program";
    auto table = cast<RankedTensorType>(program.symbols.lookup<drt::VariableOp>(variable).getType());
    const int64_t row = ShapedType::getNumElements(table.getShape().drop_front());
    members.push_back(constants.structure(
        {constants.string(variable), constants.i64(count), constants.i64(table.getNumElements()), constants.i64(row),
         constants.i64(0), constants.i64(owner + 1), constants.i64(0), constants.i64(program.variables.at(variable))}));
    count += countElements(indices);
  }
  addBucket(constants, tables,
            {.name = "pull",
             .kind = DRT_BUCKET_PULL_ROWS,
             .element = getElementType(op.getIndices().front()),
             .count = count},
            members);
  callRuntime("drt_pull_rows", {number32(op.getBucket()), storeAddresses(addressesOf(allTensors(op)))});
  return success();
}

FailureOr<drt::AllReduceStartOp> EntryConverter::findBucket(Operation *op, int32_t bucket) {
  if (drt::AllReduceStartOp start = buckets.lookup(bucket))
    return start;
  return op->emitOpError("names bucket ") << bucket << ", which was not started before";
}

LogicalResult EntryConverter::convertResult(drt::AllReduceResultOp op) {
  FailureOr<drt::AllReduceStartOp> start = findBucket(op, op.getBucket());
  if (failed(start))
    return failure();
  if (op.getNumResults() != start->getGradients().size())
    return op.emitOpError("has ") << op.getNumResults() << " results, the bucket " << start->getGradients().size()
                                  << " gradients";
  Value reduced = callRuntime("drt_all_reduce_result", {number32(op.getBucket())}, program.tables.ptr);
  for (auto [result, place] : llvm::zip(op.getResults(), getMemberOffsets(*start)))
    addresses[result] = offset(reduced, place);
  return success();
}

// ---- Gradient accumulation ------------------------------------------------------------------

LogicalResult EntryConverter::convertAccumulate(drt::AccumulateOp op) {
  CallSites &sites = program.sites;
  sites.accumulateSteps = op.getSteps();
  for (auto [i, gradient] : llvm::enumerate(op.getGradients())) {
    auto type = cast<RankedTensorType>(gradient.getType());
    callRuntime("drt_accumulate",
                {number32(op.getFirst() + i), symbolAddress(describeAccumulate(program.tables, type, op.getSlices())),
                 address(gradient)});
  }
  sites.accumulators = std::max<int32_t>(sites.accumulators, op.getFirst() + op.getGradients().size());
  return success();
}

LogicalResult EntryConverter::convertAccumulated(drt::AccumulatedOp op) {
  CallSites &sites = program.sites;
  sites.accumulateSteps = op.getSteps();
  Value scale = LLVM::ConstantOp::create(builder, builder.getF64Type(), op.getScaleAttr());
  for (auto [i, gradient, sum] : llvm::enumerate(op.getGradients(), op.getAccumulated())) {
    auto type = cast<RankedTensorType>(gradient.getType());
    callRuntime("drt_accumulated",
                {number32(op.getFirst() + i), symbolAddress(describeAccumulate(program.tables, type, op.getSlices())),
                 scale, address(gradient), address(sum)});
  }
  sites.accumulators = std::max<int32_t>(sites.accumulators, op.getFirst() + op.getGradients().size());
  return success();
}

// ---- Parameter servers ----------------------------------------------------------------------

LogicalResult EntryConverter::convertPull(drt::PullOp op) {
  for (auto variable : op.getVariables().getAsRange<FlatSymbolRefAttr>())
    program.sites.pulled.push_back(program.variables.at(variable.getValue()));
  ConstantTables &constants = program.tables;
  for (auto [i, indices] : llvm::enumerate(op.getIndices())) {
    StringRef name = op.getPulled(op.getVariables().size() + i).getValue();
    auto table = cast<RankedTensorType>(program.symbols.lookup<drt::VariableOp>(name).getType());
    const int64_t row = ShapedType::getNumElements(table.getShape().drop_front());
    program.sites.pulledRows.push_back(
        constants.structure({constants.i64(program.variables.at(name)), constants.i64(table.getDimSize(0)),
                             constants.i64(row * getElementBytes(table.getElementType())),
                             constants.i64(countElements(indices)), constants.i32(getDtype(getElementType(indices)))}));
  }
  SmallVector<Value> tensors(op.getValues());
  llvm::append_range(tensors, op.getIndices());
  callRuntime("drt_pull", {storeAddresses(addressesOf(tensors))});
  return success();
}

LogicalResult EntryConverter::convertPush(drt::PushOp op) {
  program.sites.push = op;
  callRuntime("drt_push", {storeAddresses(addressesOf(op.getGradients()))});
  return success();
}

// ---- Updates --------------------------------------------------------------------------------

static bool isDrawn(Value argument) { return isa_and_nonnull<drt::DrawOp>(getStorage(argument).getDefiningOp()); }

FailureOr<Value> EntryConverter::argumentArray(Operation *op, ArrayAttr variables, ValueRange arguments,
                                               drt::UpdateOp update) {
  int64_t next = 0;
  Value array = pointerArray(variables.size() + arguments.size());
  const int64_t share = update ? update.getShare().value_or(0) : 0;
  // What is not held in shares is as long as the whole.
  auto shareOf = [&](Value pointer, Type element) {
    return indexed(pointer, kGlobalIndex, share * getElementBytes(element));
  };
  auto store = [&](Value pointer) { LLVM::StoreOp::create(builder, pointer, offset(array, 8 * next++)); };
  for (auto variable : variables.getAsRange<FlatSymbolRefAttr>()) {
    if (!program.variables.contains(variable.getValue()))
      return op->emitOpError("updates ") << variable << ", which is no variable of the program";
    Value pointer = variableAddress(variable.getValue());
    auto type = cast<RankedTensorType>(program.symbols.lookup<drt::VariableOp>(variable.getValue()).getType());
    store(share && !program.shared.contains(variable.getValue()) ? shareOf(pointer, type.getElementType()) : pointer);
  }
  for (Value argument : arguments) {
    auto type = cast<RankedTensorType>(argument.getType());
    // A draw says itself where its elements begin.
    bool whole = share && type.getNumElements() == static_cast<int64_t>(update.getCount()) && !isDrawn(argument);
    store(whole ? shareOf(address(argument), type.getElementType()) : address(argument));
  }
  return array;
}

FailureOr<Value> EntryConverter::rangeKernel(Operation *op, StringRef name, size_t pointers, bool hasGradient) {
  if (program.isForDevices)
    return op->emitOpError("has no code for GPUs; run drt-group-updates");
  auto kernel = program.symbols.lookup<LLVM::LLVMFuncOp>(name);
  if (!kernel)
    return op->emitOpError("calls a range kernel that is no LLVM function: @") << name;
  if (kernel.getNumArguments() != 2 + hasGradient + pointers)
    return op->emitOpError("needs a range kernel with ")
           << 2 + hasGradient + pointers << " arguments, @" << name << " has " << kernel.getNumArguments();
  std::string thunkName = (name + "_range").str();
  if (!program.symbols.lookup(thunkName)) {
    ConstantTables &tables = program.tables;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(kernel);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                            {tables.int64, tables.int64, tables.ptr, tables.ptr});
    auto thunk = LLVM::LLVMFuncOp::create(builder, thunkName, type, LLVM::Linkage::Internal);
    markAsKernel(thunk);
    program.symbols.insert(thunk);
    Block *block = thunk.addEntryBlock(builder);
    builder.setInsertionPointToStart(block);
    SmallVector<Value> operands(block->getArguments().take_front(2 + hasGradient));
    for (size_t i = 0; i < pointers; ++i)
      operands.push_back(LLVM::LoadOp::create(builder, tables.ptr, offset(block->getArgument(3), 8 * i)));
    LLVM::CallOp::create(builder, kernel, operands);
    LLVM::ReturnOp::create(builder, ValueRange());
  }
  return symbolAddress(FlatSymbolRefAttr::get(builder.getContext(), thunkName));
}

std::pair<Value, Value> EntryConverter::drawn(drt::UpdateOp op, Value kernel, Value array) {
  const size_t variables = op.getVariables().size();
  int64_t draws = 0;
  for (auto [i, argument] : llvm::enumerate(op.getArguments()))
    if (isDrawn(argument))
      draws |= int64_t(1) << (variables + i);
  if (!draws)
    return {kernel, array};
  ConstantTables &constants = program.tables;
  Value update = entryMemory(getRuntimeType<drt_drawn_update>(constants));
  Value first = number64(0);
  if (op.getShare()) {
    Value index = LLVM::SExtOp::create(builder, constants.int64, replicaField(kGlobalIndex));
    first = LLVM::MulOp::create(builder, index, number64(*op.getShare()));
  }
  auto store = [&](size_t at, Value value) { LLVM::StoreOp::create(builder, value, offset(update, at)); };
  store(offsetof(drt_drawn_update, kernel), kernel);
  store(offsetof(drt_drawn_update, arguments), array);
  store(offsetof(drt_drawn_update, num_arguments), number64(variables + op.getArguments().size()));
  store(offsetof(drt_drawn_update, drawn), number64(draws));
  store(offsetof(drt_drawn_update, first), first);
  auto draw = declareRuntime("drt_update_drawn", {constants.int64, constants.int64, constants.ptr, constants.ptr});
  return {symbolAddress(FlatSymbolRefAttr::get(draw)), update};
}

LogicalResult EntryConverter::convertUpdate(drt::UpdateOp op) {
  const bool fromBucket = op.getBucket().has_value();
  FailureOr<Value> kernel =
      rangeKernel(op, op.getKernel(), op.getVariables().size() + op.getArguments().size(), fromBucket);
  FailureOr<Value> array = argumentArray(op, op.getVariables(), op.getArguments(), op);
  if (failed(kernel) || failed(array))
    return failure();
  std::tie(*kernel, *array) = drawn(op, *kernel, *array);
  Value count = number64(op.getCount());
  if (!fromBucket && op.getShare()) {
    callRuntime("drt_update_share", {number32(-1), number64(0), count, number64(*op.getShare()), *kernel, *array});
    return success();
  }
  if (!fromBucket && op.getOwner()) {
    callRuntime("drt_update_owned", {number32(*op.getOwner()), number32(-1), number64(0), count, *kernel, *array});
    return success();
  }
  if (!fromBucket) {
    callRuntime("drt_update_local", {count, *kernel, *array});
    return success();
  }
  FailureOr<drt::AllReduceStartOp> start = findBucket(op, *op.getBucket());
  if (failed(start))
    return failure();
  uint64_t member = op.getMember().value_or(0);
  if (member >= start->getGradients().size())
    return op.emitOpError("names member ")
           << member << " of bucket " << *op.getBucket() << ", which has " << start->getGradients().size();
  Value gradient = start->getGradients()[member];
  if (cast<RankedTensorType>(gradient.getType()).getNumElements() != static_cast<int64_t>(op.getCount()))
    return op.emitOpError("updates ") << op.getCount() << " elements from a gradient of type " << gradient.getType();
  int64_t first = getMemberOffsets(*start)[member] / getElementBytes(getElementType(gradient));
  if (op.getShare()) {
    callRuntime("drt_update_share",
                {number32(*op.getBucket()), number64(first), count, number64(*op.getShare()), *kernel, *array});
    return success();
  }
  if (op.getOwner()) {
    callRuntime("drt_update_owned",
                {number32(*op.getOwner()), number32(*op.getBucket()), number64(first), count, *kernel, *array});
    return success();
  }
  callRuntime("drt_update", {number32(*op.getBucket()), number64(first), count, *kernel, *array});
  return success();
}

LogicalResult EntryConverter::convertSparseUpdate(drt::SparseUpdateOp op) {
  FailureOr<Value> kernel = rangeKernel(op, op.getKernel(), op.getVariables().size() + op.getArguments().size(), true);
  FailureOr<Value> array = argumentArray(op, op.getVariables(), op.getArguments());
  if (failed(kernel) || failed(array))
    return failure();
  auto name = cast<FlatSymbolRefAttr>(op.getVariables()[0]).getValue();
  auto variable = SymbolTable::lookupNearestSymbolFrom<drt::VariableOp>(entry, StringAttr::get(op.getContext(), name));
  ArrayRef<int64_t> shape = cast<RankedTensorType>(variable.getType()).getShape();
  callRuntime("drt_sparse_update", {symbolAddress(describeSparseUpdate(program.tables, op, shape)),
                                    address(op.getIndices()), address(op.getValues()), *kernel, *array});
  return success();
}

std::pair<Value, Value> EntryConverter::replicated(Value tensor) {
  Value own = address(tensor);
  if (auto feed = getStorage(tensor).getDefiningOp<drt::FeedOp>()) {
    if (!feed.getBatched())
      return {own, number64(0)};
    // The shares of the task's replicas lie behind each other.
    int64_t bytes = getTensorBytes(cast<RankedTensorType>(tensor.getType()));
    Value index = LLVM::SExtOp::create(builder, program.tables.int64, replicaField(kLocalIndex));
    return {offset(own, LLVM::MulOp::create(builder, index, number64(-bytes))), number64(bytes)};
  }
  auto result = cast<OpResult>(getStorage(tensor));
  int64_t place = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>("at")[result.getResultNumber()];
  return {offset(replicaField(kArenaBase), place), replicaField(kArenaStride)};
}

LogicalResult EntryConverter::convertMatmulUpdate(drt::MatmulUpdateOp op) {
  for (Value operand : {op.getA(), op.getB()}) {
    Operation *producer = getStorage(operand).getDefiningOp();
    if (!producer || (!isPlaced(producer) && !isa<drt::FeedOp>(producer)))
      return op.emitOpError("needs operands that every replica has at the same place: feeds, or tensors in the arena");
  }
  FlatSymbolRefAttr descriptor = describeMatmulUpdate(program.tables, op);
  FailureOr<Value> kernel = rangeKernel(op, op.getKernel(), op.getVariables().size() + op.getArguments().size(), true);
  FailureOr<Value> array = argumentArray(op, op.getVariables(), op.getArguments());
  if (failed(kernel) || failed(array))
    return failure();
  auto [a, strideA] = replicated(op.getA());
  auto [b, strideB] = replicated(op.getB());
  Value scale = LLVM::ConstantOp::create(builder, builder.getF64Type(), op.getScaleAttr());
  callRuntime("drt_matmul_update", {number32(program.sites.primitives++), symbolAddress(descriptor), strideA, strideB,
                                    a, b, scale, *kernel, *array, number32(op.getVariables().size())});
  return success();
}

} // namespace distc
