//===- ConvertDfgToDrt.cpp - Entries of the graph become plans of the runtime --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/VariableKinds.h"
#include "dialects/dist/Dist.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/Passes.h"
#include "passes/lower/plan/PlanBuilder.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_CONVERTDFGTODRT
#include "passes/lower/Passes.h.inc"

namespace {

/// What nodes of the entries are refused for: one error, at the first of them, with a note for each other one.
class RefusedNodes {
public:
  /// Collects what `lower` says; its nodes belong to `entry`.
  LogicalResult collect(dfg::FuncOp entry, llvm::function_ref<LogicalResult()> lower) {
    ScopedDiagnosticHandler handler(entry.getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
        return failure();
      // A node may be in several entries.
      if (said[diagnostic.str()].insert(LocationAttr(diagnostic.getLocation()).getAsOpaquePointer()).second)
        refused.push_back({entry.getSymName().str(), std::move(diagnostic)});
      return success();
    });
    return lower();
  }

  LogicalResult report(MLIRContext *context) {
    if (refused.empty())
      return success();
    Diagnostic &error = refused.front().error;
    for (Refused &other : llvm::MutableArrayRef(refused).drop_front()) {
      std::string text = other.error.str();
      Diagnostic &note = error.attachNote(other.error.getLocation());
      if (auto name = other.error.getLocation()->findInstanceOf<NameLoc>())
        if (std::string quoted = ("'" + name.getName().getValue() + "'").str(); text.find(quoted) == std::string::npos)
          note << "node " << quoted << ": ";
      note << text << " (in entry '" << other.entry << "')";
    }
    context->getDiagEngine().emit(std::move(error));
    return failure();
  }

private:
  struct Refused {
    std::string entry;
    Diagnostic error;
  };
  std::vector<Refused> refused;
  llvm::StringMap<llvm::SmallPtrSet<const void *, 2>> said; // where, for each text
};

struct ConvertDfgToDrt : impl::ConvertDfgToDrtBase<ConvertDfgToDrt> {
  using ConvertDfgToDrtBase::ConvertDfgToDrtBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    lower::LoweringTable table;
    lower::addLayoutLowerings(table, &getContext());
    lower::addRowLowerings(table, &getContext());
    lower::addShardLowerings(table, &getContext());
    lower::addProductLowerings(table, &getContext());
    lower::addLossLowerings(table, &getContext());
    lower::addRandomLowerings(table, &getContext());
    lower::addScanLowerings(table, &getContext());
    lower::addRoutineLowerings(table, &getContext());

    // The variables first: they are the program's table.
    for (auto variable : llvm::make_early_inc_range(module.getOps<dfg::VariableOp>())) {
      auto type = llvm::dyn_cast<RankedTensorType>(variable.getType());
      if (!type || !type.hasStaticShape()) {
        variable.emitError() << "variable '" << variable.getSymName() << "' has no static shape (" << variable.getType()
                             << ")"
                             << (variable.getKind() == dfg::kCapturedKind
                                     ? "; a function captured it, and its graph says shapes "
                                       "where it is written by as_graph_def(add_shapes=True), but for what it only "
                                       "takes rows of; the SavedModel says them all"
                                     : "");
        return signalPassFailure();
      }
      OpBuilder builder(variable);
      auto slice = variable->getAttrOfType<dist::SliceAttr>(dist::kSliceAttr);
      auto shares = variable->getAttrOfType<IntegerAttr>(dist::kSharesAttr);
      if (shares && (!slice || type.getRank() != 1)) {
        variable.emitError() << "variable '" << variable.getSymName()
                             << "' is held in shares, so it must have rank 1, and dist.slice must say of what";
        return signalPassFailure();
      }
      auto owner = variable->getAttrOfType<dist::PlaceAttr>(dist::kPlaceAttr);
      const bool isLocal = variable.getKind() == dfg::kLocalKind;
      drt::VariableOp::create(builder, variable.getLoc(), variable.getSymName(), type, variable.getTrainable(),
                              /*saved=*/!isLocal, slice ? slice.getWhole() : StringAttr(),
                              slice ? slice.getShape() : DenseI64ArrayAttr(),
                              slice && !shares ? slice.getOffsets() : DenseI64ArrayAttr(), shares, /*at=*/IntegerAttr(),
                              owner ? builder.getI64IntegerAttr(owner.getIndex()) : IntegerAttr(), /*carried=*/isLocal);
      variable.erase();
    }
    RefusedNodes refused;
    bool failedAny = false;
    for (auto function : llvm::make_early_inc_range(module.getOps<dfg::FuncOp>())) {
      // A library function: every call of it has been inlined.
      if (function->hasAttr(dfg::kFetchesAttr)) {
        lower::PlanBuilder plan(module, function, table);
        plan.asserts = asserts;
        plan.isForDevices = device;
        failedAny |= failed(refused.collect(function, [&] { return plan.build(); }));
      }
      function.erase();
    }
    if (failed(refused.report(&getContext())) || failedAny)
      return signalPassFailure();
    for (auto graph : llvm::make_early_inc_range(module.getOps<dfg::GraphOp>()))
      graph.erase();
  }
};

} // namespace
} // namespace distc
