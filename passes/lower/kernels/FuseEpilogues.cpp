//===- FuseEpilogues.cpp - Bias and activation become part of a library call ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FUSEEPILOGUES
#include "passes/lower/Passes.h.inc"
#include "runtime/include/drt/drt.h"

namespace {

enum Epilogue : int32_t { None = DRT_EPILOGUE_NONE, Relu = DRT_EPILOGUE_RELU, Tanh = DRT_EPILOGUE_TANH };

/// The only operation of an element-wise body, null where there are more.
Operation *onlyOperation(linalg::GenericOp generic) {
  Block &body = generic.getRegion().front();
  Operation *only = nullptr;
  for (Operation &op : body.without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (only)
      return nullptr;
    only = &op;
  }
  if (!only || body.getTerminator()->getOperand(0).getDefiningOp() != only)
    return nullptr;
  return only;
}

/// The vector that `generic` adds to each row of `product`, or null.
Value matchBias(linalg::GenericOp generic, Value product) {
  auto type = llvm::cast<RankedTensorType>(product.getType());
  int64_t rank = type.getRank();
  auto add = llvm::dyn_cast_or_null<arith::AddFOp>(onlyOperation(generic));
  if (!add || generic.getNumDpsInputs() != 2 || generic.getResult(0).getType() != type)
    return {};
  unsigned at = generic.getInputs()[0] == product ? 0 : 1;
  Value bias = generic.getInputs()[1 - at];
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  MLIRContext *context = generic.getContext();
  AffineMap columns = AffineMap::get(rank, 0, getAffineDimExpr(rank - 1, context), context);
  // The body adds the two elements, in either order.
  Block &body = generic.getRegion().front();
  bool addsBoth = (add.getLhs() == body.getArgument(0) && add.getRhs() == body.getArgument(1)) ||
                  (add.getLhs() == body.getArgument(1) && add.getRhs() == body.getArgument(0));
  if (bias == product || !addsBoth || !maps[at].isIdentity() || maps[1 - at] != columns)
    return {};
  return bias;
}

Epilogue matchActivation(linalg::GenericOp generic, Value input) {
  if (generic.getNumDpsInputs() != 1 || generic.getInputs()[0] != input ||
      !generic.getIndexingMapsArray()[0].isIdentity() || generic.getResult(0).getType() != input.getType())
    return None;
  Operation *op = onlyOperation(generic);
  if (llvm::isa_and_nonnull<math::TanhOp>(op))
    return Tanh;
  if (auto maximum = llvm::dyn_cast_or_null<arith::MaximumFOp>(op)) {
    llvm::APFloat zero(0.0f);
    auto constant = maximum.getRhs().getDefiningOp<arith::ConstantOp>();
    auto value = constant ? llvm::dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
    if (value && value.getValue().isZero() && llvm::isa<BlockArgument>(maximum.getLhs()))
      return Relu;
  }
  return None;
}

/// The generic that alone uses `value` and stands in the same block.
linalg::GenericOp onlyUser(Value value) {
  return value.hasOneUse() ? llvm::dyn_cast<linalg::GenericOp>(*value.user_begin()) : linalg::GenericOp();
}

/// The call takes the place of what it absorbed: its new operand may stand behind it. `has`: activations of the
/// library.
template <typename Call> void fuse(Call call, llvm::function_ref<bool(Epilogue)> has) {
  Type element = call.getResult().getType().getElementType();
  if (!element.isF32() || call.getBias())
    return;
  auto absorb = [&](linalg::GenericOp generic) {
    call->moveBefore(generic);
    call->setLoc(FusedLoc::get(call.getContext(), {call.getLoc(), generic.getLoc()}));
    generic.getResult(0).replaceAllUsesWith(call.getResult());
    generic.erase();
  };
  linalg::GenericOp user = onlyUser(call.getResult());
  if (!user)
    return;
  if (Value bias = matchBias(user, call.getResult())) {
    call.getBiasMutable().assign(bias);
    absorb(user);
    user = onlyUser(call.getResult());
  }
  if (Epilogue epilogue = user ? matchActivation(user, call.getResult()) : None; epilogue && has(epilogue)) {
    call.setEpilogue(epilogue);
    absorb(user);
  }
}

struct FuseEpilogues : impl::FuseEpiloguesBase<FuseEpilogues> {
  using FuseEpiloguesBase::FuseEpiloguesBase;

  void runOnOperation() override {
    for (StringRef name : activations)
      if (name != "relu" && name != "tanh") {
        getOperation().emitError() << "drt-fuse-epilogues knows no activation '" << name << "': relu, tanh";
        return signalPassFailure();
      }
    auto has = [&](Epilogue epilogue) {
      return activations.empty() || llvm::is_contained(activations, epilogue == Relu ? "relu" : "tanh");
    };
    SmallVector<Operation *> calls;
    for (Operation &op : getOperation().getBody().front())
      if (llvm::isa<drt::MatmulOp, drt::Conv2DOp>(op))
        calls.push_back(&op);
    for (Operation *op : calls) {
      if (auto product = llvm::dyn_cast<drt::MatmulOp>(op)) {
        if (product.getResult().getType().getRank() == 2)
          fuse(product, has);
      } else {
        fuse(llvm::cast<drt::Conv2DOp>(op), has);
      }
    }
  }
};

} // namespace
} // namespace distc
