//===- Import.cpp - TensorFlow's graphs into dfg --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/Import.h"
#include "dialects/dfg/VariableKinds.h"
#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/tensorflow/ImportBlock.h"
#include "dialects/dfg/tensorflow/SavedFunctions.h"
#include "dialects/dfg/tensorflow/SavedSlices.h"
#include "dialects/dfg/tensorflow/Types.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace distc::tf {

// ---- What all blocks share -----------------------------------------------------------

/// The node that a variable's or an operation's name in a collection means: without "^" and output.
static StringRef getNodeOf(StringRef name) {
  name.consume_front("^");
  return name.split(':').first;
}

ImportContext::ImportContext(const GraphFile &file, ModuleOp module)
    : file(file), context(module.getContext()), table(context),
      isNewer(file.meta->graph_def().versions().producer() > signatures.getProducer()),
      variables(OpBuilder::atBlockEnd(module.getBody())) {
  for (const OpDef &def : file.meta->meta_info_def().stripped_op_list().op())
    customOps[def.name()] = &def;
  for (const FunctionDef &function : file.meta->graph_def().library().function())
    functions[function.signature().name()] = &function.signature();
  const auto &collections = file.meta->collection_def();
  auto it = collections.find("trainable_variables");
  knowsTrainable = it != collections.end();
  if (knowsTrainable)
    for (const std::string &bytes : it->second.bytes_list().value()) {
      VariableDef variable;
      if (variable.ParseFromString(bytes))
        trainable.insert(getNodeOf(variable.variable_name()));
    }
}

const OpDef *ImportContext::getOpDef(StringRef op) const {
  if (const OpDef *function = functions.lookup(op))
    return function;
  if (const OpDef *def = signatures.find(op))
    return def;
  return customOps.lookup(op);
}

bool ImportContext::isStateless(StringRef op) const {
  // Nodes of the older control flow decide whether others run. What writes a reference is not called stateful.
  static const llvm::StringSet<> kDecides = {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"};
  StringRef kind = op;
  kind.consume_front("Ref");
  const OpDef *def = functions.contains(op) || kDecides.contains(kind) ? nullptr : getOpDef(op);
  return def && !def->is_stateful() &&
         llvm::none_of(def->input_arg(), [](const OpDef::ArgDef &arg) { return arg.is_ref(); });
}

InFlightDiagnostic ImportContext::fail(const NodeDef *node) const {
  InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(context, file.name, 0, 0));
  if (node)
    diagnostic << "node '" << node->name() << "' (op '" << node->op() << "') ";
  return diagnostic;
}

dfg::VariableOp ImportContext::getVariable(const NodeDef &node, bool isReference) {
  auto text = [&](const char *name) {
    auto it = node.attr().find(name);
    return it == node.attr().end() ? std::string() : it->second.s();
  };
  // Handles of one shared name in one container are handles of one variable.
  std::string sharedName = text("shared_name");
  std::string key =
      text("container") + '\0' + (sharedName.empty() ? node.name() : sharedName) + (isReference ? "&" : "");
  dfg::VariableOp &variable = variablesByKey[key];
  if (variable)
    return variable;
  auto dtype = node.attr().find("dtype");
  auto shape = node.attr().find("shape");
  Type element = dtype == node.attr().end() ? Type() : getElementType(dtype->second.type(), context);
  if (!element)
    return {};
  Type type = getTensorType(shape == node.attr().end() ? nullptr : &shape->second.shape(), element);
  if (isReference)
    references.insert(node.name());
  variable = dfg::VariableOp::create(variables, NameLoc::get(variables.getStringAttr(node.name())), node.name(), type,
                                     isReference ? "ref" : "resource", trainable.contains(node.name()));
  return variable;
}

dfg::VariableOp ImportContext::addCaptured(const NodeDef &node, Type type) {
  return dfg::VariableOp::create(variables, NameLoc::get(variables.getStringAttr(node.name())), node.name(), type,
                                 dfg::kCapturedKind, /*trainable=*/false);
}

// ---- The graph's attributes ------------------------------------------------------------

namespace {

class Importer {
public:
  Importer(const GraphFile &file, ModuleOp module)
      : file(file), module(module), shared(file, module), builder(OpBuilder::atBlockEnd(module.getBody())) {}

  LogicalResult run() {
    auto graph = dfg::GraphOp::create(builder, builder.getUnknownLoc());
    shared.variables.setInsertionPoint(graph);
    for (const FunctionDef &function : file.meta->graph_def().library().function())
      if (failed(importFunction(function)))
        return failure();
    BlockImporter block(shared, &graph.getBody().front(), file.meta->graph_def().node());
    if (failed(block.run()))
      return failure();
    SavedVariables saved = findSavedVariables(*file.meta);
    if (!saved.objects.empty())
      noteObjects(graph, saved);
    else if (!shared.knowsTrainable)
      markTrainable(graph);
    noteSlices(graph);
    setEndpoints(graph);
    keepTheRest(graph);
    return success();
  }

private:
  LogicalResult importFunction(const FunctionDef &function);

  /// Without a collection of them, trainable is what an optimizer updates.
  void markTrainable(dfg::GraphOp graph) {
    SymbolTable symbols(module);
    for (Operation &op : graph.getBody().front())
      if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op))
        if (update.isOptimizerUpdate())
          if (dfg::VarHandleOp handle = dfg::getVariableHandle(op.getOperand(update.getWrittenOperands().front())))
            symbols.lookup<dfg::VariableOp>(handle.getVariable()).setTrainable(true);
  }

  /// Where the variables are in checkpoints of the objects that own them.
  void noteObjects(dfg::GraphOp graph, const SavedVariables &saved) {
    NamedAttrList keys;
    SymbolTable symbols(module);
    for (auto handle : graph.getBody().front().getOps<dfg::VarHandleOp>()) {
      StringRef node = dfg::getNodeName(handle);
      if (auto key = saved.keys.find(node); key != saved.keys.end())
        keys.set(handle.getVariable(), builder.getStringAttr(key->second));
      if (saved.trainable.contains(node))
        symbols.lookup<dfg::VariableOp>(handle.getVariable()).setTrainable(true);
    }
    graph.setObjectsAttr(
        builder.getDictionaryAttr({builder.getNamedAttr("graph", builder.getStringAttr(saved.objects)),
                                   builder.getNamedAttr("keys", keys.getDictionary(builder.getContext()))}));
  }

  /// Which variables are slices of one tensor in checkpoints.
  void noteSlices(dfg::GraphOp graph) {
    NamedAttrList slices;
    auto it = file.meta->collection_def().find("variables");
    if (it == file.meta->collection_def().end())
      return;
    for (const std::string &bytes : it->second.bytes_list().value()) {
      VariableDef variable;
      if (!variable.ParseFromString(bytes) || !variable.has_save_slice_info_def())
        continue;
      if (std::optional<SavedSlice> slice = SavedSlice::read(variable.save_slice_info_def()))
        slices.set(getNodeOf(variable.variable_name()), slice->toAttribute(builder.getContext()));
    }
    if (!slices.empty())
      graph->setAttr(dfg::kSlicesAttr, slices.getDictionary(builder.getContext()));
  }

  SmallVector<std::string> getCollection(StringRef name) {
    SmallVector<std::string> members;
    auto it = file.meta->collection_def().find(name.str());
    if (it != file.meta->collection_def().end())
      for (const std::string &member : it->second.node_list().value())
        if (!llvm::is_contained(members, member))
          members.push_back(member);
    return members;
  }

  void setEndpoints(dfg::GraphOp graph) {
    SmallVector<NamedAttribute> candidates;
    // The one that there is; null where there is none, or several, which are candidates.
    auto choose = [&](StringAttr endpoint, ArrayRef<std::string> names) {
      if (names.size() == 1 && !getNodeOf(names.front()).empty())
        return builder.getStringAttr(names.front());
      if (names.size() > 1)
        candidates.emplace_back(endpoint, builder.getStrArrayAttr(SmallVector<StringRef>(names.begin(), names.end())));
      return StringAttr();
    };
    auto chooseNode = [&](StringAttr endpoint, StringRef collection) {
      SmallVector<std::string> names = getCollection(collection);
      for (std::string &name : names)
        name = getNodeOf(name).str();
      return choose(endpoint, names);
    };
    graph.setTrainOpAttr(chooseNode(graph.getTrainOpAttrName(), "train_op"));
    if (!graph.getTrainOpAttr() && candidates.empty())
      graph.setTrainOpAttr(chooseNode(graph.getTrainOpAttrName(), "saved_model_train_op"));
    graph.setInitOpAttr(chooseNode(graph.getInitOpAttrName(), "init_op"));
    graph.setLossAttr(choose(graph.getLossAttrName(), getCollection("losses")));
    if (!graph.getTrainOpAttr() && candidates.empty()) {
      FunctionEndpoints found = findFunctionEndpoints(*file.meta);
      graph.setTrainOpAttr(choose(graph.getTrainOpAttrName(), found.trainOps));
      if (!graph.getLossAttr())
        graph.setLossAttr(choose(graph.getLossAttrName(), found.losses));
    }
    if (!candidates.empty())
      graph.setCandidatesAttr(builder.getDictionaryAttr(candidates));

    SmallVector<Attribute> feeds;
    for (Operation &op : graph.getBody().front())
      if (llvm::isa<dfg::PlaceholderOp>(op))
        feeds.push_back(builder.getStringAttr(dfg::getNodeName(&op) + ":0"));
    graph.setFeedsAttr(builder.getArrayAttr(feeds));
    if (file.meta->has_saver_def()) {
      const SaverDef &saver = file.meta->saver_def();
      graph.setSaverAttr(builder.getDictionaryAttr(
          {builder.getNamedAttr("filename", builder.getStringAttr(saver.filename_tensor_name())),
           builder.getNamedAttr("save", builder.getStringAttr(saver.save_tensor_name())),
           builder.getNamedAttr("restore", builder.getStringAttr(saver.restore_op_name()))}));
    }
    if (file.meta->graph_def().has_versions()) {
      const VersionDef &versions = file.meta->graph_def().versions();
      graph.setVersionsAttr(builder.getDictionaryAttr(
          {builder.getNamedAttr("producer", builder.getI64IntegerAttr(versions.producer())),
           builder.getNamedAttr("min_consumer", builder.getI64IntegerAttr(versions.min_consumer()))}));
    }
  }

  /// Everything but nodes and function bodies, which export makes from the operations.
  void keepTheRest(dfg::GraphOp graph) {
    GraphDef *graphDef = file.meta->mutable_graph_def();
    graphDef->clear_node();
    if (graphDef->has_library())
      graphDef->mutable_library()->clear_function();
    google::protobuf::Message *rest = file.isMetaGraph ? static_cast<google::protobuf::Message *>(file.meta) : graphDef;
    auto bytes = dfg::RawAttr::get(builder.getContext(), builder.getStringAttr(serialize(*rest)));
    if (file.isMetaGraph)
      graph.setCollectionsAttr(bytes);
    else
      graph.setGraphDefAttr(bytes);
  }

  const GraphFile &file;
  ModuleOp module;
  ImportContext shared;
  OpBuilder builder;
};

LogicalResult Importer::importFunction(const FunctionDef &function) {
  const OpDef &signature = function.signature();
  MLIRContext *context = builder.getContext();
  auto getType = [&](const OpDef::ArgDef &arg) -> Type {
    Type element = getElementType(arg.type(), context);
    return UnrankedTensorType::get(element ? element : dfg::UnknownType::get(context));
  };
  SmallVector<Type> argumentTypes;
  SmallVector<StringRef> results;
  for (const OpDef::ArgDef &arg : signature.input_arg())
    argumentTypes.push_back(getType(arg));
  for (const OpDef::ArgDef &arg : signature.output_arg()) {
    auto it = function.ret().find(arg.name());
    if (it == function.ret().end())
      return shared.fail(nullptr) << "function '" << signature.name() << "' does not say what its output '"
                                  << arg.name() << "' is";
    results.push_back(it->second);
  }
  OperationState state(builder.getUnknownLoc(), dfg::FuncOp::getOperationName());
  Block *block = &state.addRegion()->emplaceBlock();
  block->addArguments(argumentTypes, SmallVector<Location>(argumentTypes.size(), builder.getUnknownLoc()));
  BlockImporter importer(shared, block, function.node_def(), signature.input_arg());
  if (failed(importer.run(results)))
    return failure();
  SmallVector<Value> values;
  SmallVector<Type> resultTypes;
  for (auto [arg, result] : llvm::zip(signature.output_arg(), results)) {
    if (DataType type = importer.lookupType(result); arg.type_attr().empty() && !isCompatible(type, arg.type()))
      return shared.fail(nullptr) << "function '" << signature.name() << "' gives '" << result << "' of type "
                                  << getDataTypeName(type) << " as its output '" << arg.name() << "', which must be "
                                  << getDataTypeName(arg.type());
    values.push_back(importer.lookup(result));
    if (!values.back())
      return failure();
    resultTypes.push_back(values.back().getType());
  }
  OpBuilder atEnd(context);
  atEnd.setInsertionPointToEnd(block);
  dfg::ReturnOp::create(atEnd, builder.getUnknownLoc(), values);

  FunctionDef shell = function;
  shell.clear_node_def();
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(signature.name()));
  state.addAttribute("function_type", TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes)));
  state.addAttribute("function_def", dfg::RawAttr::get(context, builder.getStringAttr(serialize(shell))));
  SmallVector<Attribute> controls;
  for (const auto &[name, node] : shell.control_ret())
    controls.push_back(builder.getStringAttr(node));
  if (!controls.empty())
    state.addAttribute(dfg::kControlAttr, builder.getArrayAttr(controls));
  builder.create(state);
  return success();
}

} // namespace

// ---- Files -----------------------------------------------------------------------------

OwningOpRef<ModuleOp> importGraph(llvm::MemoryBufferRef buffer, MLIRContext *context) {
  context->loadDialect<dfg::DFGDialect>();
  std::unique_ptr<GraphFile> file = parseGraph(buffer, context);
  if (!file)
    return {};
  OwningOpRef<ModuleOp> module = ModuleOp::create(FileLineColLoc::get(context, file->name, 0, 0));
  if (failed(Importer(*file, *module).run()) || failed(verify(*module)))
    return {};
  return module;
}

OwningOpRef<ModuleOp> importGraph(StringRef path, MLIRContext *context) {
  std::string name = path.str();
  if (llvm::sys::fs::is_directory(path)) {
    for (const char *file : {"saved_model.pb", "saved_model.pbtxt"}) {
      llvm::SmallString<128> inside(path);
      llvm::sys::path::append(inside, file);
      if (llvm::sys::fs::exists(inside))
        name = inside.str().str();
    }
    if (name == path) {
      emitError(FileLineColLoc::get(context, path, 0, 0))
          << "'" << path << "' is a folder without saved_model.pb or saved_model.pbtxt, so it is no SavedModel";
      return {};
    }
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(name, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    emitError(FileLineColLoc::get(context, name, 0, 0))
        << "cannot read '" << name << "': " << buffer.getError().message();
    return {};
  }
  return importGraph((*buffer)->getMemBufferRef(), context);
}

} // namespace distc::tf
