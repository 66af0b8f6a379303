//===- distc_opt.cpp - mlir-opt with distc's dialects and passes -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/IrText.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/distribute/Passes.h"
#include "passes/graph/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/rewrite/Passes.h"
#include "passes/rows/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include <unistd.h>

/// Where what is read has locations, print leaves none out, whatever flags are given: they are names of nodes
/// (dialects/dfg/NodeNames.h), and what distc-opt prints is read again. Text that somebody wrote without has none to
/// lose.
static void keepNames(llvm::StringRef text) {
  if (text.starts_with("ML\xefR") || text.contains("loc(")) // bytecode has them
    static_cast<llvm::cl::opt<bool> *>(llvm::cl::getRegisteredOptions()["mlir-print-debuginfo"])->setValue(true);
}

/// What is on standard input can be read once.
static llvm::LogicalResult optimizeInput(std::unique_ptr<llvm::MemoryBuffer> text, llvm::StringRef output,
                                         mlir::DialectRegistry &registry) {
  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> file = mlir::openOutputFile(output, &error);
  if (!file)
    return llvm::errs() << error << "\n", mlir::failure();
  if (failed(mlir::MlirOptMain(file->os(), std::move(text), registry, mlir::MlirOptMainConfig::createFromCLOptions())))
    return mlir::failure();
  file->keep();
  return mlir::success();
}

static bool canBeParsed(llvm::StringRef text, llvm::StringRef path, const mlir::DialectRegistry &registry) {
  return distc::dfg::survivesParsing(
      [&] {
        // Parts of --split-input-file, which may be errors on purpose.
        llvm::SmallVector<llvm::StringRef> parts;
        text.split(parts, mlir::kDefaultSplitMarker);
        for (llvm::StringRef part : parts) {
          mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
          context.allowUnregisteredDialects();
          mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic &) { return mlir::success(); });
          llvm::SourceMgr sources;
          sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(part), llvm::SMLoc());
          mlir::Block block;
          (void)mlir::parseSourceFile(sources, &block, mlir::ParserConfig(&context, /*verifyAfterParse=*/false));
        }
      },
      path);
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<distc::dfg::DFGDialect, distc::dist::DISTDialect, distc::drt::DRTDialect>();
  mlir::registerAllPasses();
  distc::registerGraphPasses();
  distc::registerDistributePasses();
  distc::rewrite::registerRewritePasses();
  distc::rows::registerRowsPasses();
  distc::registerLowering();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "distc's passes\n", registry);
  const auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (!config.shouldListPasses() && !config.shouldShowDialects()) {
    std::string error;
    std::unique_ptr<llvm::MemoryBuffer> text = mlir::openInputFile(input, &error);
    if (text)
      keepNames(text->getBuffer());
    // On standard input is most often another tool's output.
    if (text && input == "-")
      return mlir::asMainReturnCode(optimizeInput(std::move(text), output, registry));
    if (text && !canBeParsed(text->getBuffer(), input, registry)) {
      llvm::errs() << input << ": error: MLIR's parser breaks off at this text, which no printer writes\n";
      // Where it broke off, destructors may not.
      _exit(1);
    }
  }
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
