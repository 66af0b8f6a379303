//===- EntryConverter.cpp - One entry as an LLVM function --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/program/EntryConverter.h"

#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "passes/graph/Passes.h"
#include "passes/lower/gpu/DeviceTables.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/KernelParts.h"
#include "passes/lower/program/ScopeNames.h"

using namespace mlir;

namespace distc {

void markAsKernel(LLVM::LLVMFuncOp function) {
  function.setPassthroughAttr(Builder(function).getStrArrayAttr({kKernelFunctionAttr}));
}

ProgramConversion::ProgramConversion(ModuleOp module, drt::ProgramOp program)
    : module(module), symbols(module), tables(module),
      arenaBytes(static_cast<int64_t>(program.getArenaBytes().value_or(0))) {
  for (auto variable : module.getOps<drt::VariableOp>()) {
    variables.insert({variable.getSymName(), static_cast<int64_t>(variables.size())});
    if (variable.getShares())
      shared[variable.getSymName()] = variable;
    // Shares lie behind whole variables, whichever the table has first.
    if (variable.getAt() == 0)
      firstOfBlock = variables.lookup(variable.getSymName());
  }
  isForDevices = program.isForDevices();
  kernels = getDeviceKernels(module);
  for (auto [number, kernel] : llvm::enumerate(kernels))
    kernelNumbers[kernel.getName()] = number;
}

EntryConverter::EntryConverter(ProgramConversion &program, drt::EntryOp entry)
    : program(program), entry(entry), builder(entry.getLoc(), entry.getContext()) {
  tables.name = entry.getName().str();
  tables.function = "drt_entry_" + tables.name;
}

void EntryConverter::createFunction() {
  builder.setInsertionPoint(entry);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(entry.getContext()), {program.tables.ptr});
  function = LLVM::LLVMFuncOp::create(builder, tables.function, type, LLVM::Linkage::Internal);
  Block *block = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  replica = block->getArgument(0);
  arena = replicaField(kArena);
}

Value EntryConverter::pointerArray(size_t count) {
  if (!pointers) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    pointers = LLVM::AllocaOp::create(builder, program.tables.ptr, program.tables.ptr, number64(0));
  }
  maxPointers = std::max(maxPointers, count);
  pointers.getArraySize().getDefiningOp<LLVM::ConstantOp>().setValueAttr(builder.getI64IntegerAttr(maxPointers));
  return pointers;
}

Value EntryConverter::entryMemory(Type type) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AllocaOp::create(builder, program.tables.ptr, type, number64(1));
}

LogicalResult EntryConverter::convert() {
  createFunction();
  for (Operation &op : entry.getBody().front()) {
    builder.setLoc(op.getLoc());
    if (failed(convert(op)))
      return failure();
  }
  LLVM::ReturnOp::create(builder, entry.getLoc(), ValueRange());
  return success();
}

LogicalResult EntryConverter::convert(Operation &op) {
  if (auto feed = dyn_cast<drt::FeedOp>(op))
    return convertAddress(feed);
  if (auto read = dyn_cast<drt::ReadOp>(op))
    return convertAddress(read);
  if (auto fetch = dyn_cast<drt::FetchOp>(op))
    return convertFetch(fetch);
  if (auto state = dyn_cast<drt::RandomStateOp>(op)) {
    SmallVector<Value> arguments = {number32(getRandomState(state)), number64(state.getSeed()),
                                    number64(state.getSeed2())};
    addresses[state.getState()] = callRuntime("drt_random_state", arguments, program.tables.ptr);
    return success();
  }
  if (auto index = dyn_cast<drt::ReplicaIndexOp>(op)) {
    addresses[index.getResult()] = callRuntime("drt_replica_index", {}, program.tables.ptr);
    return success();
  }
  if (op.getNumResults() == 1 && getStorage(op.getResult(0)) != op.getResult(0)) {
    addresses[op.getResult(0)] = address(op.getOperand(0));
    return success();
  }
  StringRef category = getScopeCategory(&op);
  if (category.empty() && !isa<drt::EmptyOp>(op))
    return op.emitOpError("has no place in an entry");
  if (isPlaced(&op)) {
    auto places = op.getAttrOfType<DenseI64ArrayAttr>("at");
    if (!places || places.size() != static_cast<int64_t>(op.getNumResults()))
      return op.emitOpError("has no place in the arena; run drt-plan-memory");
    for (auto [result, place] : llvm::zip(op.getResults(), places.asArrayRef())) {
      auto type = cast<RankedTensorType>(result.getType());
      const int64_t bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
      if (place > program.arenaBytes || bytes > program.arenaBytes - place)
        return op.emitOpError() << "has a place in the arena, " << place << ", behind whose " << program.arenaBytes
                                << " bytes it ends";
      addresses[result] = arenaAddress(place);
    }
  }
  if (isa<drt::EmptyOp>(op))
    return success();

  Value scope = number32(tables.scopes.size());
  tables.scopes.push_back(
      program.tables.structure({program.tables.string(getScopeName(&op)), program.tables.string(category)}));
  callRuntime("drt_scope_begin", {scope});
  LogicalResult result = convertWork(&op);
  callRuntime("drt_scope_end", {scope});
  return result;
}

// ---- Addresses ---------------------------------------------------------------------------

FailureOr<Value> EntryConverter::loadFeed(Operation *op, StringRef name, bool batched, bool optional) {
  auto [it, inserted] = feeds.try_emplace(name, static_cast<int64_t>(tables.feeds.size()));
  if (inserted) {
    auto tensor = cast<RankedTensorType>(op->getResult(0).getType());
    if (op->hasAttr(dfg::kUnsignedFeedAttr))
      tensor = cast<RankedTensorType>(
          tensor.clone(builder.getIntegerType(tensor.getElementTypeBitWidth(), /*isSigned=*/false)));
    FailureOr<Attribute> type = describeType(program.tables, op->getLoc(), tensor);
    if (failed(type))
      return failure();
    tables.feeds.push_back(
        program.tables.structure({program.tables.string(name), *type, program.tables.i32(batched),
                                  program.tables.i32(optional), program.tables.i32(op->hasAttr(dfg::kValidityAttr))}));
  }
  Value at = offset(replicaField(kFeeds), it->second * 8);
  return Value(LLVM::LoadOp::create(builder, program.tables.ptr, at));
}

LogicalResult EntryConverter::convertAddress(drt::FeedOp op) {
  FailureOr<Value> fed = loadFeed(op, op.getName(), op.getBatched(), /*optional=*/false);
  if (failed(fed))
    return failure();
  addresses[op.getResult()] = *fed;
  return success();
}

LogicalResult EntryConverter::convertAddress(drt::ReadOp op) {
  if (!program.variables.contains(op.getVariable()))
    return op.emitOpError("reads a variable that the program does not have");
  addresses[op.getResult()] = variableAddress(op.getVariable());
  return success();
}

LogicalResult EntryConverter::convertFetch(drt::FetchOp op) {
  FailureOr<Attribute> type = describeType(program.tables, op.getLoc(), op.getValue().getType());
  if (failed(type))
    return failure();
  Operation *producer = getStorage(op.getValue()).getDefiningOp();
  auto places = producer ? producer->getAttrOfType<DenseI64ArrayAttr>("at") : DenseI64ArrayAttr();
  if (!places)
    return op.emitOpError("needs a value in the arena; run drt-plan-memory");
  int64_t place = places[cast<OpResult>(getStorage(op.getValue())).getResultNumber()];
  auto summaries = program.module->getAttrOfType<DictionaryAttr>(dfg::kSummariesAttr);
  auto tag = summaries ? summaries.getAs<StringAttr>(op.getName()) : StringAttr();
  tables.fetches.push_back(program.tables.structure(
      {program.tables.string(op.getName()), *type, program.tables.i32(op.getJoin()), program.tables.i32(op.getAxis()),
       program.tables.i64(place), tag ? program.tables.string(tag) : program.tables.null()}));
  return success();
}

Value EntryConverter::offset(Value base, Value bytes) {
  return LLVM::GEPOp::create(builder, program.tables.ptr, builder.getI8Type(), base, ValueRange{bytes});
}

Value EntryConverter::offset(Value base, int64_t bytes) { return bytes ? offset(base, number64(bytes)) : base; }

Value EntryConverter::arenaAddress(int64_t place) { return offset(arena, place); }

Value EntryConverter::replicaField(int32_t field) {
  auto type = cast<LLVM::LLVMStructType>(getRuntimeType<drt_replica>(program.tables));
  Value at = LLVM::GEPOp::create(builder, program.tables.ptr, type, replica, ArrayRef<LLVM::GEPArg>{0, field});
  return LLVM::LoadOp::create(builder, type.getBody()[field], at);
}

Value EntryConverter::variableAddress(StringRef name) {
  Value at = offset(replicaField(kVariables), program.variables.at(name) * 8);
  Value first = LLVM::LoadOp::create(builder, program.tables.ptr, at);
  // The task's replicas' shares lie side by side, where they have one memory.
  if (drt::VariableOp variable = program.shared.lookup(name); variable && !program.isForDevices)
    return indexed(first, kLocalIndex, getTensorBytes(cast<RankedTensorType>(variable.getType())));
  return first;
}

Value EntryConverter::variableBlock() {
  return LLVM::LoadOp::create(builder, program.tables.ptr, offset(replicaField(kVariables), program.firstOfBlock * 8));
}

Value EntryConverter::indexed(Value base, int32_t indexField, int64_t bytes) {
  Value index = LLVM::SExtOp::create(builder, program.tables.int64, replicaField(indexField));
  return offset(base, LLVM::MulOp::create(builder, index, number64(bytes)));
}

// ---- Values --------------------------------------------------------------------------------

Value EntryConverter::number32(int64_t value) {
  return LLVM::ConstantOp::create(builder, program.tables.int32, builder.getI32IntegerAttr(value));
}

Value EntryConverter::number64(int64_t value) {
  return LLVM::ConstantOp::create(builder, program.tables.int64, builder.getI64IntegerAttr(value));
}

Value EntryConverter::null() { return LLVM::ZeroOp::create(builder, program.tables.ptr); }

Value EntryConverter::symbolAddress(FlatSymbolRefAttr symbol) {
  return LLVM::AddressOfOp::create(builder, program.tables.ptr, symbol);
}

LLVM::LLVMFuncOp EntryConverter::declareRuntime(StringRef name, ArrayRef<Type> types, Type result) {
  if (auto known = program.symbols.lookup<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(program.module.getBody());
  Type returned = result ? result : LLVM::LLVMVoidType::get(builder.getContext());
  auto made =
      LLVM::LLVMFuncOp::create(builder, program.module.getLoc(), name, LLVM::LLVMFunctionType::get(returned, types));
  program.symbols.insert(made);
  return made;
}

Value EntryConverter::callRuntime(StringRef name, ArrayRef<Value> arguments, Type result) {
  SmallVector<Value> operands = {replica};
  operands.append(arguments.begin(), arguments.end());
  SmallVector<Type> types = llvm::map_to_vector(operands, [](Value operand) { return operand.getType(); });
  auto call = LLVM::CallOp::create(builder, declareRuntime(name, types, result), operands);
  return result ? call.getResult() : Value();
}

} // namespace distc
