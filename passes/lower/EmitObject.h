//===- EmitObject.h - From LLVM functions to an object of the machine -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_EMITOBJECT_H
#define DISTC_PASSES_LOWER_EMITOBJECT_H

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>

namespace distc {

/// The machine that code is generated for.
struct Target {
  std::string name;     // as --target says it
  std::string cpu;      // LLVM's name: "x86-64-v3", "sapphirerapids"
  std::string features; // "+avx512f,..."

  /// "cpu": x86-64-v3, runs on any server since 2015. "cpu:native": this machine. "cpu:NAME": LLVM's name of a CPU.
  /// Fails with a message that lists what there is.
  static llvm::Expected<Target> parse(llvm::StringRef text);
};

/// LLVM IR of a module that is in LLVM's dialect, optimized (-O3, vectorized) for `target`.
/// Null, with a diagnostic at the module, where it cannot be translated.
std::unique_ptr<llvm::Module> emitLLVM(mlir::ModuleOp module, llvm::LLVMContext &context, const Target &target);

/// A relocatable ELF object, position independent.
llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module, const Target &target);

} // namespace distc

#endif // DISTC_PASSES_LOWER_EMITOBJECT_H
