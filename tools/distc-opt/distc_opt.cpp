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
#include "mlir/Pass/PassRegistry.h"
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
  distc::registerLowerPasses();
  mlir::PassPipelineRegistration<>("lower-kernels",
                                   "Kernels from linalg on buffers to LLVM functions", distc::buildLowerKernelsPipeline);
  mlir::PassPipelineRegistration<>("lower-gpu-kernels", "Kernels of a grid's threads to NVVM", distc::buildLowerGpuKernelsPipeline);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "distc's passes\n", registry));
}
