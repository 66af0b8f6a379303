//===- SumContractions.cpp - Products that are added up are one operation ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/Sums.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_SUMCONTRACTIONS
#include "passes/lower/Passes.h.inc"

namespace {

/// A product that can be a term: of a transposed matrix and another one, as gradients of matrices are.
drt::MatmulOp getTerm(Value value) {
  auto product = value.getDefiningOp<drt::MatmulOp>();
  if (!product || !value.hasOneUse() || !product.getTransposeA() || product.getTransposeB() || product.getBias() ||
      product.getEpilogue() || product.getJoined())
    return {};
  auto type = llvm::cast<RankedTensorType>(value.getType());
  return type.getRank() == 2 && (type.getElementType().isF32() || type.getElementType().isF64()) ? product
                                                                                                 : drt::MatmulOp();
}

struct SumContractions : impl::SumContractionsBase<SumContractions> {
  void runOnOperation() override {
    for (linalg::GenericOp sum : getWholeSums(getOperation().getBody().front()))
      sumUp(sum);
  }

private:
  void sumUp(linalg::GenericOp root) {
    const SumTerms all(root);
    SmallVector<Value> rest;
    llvm::MapVector<std::pair<Type, Type>, SmallVector<drt::MatmulOp>> products;
    for (Value value : all.terms)
      if (drt::MatmulOp term = getTerm(value))
        products[{term.getA().getType(), term.getB().getType()}].push_back(term);
      else
        rest.push_back(value);
    if (llvm::none_of(products, [](auto &terms) { return terms.second.size() > 1; }))
      return;
    OpBuilder builder(root);
    SmallVector<Operation *> replaced;
    for (auto &[types, terms] : products) {
      if (terms.size() == 1) {
        rest.push_back(terms.front().getResult());
        continue;
      }
      SmallVector<Value> a, b;
      for (drt::MatmulOp term : terms) {
        a.push_back(term.getA());
        b.push_back(term.getB());
        replaced.push_back(term);
      }
      // One name says which it is; all of a loop's would be as many as its iterations.
      rest.push_back(drt::MatmulSumOp::create(builder, terms.front().getLoc(), terms.front().getResult().getType(), a,
                                              b, DenseI64ArrayAttr()));
    }
    Value whole = rest.front();
    for (Value term : llvm::ArrayRef(rest).drop_front())
      whole = createSum(builder, root.getLoc(), whole, term);
    root.getResult(0).replaceAllUsesWith(whole);
    for (linalg::GenericOp op : all.sums)
      op->erase();
    for (Operation *op : replaced)
      op->erase();
  }
};

} // namespace
} // namespace distc
