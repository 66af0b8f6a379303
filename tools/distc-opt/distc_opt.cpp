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
#include "llvm/Support/SourceMgr.h"
#include <unistd.h>

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
  // What is on standard input is most often another tool's output, and can be read once.
  if (input != "-") {
    std::string error;
    std::unique_ptr<llvm::MemoryBuffer> text = mlir::openInputFile(input, &error);
    if (text && !canBeParsed(text->getBuffer(), input, registry)) {
      llvm::errs() << input << ": error: MLIR's parser breaks off at this text, which no printer writes\n";
      // Where it broke off, destructors may not.
      _exit(1);
    }
  }
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
