//===- Decompose.cpp - Composite operations become what they are made of -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "dialects/dist/Dist.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/graph/Passes.h.inc"

namespace {

struct Decompose : impl::DecomposeBase<Decompose> {
  using DecomposeBase::DecomposeBase;

  void runOnOperation() override {
    for (Operation &op : getOperation().getOps()) {
      if (!llvm::isa<dfg::GraphOp, dfg::FuncOp>(op))
        continue;
      dfg::ShapeContext context;
      if (op.hasAttr(dfg::kEntryAttr))
        context.useBounds();
      context.setReplicas(dist::getReplicas(getOperation()));
      noteEndpoints(&op);
      for (Region &region : op.getRegions())
        for (Block &block : region)
          if (failed(decompose(block, context)))
            return signalPassFailure();
    }
  }

  /// In order, so that each node sees what is known of the shapes before it.
  LogicalResult decompose(Block &block, dfg::ShapeContext &context) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          if (failed(decompose(inner, context)))
            return failure();
      auto composite = llvm::dyn_cast<dfg::CompositeInterface>(op);
      if (composite ? failed(replace(composite, context)) : failed(infer(&op, context)))
        return failure();
    }
    return success();
  }

  LogicalResult infer(Operation *op, dfg::ShapeContext &context) {
    auto node = llvm::dyn_cast<dfg::ShapeInterface>(op);
    return node ? node.inferShapes(context) : success();
  }

  LogicalResult replace(dfg::CompositeInterface composite, dfg::ShapeContext &context) {
    Operation *op = composite;
    OpBuilder builder(op);
    dfg::GraphBuilder g(builder, context, op);
    FailureOr<SmallVector<Value>> values = composite.decompose(g);
    if (failed(values) || g.failed()) {
      StringRef reason = g.getReason();
      if (g.failed() && reason.empty())
        return failure();
      if (last)
        return op->emitError() << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
                               << ") has no code here: " << (reason.empty() ? "its operands do not fit" : reason);
      // Once more is known.
      g.takeBack();
      return infer(op, context);
    }
    for (unsigned number = 1; number < op->getNumResults(); ++number)
      if (std::string name = (dfg::getNodeName(op) + ":" + Twine(number)).str(); endpoints.contains(name))
        return op->emitError() << "'" << name << "' is an output beside the first of a node ("
                               << op->getName().stripDialect()
                               << ") that is compiled as several; fetch an Identity of it";
    values->front() = g.takeName(values->front());
    for (auto [result, value] : llvm::zip(op->getResults(), *values))
      result.replaceAllUsesWith(value);
    for (Value result : op->getResults())
      context.forget(result);
    op->erase();
    return success();
  }

  void noteEndpoints(Operation *op) {
    endpoints.clear();
    auto graph = llvm::dyn_cast<dfg::GraphOp>(op);
    if (!graph)
      return;
    if (StringAttr loss = graph.getLossAttr())
      endpoints.insert(loss.getValue());
    if (ArrayAttr fetches = graph.getFetchesAttr())
      for (StringAttr fetch : fetches.getAsRange<StringAttr>())
        endpoints.insert(fetch.getValue());
  }

  llvm::StringSet<> endpoints;
};

} // namespace
} // namespace distc
