//===- PlanOrder.cpp - Which accesses of a plan other replicas can meet -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/PlanOrder.h"

#include "dialects/drt/Servers.h"
#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

PlanOrder::PlanOrder(drt::EntryOp entry) {
  auto module = entry->getParentOfType<ModuleOp>();
  if (drt::ProgramOp program = drt::findProgram(module))
    shared =
        program.getJoint() || llvm::any_of(program.getTaskReplicas(), [](int64_t replicas) { return replicas > 1; });
  // Replicas that servers serve share nothing but what the runtime gives them; an update is run by one alone.
  if (drt::isServed(entry))
    shared = false;
  for (auto variable : module.getOps<drt::VariableOp>())
    if (variable.getShares())
      heldInShares.insert(FlatSymbolRefAttr::get(variable.getSymNameAttr()));
}

FlatSymbolRefAttr PlanOrder::getSharedVariable(const drt::Access &access) const {
  FlatSymbolRefAttr variable = access.variable;
  if (access.tensor)
    if (auto read = getStorage(access.tensor).getDefiningOp<drt::ReadOp>())
      variable = read.getVariableAttr();
  return heldInShares.contains(variable) ? FlatSymbolRefAttr() : variable;
}

const PlanOrder::Records *PlanOrder::getRecords(const drt::Access &access) const {
  return const_cast<PlanOrder *>(this)->getOrCreateRecords(access);
}

PlanOrder::Records *PlanOrder::getOrCreateRecords(const drt::Access &access) {
  if (access.bucket >= 0)
    return &buckets[access.bucket];
  if (FlatSymbolRefAttr variable = getSharedVariable(access))
    return &variables[variable];
  return nullptr; // the replica's own
}

static bool mayMeet(const drt::Access &one, const drt::Access &another) {
  return (one.writes || another.writes) && !one.extent.isDisjointFrom(another.extent);
}

std::optional<Race> PlanOrder::findRace(drt::AccessInterface op) const {
  if (!shared)
    return std::nullopt;
  const unsigned metBefore = getMetBefore(op);
  const SmallVector<drt::Access> accesses = op.getAccesses();
  for (auto [i, access] : llvm::enumerate(accesses)) {
    if (access.byRuntime)
      continue; // all replicas are here
    const Records *records = getRecords(access);
    if (records) {
      for (const Record &record : *records)
        if (record.position >= metBefore && mayMeet(record.access, access))
          return Race{record.op, record.access, access};
      for (const drt::Access &other : ArrayRef(accesses).take_front(i + 1))
        if (getRecords(other) == records && mayMeet(other, access))
          return Race{op, other, access};
      continue;
    }
    // Memory of the replica's own that the others access: written by its operation.
    Operation *producer = access.ofOthers ? getStorage(access.tensor).getDefiningOp() : nullptr;
    if (producer && isPlaced(producer) && producer != op.getOperation() && positions.lookup(producer) >= metBefore)
      return Race{producer, drt::Access{.writes = true, .tensor = access.tensor}, access};
  }
  return std::nullopt;
}

unsigned PlanOrder::getMetBefore(Operation *op) const {
  auto access = dyn_cast<drt::AccessInterface>(op);
  return access && access.meetsBefore() ? next : met;
}

void PlanOrder::advance(Operation *op) {
  const unsigned position = next++;
  positions[op] = position;
  if (auto access = dyn_cast<drt::AccessInterface>(op)) {
    if (access.meetsBefore())
      met = position;
    for (const drt::Access &made : access.getAccesses())
      if (Records *records = getOrCreateRecords(made)) {
        auto same = llvm::find_if(*records, [&](const Record &record) {
          return record.access.writes == made.writes && record.access.extent == made.extent;
        });
        if (same == records->end())
          same = records->insert(same, Record());
        *same = {position, op, made};
      }
    if (access.meetsAfter())
      met = next;
  }
  if (auto start = dyn_cast<drt::AllReduceStartOp>(op))
    starts[start.getBucket()] = position;
  else if (auto start = dyn_cast<drt::GatherStartOp>(op))
    starts[start.getBucket()] = position;
  else if (auto wait = dyn_cast<drt::AllReduceWaitOp>(op))
    met = std::max(met, starts.lookup(wait.getBucket()));
}

} // namespace distc
