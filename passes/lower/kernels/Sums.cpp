//===- Sums.cpp - Sums of tensors, element by element --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/kernels/Sums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace distc {

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

static bool isPartOfSum(linalg::GenericOp generic) {
  if (!generic.getResult(0).hasOneUse())
    return false;
  auto user = llvm::dyn_cast<linalg::GenericOp>(*generic.getResult(0).user_begin());
  return user && isSum(user);
}

SmallVector<linalg::GenericOp> getWholeSums(Block &block) {
  SmallVector<linalg::GenericOp> whole;
  for (auto generic : block.getOps<linalg::GenericOp>())
    if (isSum(generic) && !isPartOfSum(generic))
      whole.push_back(generic);
  return whole;
}

SumTerms::SumTerms(linalg::GenericOp root) {
  SmallVector<Value> stack = {root.getResult(0)};
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    linalg::GenericOp sum = getSum(value);
    if (sum && (sum == root || value.hasOneUse())) {
      sums.push_back(sum);
      for (Value input : llvm::reverse(sum.getInputs()))
        stack.push_back(input);
    } else {
      terms.push_back(value);
    }
  }
}

Value createSum(OpBuilder &builder, Location loc, Value x, Value y) {
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

} // namespace distc
