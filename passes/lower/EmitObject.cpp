//===- EmitObject.cpp - From LLVM functions to an object of the machine ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/EmitObject.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

namespace distc {

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", machine.getTargetCPU());
      function.addFnAttr("target-features", machine.getTargetFeatureString());
      function.addFnAttr(llvm::Attribute::NoUnwind);
    }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = true;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

std::unique_ptr<llvm::Module> emitLLVM(mlir::ModuleOp module, llvm::LLVMContext &context, const Target &target) {
  mlir::registerBuiltinDialectTranslation(*module->getContext());
  mlir::registerLLVMDialectTranslation(*module->getContext());
  std::unique_ptr<llvm::TargetMachine> machine = createHostMachine(target);
  std::unique_ptr<llvm::Module> result = mlir::translateModuleToLLVMIR(module, context, "distc");
  if (!result || !machine)
    return nullptr;
  optimize(*result, *machine);
  return result;
}

llvm::Expected<llvm::SmallVector<char, 0>> emitCode(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream os(code);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return llvm::createStringError("LLVM cannot write code for " + machine.getTargetCPU());
  passes.run(module);
  return code;
}

llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module, const Target &target) {
  std::unique_ptr<llvm::TargetMachine> machine = createHostMachine(target);
  if (!machine)
    return llvm::createStringError("LLVM has no code generator for " + target.cpu);
  return emitCode(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

} // namespace distc
