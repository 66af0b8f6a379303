//===- SavedFunctions.cpp - Training steps that are functions --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/SavedFunctions.h"
#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/tensorflow/Types.h"
#include <map>

using namespace mlir;

namespace distc::tf {

static const AttrValue *findAttr(const NodeDef &node, const char *name) {
  auto it = node.attr().find(name);
  return it == node.attr().end() ? nullptr : &it->second;
}

static llvm::StringRef getProducer(llvm::StringRef tensor) { return tensor.split(':').first; }

/// The function that a node calls, "" for none.
static llvm::StringRef getCallee(const NodeDef &node) {
  const AttrValue *callee = node.op().ends_with("PartitionedCall") ? findAttr(node, "f") : nullptr;
  return callee ? llvm::StringRef(callee->func().name()) : llvm::StringRef();
}

static bool isUpdate(llvm::StringRef op) {
  op.consume_front("Resource");
  return op.starts_with("Assign") || op.starts_with("Apply") || op.starts_with("SparseApply") ||
         op.starts_with("Scatter");
}

namespace {

/// Functions of a library, and whether running one updates a variable.
class Library {
public:
  explicit Library(const FunctionDefLibrary &library) {
    for (const FunctionDef &function : library.function())
      functions[function.signature().name()] = &function;
  }

  bool updates(llvm::StringRef name) {
    auto [entry, isNew] = known.try_emplace(name, false);
    const FunctionDef *function = isNew ? functions.lookup(name) : nullptr;
    if (!function)
      return entry->second; // a function that runs itself included
    bool found = llvm::any_of(function->node_def(), [&](const NodeDef &node) { return updates(node); });
    return known[name] = found;
  }

  bool updates(const NodeDef &node) {
    return (isUpdate(node.op()) && takesResource(node)) || llvm::any_of(node.attr(), [&](const auto &attr) {
             return attr.second.has_func() && updates(attr.second.func().name());
           });
  }

private:
  /// TensorArrays and tables are updated by operations of other names.
  static bool takesResource(const NodeDef &node) {
    return llvm::StringRef(node.op()).starts_with("Resource") || llvm::StringRef(node.op()).ends_with("VariableOp");
  }

  llvm::StringMap<const FunctionDef *> functions;
  llvm::StringMap<bool> known;
};

} // namespace

namespace {
/// How many updates the nodes of a graph need, by operands or control edges.
class NeededUpdates {
public:
  NeededUpdates(const GraphDef &graph, Library &library) {
    for (const NodeDef &node : graph.node()) {
      nodes[node.name()] = &node;
      if (library.updates(node))
        updates.insert(&node);
    }
  }

  bool none() const { return updates.empty(); }

  unsigned count(const NodeDef &node) const {
    llvm::DenseSet<const NodeDef *> seen = {&node};
    llvm::SmallVector<const NodeDef *> pending = {&node};
    unsigned found = 0;
    while (!pending.empty()) {
      const NodeDef *next = pending.pop_back_val();
      found += updates.contains(next);
      for (llvm::StringRef input : next->input()) {
        input.consume_front("^");
        if (const NodeDef *producer = nodes.lookup(getProducer(input)); producer && seen.insert(producer).second)
          pending.push_back(producer);
      }
    }
    return found;
  }

private:
  llvm::StringMap<const NodeDef *> nodes;
  llvm::DenseSet<const NodeDef *> updates;
};
} // namespace

/// The results of the function whose graph this is.
static void addResults(const GraphDef &graph, Library &library, FunctionEndpoints &endpoints) {
  llvm::StringSet<> used;
  bool captures = false;
  for (const NodeDef &node : graph.node()) {
    for (llvm::StringRef input : node.input()) {
      input.consume_front("^");
      used.insert(getProducer(input));
    }
    const AttrValue *dtype = findAttr(node, "dtype");
    captures |= node.op() == "Placeholder" && dtype && dtype->type() == DT_RESOURCE;
  }
  NeededUpdates updates(graph, library);
  if (!captures || updates.none())
    return;
  // Each of them waits for everything that the function must run. Other Identities without users wait for less: what a
  // function with a gradient of its own leaves of its results, what Python made of a metric and did not return.
  unsigned most = 0;
  for (const NodeDef &node : graph.node())
    if (const AttrValue *type = findAttr(node, "T"); node.op() == "Identity" && !used.contains(node.name()))
      if (type && (type->type() == DT_FLOAT || type->type() == DT_DOUBLE)) {
        const unsigned count = updates.count(node);
        if (count > most)
          endpoints.losses.clear();
        if (count >= most)
          endpoints.losses.push_back(node.name() + ":0");
        most = std::max(most, count);
      }
  if (!endpoints.losses.empty())
    endpoints.trainOps.push_back(getProducer(endpoints.losses.front()).str());
}

FunctionEndpoints findFunctionEndpoints(const MetaGraphDef &meta) {
  FunctionEndpoints endpoints;
  llvm::StringMap<const NodeDef *> nodes;
  for (const NodeDef &node : meta.graph_def().node())
    nodes[node.name()] = &node;
  Library library(meta.graph_def().library());
  // In the order of names: a map of protobuf has none.
  std::map<std::string, const SignatureDef *> signatures;
  for (const auto &[name, signature] : meta.signature_def())
    signatures.emplace(name, &signature);
  for (const auto &[name, signature] : signatures) {
    std::map<std::string, const TensorInfo *> outputs;
    for (const auto &[key, tensor] : signature->outputs())
      outputs.emplace(key, &tensor);
    const NodeDef *call = outputs.empty() ? nullptr : nodes.lookup(getProducer(outputs.begin()->second->name()));
    if (!call || !library.updates(getCallee(*call)) || llvm::is_contained(endpoints.trainOps, call->name()))
      continue;
    endpoints.trainOps.push_back(call->name());
    if (auto loss = outputs.find("loss"); loss != outputs.end()) {
      endpoints.losses.push_back(loss->second->name());
      continue;
    }
    for (const auto &[key, tensor] : outputs)
      if ((tensor->dtype() == DT_FLOAT || tensor->dtype() == DT_DOUBLE) && tensor->tensor_shape().dim_size() == 0 &&
          !tensor->tensor_shape().unknown_rank())
        endpoints.losses.push_back(tensor->name());
  }
  if (meta.signature_def().empty())
    addResults(meta.graph_def(), library, endpoints);
  return endpoints;
}

/// What the node that saves writes beside the variables: a constant.
static bool readObjects(const MetaGraphDef &meta, TrackableObjectGraph &objects) {
  llvm::StringMap<const NodeDef *> nodes;
  for (const NodeDef &node : meta.graph_def().node())
    nodes[node.name()] = &node;
  const NodeDef *save = nodes.lookup(getProducer(meta.saver_def().save_tensor_name()));
  if (!save || !meta.has_object_graph_def())
    return false;
  for (llvm::StringRef input : save->input()) {
    const NodeDef *constant = nodes.lookup(getProducer(input));
    const AttrValue *value = constant && constant->op() == "Const" ? findAttr(*constant, "value") : nullptr;
    if (value && value->tensor().string_val_size() == 1 && objects.ParseFromString(value->tensor().string_val(0)) &&
        objects.nodes_size() > 0)
      return true;
  }
  return false;
}

SavedVariables findSavedVariables(const MetaGraphDef &meta) {
  SavedVariables saved;
  TrackableObjectGraph objects;
  if (!readObjects(meta, objects))
    return saved;
  const SavedObjectGraph &owners = meta.object_graph_def();
  for (const NodeDef &node : meta.graph_def().node()) {
    auto function = owners.concrete_functions().find(getCallee(node).str());
    if (function == owners.concrete_functions().end())
      continue;
    const auto &captures = function->second.bound_inputs();
    auto inputs = llvm::make_filter_range(node.input(), [](llvm::StringRef input) { return !input.starts_with("^"); });
    llvm::SmallVector<llvm::StringRef> operands(inputs.begin(), inputs.end());
    const int first = static_cast<int>(operands.size()) - captures.size();
    for (int i = 0; i < captures.size() && first >= 0; ++i) {
      const int object = captures[i];
      if (object < 0 || object >= objects.nodes_size() || object >= owners.nodes_size() ||
          !owners.nodes(object).has_variable())
        continue;
      llvm::StringRef variable = getProducer(operands[first + i]);
      if (owners.nodes(object).variable().trainable())
        saved.trainable.insert(variable);
      for (auto &tensor : *objects.mutable_nodes(object)->mutable_attributes())
        if (tensor.name() == "VARIABLE_VALUE") {
          saved.keys[variable] = tensor.checkpoint_key();
          // Keras 3 saves copies of its variables, under the copies' names.
          tensor.set_full_name(variable.str());
        }
    }
  }
  saved.objects = serialize(objects);
  return saved;
}

namespace {

/// What the nodes that take a variable's handle say of the variable.
class HeldType {
public:
  HeldType(const FunctionDefLibrary &library, MLIRContext *context) : library(library), context(context) {}

  Type find(llvm::StringRef handle, const NodeList &nodes) {
    visit(handle, nodes);
    return found;
  }

private:
  void visit(llvm::StringRef handle, const NodeList &nodes) {
    for (const NodeDef &user : nodes)
      for (int i = 0; i < user.input_size(); ++i)
        if (getProducer(user.input(i)) == handle && !llvm::StringRef(user.input(i)).starts_with("^")) {
          if (i == 0)
            take(user, nodes);
          visitCallees(user, i);
        }
  }

  void take(const NodeDef &user, const NodeList &nodes) {
    const bool isRead = user.op() == "ReadVariableOp", isAssigned = user.op().starts_with("Assign");
    // Those that take rows of it (ResourceGather, ResourceScatterAdd) say it as reads do, optimizers' updates as "T".
    const AttrValue *held = findAttr(user, "dtype");
    if (!held)
      held = findAttr(user, "T");
    Type element = held ? getElementType(held->type(), context) : Type();
    if (!element)
      return;
    const TensorShapeProto *shape = isRead ? getShape(user) : nullptr;
    // What is assigned has the variable's shape.
    if (isAssigned && user.input_size() > 1)
      for (const NodeDef &value : nodes)
        if (value.name() == getProducer(user.input(1)))
          shape = getShape(value);
    Type type = getTensorType(shape, element);
    auto isStatic = [](Type type) {
      auto ranked = llvm::dyn_cast_or_null<RankedTensorType>(type);
      return ranked && ranked.hasStaticShape();
    };
    if (!found || isStatic(type) || (isRead && shape && !isStatic(found)))
      found = type;
  }

  /// Of a node with one result; null where the graph does not say it.
  static const TensorShapeProto *getShape(const NodeDef &node) {
    const AttrValue *shapes = findAttr(node, "_output_shapes");
    const bool isKnown = shapes && shapes->list().shape_size() == 1 && !shapes->list().shape(0).unknown_rank();
    return isKnown ? &shapes->list().shape(0) : nullptr;
  }

  /// The functions of branches, loops and calls have the operand for an argument.
  void visitCallees(const NodeDef &user, int operand) {
    const llvm::StringRef op = user.op();
    const int argument = op.ends_with("If") || op.ends_with("Case") ? operand - 1 : operand;
    auto visitFunction = [&](const NameAttrList &name) {
      auto function = llvm::find_if(library.function(),
                                    [&](const FunctionDef &known) { return known.signature().name() == name.name(); });
      if (function == library.function().end() || argument < 0 || argument >= function->signature().input_arg_size() ||
          !visited.insert({&*function, argument}).second)
        return;
      visit(function->signature().input_arg(argument).name(), function->node_def());
    };
    for (const auto &[key, value] : user.attr()) {
      if (value.has_func())
        visitFunction(value.func());
      for (const NameAttrList &branch : value.list().func())
        visitFunction(branch);
    }
  }

  const FunctionDefLibrary &library;
  MLIRContext *context;
  llvm::DenseSet<std::pair<const FunctionDef *, int>> visited;
  Type found;
};

} // namespace

Type getCapturedType(const NodeDef &node, const NodeList &nodes, const FunctionDefLibrary &library,
                     MLIRContext *context) {
  const AttrValue *dtype = findAttr(node, "dtype");
  if (node.op() != "Placeholder" || !dtype || dtype->type() != DT_RESOURCE)
    return {};
  return HeldType(library, context).find(node.name(), nodes);
}

} // namespace distc::tf
