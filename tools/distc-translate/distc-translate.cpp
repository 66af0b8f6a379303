//===- distc-translate.cpp - TensorFlow's graphs to dfg and back -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
//   distc-translate --import-graphdef graph.meta -o graph.mlir
//   distc-translate --import-stablehlo step.mlir -o graph.mlir         the step's signature is step.json
//   distc-translate --export-graphdef graph.mlir -o graph.meta [--text]
//   distc-translate --import-graphdef --export-graphdef graph.meta     both, in memory
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/stablehlo/Import.h"
#include "dialects/dfg/tensorflow/Export.h"
#include "dialects/dfg/tensorflow/Import.h"
#include "dialects/dist/Dist.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::opt<bool> import("import-graphdef", cl::desc("read a MetaGraphDef, a GraphDef or a SavedModel, binary or text"));
  cl::opt<bool> stablehlo("import-stablehlo", cl::desc("read a training step in StableHLO, with its signature"));
  cl::opt<bool> exported("export-graphdef", cl::desc("write a MetaGraphDef, or a GraphDef where that was imported"));
  cl::opt<bool> text("text", cl::desc("write protocol buffers' text form"));
  cl::opt<std::string> input(cl::Positional, cl::init("-"), cl::desc("<file>"));
  cl::opt<std::string> output("o", cl::init("-"), cl::desc("where to write"));
  cl::ParseCommandLineOptions(argc, argv, "TensorFlow's graphs to dfg and back\n");
  if (!import && !stablehlo && !exported) {
    llvm::errs() << "distc-translate: --import-graphdef or --import-stablehlo, --export-graphdef, or both\n";
    return 2;
  }

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<distc::dfg::DFGDialect, distc::dist::DISTDialect>();
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module = import ? distc::tf::importGraph(input, &context)
                                             : stablehlo
                                                 ? distc::stablehlo::importStep(input, &context)
                                                 : mlir::parseSourceFile<mlir::ModuleOp>(input, sources, &context);
  if (!module)
    return 1;

  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> file = mlir::openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << error << "\n";
    return 1;
  }
  if (exported) {
    if (failed(distc::tf::exportGraph(*module, file->os(), text)))
      return 1;
  } else {
    // Node names are locations.
    module->print(file->os(), mlir::OpPrintingFlags().enableDebugInfo());
  }
  file->keep();
  return 0;
}
