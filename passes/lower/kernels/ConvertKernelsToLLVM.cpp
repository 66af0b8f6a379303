//===- ConvertKernelsToLLVM.cpp - Kernels become LLVM functions ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/drt/Drt.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
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

/// As of func.func; how a kernel is divided is still asked where it is launched.
struct ConvertKernel : ConvertOpToLLVMPattern<drt::KernelOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(drt::KernelOp kernel, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    FailureOr<LLVM::LLVMFuncOp> function = convertFuncOpToLLVMFuncOp(
        llvm::cast<FunctionOpInterface>(kernel.getOperation()), rewriter, *getTypeConverter());
    if (failed(function))
      return failure();
    if (DenseI64ArrayAttr divided = kernel.getDividedAttr())
      (*function)->setAttr(drt::kDividedAttr, divided);
    rewriter.eraseOp(kernel);
    return success();
  }
};

struct ConvertReturn : ConvertOpToLLVMPattern<drt::ReturnOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(drt::ReturnOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange());
    return success();
  }
};

struct ConvertKernelsToLLVM : impl::ConvertKernelsToLLVMBase<ConvertKernelsToLLVM> {
  void runOnOperation() override {
    if (failed(callLibrary()))
      return signalPassFailure();
    callSpecialFunctions();
    LowerToLLVMOptions options(&getContext());
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(&getContext(), options);
    RewritePatternSet patterns(&getContext());
    patterns.add<ConvertKernel, ConvertReturn>(converter);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    index::populateIndexToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(getContext());
    // The module stays, and the entries in it: they are tensors still, and convert-drt-to-llvm's.
    target.addLegalOp<ModuleOp>();
    target.addLegalDialect<drt::DRTDialect>();
    target.addIllegalOp<drt::KernelOp, drt::ReturnOp>();
    target.markOpRecursivelyLegal<drt::EntryOp>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      return signalPassFailure();
    flattenTables();
    addressBools();
  }

  /// A bool takes a byte. LLVM makes no vectors of loads and stores of single bits, nor of a loop that has some.
  void addressBools() {
    getOperation().walk([&](Operation *op) {
      OpBuilder builder(op);
      if (auto load = llvm::dyn_cast<LLVM::LoadOp>(op); load && load.getType().isInteger(1)) {
        Type byte = builder.getI8Type();
        Value loaded = LLVM::LoadOp::create(builder, load.getLoc(), byte, load.getAddr(), /*alignment=*/1);
        Value zero = LLVM::ConstantOp::create(builder, load.getLoc(), builder.getIntegerAttr(byte, 0));
        Value isSet = LLVM::ICmpOp::create(builder, load.getLoc(), LLVM::ICmpPredicate::ne, loaded, zero);
        load.replaceAllUsesWith(isSet);
        load.erase();
      } else if (auto store = llvm::dyn_cast<LLVM::StoreOp>(op); store && store.getValue().getType().isInteger(1)) {
        Value byte = LLVM::ZExtOp::create(builder, store.getLoc(), builder.getI8Type(), store.getValue());
        LLVM::StoreOp::create(builder, store.getLoc(), byte, store.getAddr(), /*alignment=*/1);
        store.erase();
      }
    });
  }

  /// LLVM makes a constant of each innermost row of a table, of a convolution's filter a million of a few numbers. One
  /// row has them all in the same order.
  void flattenTables() {
    for (auto global : getOperation().getOps<LLVM::GlobalOp>()) {
      auto elements = llvm::dyn_cast_if_present<DenseElementsAttr>(global.getValueAttr());
      if (!elements || elements.getType().getRank() < 2)
        continue;
      auto type = RankedTensorType::get(elements.getNumElements(), elements.getElementType());
      Type element = global.getGlobalType();
      while (auto array = llvm::dyn_cast<LLVM::LLVMArrayType>(element))
        element = array.getElementType();
      global.setGlobalType(LLVM::LLVMArrayType::get(element, elements.getNumElements()));
      global.setValueAttr(elements.reshape(type));
    }
  }

  /// The runtime's functions of drt.h.
  void callSpecialFunctions() {
    getOperation().walk([&](dfg::SpecialFunctionOp op) {
      std::string name = ("drt_special_" + op.getFunction()).str();
      OpBuilder builder(op);
      if (!getOperation().lookupSymbol(name)) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(getOperation().getBody());
        auto type = builder.getFunctionType(op->getOperandTypes(), op->getResultTypes());
        func::FuncOp::create(builder, op.getLoc(), name, type).setPrivate();
      }
      auto call = func::CallOp::create(builder, op.getLoc(), name, op->getResultTypes(), op->getOperands());
      op->replaceAllUsesWith(call);
      op.erase();
    });
  }

  /// The C library has what LLVM has no intrinsic for, or what MLIR makes of others and loses the digits near 0. Other
  /// functions become intrinsics: instructions where there are some (sqrt, floor), else LLVM calls the library.
  LogicalResult callLibrary() {
    RewritePatternSet patterns(&getContext());
    populateMathToLibmConversionPatterns(patterns);
    ConversionTarget target(getContext());
    target.addIllegalOp<math::AcoshOp, math::AsinhOp, math::AtanhOp, math::CbrtOp, math::ErfOp, math::ErfcOp,
                        math::ExpM1Op, math::Log1pOp>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    return applyPartialConversion(getOperation(), target, std::move(patterns));
  }
};

} // namespace
} // namespace distc
