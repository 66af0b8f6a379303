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
#include "mlir/Support/Timing.h"
#include "tools/distc/Options.h"

namespace distc {

/// What a pass said beside its work: a warning or a remark.
struct PassRemark {
  bool isWarning;
  std::string node; // empty where it is not of one node
  std::string text;
};

/// Owns the MLIR context. Diagnostics are printed as "FILE: error: ...", each once; the first error is followed by no
/// other.
class Session {
public:
  explicit Session(const CompileOptions &options);

  /// The graph, with the endpoints that flags name. Null after an error.
  mlir::OwningOpRef<mlir::ModuleOp> import(const CompileOptions &options);

  /// Runs a stage of the pipeline, and verifies what it leaves. A failure without a diagnostic is an internal error,
  /// and so is a plan that a verifier of plans (drt-verify-...) refuses.
  bool run(mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> addStage);

  /// The same for verifiers of what a file holds: what they refuse is the file's fault.
  bool verifyGiven(mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> addStage);

  /// Says what is wrong; returns the status.
  int fail(const llvm::Twine &message, int status = kWrongInput);
  int internalError(const llvm::Twine &message);
  /// Whether `path` can be written, before the work is done.
  int checkOutput(llvm::StringRef path);

  /// A part of the work, for --timing.
  mlir::TimingScope time(llvm::StringRef part) { return timer.nest(part); }

  /// Of what failed.
  int status() const { return failed; }
  /// In the order in which they were said.
  llvm::ArrayRef<PassRemark> getRemarks() const { return remarks; }

private:
  /// distc-reproducer.mlir: what repeats the failure of a stage that is an internal error.
  void writeReproducer(mlir::ModuleOp module, mlir::OpPassManager &pipeline);

  std::string file;
  mlir::MLIRContext context;
  mlir::DefaultTimingManager timing;
  mlir::TimingScope timer;
  /// Kept, as timers know a pass by its address.
  std::vector<std::unique_ptr<mlir::PassManager>> stages;
  std::vector<PassRemark> remarks;
  int failed = kDone;
  /// While a verifier of plans runs: what it refuses, passes before it did wrong.
  bool verifiesPlan = false;
  bool isPlanGiven = false;
  bool writesReproducer;
};

} // namespace distc

#endif // DISTC_TOOLS_DISTC_SESSION_H
