//===- OrderInitialization.cpp - Variables are initialized before they are read ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeOrder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_ORDERINITIALIZATION
#include "passes/graph/Passes.h.inc"

namespace {

struct Accesses {
  SmallVector<int> assignments, reads;
};

bool reads(Operation *op, Value handle) {
  auto effects = llvm::dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || llvm::isa<dfg::UpdateInterface, dfg::IsInitializedOp>(op))
    return false;
  SmallVector<MemoryEffects::EffectInstance> found;
  effects.getEffectsOnValue(handle, found);
  return llvm::any_of(found, [](const auto &effect) { return llvm::isa<MemoryEffects::Read>(effect.getEffect()); });
}

class Initialization {
public:
  /// `needed`: what the init op needs.
  Initialization(Block &block, const DenseSet<Operation *> &needed) : block(block), needed(needed) {
    const dfg::NodeEdges edges(block);
    DenseMap<Operation *, int> numbers;
    for (Operation &op : block) {
      numbers[&op] = static_cast<int>(nodes.size());
      nodes.push_back(&op);
    }
    before.resize(nodes.size());
    after.resize(nodes.size());
    for (auto [number, op] : llvm::enumerate(nodes))
      for (Operation *predecessor : edges.getBefore(op)) {
        before[number].push_back(numbers.at(predecessor));
        after[numbers.at(predecessor)].push_back(static_cast<int>(number));
      }
  }

  void order() {
    SmallVector<std::pair<int, int>> added = findMissingEdges();
    if (added.empty())
      return;
    SmallVector<SmallVector<int, 4>> edges = before;
    dfg::Predecessors predecessors;
    for (auto [assignment, read] : added)
      edges[read].push_back(assignment);
    for (const auto &[number, of] : llvm::enumerate(edges)) {
      predecessors.begin.push_back(static_cast<int>(predecessors.predecessors.size()));
      // What comes back in a loop of version 1 stands behind.
      for (int predecessor : of)
        if (predecessor < static_cast<int>(number) || llvm::is_contained(added, std::pair(predecessor, int(number))))
          predecessors.predecessors.push_back(predecessor);
    }
    predecessors.begin.push_back(static_cast<int>(predecessors.predecessors.size()));
    SmallVector<int> order = dfg::sortNodes(predecessors, llvm::BitVector(nodes.size()));
    // Variables that are made of each other have no order in TensorFlow either.
    if (order.size() != nodes.size())
      return;
    for (int number : order)
      nodes[number]->moveBefore(&block, block.end());
    for (auto [assignment, read] : added)
      if (!dfg::getNodeName(nodes[read]).empty())
        addControl(nodes[read], dfg::getNodeName(nodes[assignment]));
  }

private:
  /// From assignments to reads of the same variable that no edge puts in order.
  SmallVector<std::pair<int, int>> findMissingEdges() {
    llvm::MapVector<StringRef, Accesses> byVariable;
    for (auto [number, op] : llvm::enumerate(nodes)) {
      if (!needed.contains(op))
        continue;
      for (Value operand : op->getOperands()) {
        dfg::VarHandleOp handle = dfg::getVariableHandle(operand);
        if (!handle)
          continue;
        if (llvm::isa<dfg::AssignOp>(op))
          byVariable[handle.getVariable()].assignments.push_back(static_cast<int>(number));
        else if (reads(op, operand))
          byVariable[handle.getVariable()].reads.push_back(static_cast<int>(number));
      }
    }
    SmallVector<std::pair<int, int>> missing;
    for (const auto &[variable, accesses] : byVariable) {
      // Of several assignments nobody says which is the first.
      if (accesses.assignments.size() != 1 || accesses.reads.empty())
        continue;
      const int assignment = accesses.assignments.front();
      const DenseSet<int> earlier = collect(assignment, before), later = collect(assignment, after);
      for (int read : accesses.reads)
        if (!earlier.contains(read) && !later.contains(read) && isOfInitialization(read))
          missing.push_back({assignment, read});
    }
    return missing;
  }

  static DenseSet<int> collect(int node, ArrayRef<SmallVector<int, 4>> edges) {
    DenseSet<int> found;
    SmallVector<int> pending = {node};
    while (!pending.empty())
      for (int next : edges[pending.pop_back_val()])
        if (found.insert(next).second)
          pending.push_back(next);
    return found;
  }

  /// Nothing else waits for it: a step that did would initialize the variable again, and its nodes would come in
  /// another order.
  bool isOfInitialization(int node) {
    return llvm::all_of(collect(node, after), [&](int user) { return needed.contains(nodes[user]); });
  }

  static void addControl(Operation *op, StringRef name) {
    Builder builder(op->getContext());
    SmallVector<Attribute> names;
    if (auto known = op->getAttrOfType<ArrayAttr>(dfg::kControlAttr))
      llvm::append_range(names, known);
    names.push_back(builder.getStringAttr(name));
    op->setAttr(dfg::kControlAttr, builder.getArrayAttr(names));
  }

  Block &block;
  const DenseSet<Operation *> &needed;
  SmallVector<Operation *> nodes;
  SmallVector<SmallVector<int, 4>> before, after; // by number
};

struct OrderInitialization : impl::OrderInitializationBase<OrderInitialization> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      StringAttr name = graph.getInitOpAttr();
      EndpointNodes endpoints(graph);
      Operation *init = name ? endpoints.findNode(name, "operation") : nullptr;
      if (!name)
        continue;
      FailureOr<DenseSet<Operation *>> needed = failure();
      if (init)
        needed = endpoints.collect({init});
      if (failed(needed))
        return signalPassFailure();
      Initialization(graph.getBody().front(), *needed).order();
    }
  }
};

} // namespace
} // namespace distc
