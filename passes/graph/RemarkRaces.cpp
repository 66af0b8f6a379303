//===- RemarkRaces.cpp - Accesses of a variable that no edge puts in order --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeEdges.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"
#include "passes/graph/References.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_REMARKRACES
#include "passes/graph/Passes.h.inc"

namespace {

struct Access {
  Operation *op;
  bool writes;
};

struct Race {
  StringRef variable;
  Operation *first, *second;
};

bool isSum(Operation *op) { return llvm::isa<dfg::AssignAddOp, dfg::AssignSubOp>(op); }

/// The name of a read that is made where a reference is used as a value is the user's.
StringRef getShownName(Operation *op) {
  StringRef name = dfg::getNodeName(op);
  return name.empty() && !op->use_empty() ? dfg::getNodeName(*op->user_begin()) : name;
}

class Races {
public:
  Races(dfg::GraphOp graph, const llvm::StringSet<> &references)
      : block(graph.getBody().front()), edges(block), references(references) {}

  /// Among the nodes that a step runs, in the block's order.
  SmallVector<Race> find(const DenseSet<Operation *> &step) {
    llvm::MapVector<StringRef, SmallVector<Access>> byVariable;
    for (Operation &op : block)
      if (step.contains(&op))
        addAccesses(&op, byVariable);
    SmallVector<std::pair<StringRef, ArrayRef<Access>>> pending;
    SmallVector<Race> races;
    unsigned count = 0;
    for (auto &[variable, accesses] : byVariable) {
      if (accesses.size() < 2 || llvm::none_of(accesses, [](const Access &access) { return access.writes; }))
        continue;
      pending.push_back({variable, accesses});
      count += accesses.size();
      if (count < kBits)
        continue;
      compare(pending, step, races);
      pending.clear();
      count = 0;
    }
    compare(pending, step, races);
    return races;
  }

private:
  /// What runs behind an access is found for so many accesses at once.
  static constexpr unsigned kBits = 256;

  /// What is read of a reference is its memory, where the value is used.
  StringRef findReference(Value value) const {
    while (auto identity = value.getDefiningOp<dfg::IdentityOp>())
      value = identity->getOperand(0);
    auto read = value.getDefiningOp<dfg::ReadVariableOp>();
    dfg::VarHandleOp handle = read ? dfg::getVariableHandle(read.getHandle()) : dfg::VarHandleOp();
    return handle && references.contains(handle.getVariable()) ? handle.getVariable() : StringRef();
  }

  void addAccesses(Operation *op, llvm::MapVector<StringRef, SmallVector<Access>> &byVariable) {
    auto add = [&](StringRef variable, bool writes) {
      SmallVector<Access> &accesses = byVariable[variable];
      if (!accesses.empty() && accesses.back().op == op)
        accesses.back().writes |= writes;
      else
        accesses.push_back({op, writes});
    };
    // What a function that was not inlined does with a handle, nobody says.
    auto effects = llvm::dyn_cast<MemoryEffectOpInterface>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      SmallVector<MemoryEffects::EffectInstance> found;
      if (dfg::VarHandleOp handle = dfg::getVariableHandle(operand.get()); handle && effects) {
        effects.getEffectsOnValue(operand.get(), found);
        if (!found.empty())
          add(handle.getVariable(), llvm::any_of(found, [](const auto &effect) {
                return llvm::isa<MemoryEffects::Write>(effect.getEffect());
              }));
      } else if (StringRef variable = findReference(operand.get());
                 !variable.empty() && !llvm::isa<dfg::IdentityOp>(op)) {
        add(variable, false);
      }
    }
  }

  void compare(ArrayRef<std::pair<StringRef, ArrayRef<Access>>> variables, const DenseSet<Operation *> &step,
               SmallVectorImpl<Race> &races) {
    DenseMap<Operation *, unsigned> bits;
    for (const auto &[variable, accesses] : variables)
      for (const Access &access : accesses)
        bits.try_emplace(access.op, bits.size());
    if (bits.empty())
      return;
    DenseMap<Operation *, llvm::BitVector> behind;
    // What is behind a node comes behind it in the block, but for the next iterations of loops of version 1.
    for (bool again = true, isFirst = true; again; isFirst = false) {
      DenseSet<Operation *> visited;
      again = false;
      for (Operation &op : block) {
        if (!step.contains(&op))
          continue;
        llvm::BitVector all;
        for (Operation *before : edges.getBefore(&op)) {
          if (auto known = behind.find(before); known != behind.end())
            all |= known->second;
          again |= isFirst && !visited.contains(before) && step.contains(before);
        }
        if (isFirst)
          visited.insert(&op);
        if (auto bit = bits.find(&op); bit != bits.end()) {
          all.resize(bits.size());
          all.set(bit->second);
        }
        if (all.none())
          continue;
        llvm::BitVector &known = behind[&op];
        again |= !isFirst && known != all;
        known = std::move(all);
      }
    }
    for (const auto &[variable, accesses] : variables)
      for (size_t second = 1; second < accesses.size(); ++second)
        for (size_t first = 0; first < second; ++first) {
          Operation *a = accesses[first].op, *b = accesses[second].op;
          if (!(accesses[first].writes || accesses[second].writes) || (isSum(a) && isSum(b)))
            continue;
          const llvm::BitVector &known = behind.find(b)->second;
          if (!known.test(bits.lookup(a)) && !behind.find(a)->second.test(bits.lookup(b)))
            races.push_back({variable, a, b});
        }
  }

  Block &block;
  dfg::NodeEdges edges;
  const llvm::StringSet<> &references;
};

struct RemarkRaces : impl::RemarkRacesBase<RemarkRaces> {
  void runOnOperation() override {
    const llvm::StringSet<> references = getReferences(getOperation());
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      if (!graph.getTrainOpAttr())
        continue;
      EndpointNodes nodes(graph);
      FailureOr<DenseSet<Operation *>> step = nodes.collect(nodes.findEndpoints(/*initializes=*/false));
      if (failed(step))
        return signalPassFailure();
      SmallVector<Race> races = Races(graph, references).find(*step);
      if (races.empty())
        continue;
      const Race &race = races.front();
      InFlightDiagnostic remark = emitRemark(race.second->getLoc());
      remark << "variable '" << race.variable << "': no edge says whether node '" << getShownName(race.first)
             << "' or '" << getShownName(race.second)
             << "' comes first, so TensorFlow may give other numbers than this order, which is taken";
      if (races.size() > 1)
        remark << " (and " << races.size() - 1
               << (races.size() == 2 ? " more pair of nodes)" : " more pairs of nodes)");
      remark << "; a control dependency would fix it";
    }
  }
};

} // namespace
} // namespace distc
