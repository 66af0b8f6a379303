//===- RenameScopes.cpp - Gives each replica's nodes a scope ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTRENAMESCOPES
#include "passes/distribute/Passes.h.inc"

namespace {

constexpr llvm::StringLiteral kColocationAttr = "_class";
constexpr llvm::StringLiteral kColocationPrefix = "loc:@";

class Renamer {
public:
  explicit Renamer(Block &block) : block(block), builder(block.getParent()->getContext()) {
    for (Operation &op : block)
      if (auto replica = op.getAttrOfType<IntegerAttr>(dist::kReplicaAttr)) {
        perReplica.insert(dfg::getNodeName(&op));
        replicas = std::max(replicas, replica.getInt() + 1);
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
      op.removeAttr(dist::kReplicaAttr);
    }
  }

private:
  static std::string scope(int64_t replica, llvm::StringRef name) {
    return "replica_" + std::to_string(replica) + "/" + name.str();
  }

  /// What a reference to `name` becomes: the same replica's node; for a shared node, every replica's.
  void refer(llvm::StringRef prefix, llvm::StringRef name, std::optional<int64_t> replica,
             SmallVectorImpl<Attribute> &names) {
    if (!perReplica.contains(name)) {
      names.push_back(builder.getStringAttr(prefix + name));
    } else if (replica) {
      names.push_back(builder.getStringAttr(prefix + scope(*replica, name)));
    } else {
      for (int64_t number = 0; number < replicas; ++number)
        names.push_back(builder.getStringAttr(prefix + scope(number, name)));
    }
  }

  void renameReferences(Operation *op, std::optional<int64_t> replica) {
    if (auto control = op->getAttrOfType<ArrayAttr>(dfg::kControlAttr)) {
      SmallVector<Attribute> names;
      for (auto name : control.getAsRange<StringAttr>())
        refer("", name.getValue(), replica, names);
      op->setAttr(dfg::kControlAttr, builder.getArrayAttr(names));
    }
    auto kept = op->getAttrOfType<DictionaryAttr>(dfg::kTensorFlowAttr);
    auto classes = kept ? kept.getAs<ArrayAttr>(kColocationAttr) : ArrayAttr();
    if (!classes)
      return;
    SmallVector<Attribute> names;
    for (Attribute item : classes) {
      auto text = llvm::dyn_cast<StringAttr>(item);
      llvm::StringRef name = text ? text.getValue() : "";
      if (name.consume_front(kColocationPrefix))
        refer(kColocationPrefix, name, replica, names);
      else
        names.push_back(item);
    }
    NamedAttrList attributes(kept);
    attributes.set(kColocationAttr, builder.getArrayAttr(names));
    op->setAttr(dfg::kTensorFlowAttr, attributes.getDictionary(op->getContext()));
  }

  Block &block;
  Builder builder;
  int64_t replicas = 0;
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
