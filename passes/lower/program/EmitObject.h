//===- EmitObject.h - From LLVM functions to an object of the machine -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_EMITOBJECT_H
#define DISTC_PASSES_LOWER_PROGRAM_EMITOBJECT_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/program/ObjectCache.h"
#include "passes/lower/program/Target.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace distc {

/// Optimizes (-O3) for the machine.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, bool vectorized = true);

/// An object, or assembly; the module is used up.
llvm::Expected<llvm::SmallVector<char, 0>> emitCode(llvm::Module &module, llvm::TargetMachine &machine,
                                                    llvm::CodeGenFileType type);

/// LLVM IR of a module that is in LLVM's dialect. Null, with a diagnostic at the module, where it cannot be translated.
std::unique_ptr<llvm::Module> emitLLVM(mlir::ModuleOp module, llvm::LLVMContext &context);

/// Adds to `module` the program of `other`, of the same graph, under `name`: drt_the_joint_program for tasks that share
/// their memory, or what addProgramTable lists. Both are of one context and one target. False, with what is wrong
/// printed, where they do not fit.
bool addProgram(llvm::Module &module, std::unique_ptr<llvm::Module> other, llvm::StringRef name);

/// Adds drt_the_programs: those that were added under `names`, and behind them the module's own.
void addProgramTable(llvm::Module &module, llvm::ArrayRef<std::string> names);

/// A relocatable ELF object, optimized, position independent; the module is used up.
llvm::Expected<ObjectCode> emitObject(llvm::Module &module, const Target &target, bool vectorized = true);

/// The same as several objects: first the program, then its kernels, each by itself on as many threads as there are
/// cores, or as `cache` has them from before: the bytes are the same. The module is used up.
llvm::Expected<std::vector<ObjectCode>> emitObjects(llvm::Module &module, const Target &target,
                                                    const ObjectCache &cache);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_EMITOBJECT_H
