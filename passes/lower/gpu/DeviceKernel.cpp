//===- DeviceKernel.cpp - Kernels for devices that passes write themselves ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/DeviceKernel.h"

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace distc {

gpu::GPUModuleOp getKernelModule(ModuleOp module) {
  if (auto kernels = module.lookupSymbol<gpu::GPUModuleOp>(drt::kKernelModule))
    return kernels;
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  return gpu::GPUModuleOp::create(builder, module.getLoc(), drt::kKernelModule);
}

gpu::GPUFuncOp createKernel(ImplicitLocOpBuilder &builder, ModuleOp module, StringRef name, TypeRange arguments,
                            int64_t blocks, int64_t threads) {
  builder.setInsertionPointToEnd(getKernelModule(module).getBody());
  auto kernel = gpu::GPUFuncOp::create(builder, name, builder.getFunctionType(arguments, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  for (unsigned argument = 0; argument < arguments.size(); ++argument)
    kernel.setArgAttr(argument, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  kernel->setAttr(drt::kGridAttr, builder.getDenseI64ArrayAttr({blocks, 1, 1}));
  kernel->setAttr(drt::kBlockAttr, builder.getDenseI64ArrayAttr({threads, 1, 1}));
  builder.setInsertionPointToStart(&kernel.getBody().front());
  auto end = gpu::ReturnOp::create(builder);
  builder.setInsertionPoint(end);
  return kernel;
}

Value getThread(ImplicitLocOpBuilder &b, int64_t threads) {
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x), thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value first = arith::MulIOp::create(b, block, arith::ConstantIndexOp::create(b, threads));
  return arith::AddIOp::create(b, first, thread);
}

} // namespace distc
