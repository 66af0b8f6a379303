//===- ConvertKernelsToLLVM.cpp - Kernels become LLVM functions ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_CONVERTKERNELSTOLLVM
#include "passes/lower/Passes.h.inc"

namespace {

struct ConvertKernelsToLLVM : impl::ConvertKernelsToLLVMBase<ConvertKernelsToLLVM> {
  void runOnOperation() override {
    LowerToLLVMOptions options(&getContext());
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(&getContext(), options);
    RewritePatternSet patterns(&getContext());
    populateFuncToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    index::populateIndexToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(getContext());
    // The module stays, and the entries in it: they are tensors still, and convert-drt-to-llvm's.
    target.addLegalOp<ModuleOp>();
    target.addDynamicallyLegalOp<func::FuncOp>([](func::FuncOp function) { return function->hasAttr(drt::kEntryAttr); });
    target.markOpRecursivelyLegal<func::FuncOp>([](func::FuncOp function) { return function->hasAttr(drt::kEntryAttr); });
    target.addLegalDialect<drt::DRTDialect>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace distc
