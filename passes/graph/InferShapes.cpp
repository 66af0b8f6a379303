//===- InferShapes.cpp - Every tensor's shape -------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "core/near_names.h"
#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "dialects/dist/Dist.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_INFERSHAPES
#include "passes/graph/Passes.h.inc"

namespace {

struct InferShapes : impl::InferShapesBase<InferShapes> {
  using InferShapesBase::InferShapesBase;

  void runOnOperation() override {
    const int64_t replicas = dist::getReplicas(getOperation()), multiple = dfg::getBatchMultiple(getOperation());
    if (batch % multiple != 0) {
      getOperation().emitError() << "a batch of " << static_cast<int64_t>(batch) << " is no multiple of " << multiple;
      return signalPassFailure();
    }
    SmallVector<std::pair<Operation *, Block *>> all;
    for (Operation &op : getOperation().getOps())
      if (llvm::isa<dfg::GraphOp, dfg::FuncOp>(op))
        all.emplace_back(&op, &op.getRegion(0).front());
    // What servers take is what replicas push in another entry.
    std::stable_partition(all.begin(), all.end(),
                          [](auto scope) { return scope.second->template getOps<dist::TakeOp>().empty(); });
    for (auto [scope, block] : all) {
      Operation &op = *scope;
      dfg::ShapeContext context = batch > 0 ? dfg::ShapeContext(batch / multiple) : dfg::ShapeContext();
      // An entry is what code is generated for.
      if (op.hasAttr(dfg::kEntryAttr))
        context.useBounds();
      context.setReplicas(replicas);
      for (auto take : block->getOps<dist::TakeOp>())
        setTaken(take);
      if (failed(setFeeds(context, op, *block)) || failed(context.run(*block)))
        return signalPassFailure();
      for (auto push : block->getOps<dist::PushOp>())
        for (Value part : push.getGradient())
          pushed[push.getAccumulator()].push_back(context.getShape(part));
      setTypes(context, *block);
      if (auto function = llvm::dyn_cast<dfg::FuncOp>(op))
        function.setType(
            FunctionType::get(&getContext(), block->getArgumentTypes(), block->getTerminator()->getOperandTypes()));
    }
  }

  /// Of a sparse gradient the number of rows is the server's own.
  void setTaken(dist::TakeOp take) {
    auto known = pushed.find(take.getAccumulator());
    if (known == pushed.end())
      return;
    for (auto [part, sizes] : llvm::zip(take.getGradient(), known->second))
      if (auto type = llvm::cast<TensorType>(part.getType()); sizes && !type.hasStaticShape()) {
        dfg::Dims taken = *sizes;
        if (take.getRows() && !taken.empty())
          taken.front() = dfg::Dim();
        part.setType(dfg::refine(type, taken));
      }
  }

  LogicalResult setFeeds(dfg::ShapeContext &context, Operation &op, Block &block) {
    if (feeds.empty())
      return success();
    std::vector<std::string> names;
    for (Operation &node : block)
      if (llvm::isa<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(node))
        names.push_back(dfg::getNodeName(&node).str());
    for (StringRef feed : feeds) {
      auto [name, shape] = feed.split('=');
      name.consume_back(":0");
      // A function need not have every feed; the graph does.
      if (!llvm::is_contained(names, name)) {
        if (llvm::isa<dfg::GraphOp>(op))
          return emitError(op.getLoc()) << "feeds: there is no placeholder '" << name << "'"
                                        << ::drt::didYouMean(name, names);
        continue;
      }
      SmallVector<int64_t> sizes;
      SmallVector<StringRef> parts;
      shape.split(parts, 'x', -1, /*KeepEmpty=*/false);
      for (StringRef part : parts) {
        int64_t size;
        if (part.getAsInteger(10, size) || size < 0)
          return emitError(op.getLoc()) << "feeds: '" << feed << "' is not NAME=SHAPE, such as '" << name << "=32x784'";
        sizes.push_back(size);
      }
      context.setFeedShape(name, sizes);
    }
    return success();
  }

  /// Of each accumulator.
  llvm::StringMap<SmallVector<std::optional<dfg::Dims>>> pushed;

  void setTypes(dfg::ShapeContext &context, Block &block) {
    auto refine = [&](Value value) {
      if (auto type = llvm::dyn_cast<TensorType>(value.getType()))
        if (std::optional<dfg::Dims> sizes = context.getShape(value))
          value.setType(dfg::refine(type, *sizes));
    };
    for (Operation &op : block) {
      llvm::for_each(op.getResults(), refine);
      for (Region &region : op.getRegions())
        for (Block &inner : region) {
          llvm::for_each(inner.getArguments(), refine);
          setTypes(context, inner);
        }
    }
  }
};

} // namespace
} // namespace distc
