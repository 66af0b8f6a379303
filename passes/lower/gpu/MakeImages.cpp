//===- MakeImages.cpp - Kernels compiled to what the drivers load --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/DeviceImages.h"
#include "passes/lower/gpu/DeviceTables.h"
#include "passes/lower/gpu/Toolkit.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_MAKEIMAGES
#include "passes/lower/Passes.h.inc"

namespace {

struct MakeImages : impl::MakeImagesBase<MakeImages> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerBuiltinDialectTranslation(registry);
    registerGPUDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    registerNVVMDialectTranslation(registry);
  }

  void runOnOperation() override {
    llvm::Expected<Target> parsed = Target::parse(target);
    llvm::Error error = parsed ? makeImages(*parsed) : parsed.takeError();
    if (!error)
      return;
    getOperation().emitError() << llvm::toString(std::move(error));
    signalPassFailure();
  }

  llvm::Error makeImages(const Target &target) {
    if (!target.isDevice())
      return llvm::createStringError("target '" + target.name +
                                     "' has no images: name one of GPUs, cuda:sm_90 or cuda:emulated");
    if (getDeviceKernels(getOperation()).empty())
      return llvm::Error::success();
    auto code = getOperation().lookupSymbol<gpu::GPUModuleOp>(drt::kKernelModule);
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> kernels = translateModuleToLLVMIR(code, context, "kernels");
    if (!kernels)
      return llvm::createStringError("the kernels cannot be written as LLVM IR; run lower-gpu-kernels");
    return target.kernels == Target::Kernels::Emulated ? makeHostImage(*kernels, target)
                                                       : makeChipImages(*kernels, target);
  }

  llvm::Error makeHostImage(llvm::Module &kernels, const Target &target) {
    llvm::Expected<std::string> object =
        emitHostKernels(kernels, target, cached ? ObjectCache::ofUser() : ObjectCache());
    if (!object)
      return object.takeError();
    add("host", *object);
    return llvm::Error::success();
  }

  // Cubins for the chips; later chips compile the newest one's PTX.
  llvm::Error makeChipImages(llvm::Module &kernels, const Target &target) {
    std::optional<std::string> ptxas = ptxOnly ? std::nullopt : findPtxas();
    if (!ptxas && !ptxOnly)
      getOperation().emitRemark() << "ptxas is not found (in $CUDA_HOME/bin, on the PATH, in /usr/local/cuda/bin): the "
                                     "executable carries PTX only, which "
                                     "the driver compiles each time it starts";
    for (const std::string &chip : target.chips) {
      const bool isNewest = chip == target.chips.back();
      if (!isNewest && !ptxas)
        continue;
      llvm::Expected<std::string> ptx = emitPtx(*llvm::CloneModule(kernels), chip);
      if (!ptx)
        return ptx.takeError();
      if (ptxas)
        if (llvm::Error error = addCubin(*ptxas, *ptx, chip))
          return error;
      if (isNewest)
        add("compute_" + StringRef(chip).drop_front(StringRef("sm_").size()).str(), *ptx + '\0');
    }
    return llvm::Error::success();
  }

  llvm::Error addCubin(StringRef ptxas, StringRef ptx, StringRef chip) {
    std::string log;
    llvm::Expected<std::string> cubin = assemble(ptxas, ptx, chip, log);
    if (!cubin)
      return cubin.takeError();
    if (verbose)
      for (StringRef line : llvm::split(StringRef(log).rtrim(), '\n'))
        getOperation().emitRemark() << line;
    add(chip, *cubin);
    return llvm::Error::success();
  }

  void add(StringRef architecture, StringRef data) {
    auto builder = OpBuilder::atBlockEnd(getOperation().getBody());
    drt::ImageOp::create(builder, getOperation().getLoc(), architecture, data);
  }
};

} // namespace
} // namespace distc
