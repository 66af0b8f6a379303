//===- DeviceImages.cpp - PTX of kernels in NVVM ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/DeviceImages.h"

#include "passes/lower/gpu/Toolkit.h"
#include "passes/lower/program/EmitObject.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace llvm;

namespace distc {

static bool isMissing(const Function &function) {
  return function.isDeclaration() && !function.isIntrinsic() && !function.use_empty();
}

// libdevice asks its compiler for choices. Square roots are IEEE's; numbers near 0 are not flushed to it, as is the
// default.
static void chooseRounding(Module &kernels) {
  Function *reflect = kernels.getFunction("__nvvm_reflect");
  if (!reflect)
    return;
  for (User *user : make_early_inc_range(reflect->users())) {
    auto *call = cast<CallInst>(user);
    StringRef choice;
    if (!getConstantStringInfo(call->getArgOperand(0), choice) || choice != "__CUDA_PREC_SQRT")
      continue;
    call->replaceAllUsesWith(ConstantInt::get(call->getType(), 1));
    call->eraseFromParent();
  }
}

static Error linkLibdevice(Module &kernels) {
  auto isOfLibdevice = [](const Function &function) {
    return isMissing(function) && function.getName().starts_with("__nv_");
  };
  if (none_of(kernels, isOfLibdevice))
    return Error::success();
  Expected<std::string> path = findLibdevice();
  if (!path)
    return path.takeError();
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> library = getLazyIRFileModule(*path, diagnostic, kernels.getContext());
  if (!library)
    return createStringError("cannot read '" + *path + "': " + diagnostic.getMessage());
  // It is for any chip, and says so in other words.
  library->setTargetTriple(kernels.getTargetTriple());
  library->setDataLayout(kernels.getDataLayout());
  bool failed = Linker::linkModules(kernels, std::move(library), Linker::LinkOnlyNeeded,
                                    [](Module &module, const StringSet<> &names) {
                                      internalizeModule(module, [&](const GlobalValue &value) {
                                        return !value.hasName() || !names.contains(value.getName());
                                      });
                                    });
  if (failed)
    return createStringError("cannot link '" + *path + "' with the kernels");
  chooseRounding(kernels);
  return Error::success();
}

Expected<std::string> emitPtx(Module &kernels, StringRef chip) {
  std::unique_ptr<TargetMachine> machine = createDeviceMachine(chip);
  if (!machine)
    return createStringError("this LLVM has no code generator for NVIDIA's GPUs (NVPTX)");
  kernels.setTargetTriple(machine->getTargetTriple());
  kernels.setDataLayout(machine->createDataLayout());
  if (Error error = linkLibdevice(kernels))
    return error;
  optimize(kernels, *machine);
  for (const Function &function : kernels)
    if (isMissing(function))
      return createStringError("a kernel calls '" + function.getName() +
                               "', which has no code for GPUs yet; compile the graph for --target=cpu");
  Expected<SmallVector<char, 0>> ptx = emitCode(kernels, *machine, CodeGenFileType::AssemblyFile);
  if (!ptx)
    return ptx.takeError();
  return std::string(ptx->begin(), ptx->end());
}

} // namespace distc
