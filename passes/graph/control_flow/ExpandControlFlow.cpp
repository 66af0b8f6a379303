//===- ExpandControlFlow.cpp - Conditions, loops and lists become straight-line code --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dist/Dist.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"
#include "passes/graph/control_flow/StraightLine.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_EXPANDCONTROLFLOW
#include "passes/graph/Passes.h.inc"

namespace {

struct ExpandControlFlow : impl::ExpandControlFlowBase<ExpandControlFlow> {
  using ExpandControlFlowBase::ExpandControlFlowBase;

  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(expand(graph)))
        return signalPassFailure();
  }

  LogicalResult expand(dfg::GraphOp graph) {
    FailureOr<DenseSet<Operation *>> all = collect(graph, /*initializes=*/true), steps = collect(graph, false);
    if (failed(all) || failed(steps))
      return failure();
    // Where a graph is exported, initializers keep other conditions.
    const bool isKnown = takeInitialValues(graph, *all, *steps);
    FailureOr<DenseSet<Operation *>> needed = collect(graph, /*initializes=*/!keepsOrder || isKnown);
    if (failed(needed))
      return failure();
    if (llvm::none_of(graph.getBody().front(),
                      [&](Operation &op) { return needed->contains(&op) && StraightLine::isControlFlow(&op); }))
      return success();
    dfg::ShapeContext shapes;
    shapes.setReplicas(dist::getReplicas(getOperation()));
    fixFeeds(graph);
    return StraightLine(graph, *needed, *steps, shapes, keepsOrder, maxIterations,
                        batch / dfg::getBatchMultiple(getOperation()))
        .run();
  }

  static FailureOr<DenseSet<Operation *>> collect(dfg::GraphOp graph, bool initializes) {
    EndpointNodes nodes(graph);
    return nodes.collect(nodes.findEndpoints(initializes));
  }

  /// Initial values that are another variable's value if it has one, else its initial value (averages, slots): the
  /// second, which is the same. Nothing says that the variable has been assigned before, and whoever reads one that has
  /// not fails. Returns whether all conditions of initializers are known by that.
  bool takeInitialValues(dfg::GraphOp graph, const DenseSet<Operation *> &all, const DenseSet<Operation *> &steps) {
    llvm::StringSet<> assigned;
    SmallVector<dfg::IsInitializedOp> asked;
    bool isKnown = true;
    for (Operation &op : graph.getBody().front()) {
      if (!all.contains(&op) || steps.contains(&op))
        continue;
      if (auto assign = llvm::dyn_cast<dfg::AssignOp>(op))
        if (dfg::VarHandleOp handle = dfg::getVariableHandle(assign.getHandle()))
          assigned.insert(handle.getVariable());
      if (auto initialized = llvm::dyn_cast<dfg::IsInitializedOp>(op))
        asked.push_back(initialized);
      if (StraightLine::isControlFlow(&op))
        isKnown &= asksIfInitialized(&op);
    }
    for (dfg::IsInitializedOp op : asked) {
      dfg::VarHandleOp handle = dfg::getVariableHandle(op.getHandle());
      // A resource is only read where the condition holds: exported, it stays as collections name it.
      if (!handle || !assigned.contains(handle.getVariable()) || (keepsOrder && !isReference(handle))) {
        isKnown = false;
        continue;
      }
      OpBuilder builder(op);
      auto type = RankedTensorType::get({}, builder.getI1Type());
      auto no = dfg::ConstOp::create(builder, op.getLoc(), type, DenseElementsAttr::get(type, false));
      op->replaceAllUsesWith(no->getResults());
      op.erase();
    }
    return isKnown && !asked.empty();
  }

  static bool isReference(dfg::VarHandleOp handle) {
    auto variable = SymbolTable::lookupNearestSymbolFrom<dfg::VariableOp>(handle, handle.getVariableAttr());
    return variable && variable.getKind() == "ref";
  }

  /// A condition on nothing else, or what joins its branches.
  static bool asksIfInitialized(Operation *op) {
    auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
    StringRef kind = opaque ? opaque.getOp() : StringRef();
    kind.consume_front("Ref");
    if (kind == "Merge")
      return true;
    kind.consume_front("Stateless");
    if (kind != "Switch" && kind != "If")
      return false;
    Operation *predicate = op->getOperand(kind == "If" ? 0 : 1).getDefiningOp();
    while (predicate && llvm::isa<dfg::IdentityOp>(predicate))
      predicate = predicate->getOperand(0).getDefiningOp();
    return llvm::isa_and_nonnull<dfg::IsInitializedOp>(predicate);
  }

  /// Sizes that the user fixes bound loops. The first of a batched feed is the batch.
  void fixFeeds(dfg::GraphOp graph) {
    for (StringRef feed : feeds) {
      auto [name, shape] = feed.split('=');
      name.consume_back(":0");
      SmallVector<StringRef> parts;
      shape.split(parts, 'x', -1, /*KeepEmpty=*/false);
      for (auto placeholder : graph.getBody().front().getOps<dfg::PlaceholderOp>()) {
        auto type = llvm::dyn_cast<TensorType>(placeholder.getResult().getType());
        if (dfg::getNodeName(placeholder) != name || !type ||
            (type.hasRank() && type.getRank() != static_cast<int64_t>(parts.size())))
          continue;
        SmallVector<int64_t> sizes;
        for (auto [axis, part] : llvm::enumerate(parts)) {
          int64_t size = ShapedType::kDynamic;
          bool isBatch = axis == 0 && (!type.hasRank() || type.isDynamicDim(0));
          if (!isBatch && part.getAsInteger(10, size))
            size = ShapedType::kDynamic;
          sizes.push_back(type.hasRank() && !type.isDynamicDim(axis) ? type.getDimSize(axis) : size);
        }
        placeholder.getResult().setType(RankedTensorType::get(sizes, type.getElementType()));
      }
    }
  }
};

} // namespace
} // namespace distc
