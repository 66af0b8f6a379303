//===- LowerKernels.cpp - Kernels become loops, then LLVM functions -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/MathToFuncs/MathToFuncs.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/ReductionSums.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_PREPAREKERNELS
#include "passes/lower/Passes.h.inc"

namespace {

struct PrepareKernels : impl::PrepareKernelsBase<PrepareKernels> {
  void runOnOperation() override {
    drt::KernelOp kernel = getOperation();
    Builder builder(&getContext());
    // Results never share memory with operands, nor operands that are written with others.
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      if (llvm::isa<MemRefType>(kernel.getArgument(i).getType()))
        kernel.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    setFastMath(kernel);

    // Elementary functions as polynomials: a call of the library would keep a loop from being vectorized. Only those
    // that are as accurate as the library's to a few units in the last place; all are float32's.
    static constexpr StringLiteral accurate[] = {"math.exp",  "math.expm1", "math.log", "math.log1p",
                                                 "math.log2", "math.tanh",  "math.erf", "math.erfc"};
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns,
                                                [](StringRef name) { return llvm::is_contained(accurate, name); });
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      signalPassFailure();
  }

  /// Sums of a reduction may be reordered (in a vector they must be), and a product be added to them without rounding
  /// in between.
  void setFastMath(drt::KernelOp kernel) {
    ReductionSums sums;
    kernel.walk([&](linalg::GenericOp generic) { sums.add(generic); });
    kernel.walk([&](arith::ArithFastMathInterface op) {
      // A cast to something narrower rounds, also where it is cast back.
      if (llvm::isa<arith::ExtFOp, arith::TruncFOp>(op.getOperation()))
        return;
      auto flags = arith::FastMathFlags::none;
      if (sums.has(op))
        flags = arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;
      else if (sums.hasAddend(op))
        flags = arith::FastMathFlags::contract;
      // Which of two zeros is the larger one nobody asks; an instruction that answered would be one more.
      if (llvm::isa<arith::MaximumFOp, arith::MinimumFOp>(op.getOperation()))
        flags = flags | arith::FastMathFlags::nsz;
      op->setAttr(op.getFastMathAttrName(), arith::FastMathFlagsAttr::get(&getContext(), flags));
    });
  }
};

} // namespace

void buildLowerKernelsPipeline(OpPassManager &pm) {
  OpPassManager &whole = pm.nest<drt::KernelOp>();
  whole.addPass(createWidenNarrowFloats());
  whole.addPass(createPrepareKernels());
  whole.addPass(createLoopOverRows());
  pm.addPass(createDivideKernels());
  OpPassManager &kernels = pm.nest<drt::KernelOp>();
  kernels.addPass(createMergeLoops());
  kernels.addPass(createConvertLinalgToLoopsPass());
  kernels.addPass(createSplitLoops());
  kernels.addPass(createLoopInvariantCodeMotionPass());
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createSCFToControlFlowPass());
  // Integer powers.
  pm.addPass(createConvertMathToFuncs());
  pm.addPass(createConvertKernelsToLLVM());
}

} // namespace distc
