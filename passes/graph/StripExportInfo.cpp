//===- StripExportInfo.cpp - dfg-strip-export-info ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/SourceAttributes.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_STRIPEXPORTINFO
#include "passes/graph/Passes.h.inc"

namespace {

struct StripExportInfo : impl::StripExportInfoBase<StripExportInfo> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (auto graph = llvm::dyn_cast<dfg::GraphOp>(op)) {
        graph.removeCollectionsAttr();
        graph.removeGraphDefAttr();
        graph.removeVersionsAttr();
        graph.setStripped(true);
      } else if (auto function = llvm::dyn_cast<dfg::FuncOp>(op)) {
        function->removeAttr("function_def");
      }
      stripNode(op);
    });
  }

  void stripNode(Operation *op) {
    NamedAttrList left;
    for (NamedAttribute entry : dfg::getSourceAttributes(op))
      if (!dfg::isForExport(entry.getName()))
        left.push_back(entry);
    dfg::setSourceAttributes(op, left);
  }
};

} // namespace
} // namespace distc
