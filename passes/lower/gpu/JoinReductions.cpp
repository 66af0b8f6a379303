//===- JoinReductions.cpp - drt-join-reductions ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/Hoist.h"
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

int64_t countElements(OpOperand *input) {
  return input ? cast<ShapedType>(input->get().getType()).getNumElements() : 0;
}

bool canJoin(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0 || !op.hasPureTensorSemantics() || !Reduction::match(op))
    return false;
  return countElements(getLargestInput(op)) >= kFewestElements && llvm::all_of(op.getDpsInits(), [](Value init) {
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
  const int64_t most = countElements(getLargestInput(second));
  return llvm::any_of(first.getDpsInputOperands(), [&](OpOperand *input) {
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    return type && type.getNumElements() == most && llvm::any_of(second.getDpsInputOperands(), [&](OpOperand *other) {
             return other->get() == input->get() &&
                    first.getMatchingIndexingMap(input) == second.getMatchingIndexingMap(other);
           });
  });
}

/// The second reduction moves to the first one; null where what it reads is made in between.
linalg::GenericOp join(linalg::GenericOp first, linalg::GenericOp second) {
  const llvm::SetVector<Value> used = getUsed(second);
  Hoist hoist(first);
  if (!llvm::all_of(used, [&](Value value) { return hoist.isPossible(value); }))
    return {};
  for (Value value : used)
    hoist.move(value);
  SmallVector<Value> inits(first.getDpsInits());
  llvm::append_range(inits, second.getDpsInits());
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
