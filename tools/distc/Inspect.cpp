//===- Inspect.cpp - distc inspect ----------------------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/strategy/GraphFacts.h"
#include "strategies/StepNodes.h"
#include "strategies/TextTable.h"
#include "tools/distc/Session.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace distc {
namespace {

using strategies::TextTable;

std::string typeText(Type type) {
  auto tensor = llvm::dyn_cast<TensorType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!tensor) {
    os << type;
    return text;
  }
  os << tensor.getElementType();
  if (auto ranked = llvm::dyn_cast<RankedTensorType>(type)) {
    os << "[";
    llvm::interleaveComma(ranked.getShape(), os,
                          [&](int64_t size) { ShapedType::isDynamic(size) ? os << "?" : os << size; });
    os << "]";
  }
  return text;
}

int64_t bytesOf(Type type) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
    return -1;
  return tensor.getNumElements() * llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

void printEndpoints(dfg::GraphOp graph, llvm::raw_ostream &os) {
  os << "endpoints\n";
  auto print = [&](StringAttr endpoint, std::optional<StringRef> name) {
    os << llvm::formatv("  {0,-9} {1}\n", endpoint.getValue(), name.value_or("none found; name it with a flag"));
  };
  print(graph.getTrainOpAttrName(), graph.getTrainOp());
  print(graph.getLossAttrName(), graph.getLoss());
  print(graph.getInitOpAttrName(), graph.getInitOp());
}

void printFeeds(dfg::GraphOp graph, llvm::raw_ostream &os) {
  os << "\nfeeds\n";
  TextTable table({"placeholder", "type", "share of a replica"}, {false, false, false});
  for (auto placeholder : graph.getBody().front().getOps<dfg::PlaceholderOp>()) {
    auto type = llvm::dyn_cast<RankedTensorType>(placeholder.getResult().getType());
    bool batched = type && type.getRank() > 0 && type.isDynamicDim(0);
    table.add({dfg::getNodeName(placeholder).str(), typeText(placeholder.getResult().getType()),
               batched ? "its rows of the batch" : "all of it"});
  }
  table.print(os);
}

void printVariables(ModuleOp module, dfg::GraphOp graph, llvm::raw_ostream &os) {
  // Who updates a variable: an optimizer's operation, of which it may be a slot, or else the step's assignments.
  llvm::StringMap<SmallVector<StringRef, 2>> updates;
  llvm::StringSet<> slots;
  strategies::StepNodes step(graph);
  for (Operation &op : graph.getBody().front()) {
    auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
    if (!update || (step.isKnown() ? !step.contains(&op) : !update.isOptimizerUpdate()))
      continue;
    SmallVector<unsigned> written = update.getWrittenOperands();
    for (auto [i, operand] : llvm::enumerate(written))
      if (dfg::VarHandleOp handle = dfg::getVariableHandle(op.getOperand(operand))) {
        auto &names = updates[handle.getVariable()];
        StringRef name = i == 0 ? op.getName().stripDialect() : "slot";
        if (!llvm::is_contained(names, name))
          names.push_back(name);
        if (i > 0)
          slots.insert(handle.getVariable());
      }
  }
  // What is wrong with the shapes of a graph is said when it is compiled.
  llvm::StringMap<strategies::Gradient> gradients;
  {
    ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
    if (FailureOr<BatchFlow> flow = BatchFlow::compute(graph); succeeded(flow))
      gradients = findVariableGradients(graph, *flow);
  }
  auto gradientText = [&](StringRef variable) {
    strategies::Gradient gradient = slots.contains(variable) ? strategies::Gradient::None : gradients.lookup(variable);
    return gradient == strategies::Gradient::None ? "" : gradient == strategies::Gradient::Sparse ? "sparse" : "dense";
  };
  os << "\nvariables\n";
  TextTable table({"variable", "type", "bytes", "trainable", "updated by", "gradient"},
                  {false, false, true, false, false, false});
  int64_t total = 0;
  for (auto variable : module.getOps<dfg::VariableOp>()) {
    int64_t bytes = bytesOf(variable.getType());
    total += std::max<int64_t>(bytes, 0);
    table.add({variable.getSymName().str(), typeText(variable.getType()), bytes < 0 ? "?" : std::to_string(bytes),
               variable.getTrainable() ? "yes" : "no", llvm::join(updates.lookup(variable.getSymName()), ", "),
               gradientText(variable.getSymName())});
  }
  table.add({"all", "", std::to_string(total), "", "", ""});
  table.print(os);
}

void printOperations(dfg::GraphOp graph, llvm::raw_ostream &os) {
  llvm::MapVector<StringRef, int64_t> known, unknown;
  int64_t nodes = 0;
  for (Operation &op : graph.getBody().front()) {
    ++nodes;
    if (auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op))
      ++unknown[opaque.getOp()];
    else
      ++known[op.getName().stripDialect()];
  }
  auto print = [&](llvm::MapVector<StringRef, int64_t> counts) {
    auto order = counts.takeVector();
    llvm::stable_sort(order, [](auto &x, auto &y) { return x.second > y.second; });
    for (auto &[name, count] : order)
      os << llvm::formatv("  {0,7} {1}\n", count, name);
  };
  os << "\noperations (" << nodes << " nodes)\n";
  print(known);
  os << "\noperations without semantics here: kept, and refused where they must run\n";
  if (unknown.empty())
    os << "  none\n";
  print(unknown);
}

} // namespace

int inspectCommand(const CompileOptions &options) {
  if (options.check)
    return checkCommand(options);
  Session session(options);
  OwningOpRef<ModuleOp> module = session.import(options);
  if (!module)
    return session.status();
  llvm::raw_ostream &os = llvm::outs();
  for (auto graph : module->getOps<dfg::GraphOp>()) {
    printEndpoints(graph, os);
    printFeeds(graph, os);
    printVariables(*module, graph, os);
    printOperations(graph, os);
  }
  return kDone;
}

} // namespace distc
