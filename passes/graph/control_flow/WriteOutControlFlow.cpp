//===- WriteOutControlFlow.cpp - Control flow of a graph that is exported -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"
#include "mlir/Pass/PassManager.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_WRITEOUTCONTROLFLOW
#include "passes/graph/Passes.h.inc"

namespace {

struct WriteOutControlFlow : impl::WriteOutControlFlowBase<WriteOutControlFlow> {
  using WriteOutControlFlowBase::WriteOutControlFlowBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto graphs = llvm::to_vector(module.getOps<dfg::GraphOp>());
    if (llvm::none_of(graphs, [](dfg::GraphOp graph) { return hasControlFlow(graph); }))
      return;
    llvm::DenseSet<Operation *> functions;
    for (auto function : module.getOps<dfg::FuncOp>())
      functions.insert(function);
    SmallVector<OwningOpRef<dfg::GraphOp>> originals;
    for (dfg::GraphOp graph : graphs)
      originals.push_back(llvm::cast<dfg::GraphOp>(graph->clone()));

    // Whatever stands in its way is no error: without, the batch's flow finds what it can.
    std::string reason;
    std::vector<Diagnostic> remarks;
    Location where = module.getLoc();
    LogicalResult written = failure();
    {
      ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
        if (reason.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          reason = diagnostic.str();
          where = diagnostic.getLocation();
        } else if (diagnostic.getSeverity() == DiagnosticSeverity::Remark) {
          remarks.push_back(std::move(diagnostic));
        }
        return success();
      });
      OpPassManager manager(ModuleOp::getOperationName());
      manager.addPass(createRaiseLoops());
      ExpandControlFlowOptions control;
      control.feeds.assign(feeds.begin(), feeds.end());
      control.keepsOrder = true;
      manager.addPass(createExpandControlFlow(control));
      written = runPipeline(manager, module);
    }
    if (succeeded(written)) {
      for (Diagnostic &remark : remarks)
        getContext().getDiagEngine().emit(std::move(remark));
      for (dfg::GraphOp graph : graphs)
        eraseRaisedLoops(graph, functions);
    } else {
      for (auto [graph, original] : llvm::zip(graphs, originals)) {
        graph->getBlock()->getOperations().insert(graph->getIterator(), original.release());
        graph->erase();
      }
      for (dfg::GraphOp original : module.getOps<dfg::GraphOp>())
        if (failed(checkUpdates(original, reason)))
          return signalPassFailure();
      emitRemark(where) << "conditions and loops are exported as they are, and what they make of the batch counts as "
                           "made of all of its rows: "
                        << reason;
    }
    eraseFunctions(module, functions);
  }

private:
  /// An update that stays in a branch is no update that gradients are synchronized for: each worker, and each replica
  /// of it, would do it by its own examples.
  static LogicalResult checkUpdates(dfg::GraphOp graph, StringRef reason) {
    EndpointNodes nodes(graph);
    FailureOr<DenseSet<Operation *>> needed = nodes.collect(nodes.findEndpoints(/*initializes=*/false));
    if (failed(needed))
      return failure();
    llvm::StringSet<> updates;
    for (RegisteredOperationName name : graph->getContext()->getRegisteredOperationsByDialect("dfg"))
      if (auto *interface = name.getInterface<dfg::NodeInterface>();
          interface && name.hasInterface<dfg::UpdateInterface>())
        for (StringRef kind : interface->getTensorFlowNames())
          updates.insert(kind);
    // What is computed from a batch, and not what only runs behind something that is.
    DenseSet<Operation *> ofBatch;
    for (Operation &op : graph.getBody().front()) {
      auto placeholder = llvm::dyn_cast<dfg::PlaceholderOp>(op);
      auto type = placeholder ? llvm::dyn_cast<RankedTensorType>(placeholder.getResult().getType()) : nullptr;
      const bool isBatched = placeholder && (!type || (type.getRank() > 0 && type.isDynamicDim(0)));
      if (isBatched ||
          llvm::any_of(op.getOperands(), [&](Value operand) { return ofBatch.contains(operand.getDefiningOp()); }))
        ofBatch.insert(&op);
    }
    for (auto op : graph.getBody().getOps<dfg::OpaqueOp>()) {
      if (!needed->contains(op) || !updates.contains(op.getOp()) || op->getNumOperands() == 0)
        continue;
      // A variable that came through a Switch or an Enter.
      Operation *choice = op->getOperand(0).getDefiningOp();
      while (choice && llvm::is_contained({"Identity", "RefIdentity"}, dfg::getKind(choice)))
        choice = choice->getOperand(0).getDefiningOp();
      if (!choice || !llvm::isa<dfg::OpaqueOp>(choice) ||
          !llvm::any_of(op->getOperands(), [&](Value operand) { return ofBatch.contains(operand.getDefiningOp()); }))
        continue;
      return op.emitError() << "node '" << dfg::getNodeName(op) << "' (op '" << op.getOp()
                            << "') updates a variable under a condition or in a loop that is exported as it is ("
                            << reason
                            << "), where every replica would do so by its own share of the batch; use resource "
                               "variables (tf.compat.v1.enable_resource_variables()), or compile an executable";
    }
    return success();
  }

  /// Conditions and loops of either version: lists and calls alone, the batch's flow need not look through.
  static bool hasControlFlow(dfg::GraphOp graph) {
    return llvm::any_of(graph.getBody().getOps<dfg::OpaqueOp>(), [](dfg::OpaqueOp op) {
      llvm::StringRef kind = op.getOp();
      kind.consume_front("Stateless");
      kind.consume_front("Ref");
      return kind == "If" || kind == "Case" || kind == "While" || kind == "Switch" || kind == "Enter";
    });
  }

  /// Of a loop that only what is no endpoint needs (a prediction's), there is no form that TensorFlow has any more: it
  /// goes, with what is made of it.
  static void eraseRaisedLoops(dfg::GraphOp graph, const llvm::DenseSet<Operation *> &known) {
    SymbolTable symbols(graph->getParentOp());
    llvm::SetVector<Operation *> gone;
    for (Operation &op : graph.getBody().front()) {
      bool runsRaised = false;
      dfg::getSourceAttributes(&op).walk([&](dfg::FuncAttr function) {
        runsRaised |= !known.contains(symbols.lookup(function.getFunction().getValue()));
      });
      if (runsRaised)
        gone.insert(&op);
    }
    for (size_t i = 0; i < gone.size(); ++i)
      for (Operation *user : gone[i]->getUsers())
        gone.insert(user);
    // Nothing that stays waits for what goes: it would be needed, too.
    dfg::eraseNodes(graph.getBody().front(), gone.getArrayRef());
  }

  static void eraseFunctions(ModuleOp module, const llvm::DenseSet<Operation *> &known) {
    for (auto function : llvm::make_early_inc_range(module.getOps<dfg::FuncOp>()))
      if (!known.contains(function))
        function.erase();
  }
};

} // namespace
} // namespace distc
