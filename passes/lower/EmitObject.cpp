//===- EmitObject.cpp - From LLVM functions to an object of the machine ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/EmitObject.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

namespace distc {

static constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

static const llvm::Target *findTarget(std::string &error) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    return true;
  }();
  (void)initialized;
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(kTriple), error);
}

static std::unique_ptr<llvm::TargetMachine> createMachine(const Target &target) {
  std::string error;
  const llvm::Target *found = findTarget(error);
  if (!found)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(llvm::Triple(kTriple), target.cpu, target.features, {}, llvm::Reloc::PIC_,
                                                                         std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

llvm::Expected<Target> Target::parse(llvm::StringRef text) {
  Target target{text.str(), "x86-64-v3", ""};
  auto [kind, cpu] = text.split(':');
  if (kind != "cpu")
    return llvm::createStringError("unknown target '" + text + "': targets are cpu (x86-64-v3), cpu:native and cpu:NAME");
  if (cpu == "native") {
    target.cpu = llvm::sys::getHostCPUName().str();
    llvm::SmallVector<std::string> features;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      features.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(features);
    target.features = llvm::join(features, ",");
    // Kernels stream through memory: whole vectors pay where the machine has them.
    if (llvm::is_contained(features, "+avx512f"))
      target.features += ",-prefer-256-bit";
  } else if (!cpu.empty()) {
    target.cpu = cpu.str();
    std::unique_ptr<llvm::TargetMachine> machine = createMachine(target);
    if (!machine || !machine->getMCSubtargetInfo()->isCPUStringValid(cpu))
      return llvm::createStringError("unknown CPU '" + cpu + "' in target '" + text + "': name one that LLVM knows (x86-64-v3, znver4, ...) or cpu:native");
  }
  return target;
}

std::unique_ptr<llvm::Module> emitLLVM(mlir::ModuleOp module, llvm::LLVMContext &context, const Target &target) {
  mlir::registerBuiltinDialectTranslation(*module->getContext());
  mlir::registerLLVMDialectTranslation(*module->getContext());
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target);
  std::unique_ptr<llvm::Module> result = mlir::translateModuleToLLVMIR(module, context, "distc");
  if (!result || !machine)
    return nullptr;
  result->setTargetTriple(llvm::Triple(kTriple));
  result->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *result)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", target.cpu);
      function.addFnAttr("target-features", target.features);
      function.addFnAttr(llvm::Attribute::NoUnwind);
    }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = true;
  llvm::PassBuilder builder(machine.get(), tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*result, modules);
  return result;
}

llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module, const Target &target) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target);
  if (!machine)
    return llvm::createStringError("LLVM has no code generator for " + llvm::Twine(kTriple));
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream os(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("LLVM cannot write objects for " + target.cpu);
  passes.run(module);
  return object;
}

} // namespace distc
