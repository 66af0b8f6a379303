//===- DescribeUnproven.cpp - What stands in the way of a proof, in words -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/DescribeUnproven.h"

using namespace mlir;

namespace distc {

/// A node of control flow that is kept as it is (of an export) and that `value` is made of; null for none.
static Operation *findKeptControlFlow(Value value, const BatchFlow &flow) {
  SmallVector<Value> pending = {value};
  llvm::DenseSet<Operation *> seen;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || flow.get(next).kind == Flow::Sharded || !seen.insert(op).second)
      continue;
    if (auto node = llvm::dyn_cast<dfg::OpaqueOp>(op);
        node && llvm::is_contained({"Enter", "Exit", "Merge", "Switch", "While", "StatelessWhile", "If", "StatelessIf"},
                                   node.getOp()))
      return op;
    llvm::append_range(pending, op->getOperands());
  }
  return nullptr;
}

/// A handle that `op` takes of a variable whose shape is not known; null where it takes none.
static Value findShapelessVariable(Operation *op) {
  for (Value operand : op->getOperands())
    if (auto handle = llvm::dyn_cast<dfg::RefType>(operand.getType());
        handle && !llvm::isa<RankedTensorType>(handle.getValueType()))
      return operand;
  return {};
}

std::string describeUnproven(Operation *cause, const BatchFlow &flow) {
  Value sum, rows;
  for (Value operand : cause->getOperands()) {
    Flow::Kind kind = flow.get(operand).kind;
    if (kind == Flow::Partial)
      sum = operand;
    else if (kind == Flow::Sharded)
      rows = operand;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  const bool isFixed = flow.getFixedBatch() != 0;
  auto findKept = [&]() -> Operation * {
    for (Value operand : cause->getOperands())
      if (Operation *kept = findKeptControlFlow(operand, flow))
        return kept;
    return nullptr;
  };
  if (sum) {
    os << "which in each replica sees its own share's part of the sum or mean '"
       << dfg::getNodeName(sum.getDefiningOp()) << "' over the batch";
    if (isFixed && flow.get(sum).scale.value_or(0) > 0)
      os << " (where the graph fixes its batch a sum is not made whole, for a number beside it may count its terms: "
            "divide it by them, or leave the placeholders' first size open, None)";
  } else if (Operation *kept = findKept(); rows && kept) {
    os << "which takes rows of the batch that replicas have shares of, of '" << dfg::getNodeName(rows.getDefiningOp())
       << "', with what is made of '" << dfg::getNodeName(kept) << "' (" << llvm::cast<dfg::OpaqueOp>(kept).getOp()
       << "), a loop or a condition that is exported as it is, of which it is not known how its results follow "
          "from the rows (a remark says what stands in the way of writing it out)";
  } else if (Value variable = findShapelessVariable(cause); rows && variable) {
    os << "which takes rows of the batch that replicas have shares of, of '" << dfg::getNodeName(rows.getDefiningOp())
       << "', beside variable '" << dfg::getNodeName(variable.getDefiningOp())
       << "', whose shape the graph does not say: give the SavedModel, which does";
  } else if (rows) {
    os << "which takes together rows of the batch that replicas have shares of, of '"
       << dfg::getNodeName(rows.getDefiningOp()) << "'";
    if (isFixed)
      os << " (where the graph fixes its batch no rows are gathered: give its number as --batch, of which each replica "
            "has a part then, or "
            "leave the placeholders' first size open, None)";
  } else {
    os << "whose value follows from the size of a replica's share, not of the whole batch";
  }
  return text;
}

} // namespace distc
