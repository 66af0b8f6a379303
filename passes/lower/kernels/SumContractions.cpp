//===- SumContractions.cpp - Products that are added up are one operation ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "passes/lower/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_SUMCONTRACTIONS
#include "passes/lower/Passes.h.inc"

namespace {

/// The sum of all inputs, element by element, and nothing else; 0 may be among the terms, as what a loop's sum began
/// with.
bool isSum(linalg::GenericOp generic) {
  if (generic.getNumDpsInits() != 1 || generic.getNumDpsInputs() == 0 ||
      generic.getNumLoops() != generic.getNumParallelLoops())
    return false;
  for (AffineMap map : generic.getIndexingMapsArray())
    if (!map.isIdentity())
      return false;
  Block &body = generic.getRegion().front();
  if (!body.getArguments().back().use_empty())
    return false;
  for (BlockArgument input : body.getArguments().drop_back())
    if (!input.hasOneUse())
      return false;
  for (Operation &op : body.without_terminator()) {
    if (llvm::isa<arith::AddFOp>(op) ? !op.hasOneUse() : !matchPattern(&op, m_AnyZeroFloat()))
      return false;
  }
  return !matchPattern(body.getTerminator()->getOperand(0), m_Constant());
}

linalg::GenericOp getSum(Value value) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return generic && isSum(generic) ? generic : linalg::GenericOp();
}

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
    // A sum that only another one reads is part of that.
    SmallVector<linalg::GenericOp> whole;
    for (auto generic : getOperation().getBody().front().getOps<linalg::GenericOp>())
      if (isSum(generic) && !isPartOfSum(generic))
        whole.push_back(generic);
    for (linalg::GenericOp sum : whole)
      sumUp(sum);
  }

private:
  static bool isPartOfSum(linalg::GenericOp generic) {
    if (!generic.getResult(0).hasOneUse())
      return false;
    auto user = llvm::dyn_cast<linalg::GenericOp>(*generic.getResult(0).user_begin());
    return user && isSum(user);
  }

  void sumUp(linalg::GenericOp root) {
    // In their order.
    SmallVector<Value> stack = {root.getResult(0)}, rest;
    SmallVector<Operation *> sums;
    llvm::MapVector<std::pair<Type, Type>, SmallVector<drt::MatmulOp>> products;
    while (!stack.empty()) {
      Value value = stack.pop_back_val();
      linalg::GenericOp sum = getSum(value);
      if (sum && (sum == root || value.hasOneUse())) {
        sums.push_back(sum);
        for (Value input : llvm::reverse(sum.getInputs()))
          stack.push_back(input);
      } else if (drt::MatmulOp term = getTerm(value)) {
        products[{term.getA().getType(), term.getB().getType()}].push_back(term);
      } else {
        rest.push_back(value);
      }
    }
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
      whole = add(builder, root.getLoc(), whole, term);
    root.getResult(0).replaceAllUsesWith(whole);
    for (Operation *op : sums) // users first
      op->erase();
    for (Operation *op : replaced)
      op->erase();
  }

  static Value add(OpBuilder &builder, Location loc, Value x, Value y) {
    auto type = llvm::cast<RankedTensorType>(x.getType());
    const SmallVector<AffineMap> maps(3, builder.getMultiDimIdentityMap(type.getRank()));
    const SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    return linalg::GenericOp::create(builder, loc, type, ValueRange{x, y}, empty, maps, loops,
                                     [](OpBuilder &body, Location at, ValueRange elements) {
                                       Value sum = arith::AddFOp::create(body, at, elements[0], elements[1]);
                                       linalg::YieldOp::create(body, at, sum);
                                     })
        .getResult(0);
  }
};

} // namespace
} // namespace distc
