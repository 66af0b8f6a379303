//===- GraphFacts.cpp - What builders of strategies know of a graph ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/GraphFacts.h"
#include "dialects/dfg/Dfg.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace distc::strategies {

/// The framework's name of a type: "float32".
static std::string getTypeName(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (type.isBF16())
    os << "bfloat16";
  else if (llvm::isa<FloatType>(type))
    os << "float" << type.getIntOrFloatBitWidth();
  else if (type.isInteger(1))
    os << "bool";
  else if (auto integer = llvm::dyn_cast<IntegerType>(type))
    os << (integer.isUnsigned() ? "uint" : "int") << integer.getWidth();
  else
    os << type;
  return text;
}

static VariableFacts getFacts(dfg::VariableOp variable) {
  VariableFacts facts;
  facts.name = variable.getSymName().str();
  facts.trainable = variable.getTrainable();
  auto type = llvm::dyn_cast<TensorType>(variable.getType());
  if (!type)
    return facts;
  facts.type = getTypeName(type.getElementType());
  if (!type.hasRank())
    return facts;
  facts.shape = type.getShape().vec();
  if (type.hasStaticShape() && type.getElementType().isIntOrFloat())
    facts.bytes = type.getNumElements() * llvm::divideCeil(type.getElementType().getIntOrFloatBitWidth(), 8);
  return facts;
}

/// The variable that `op` updates in a step, and how.
static std::pair<dfg::VarHandleOp, Gradient> getUpdate(Operation *op, bool knowStep) {
  if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op)) {
    // Without a training operation an assignment may be an initializer as well.
    if (!update.isOptimizerUpdate() && (!knowStep && llvm::isa<dfg::AssignOp>(op)))
      return {};
    return {dfg::getVariableHandle(op->getOperand(update.getWrittenOperands().front())),
            update.getIndicesOperand() >= 0 ? Gradient::Sparse : Gradient::Dense};
  }
  auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
  if (!opaque || op->getNumOperands() == 0)
    return {};
  llvm::StringRef name = opaque.getOp();
  name.consume_front("Resource");
  if (name.starts_with("SparseApply") || (name.starts_with("Scatter") && !name.starts_with("ScatterNd")))
    return {dfg::getVariableHandle(op->getOperand(0)), Gradient::Sparse};
  if (name.starts_with("Apply"))
    return {dfg::getVariableHandle(op->getOperand(0)), Gradient::Dense};
  return {};
}

GraphFacts computeGraphFacts(ModuleOp module) {
  GraphFacts facts;
  llvm::StringMap<size_t> numbers;
  for (auto variable : module.getOps<dfg::VariableOp>()) {
    numbers[variable.getSymName()] = facts.variables.size();
    facts.variables.push_back(getFacts(variable));
  }
  for (auto graph : module.getOps<dfg::GraphOp>()) {
    StepNodes step(graph);
    for (Operation &op : *graph.getBody().begin()) {
      if (step.isKnown() && !step.contains(&op))
        continue;
      auto [handle, gradient] = getUpdate(&op, step.isKnown());
      auto number = handle ? numbers.find(handle.getVariable()) : numbers.end();
      if (number == numbers.end())
        continue;
      Gradient &known = facts.variables[number->second].gradient;
      if (known != Gradient::Dense)
        known = gradient;
    }
  }
  return facts;
}

} // namespace distc::strategies
