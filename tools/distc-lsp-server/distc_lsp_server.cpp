//===- distc_lsp_server.cpp - An editor's help with our dialects ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<distc::dfg::DFGDialect, distc::dist::DISTDialect, distc::drt::DRTDialect>();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
