//===- JoinReductions.cpp - drt-join-reductions ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/Reduction.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_JOINREDUCTIONS
#include "passes/lower/Passes.h.inc"

namespace {

using namespace schedule;

/// What a joined kernel carries from element to element stays in registers.
constexpr unsigned kMostResults = 4;
/// Below, a launch is what takes the time, and rows are fused with more than reductions (drt-fuse-rows).
constexpr int64_t kFewestElements = 1 << 16;

int64_t getElements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type.getNumElements() : 0;
}

/// The input with the most elements.
OpOperand *getLargest(linalg::GenericOp op) {
  OpOperand *largest = nullptr;
  for (OpOperand *input : op.getDpsInputOperands())
    if (!largest || getElements(input->get()) > getElements(largest->get()))
      largest = input;
  return largest;
}

bool canJoin(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0 || !op.hasPureTensorSemantics() || !Reduction::match(op))
    return false;
  OpOperand *largest = getLargest(op);
  return largest && getElements(largest->get()) >= kFewestElements && llvm::all_of(op.getDpsInits(), [](Value init) {
           return isa_and_nonnull<linalg::FillOp>(init.getDefiningOp());
         });
}

/// Whether both go through the same elements: the same loops, and an input of the size of all of them.
bool readTheSame(linalg::GenericOp first, linalg::GenericOp second) {
  if (first.getStaticLoopRanges() != second.getStaticLoopRanges() ||
      first.getIteratorTypesArray() != second.getIteratorTypesArray() ||
      first.getMatchingIndexingMap(first.getDpsInitOperand(0)) !=
          second.getMatchingIndexingMap(second.getDpsInitOperand(0)))
    return false;
  OpOperand *largest = getLargest(second);
  return llvm::any_of(first.getDpsInputOperands(), [&](OpOperand *input) {
    return getElements(input->get()) == getElements(largest->get()) &&
           llvm::any_of(second.getDpsInputOperands(), [&](OpOperand *other) {
             return other->get() == input->get() &&
                    first.getMatchingIndexingMap(input) == second.getMatchingIndexingMap(other);
           });
  });
}

/// The fill of a result, in front of `place`; null where what it fills with comes behind it.
Value moveFill(Value init, Operation *place) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (fill->isBeforeInBlock(place))
    return init;
  Value element = fill.getInputs()[0];
  Operation *constant = element.getDefiningOp();
  if (!constant || !constant->hasTrait<OpTrait::ConstantLike>())
    return {};
  ImplicitLocOpBuilder b(fill.getLoc(), place);
  auto type = cast<RankedTensorType>(init.getType());
  Value empty = tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  return linalg::FillOp::create(b, b.clone(*constant)->getResult(0), empty).getResult(0);
}

/// The second reduction moves to the first one; null where what it reads is made in between.
linalg::GenericOp join(linalg::GenericOp first, linalg::GenericOp second) {
  auto isThere = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return !op || op->isBeforeInBlock(first);
  };
  bool possible = llvm::all_of(second.getDpsInputs(), isThere);
  second->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      possible &= inner == second || second.getRegion().isAncestor(operand.getParentRegion()) || isThere(operand);
  });
  if (!possible)
    return {};
  SmallVector<Value> inits(first.getDpsInits());
  for (Value init : second.getDpsInits()) {
    inits.push_back(moveFill(init, first));
    if (!inits.back())
      return {};
  }
  SmallVector<Value> inputs(first.getDpsInputs());
  SmallVector<AffineMap> maps, initMaps;
  for (OpOperand *input : first.getDpsInputOperands())
    maps.push_back(first.getMatchingIndexingMap(input));
  SmallVector<unsigned> places; // of the second's inputs among all
  for (OpOperand *input : second.getDpsInputOperands()) {
    AffineMap map = second.getMatchingIndexingMap(input);
    unsigned place = 0;
    while (place < inputs.size() && (inputs[place] != input->get() || maps[place] != map))
      ++place;
    places.push_back(place);
    if (place < inputs.size())
      continue;
    inputs.push_back(input->get());
    maps.push_back(map);
  }
  for (linalg::GenericOp op : {first, second})
    for (OpOperand &init : op.getDpsInitsMutable())
      initMaps.push_back(op.getMatchingIndexingMap(&init));
  llvm::append_range(maps, initMaps);

  ImplicitLocOpBuilder b(FusedLoc::get(first.getContext(), {first.getLoc(), second.getLoc()}), first);
  const size_t own = first.getNumDpsInits();
  return linalg::GenericOp::create(
      b, ValueRange(inits).getTypes(), inputs, inits, maps, first.getIteratorTypesArray(),
      [&](OpBuilder &inner, Location at, ValueRange elements) {
        ValueRange results = elements.drop_front(inputs.size());
        SmallVector<Value> yielded;
        auto write = [&](linalg::GenericOp op, auto inputOf, ValueRange ofResults) {
          IRMapping mapping;
          for (BlockArgument argument : op.getBody()->getArguments()) {
            const unsigned number = argument.getArgNumber();
            const unsigned count = op.getNumDpsInputs();
            mapping.map(argument, number < count ? inputOf(number) : ofResults[number - count]);
          }
          for (Operation &copied : op.getBody()->without_terminator())
            inner.clone(copied, mapping);
          for (Value value : op.getBody()->getTerminator()->getOperands())
            yielded.push_back(mapping.lookupOrDefault(value));
        };
        write(first, [&](unsigned number) { return elements[number]; }, results.take_front(own));
        write(second, [&](unsigned number) { return elements[places[number]]; }, results.drop_front(own));
        linalg::YieldOp::create(inner, at, yielded);
      });
}

struct JoinReductions : impl::JoinReductionsBase<JoinReductions> {
  void runOnOperation() override {
    // By the largest of the inputs of those that may be joined.
    SmallVector<linalg::GenericOp> earlier;
    for (auto op : llvm::make_early_inc_range(getOperation().getBody().front().getOps<linalg::GenericOp>())) {
      if (!canJoin(op))
        continue;
      if (!joinWithOne(op, earlier))
        earlier.push_back(op);
    }
  }

  bool joinWithOne(linalg::GenericOp op, SmallVectorImpl<linalg::GenericOp> &earlier) {
    for (linalg::GenericOp &first : earlier) {
      if (first->getNumResults() + op->getNumResults() > kMostResults || !readTheSame(first, op))
        continue;
      linalg::GenericOp joined = join(first, op);
      if (!joined)
        continue;
      const size_t own = first->getNumResults();
      first->replaceAllUsesWith(joined->getResults().take_front(own));
      op->replaceAllUsesWith(joined->getResults().drop_front(own));
      first->erase();
      op->erase();
      first = joined;
      return true;
    }
    return false;
  }
};

} // namespace
} // namespace distc
