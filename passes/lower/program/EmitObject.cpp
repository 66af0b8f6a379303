//===- EmitObject.cpp - From LLVM functions to an object of the machine ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/program/EmitObject.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/lower/program/KernelParts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"

namespace distc {

static bool usesBFloat(const llvm::Module &module) {
  auto isBFloat = [](const llvm::Value *value) { return value->getType()->getScalarType()->isBFloatTy(); };
  for (const llvm::Function &function : module)
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (isBFloat(&instruction) ||
          llvm::any_of(instruction.operands(), [&](const llvm::Use &use) { return isBFloat(use); }))
        return true;
  return false;
}

/// Where LLVM moves bfloat16 in vectors it goes through float32 and calls __truncsfbf2, which not every compiler's
/// library has, and a shared object of kernels is linked with none. It is in the module then: a float in xmm0, whose
/// low half the result is.
static void defineTruncation(llvm::Module &module) {
  constexpr llvm::StringLiteral name = "__truncsfbf2";
  if (!usesBFloat(module) || module.getFunction(name))
    return;
  llvm::IRBuilder<> builder(module.getContext());
  llvm::Type *f32 = builder.getFloatTy(), *i32 = builder.getInt32Ty();
  auto *function = llvm::Function::Create(llvm::FunctionType::get(f32, {f32}, /*isVarArg=*/false),
                                          llvm::GlobalValue::WeakAnyLinkage, name, module);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  builder.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", function));
  llvm::Value *x = function->getArg(0), *bits = builder.CreateBitCast(x, i32);
  llvm::Value *high = builder.CreateLShr(bits, 16);
  // To nearest, ties to even; NaN stays NaN.
  llvm::Value *bias = builder.CreateAdd(builder.CreateAnd(high, 1), builder.getInt32(0x7fff));
  llvm::Value *rounded = builder.CreateLShr(builder.CreateAdd(bits, bias), 16);
  llvm::Value *result = builder.CreateSelect(builder.CreateFCmpUNO(x, x), builder.CreateOr(high, 0x40), rounded);
  builder.CreateRet(builder.CreateBitCast(result, f32));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, bool vectorized) {
  if (machine.getTargetTriple().isX86())
    defineTruncation(module);
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
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = vectorized;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

std::unique_ptr<llvm::Module> emitLLVM(mlir::ModuleOp module, llvm::LLVMContext &context) {
  mlir::registerBuiltinDialectTranslation(*module->getContext());
  mlir::registerLLVMDialectTranslation(*module->getContext());
  return mlir::translateModuleToLLVMIR(module, context, "distc");
}

bool addProgram(llvm::Module &module, std::unique_ptr<llvm::Module> other, llvm::StringRef name) {
  // What the runtime asks for by name is the module's, but for the program.
  for (llvm::GlobalValue &value : other->global_values())
    if (!value.isDeclaration() && !value.hasLocalLinkage()) {
      value.setLinkage(llvm::GlobalValue::InternalLinkage);
      value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    }
  for (llvm::GlobalVariable &global : llvm::make_early_inc_range(other->globals()))
    if (global.use_empty() && global.getName() == "drt_the_checkpoint_keys")
      global.eraseFromParent();
  llvm::GlobalVariable *program = other->getGlobalVariable("drt_the_program", /*AllowInternal=*/true);
  program->setLinkage(llvm::GlobalValue::ExternalLinkage);
  program->setName(name);
  return !llvm::Linker::linkModules(module, std::move(other));
}

void addProgramTable(llvm::Module &module, llvm::ArrayRef<std::string> names) {
  llvm::SmallVector<llvm::Constant *> programs;
  for (const std::string &name : names) {
    llvm::GlobalVariable *program = module.getGlobalVariable(name);
    program->setLinkage(llvm::GlobalValue::InternalLinkage);
    programs.push_back(program);
  }
  programs.push_back(module.getGlobalVariable("drt_the_program"));
  llvm::IRBuilder<> builder(module.getContext());
  auto *type = llvm::ArrayType::get(builder.getPtrTy(), programs.size());
  auto *list = new llvm::GlobalVariable(module, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                        llvm::ConstantArray::get(type, programs));
  auto *table = llvm::ConstantStruct::getAnon({builder.getInt32(programs.size()), list});
  new llvm::GlobalVariable(module, table->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, table,
                           "drt_the_programs");
}

llvm::Expected<llvm::SmallVector<char, 0>> emitCode(llvm::Module &module, llvm::TargetMachine &machine,
                                                    llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream os(code);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return llvm::createStringError("LLVM cannot write code for " + machine.getTargetCPU());
  passes.run(module);
  return code;
}

llvm::Expected<ObjectCode> emitObject(llvm::Module &module, const Target &target, bool vectorized) {
  std::unique_ptr<llvm::TargetMachine> machine = createHostMachine(target);
  if (!machine)
    return llvm::createStringError("LLVM has no code generator for " + target.cpu);
  optimize(module, *machine, vectorized);
  return emitCode(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

/// An object of `code`, in a context of its own.
static llvm::Expected<ObjectCode> emitObject(const Bitcode &code, const Target &target, bool vectorized,
                                             const ObjectCache &cache) {
  const llvm::StringRef bytes(code.data(), code.size());
  const std::string name =
      nameContent(target.cpu + '\0' + target.features + '\0' + (vectorized ? 'v' : 's') + bytes.str());
  if (std::optional<ObjectCode> made = cache.find(name))
    return std::move(*made);
  llvm::LLVMContext context;
  auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bytes, ""), context);
  if (!module)
    return module.takeError();
  llvm::Expected<ObjectCode> object = emitObject(**module, target, vectorized);
  if (object)
    cache.keep(name, *object);
  return object;
}

llvm::Expected<std::vector<ObjectCode>> emitObjects(llvm::Module &module, const Target &target,
                                                    const ObjectCache &cache) {
  if (!createHostMachine(target)) // which registers what all threads use
    return llvm::createStringError("LLVM has no code generator for " + target.cpu);
  std::vector<Bitcode> parts = takeKernels(module);
  parts.insert(parts.begin(), writeBitcode(module));

  std::vector<std::optional<llvm::Expected<ObjectCode>>> made(parts.size());
  // A program is calls, thousands in a block: there is nothing to vectorize, and looking for it takes long.
  auto emitPart = [&](size_t i) { made[i].emplace(emitObject(parts[i], target, /*vectorized=*/i != 0, cache)); };
  // What takes long first, so that no core is left with it in the end.
  auto order = llvm::to_vector(llvm::seq(parts.size()));
  llvm::stable_sort(order, [&](size_t a, size_t b) { return parts[a].size() > parts[b].size(); });
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency());
  for (size_t i : order)
    threads.async(emitPart, i);
  threads.wait();
  cache.prune();

  std::vector<ObjectCode> objects;
  llvm::Error errors = llvm::Error::success();
  for (std::optional<llvm::Expected<ObjectCode>> &object : made)
    if (*object)
      objects.push_back(std::move(**object));
    else
      errors = llvm::joinErrors(std::move(errors), object->takeError());
  if (errors)
    return errors;
  return objects;
}

} // namespace distc
