//===- ScheduleForGpu.cpp - Kernels become GPU functions with a grid -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/Schedule.h"
#include "passes/lower/kernels/ReductionSums.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_SCHEDULEFORGPU
#include "passes/lower/Passes.h.inc"

namespace {

using namespace schedule;

/// The first that matches is taken.
const Schedule *const kSchedules[] = {
    &kLoops, &kTranspose, &kElementwise, &kRows, &kColumns, &kFusedRows,
    &kPlain, // anything of one operation
};

constexpr StringLiteral kModuleName = "kernels";

/// Whether no result has an element.
bool makesNothing(Kernel &kernel) {
  return llvm::all_of(kernel.ops, [](linalg::LinalgOp op) {
    return llvm::all_of(op.getDpsInits(), [](Value init) {
      auto type = dyn_cast<MemRefType>(init.getType());
      return type && type.getNumElements() == 0;
    });
  });
}

/// Special functions are the runtime's (runtime/routines), which is the host's: a kernel that calls one is compiled for
/// it, and launched there.
bool runsOnHost(drt::KernelOp kernel) {
  return kernel.walk([](dfg::SpecialFunctionOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

struct ScheduleForGpu : impl::ScheduleForGpuBase<ScheduleForGpu> {
  void runOnOperation() override {
    SmallVector<drt::KernelOp> kernels;
    for (auto function : getOperation().getOps<drt::KernelOp>())
      if (!function.getRange() && !runsOnHost(function))
        kernels.push_back(function);
      else
        function.walk([&](memref::GetGlobalOp get) { readOnHost.insert(get.getName()); });
    if (kernels.empty())
      return;
    gpu::GPUModuleOp module = getGpuModule();
    for (drt::KernelOp function : kernels) {
      if (failed(scheduleKernel(function, module)))
        return signalPassFailure();
      moveGlobals(function, module);
      function.erase();
    }
  }

  gpu::GPUModuleOp getGpuModule() {
    if (auto module = getOperation().lookupSymbol<gpu::GPUModuleOp>(kModuleName))
      return module;
    OpBuilder builder(getOperation().getBodyRegion());
    return gpu::GPUModuleOp::create(builder, getOperation().getLoc(), kModuleName);
  }

  LogicalResult scheduleKernel(drt::KernelOp function, gpu::GPUModuleOp module) {
    FailureOr<Kernel> kernel = Kernel::get(function);
    if (failed(kernel))
      return failure();
    contractSums(*kernel);
    for (const Schedule *schedule : kSchedules) {
      if (!schedule->matches(*kernel))
        continue;
      KernelWriter writer(*kernel, module);
      if (makesNothing(*kernel)) // a grid of no blocks cannot be launched
        writer.setLaunch(1, 32);
      else
        schedule->write(*kernel, writer);
      writer.finish();
      writer.function->setAttr(drt::kScheduleAttr, writer.b.getStringAttr(schedule->name));
      return success();
    }
    return function.emitError() << "kernel '" << function.getSymName() << "' has " << kernel->ops.size()
                                << " operations that no schedule takes together";
  }

  /// As on CPUs, a product may be added to a reduction's sum without rounding in between; everything else is IEEE's.
  void contractSums(Kernel &kernel) {
    auto contract = arith::FastMathFlagsAttr::get(&getContext(), arith::FastMathFlags::contract);
    for (linalg::LinalgOp op : kernel.ops) {
      ReductionSums sums;
      sums.add(op);
      op->walk([&](arith::ArithFastMathInterface inner) {
        if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(inner.getOperation()) &&
            (sums.has(inner) || sums.hasAddend(inner)))
          inner->setAttr(inner.getFastMathAttrName(), contract);
      });
    }
  }

  /// Constants lie in the image of those that read them.
  void moveGlobals(drt::KernelOp function, gpu::GPUModuleOp module) {
    function.walk([&](memref::GetGlobalOp get) {
      auto global = getOperation().lookupSymbol<memref::GlobalOp>(get.getName());
      if (!global || module.lookupSymbol(get.getName())) // another kernel's too
        return;
      if (readOnHost.contains(get.getName()))
        global = global.clone();
      else
        global->remove();
      // Read by vectors.
      global.setAlignment(256);
      module.getBody()->push_front(global);
    });
  }

  llvm::StringSet<> readOnHost; // constants
};

} // namespace
} // namespace distc
