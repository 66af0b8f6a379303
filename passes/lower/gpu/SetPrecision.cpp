//===- SetPrecision.cpp - What products on matrix units are made of ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/lower/Passes.h"
#include "passes/lower/plan/ProductType.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_SETPRECISION
#include "passes/lower/Passes.h.inc"

llvm::StringRef getName(ProductType type) {
  switch (type) {
  case ProductType::F32:
    return "fp32";
  case ProductType::TF32:
    return "tf32";
  case ProductType::BF16:
    break;
  }
  return "bf16";
}

ProductType getProductType(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(kPrecisionAttr);
  for (ProductType type : kProductTypes)
    if (name && name.getValue() == getName(type))
      return type;
  return ProductType::F32;
}

namespace {

bool isProduct(Operation *op) {
  return isa<drt::MatmulOp, drt::Conv2DOp, drt::Conv2DGradInputOp, drt::Conv2DGradFilterOp>(op);
}

struct SetPrecision : impl::SetPrecisionBase<SetPrecision> {
  using Base::Base;

  void runOnOperation() override {
    if (precision == distc::getName(ProductType::F32))
      return;
    if (precision != distc::getName(ProductType::TF32)) {
      getOperation()->emitError() << "has no products in " << precision << "; there are fp32 and tf32";
      return signalPassFailure();
    }
    auto name = StringAttr::get(&getContext(), precision.getValue());
    getOperation()->walk([&](Operation *op) {
      // What has other elements is not made of float32, and stays exact.
      if (isProduct(op) && cast<RankedTensorType>(op->getResult(0).getType()).getElementType().isF32())
        op->setAttr(kPrecisionAttr, name);
    });
  }
};

} // namespace
} // namespace distc
