//===- RenameScopes.cpp - Gives each replica's nodes a scope ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Colocations.h"
#include "dialects/dfg/Frames.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTRENAMESCOPES
#include "passes/distribute/Passes.h.inc"

namespace {

class Renamer {
public:
  explicit Renamer(Block &block) : block(block), builder(block.getParent()->getContext()) {
    for (Operation &op : block) {
      names.insert(dfg::getNodeName(&op));
      if (auto replica = op.getAttrOfType<IntegerAttr>(dist::kReplicaAttr)) {
        perReplica.insert(dfg::getNodeName(&op));
        replicas = std::max(replicas, replica.getInt() + 1);
      }
    }
  }

  void run() {
    for (Operation &op : block) {
      auto replica = op.getAttrOfType<IntegerAttr>(dist::kReplicaAttr);
      std::optional<int64_t> number = replica ? std::optional<int64_t>(replica.getInt()) : std::nullopt;
      renameReferences(&op, number);
      if (!number)
        continue;
      op.setLoc(NameLoc::get(builder.getStringAttr(scope(*number, dfg::getNodeName(&op)))));
      renameFrame(&op, *number);
      op.removeAttr(dist::kReplicaAttr);
    }
  }

private:
  static std::string scope(int64_t replica, llvm::StringRef name) {
    return "replica_" + std::to_string(replica) + "/" + name.str();
  }

  /// What a reference to `name` becomes: the same replica's node; for a shared node, every replica's.
  SmallVector<std::string> refer(llvm::StringRef name, std::optional<int64_t> replica) const {
    if (!perReplica.contains(name))
      return {name.str()};
    if (replica)
      return {scope(*replica, name)};
    SmallVector<std::string> all;
    for (int64_t number = 0; number < replicas; ++number)
      all.push_back(scope(number, name));
    return all;
  }

  /// A loop of version 1 is known by the name of its frame.
  void renameFrame(Operation *op, int64_t replica) {
    if (dfg::getKind(op) != "Enter")
      return;
    if (auto frame = dfg::getSourceAttribute<StringAttr>(op, "frame_name"))
      dfg::setSourceAttribute(op, "frame_name", builder.getStringAttr(scope(replica, frame.getValue())));
  }

  void renameReferences(Operation *op, std::optional<int64_t> replica) {
    if (auto control = op->getAttrOfType<ArrayAttr>(dfg::kControlAttr)) {
      SmallVector<Attribute> controls;
      for (auto name : control.getAsRange<StringAttr>())
        for (const std::string &renamed : refer(name.getValue(), replica))
          controls.push_back(builder.getStringAttr(renamed));
      op->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls));
    }
    // A node that nothing needed is gone.
    dfg::mapColocations(op, [&](llvm::StringRef name) {
      return names.contains(name) ? refer(name, replica) : SmallVector<std::string>();
    });
  }

  Block &block;
  Builder builder;
  int64_t replicas = 0;
  llvm::StringSet<> names;
  llvm::StringSet<> perReplica;
};

struct DistRenameScopes : public impl::DistRenameScopesBase<DistRenameScopes> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto graph : module.getOps<dfg::GraphOp>())
      Renamer(graph.getBody().front()).run();
  }
};

} // namespace
} // namespace distc
