//===- ProgramTables.cpp - What a program says of itself --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/program/ProgramTables.h"
#include "dialects/dfg/CompleteSlices.h"
#include "passes/graph/Passes.h"
#include "passes/lower/gpu/DeviceTables.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/Configured.h"

using namespace mlir;

namespace distc {

int32_t getDtype(Type element) {
  if (element.isF32())
    return DRT_F32;
  if (element.isF64())
    return DRT_F64;
  if (element.isF16())
    return DRT_F16;
  if (element.isBF16())
    return DRT_BF16;
  if (element.isInteger(1))
    return DRT_BOOL;
  if (element.isInteger(8))
    return element.isUnsignedInteger() ? DRT_U8 : DRT_I8;
  if (element.isInteger(16))
    return DRT_I16;
  if (element.isInteger(32))
    return DRT_I32;
  if (element.isInteger(64))
    return DRT_I64;
  return 0;
}

FailureOr<Attribute> describeType(ConstantTables &tables, Location loc, Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  int32_t dtype = getDtype(type.getElementType());
  if (!dtype)
    return emitError(loc) << "the runtime has no elements of type " << type.getElementType();
  return tables.structure({tables.i32(dtype), tables.i32(type.getRank()), tables.numbers(type.getShape())});
}

namespace {

FailureOr<SmallVector<Attribute>> describeVariables(ModuleOp module, ConstantTables &tables) {
  SmallVector<Attribute> rows;
  for (auto variable : module.getOps<drt::VariableOp>()) {
    auto type = cast<RankedTensorType>(variable.getType());
    FailureOr<Attribute> described = describeType(tables, variable.getLoc(), type);
    if (failed(described))
      return failure();
    auto numbers = [&](std::optional<ArrayRef<int64_t>> values) {
      return values ? tables.numbers(*values) : tables.null();
    };
    int32_t flags = (variable.getTrainable() ? DRT_VARIABLE_TRAINABLE : 0) |
                    (variable.getSaved() ? DRT_VARIABLE_SAVED : 0) | (variable.getCarried() ? DRT_VARIABLE_CARRIED : 0);
    StringRef name = variable.getWhole().value_or(variable.getSymName());
    rows.push_back(tables.structure({tables.string(name), *described, tables.i64(getTensorBytes(type)),
                                     tables.i32(flags), numbers(variable.getFullShape()),
                                     numbers(variable.getSliceBegin()), tables.i32(variable.getShares().value_or(0)),
                                     tables.i32(variable.getShares() ? variable.getFullShape()->size() : 0),
                                     tables.i64(variable.getAt().value_or(0)),
                                     tables.i32(variable.getOwner() ? *variable.getOwner() + 1 : 0)}));
  }
  return rows;
}

Attribute describeEntry(const EntryTables &entry, ConstantTables &tables) {
  auto array = [&]<typename Row>(StringRef what, ArrayRef<Attribute> rows) {
    return tables.array(("drt_" + entry.name + "_" + what).str(), getRuntimeType<Row>(tables), rows);
  };
  return tables.structure({tables.string(entry.name), tables.function(entry.function), tables.i32(entry.feeds.size()),
                           array.operator()<drt_feed>("feeds", entry.feeds), tables.i32(entry.fetches.size()),
                           array.operator()<drt_fetch>("fetches", entry.fetches), tables.i32(entry.scopes.size()),
                           array.operator()<drt_scope>("scopes", entry.scopes), tables.i32(entry.buckets.size()),
                           array.operator()<drt_bucket>("buckets", entry.buckets)});
}

Attribute describeServers(const CallSites &sites, int64_t replicas, ConstantTables &tables) {
  drt::PushOp push = sites.push;
  if (!push)
    return tables.null();
  SmallVector<Attribute> gradients;
  for (auto [i, name, mean, gradient] :
       llvm::enumerate(push.getNames().getAsRange<StringAttr>(), push.getMeans(), push.getGradients())) {
    auto type = cast<RankedTensorType>(gradient.getType());
    const int32_t reduction = push.isJoined(i) ? DRT_REDUCE_JOIN : mean ? DRT_REDUCE_MEAN : DRT_REDUCE_SUM;
    auto rule = dyn_cast_or_null<dist::AggregatorAttr>(push.getAggregator(i));
    gradients.push_back(tables.structure(
        {tables.string(name), tables.i32(getDtype(type.getElementType())), tables.i32(reduction),
         tables.i64(type.getNumElements()),
         rule ? Attribute(describeExchange(tables, dist::Compressor::None, 0, rule)) : tables.null()}));
  }
  const auto required = static_cast<int64_t>(push.getRequired());
  const int32_t policy = push.getAsync()        ? DRT_SERVE_ASYNC
                         : required == replicas ? DRT_SERVE_BOUNDED
                                                : DRT_SERVE_COUNTED;
  return describe<drt_servers>(
      tables,
      ArrayRef<Attribute>{
          tables.i32(policy), tables.i32(required), tables.i64(push.getStaleness()), tables.i32(gradients.size()),
          tables.array("drt_gradients", getRuntimeType<drt_gradient>(tables), gradients),
          tables.i32(sites.pulled.size()), tables.numbers(sites.pulled), tables.i32(sites.pulledRows.size()),
          tables.array("drt_pulled_rows", getRuntimeType<drt_pulled_rows>(tables), sites.pulledRows)});
}

// The index of the variable that counts steps, -1 where there is none.
FailureOr<int64_t> findGlobalStep(ModuleOp module, drt::ProgramOp program) {
  auto name = program.getGlobalStep();
  if (!name)
    return int64_t(-1);
  for (auto [index, variable] : llvm::enumerate(module.getOps<drt::VariableOp>()))
    if (variable.getSymName() == *name)
      return static_cast<int64_t>(index);
  return program.emitOpError() << "names the global step @" << *name << ", which is no variable of the program";
}

/// The graph's own slices of tables of which the program has every part.
SmallVector<std::pair<StringRef, dfg::SliceAttr>> findCompleteSlices(ModuleOp module) {
  llvm::StringSet<> variables;
  for (auto variable : module.getOps<drt::VariableOp>())
    variables.insert(variable.getWhole().value_or(variable.getSymName()));
  return dfg::findCompleteSlices(module->getAttrOfType<DictionaryAttr>(dfg::kSlicesAttr),
                                 [&](StringRef name) { return variables.contains(name); });
}

/// Where checkpoints have the variables (drt/checkpoint_keys.h).
void writeCheckpointKeys(ModuleOp module, ConstantTables &tables) {
  auto objects = module->getAttrOfType<DictionaryAttr>(dfg::kProgramObjectsAttr);
  auto graph = objects ? objects.getAs<StringAttr>("graph") : StringAttr();
  std::map<StringRef, Attribute> rows; // by the variable's name
  if (auto keys = objects ? objects.getAs<DictionaryAttr>("keys") : DictionaryAttr())
    for (NamedAttribute entry : keys)
      rows[entry.getName()] =
          tables.structure({tables.string(entry.getName()), tables.string(llvm::cast<StringAttr>(entry.getValue())),
                            tables.i32(0), tables.null(), tables.null()});
  for (const auto &[variable, slice] : findCompleteSlices(module))
    rows[variable] =
        tables.structure({tables.string(variable), tables.string(slice.getWhole()), tables.i32(slice.getShape().size()),
                          tables.numbers(slice.getShape()), tables.numbers(slice.getOffsets())});
  if (rows.empty() && !graph)
    return;
  tables.global("drt_the_checkpoint_keys", LLVM::Linkage::External, getRuntimeType<drt_checkpoint_keys>(tables),
                tables.structure({tables.i32(rows.size()),
                                  tables.array("drt_checkpoint_key_table", getRuntimeType<drt_checkpoint_key>(tables),
                                               llvm::to_vector(llvm::make_second_range(rows))),
                                  tables.i64(graph ? graph.size() : 0),
                                  tables.bytes("drt_object_graph", graph ? graph.getValue() : StringRef())}));
}

} // namespace

LogicalResult writeProgram(ModuleOp module, drt::ProgramOp program, ConstantTables &tables,
                           ArrayRef<EntryTables> entries, const CallSites &sites, StringRef plan) {
  FailureOr<int64_t> globalStep = findGlobalStep(module, program);
  FailureOr<SmallVector<Attribute>> variables = describeVariables(module, tables);
  FailureOr<Attribute> device = describeDevice(module, program, tables);
  if (failed(globalStep) || failed(variables) || failed(device))
    return failure();

  SmallVector<Attribute> tasks, entryRows;
  for (auto task : program.getTasks().getAsRange<drt::TaskAttr>())
    tasks.push_back(
        tables.structure({tables.string(task.getJob()), tables.i32(task.getIndex()), tables.string(task.getHost()),
                          tables.i32(task.getFirstReplica()), tables.i32(task.getNumReplicas())}));
  SmallVector<Attribute> placeholders;
  if (program.getPlaceholders())
    for (auto name : program.getPlaceholders()->getAsRange<StringAttr>())
      placeholders.push_back(tables.string(name.getValue()));
  for (const EntryTables &entry : entries)
    entryRows.push_back(describeEntry(entry, tables));

  Attribute fields[] = {tables.i32(DRT_ABI_VERSION),
                        tables.string(getVersion()),
                        tables.string(program.getGraph()),
                        tables.string(program.getStrategy()),
                        tables.string(program.getTarget()),
                        tables.i64(static_cast<int64_t>(program.getBatch())),
                        tables.i32(program.getNumReplicas()),
                        tables.i64(static_cast<int64_t>(*program.getArenaBytes())),
                        tables.i32(tasks.size()),
                        tables.array("drt_tasks", getRuntimeType<drt_task>(tables), tasks),
                        tables.i32(variables->size()),
                        tables.array("drt_variables", getRuntimeType<drt_variable>(tables), *variables),
                        tables.i32(*globalStep),
                        tables.i32(entryRows.size()),
                        tables.array("drt_entries", getRuntimeType<drt_entry>(tables), entryRows),
                        tables.i32(sites.primitives),
                        tables.i32(sites.randomStates),
                        tables.i32(sites.accumulateSteps),
                        tables.i32(sites.accumulators),
                        tables.string(plan),
                        *device,
                        tables.i32(placeholders.size()),
                        tables.array("drt_placeholders", tables.ptr, placeholders),
                        describeServers(sites, program.getNumReplicas(), tables),
                        tables.i32(static_cast<int32_t>(program.getCores().value_or(0)))};
  writeCheckpointKeys(module, tables);
  tables.global("drt_the_program", LLVM::Linkage::External, getRuntimeType<drt_program>(tables),
                tables.structure(fields));
  return success();
}

} // namespace distc
