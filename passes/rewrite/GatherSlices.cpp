//===- GatherSlices.cpp - Slices at places that data decide are gathers ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GraphBuilder.h"
#include "passes/rewrite/Passes.h"

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_GATHERSLICES
#include "passes/rewrite/Passes.h.inc"

namespace {

struct GatherSlices : impl::GatherSlicesBase<GatherSlices> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(rewrite(graph.getBody().front())))
        return signalPassFailure();
  }

  LogicalResult rewrite(Block &block) {
    if (block.getOps<dfg::SliceOp>().empty())
      return success();
    dfg::ShapeContext shapes;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes)))
        return failure();
      if (auto slice = llvm::dyn_cast<dfg::SliceOp>(op))
        gather(slice, shapes);
    }
    return success();
  }

  /// Along each axis of which less than all is taken: positions from the place on.
  void gather(dfg::SliceOp slice, dfg::ShapeContext &shapes) {
    std::optional<dfg::Dims> from = shapes.getShape(slice.getInput()), to = shapes.getElements(slice.getSize());
    std::optional<dfg::Dims> begin = shapes.getElements(slice.getBegin());
    if (!from || !to || from->size() != to->size() || shapes.getConstants(slice.getBegin()))
      return;
    auto isKnown = [&](size_t axis) { return begin && axis < begin->size() && (*begin)[axis].isConstant(); };
    // Of all there is one place alone.
    auto isWhole = [&](size_t axis) { return (*from)[axis] == (*to)[axis] && !(*from)[axis].isBound(); };
    for (size_t axis = 0; axis < from->size(); ++axis)
      if (!isWhole(axis) && (!(*to)[axis].isConstant() || (*to)[axis].getConstant() < 0))
        return;
    OpBuilder builder(slice);
    dfg::GraphBuilder g(builder, shapes, slice);
    Value result = slice.getInput();
    for (size_t axis = 0; axis < from->size(); ++axis) {
      if (isWhole(axis))
        continue;
      const int64_t size = (*to)[axis].getConstant();
      if (isKnown(axis)) {
        result = g.slice(result, axis, (*begin)[axis].getConstant(), size);
        continue;
      }
      Value place = g.slice(slice.getBegin(), 0, axis, 1);
      SmallVector<int64_t> positions;
      for (int64_t position = 0; position < size; ++position)
        positions.push_back(position);
      const bool isWide = dfg::GraphBuilder::elementOf(slice.getBegin()).isInteger(64);
      result = g.gather(result, g.add(place, g.integers(positions, isWide)), axis);
    }
    if (g.failed()) {
      g.takeBack();
      return;
    }
    result = g.takeName(result);
    slice->getResult(0).replaceAllUsesWith(result);
    shapes.forget(slice->getResult(0));
    slice.erase();
  }
};

} // namespace
} // namespace distc::rewrite
