//===- GraphFacts.cpp - What strategies are made from ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/strategy/GraphFacts.h"
#include "passes/distribute/synchronize/SparseGradients.h"
#include "strategies/StepNodes.h"

using namespace mlir;

namespace distc {

using strategies::Gradient;
using strategies::GraphFacts;
using strategies::StepNodes;
using strategies::VariableFacts;

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

namespace {

/// An update of a variable in a step; of one whose semantics are not known, by the name of the operation.
struct StepUpdate {
  dfg::VarHandleOp variable;
  bool isSparse = false;
};

std::optional<StepUpdate> getUpdate(Operation *op, const StepNodes &step) {
  if (step.isKnown() && !step.contains(op))
    return std::nullopt;
  if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op)) {
    // Without a training operation an assignment may be an initializer as well.
    if (!step.isKnown() && !update.isOptimizerUpdate() && llvm::isa<dfg::AssignOp>(op))
      return std::nullopt;
    dfg::VarHandleOp handle = dfg::getVariableHandle(op->getOperand(update.getWrittenOperands().front()));
    return handle ? std::optional(StepUpdate{handle, update.getIndicesOperand() >= 0}) : std::nullopt;
  }
  auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
  dfg::VarHandleOp handle = opaque && op->getNumOperands() ? dfg::getVariableHandle(op->getOperand(0)) : nullptr;
  if (!handle)
    return std::nullopt;
  llvm::StringRef name = opaque.getOp();
  name.consume_front("Resource");
  if (name.starts_with("SparseApply") || (name.starts_with("Scatter") && !name.starts_with("ScatterNd")))
    return StepUpdate{handle, true};
  return name.starts_with("Apply") ? std::optional(StepUpdate{handle, false}) : std::nullopt;
}

bool isScalar(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 0;
}

/// Gradients on their way to the updates, in block order.
class GradientWalk {
public:
  GradientWalk(dfg::GraphOp graph, const BatchFlow &flow) : graph(graph), flow(flow), step(graph) {}

  llvm::StringMap<Gradient> run() {
    // First: what is made of rows may come before the update that shows what they are (Adam's squares).
    for (auto update : graph.getBody().front().getOps<dfg::UpdateInterface>())
      if (update.getIndicesOperand() >= 0 && (!step.isKnown() || step.contains(update)))
        if (std::optional<SparseGradient> gradient = findSparseGradient(update, flow))
          rows.insert(gradient->values);
    for (Operation &op : graph.getBody().front()) {
      if (std::optional<StepUpdate> update = getUpdate(&op, step))
        visitUpdate(&op, *update);
      else if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op))
        values[read.getValue()] = getVariable(read.getHandle());
      else
        visit(&op);
    }
    llvm::StringMap<Gradient> gradients;
    for (auto &[name, sources] : variables)
      gradients[name] = sources == kSparse ? Gradient::Sparse : Gradient::Dense;
    return gradients;
  }

private:
  /// What a value is made of that differs between replicas, or was made of it before the replicas' were joined.
  using Sources = unsigned;
  static constexpr Sources kNone = 0, kSparse = 1, kDense = 2;

  Sources getVariable(Value handle) const {
    dfg::VarHandleOp variable = dfg::getVariableHandle(handle);
    return variable ? variables.lookup(variable.getVariable()) : kNone;
  }

  bool isShared(Value value) const { return flow.get(value).kind == Flow::Replicated; }

  /// A scalar that rows or tensors are multiplied by (a norm, a count) says nothing of them, nor do indices and sizes.
  Sources getOperands(Operation *op, bool skipScalars) const {
    Sources sources = kNone;
    for (Value operand : op->getOperands())
      if (!dfg::isHandle(operand.getType()) && !getElementTypeOrSelf(operand.getType()).isIntOrIndex() &&
          !(skipScalars && isScalar(operand)))
        sources |= values.lookup(operand);
    return sources;
  }

  void visit(Operation *op) {
    for (Value result : op->getResults()) {
      Sources sources = getOperands(op, !isScalar(result));
      // Where it first differs between replicas: in a feed, or in what each draws.
      if (!isShared(result) && getOperands(op, false) == kNone)
        sources = kDense;
      if (rows.contains(result))
        sources = kSparse;
      if (sources != kNone)
        values[result] = sources;
    }
  }

  void visitUpdate(Operation *op, StepUpdate update) {
    Sources sources = kNone;
    auto node = llvm::dyn_cast<dfg::UpdateInterface>(op);
    bool differs = llvm::any_of(op->getOperands(), [&](Value operand) { return !isShared(operand); });
    if (update.isSparse)
      sources = node && differs ? values.lookup(op->getOperand(node.getGradientOperand())) : kSparse;
    else
      sources = getOperands(op, !isOfScalar(update.variable));
    Sources &all = variables[update.variable.getVariable()];
    all |= sources;
    for (Value result : op->getResults())
      values[result] = all;
  }

  bool isOfScalar(dfg::VarHandleOp variable) const {
    auto type = llvm::dyn_cast<dfg::RefType>(variable.getHandle().getType());
    auto tensor = type ? llvm::dyn_cast<RankedTensorType>(type.getValueType()) : RankedTensorType();
    return tensor && tensor.getRank() == 0;
  }

  dfg::GraphOp graph;
  const BatchFlow &flow;
  StepNodes step;
  llvm::DenseSet<Value> rows; // of sparse gradients
  llvm::DenseMap<Value, Sources> values;
  llvm::StringMap<Sources> variables; // updated so far
};

} // namespace

llvm::StringMap<Gradient> findVariableGradients(dfg::GraphOp graph, const BatchFlow &flow) {
  return GradientWalk(graph, flow).run();
}

llvm::StringSet<> findUpdatedVariables(ModuleOp module) {
  llvm::StringSet<> updated;
  for (auto graph : module.getOps<dfg::GraphOp>()) {
    StepNodes step(graph);
    for (Operation &op : graph.getBody().front())
      if (std::optional<StepUpdate> update = getUpdate(&op, step))
        updated.insert(update->variable.getVariable());
  }
  return updated;
}

FailureOr<GraphFacts> computeGraphFacts(ModuleOp module) {
  GraphFacts facts;
  llvm::StringMap<Gradient> gradients;
  for (auto graph : module.getOps<dfg::GraphOp>()) {
    FailureOr<BatchFlow> flow = BatchFlow::compute(graph);
    if (failed(flow))
      return failure();
    gradients = findVariableGradients(graph, *flow);
  }
  for (auto variable : module.getOps<dfg::VariableOp>()) {
    facts.variables.push_back(getFacts(variable));
    facts.variables.back().gradient = gradients.lookup(variable.getSymName());
  }
  return facts;
}

} // namespace distc
