//===- RemainingGraph.cpp - The graph that evaluation leaves ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "passes/graph/control_flow/StraightLine.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

/// An endpoint's node has its name again.
void StraightLine::keepEndpoints() {
  llvm::StringMap<std::pair<Operation *, Data>> byName;
  for (auto &[op, results] : replaced)
    byName[dfg::getNodeName(op)] = {op, results};
  builder.setInsertionPointToEnd(&graph.getBody().front());
  auto keep = [&](StringAttr endpoint, bool isTensor) {
    auto it = endpoint ? byName.find(endpoint.getValue().split(':').first) : byName.end();
    if (it == byName.end() || !it->second.first)
      return;
    auto &[op, results] = it->second;
    auto loc = NameLoc::get(builder.getStringAttr(it->getKey()));
    SmallVector<Attribute> controls = top.replacements.lookup(it->getKey());
    Operation *made;
    if (isTensor && !results.empty() && results[0].value)
      made = dfg::IdentityOp::create(builder, loc, results[0].value.getType(), results[0].value);
    else
      made = dfg::GroupOp::create(builder, loc);
    if (!controls.empty())
      made->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls));
    op->setLoc(builder.getUnknownLoc());
    top.replacements.erase(it->getKey());
    op = nullptr;
  };
  keep(graph.getTrainOpAttr(), /*isTensor=*/false);
  keep(graph.getInitOpAttr(), /*isTensor=*/false);
  keep(graph.getLossAttr(), /*isTensor=*/true);
  if (ArrayAttr fetches = graph.getFetchesAttr())
    for (StringAttr fetch : fetches.getAsRange<StringAttr>())
      keep(fetch, /*isTensor=*/true);
}

/// What evaluation has replaced goes, with what no endpoint needs of it.
void StraightLine::eraseReplaced() {
  llvm::SetVector<Operation *> gone;
  for (auto &[op, results] : replaced) {
    gone.insert(op);
    for (auto [result, datum] : llvm::zip(op->getResults(), results))
      if (datum.value)
        result.replaceAllUsesWith(datum.value);
  }
  for (size_t i = 0; i < gone.size(); ++i)
    for (Operation *user : gone[i]->getUsers())
      gone.insert(user);
  for (Operation *op : gone) {
    if (StringRef name = dfg::getNodeName(op); !name.empty())
      top.replacements[name];
    op->dropAllReferences();
  }
  for (Operation *op : gone)
    op->erase();
}

LogicalResult StraightLine::eraseDead() {
  for (Operation *op : llvm::reverse(made)) {
    if (!op->use_empty() && dependOnExample.contains(op))
      return emitError(op->getLoc()) << "node '" << dfg::getNodeName(op)
                                     << "' of a loop over the examples of a batch is taken outside of it; distc has no "
                                        "code for that: write it as an operation on the whole batch";
    if (!op->use_empty() || !(isMemoryEffectFree(op) || ofOneExample.contains(op)))
      continue;
    if (StringAttr name = dfg::getNodeNameAttr(op)) {
      ArrayRef<Attribute> controls = dfg::getControl(op);
      SmallVector<Attribute> &after = top.replacements[name.getValue()];
      after.assign(controls.begin(), controls.end());
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && ordered.contains(def))
          if (StringAttr before = dfg::getNodeNameAttr(def))
            after.push_back(before);
    }
    op->erase();
  }
  return success();
}

LogicalResult StraightLine::finish() {
  keepEndpoints();
  eraseReplaced();
  // What reads stay for alone is nothing.
  if (failed(eraseDead()))
    return failure();
  for (Operation &op : graph.getBody().front()) {
    ArrayRef<Attribute> old = dfg::getControl(&op);
    if (old.empty())
      continue;
    llvm::SetVector<Attribute> controls;
    llvm::DenseSet<Attribute> seen;
    const Attribute own = dfg::getNodeNameAttr(&op);
    auto add = [&](auto &self, Attribute control) -> void {
      auto it = top.replacements.find(llvm::cast<StringAttr>(control).getValue());
      // What a node became in part waits for the node, and not for its other parts.
      if (it == top.replacements.end() || llvm::is_contained(it->second, own)) {
        controls.insert(control);
        return;
      }
      if (!seen.insert(control).second)
        return;
      for (Attribute next : it->second)
        if (next == control)
          controls.insert(control);
        else
          self(self, next);
    };
    for (Attribute control : old)
      add(add, control);
    controls.remove(own);
    if (controls.empty())
      op.removeAttr(dfg::kControlAttr);
    else
      op.setAttr(dfg::kControlAttr, builder.getArrayAttr(controls.getArrayRef()));
  }
  return success();
}

} // namespace distc
