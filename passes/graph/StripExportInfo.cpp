//===- StripExportInfo.cpp - dfg-strip-export-info ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_STRIPEXPORTINFO
#include "passes/graph/Passes.h.inc"

namespace {

/// Besides TensorFlow's own attributes, whatever the node: names by which sessions share resources, and fields of a
/// NodeDef that MLIR has no form for ("$rest").
bool isForExport(llvm::StringRef key) {
  return key.starts_with(dfg::kInternalPrefix) ||
         llvm::is_contained({"$rest", "allowed_devices", "container", "debug_name", "shared_name"}, key);
}

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
      if (!isForExport(entry.getName()))
        left.push_back(entry);
    dfg::setSourceAttributes(op, left);
  }
};

} // namespace
} // namespace distc
