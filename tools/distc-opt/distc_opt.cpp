//===- distc_opt.cpp - mlir-opt with distc's dialects and passes -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/distribute/Passes.h"
#include "passes/graph/Passes.h"
#include "passes/lower/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<distc::dfg::DFGDialect, distc::dist::DISTDialect, distc::drt::DRTDialect>();
  mlir::registerAllPasses();
  distc::registerGraphPasses();
  distc::registerDistributePasses();
  distc::registerLowering();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "distc's passes\n", registry));
}
