//===- MakeSaver.cpp - A saver made of nodes for a graph that has none --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A session's saver names nodes of its graph: where a filename is fed, what saves, what restores. That of a SavedModel
// names calls of functions, which are no longer there when calls are inlined, and which take variables whole; the graph
// of a function has none at all. What savers of nodes become, slices of split variables, joined shares, is known.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/CompleteSlices.h"
#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/tensorflow/SavedSlices.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/exchange/StockNodes.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_DISTMAKESAVER
#include "passes/distribute/Passes.h.inc"

namespace {

/// What a saver saves: a variable, the name that a checkpoint has it under, and the slice of that which it is ("":
/// all).
struct SavedVariable {
  dfg::VarHandleOp handle;
  RankedTensorType type;
  StringRef key;
  std::string slice;
};

/// What a checkpoint of objects has beside their variables: the objects (tensorflow/python/trackable/base.py).
constexpr llvm::StringLiteral kObjectsKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

struct DistMakeSaver : impl::DistMakeSaverBase<DistMakeSaver> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (removeCalls(graph) || !graph.getSaverAttr())
        if (SmallVector<SavedVariable> variables = findVariables(graph); !variables.empty())
          make(graph, variables);
  }

private:
  /// Removes a saver that calls functions; false where the graph's is of nodes.
  static bool removeCalls(dfg::GraphOp graph) {
    DictionaryAttr saver = graph.getSaverAttr();
    if (!saver)
      return false;
    dfg::NodeEdges nodes(graph.getBody().front());
    auto find = [&](StringRef entry) {
      auto name = saver.getAs<StringAttr>(entry);
      return name ? llvm::dyn_cast_or_null<dfg::CallOp>(nodes.find(name.getValue().split(':').first)) : dfg::CallOp();
    };
    dfg::CallOp save = find("save"), restore = find("restore");
    if (!save || !restore || !save->use_empty() || !restore->use_empty())
      return false;
    save->erase();
    restore->erase();
    graph.removeSaverAttr();
    return true;
  }

  SmallVector<SavedVariable> findVariables(dfg::GraphOp graph) {
    SymbolTable symbols(getOperation());
    DictionaryAttr objects = graph.getObjectsAttr();
    auto keys = objects ? objects.getAs<DictionaryAttr>("keys") : DictionaryAttr();
    SmallVector<SavedVariable> variables;
    llvm::DenseSet<Attribute> seen;
    for (auto handle : graph.getBody().front().getOps<dfg::VarHandleOp>()) {
      auto variable = symbols.lookup<dfg::VariableOp>(handle.getVariable());
      auto type = variable ? llvm::dyn_cast<RankedTensorType>(variable.getType()) : RankedTensorType();
      // Graphs with reference variables are version 1's, whose collections say what a session's own saver saves. One
      // that is made here would leave them out.
      if (variable && variable.getKind() == "ref" && !keys)
        return {};
      if (!type || variable.getKind() == "ref" || !seen.insert(handle.getVariableAttr()).second)
        continue;
      // Of a SavedModel's variables those that its objects have.
      auto key = keys ? keys.getAs<StringAttr>(handle.getVariable()) : handle.getVariableAttr().getAttr();
      if (key)
        variables.push_back({handle, type, key.getValue(), ""});
    }
    saveAsSlices(graph, variables);
    return variables;
  }

  /// The parts of a table that the graph itself splits are slices under the table's name, where all of them are saved.
  static void saveAsSlices(dfg::GraphOp graph, MutableArrayRef<SavedVariable> variables) {
    llvm::StringMap<SavedVariable *> named;
    for (SavedVariable &variable : variables)
      named[variable.handle.getVariable()] = &variable;
    for (auto [name, slice] : dfg::findCompleteSlices(graph->getAttrOfType<DictionaryAttr>(dfg::kSlicesAttr),
                                                      [&](StringRef variable) { return named.contains(variable); })) {
      named[name]->key = slice.getWhole().getValue();
      named[name]->slice = tf::SavedSlice::of(slice).toText();
    }
  }

  void make(dfg::GraphOp graph, ArrayRef<SavedVariable> variables) {
    StockNodes nodes(graph.getBody().front());
    OpBuilder &builder = nodes.getBuilder();
    auto string = RankedTensorType::get({}, dfg::StringType::get(&getContext()));
    auto strings = [&](StringRef name, ArrayRef<StringRef> values) {
      auto type = string.clone({static_cast<int64_t>(values.size())});
      return nodes.constant(name, DenseStringElementsAttr::get(llvm::cast<ShapedType>(type), values));
    };
    auto names = llvm::map_to_vector(variables, [](const SavedVariable &variable) { return variable.key; });
    SmallVector<Type> elements;
    for (const SavedVariable &variable : variables)
      elements.push_back(variable.type.getElementType());
    // Variables are read as they are when a step begins, so in front of what changes them.
    Operation *lastHandle = variables.back().handle;
    nodes.setPlace(lastHandle->getNextNode(), "save");
    Value path = nodes.constant("filename/input", DenseStringElementsAttr::get(string, {"model"}));
    Value filename = nodes.get("PlaceholderWithDefault", "filename", path, string,
                               {nodes.attribute("dtype", string.getElementType()),
                                nodes.attribute("shape", dfg::TensorShapeAttr::get(&getContext(), false, {}))});
    SmallVector<Value> operands = {filename};
    auto slices =
        llvm::map_to_vector(variables, [](const SavedVariable &variable) { return StringRef(variable.slice); });
    auto addLists = [&](StringRef scope, ArrayRef<StringRef> keys) {
      SmallVector<StringRef> parts = slices;
      parts.resize(keys.size());
      operands.push_back(strings((scope + "/tensor_names").str(), keys));
      operands.push_back(strings((scope + "/shape_and_slices").str(), parts));
    };
    SmallVector<Type> saved(elements);
    SmallVector<StringRef> savedNames(names);
    DictionaryAttr objects = graph.getObjectsAttr();
    auto description = objects ? objects.getAs<StringAttr>("graph") : StringAttr();
    if (description) {
      savedNames.push_back(kObjectsKey);
      saved.push_back(string.getElementType());
    }
    addLists("SaveV2", savedNames);
    for (const SavedVariable &variable : variables)
      operands.push_back(nodes.read((dfg::getNodeName(variable.handle) + "/Read").str(), variable.handle->getResult(0),
                                    variable.type));
    if (description)
      operands.push_back(nodes.constant("objects", DenseStringElementsAttr::get(string, {description.getValue()})));
    Operation *save = nodes.make("SaveV2", "SaveV2", operands, {}, nodes.types("dtypes", saved));
    Value done = nodes.identity("control_dependency", filename);
    StockNodes::addControl(done.getDefiningOp(), save);

    nodes.setPlaceAtEnd("save");
    operands.resize(1);
    addLists("RestoreV2", names);
    SmallVector<Type> types;
    for (const SavedVariable &variable : variables)
      types.push_back(variable.type);
    Operation *read = nodes.make("RestoreV2", "RestoreV2", operands, types, nodes.types("dtypes", elements));
    SmallVector<Operation *> assigns;
    for (auto [variable, value] : llvm::zip(variables, read->getResults()))
      assigns.push_back(nodes.assign("Assign", variable.handle->getResult(0), value));
    Operation *restore = nodes.group("restore_all", assigns);

    auto entry = [&](StringRef name, const Twine &value) {
      return builder.getNamedAttr(name, builder.getStringAttr(value));
    };
    graph.setSaverAttr(builder.getDictionaryAttr({entry("filename", dfg::getNodeName(filename.getDefiningOp()) + ":0"),
                                                  entry("save", dfg::getNodeName(done.getDefiningOp()) + ":0"),
                                                  entry("restore", dfg::getNodeName(restore))}));
    // What initializes a graph that has no initializers is a checkpoint. What distribution adds has initial values.
    if (!graph.getInitOpAttr())
      graph.setInitOp(dfg::getNodeName(nodes.group("init", {})));
  }
};

} // namespace
} // namespace distc
