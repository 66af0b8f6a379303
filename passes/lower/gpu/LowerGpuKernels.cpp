//===- LowerGpuKernels.cpp - Kernels of a grid's threads become NVVM ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/IntegerPowers.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_PREPAREGPUKERNELS
#include "passes/lower/Passes.h.inc"

namespace {

struct PrepareGpuKernels : impl::PrepareGpuKernelsBase<PrepareGpuKernels> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(prepare(kernel)))
        return signalPassFailure();
    // Divisions that round up or down; LLVM has those that round to zero.
    RewritePatternSet patterns(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    populateIntegerPowerPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

  LogicalResult prepare(gpu::GPUFuncOp kernel) {
    FailureOr<DenseI32ArrayAttr> grid = getSizes(kernel, drt::kGridAttr), block = getSizes(kernel, drt::kBlockAttr);
    if (failed(grid) || failed(block))
      return failure();
    kernel.setKnownGridSizeAttr(*grid);
    kernel.setKnownBlockSizeAttr(*block);
    for (auto [number, argument] : llvm::enumerate(kernel.getFunctionType().getInputs())) {
      auto type = dyn_cast<MemRefType>(argument);
      if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
        return kernel.emitOpError("needs arguments that are whole buffers of static shape, not ") << argument;
      Type element = type.getElementType();
      int64_t bytes =
          type.getNumElements() * (element.isIndex() ? 8 : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
      if (bytes > 0)
        kernel.setArgAttr(number, LLVM::LLVMDialect::getDereferenceableAttrName(),
                          Builder(&getContext()).getI64IntegerAttr(bytes));
    }
    return shareAllocations(kernel);
  }

  FailureOr<DenseI32ArrayAttr> getSizes(gpu::GPUFuncOp kernel, StringRef name) {
    auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(name);
    if (!sizes || sizes.size() != 3)
      return kernel.emitOpError("needs three numbers in '") << name << "', in the order x, y, z";
    return DenseI32ArrayAttr::get(&getContext(), SmallVector<int32_t>(sizes.asArrayRef()));
  }

  // Shared memory is allocated with the kernel.
  LogicalResult shareAllocations(gpu::GPUFuncOp kernel) {
    WalkResult result = kernel.walk([&](memref::AllocaOp op) {
      MemRefType type = op.getType();
      if (!gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(type))
        return WalkResult::advance();
      if (!type.hasStaticShape()) {
        op.emitOpError("allocates shared memory of a size that is not known when compiling");
        return WalkResult::interrupt();
      }
      op.replaceAllUsesWith(kernel.addWorkgroupAttribution(type, op.getLoc()));
      op.erase();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace

void buildLowerGpuKernelsPipeline(OpPassManager &pm) {
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createWidenNarrowFloats());
  kernels.addPass(createPrepareGpuKernels());
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createSCFToControlFlowPass());
  ConvertGpuOpsToNVVMOpsOptions nvvm;
  nvvm.useBarePtrCallConv = true;
  kernels.addPass(createConvertGpuOpsToNVVMOps(nvvm));
  // Instructions of LLVM's that libdevice has no function for.
  kernels.addPass(createConvertMathToLLVMPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
}

} // namespace distc
