//===- Session.h - One run of the compiler: context, diagnostics, stages -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_SESSION_H
#define DISTC_TOOLS_DISTC_SESSION_H

#include "dialects/dfg/Dfg.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "tools/distc/Options.h"

namespace distc {

/// Owns the MLIR context. Diagnostics are printed as "FILE: error: ...", each once; the first error is followed by no other.
class Session {
public:
  explicit Session(llvm::StringRef file);

  /// The graph, with the endpoints that flags name. Null after an error.
  mlir::OwningOpRef<mlir::ModuleOp> import(const CompileOptions &options);

  /// Runs a stage of the pipeline. A failure without a diagnostic is a defect.
  bool run(mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> addStage);

  /// Says what is wrong; returns the status.
  int fail(const llvm::Twine &message, int status = kWrongInput);
  int defect(const llvm::Twine &message);
  /// Whether `path` can be written, before the work is done.
  int checkOutput(llvm::StringRef path);

  /// Of what failed.
  int status() const { return failed; }

private:
  std::string file;
  mlir::MLIRContext context;
  int failed = kDone;
};

} // namespace distc

#endif // DISTC_TOOLS_DISTC_SESSION_H
