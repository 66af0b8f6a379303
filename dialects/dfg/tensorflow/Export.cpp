//===- Export.cpp - dfg to TensorFlow's graphs ------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/Export.h"
#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/tensorflow/ExportNode.h"
#include "dialects/dfg/tensorflow/meta_graph.pb.h"
#include <google/protobuf/text_format.h>

using namespace mlir;

namespace distc::tf {

static LogicalResult exportFunction(ExportContext &shared, dfg::FuncOp function, FunctionDef &proto) {
  auto shell = function->getAttrOfType<dfg::RawAttr>("function_def");
  if (!shell || !proto.ParseFromString(shell.getBytes().str()))
    return function.emitError() << "function '" << function.getSymName() << "' is no function of an imported library";
  SmallVector<std::string> arguments;
  for (const OpDef::ArgDef &arg : proto.signature().input_arg())
    arguments.push_back(arg.name());
  if (arguments.size() != function.getNumArguments())
    return function.emitError() << "function '" << function.getSymName()
                                << "' has other arguments than when it was imported";
  Block &body = function.getBody().front();
  BlockExporter exporter(shared, body, arguments, /*isFunction=*/true);
  if (failed(exporter.run(*proto.mutable_node_def())))
    return failure();
  proto.clear_ret();
  for (auto [arg, value] : llvm::zip(proto.signature().output_arg(), body.getTerminator()->getOperands()))
    (*proto.mutable_ret())[arg.name()] = exporter.getInput(value);
  return success();
}

LogicalResult exportGraph(ModuleOp module, MetaGraphDef &meta, bool &isMetaGraph, bool keepsCaptures) {
  auto graphs = module.getOps<dfg::GraphOp>();
  if (graphs.empty())
    return module.emitError("holds no dfg.graph to export");
  dfg::GraphOp graph = *graphs.begin();
  if (graph.getStripped())
    return module.emitError(
        "was written with --strip-export-info, which leaves out what an export needs; write it again without");
  dfg::RawAttr collections = graph.getCollectionsAttr();
  isMetaGraph = static_cast<bool>(collections);
  if (collections)
    meta.ParseFromString(collections.getBytes().str());
  else if (dfg::RawAttr bare = graph.getGraphDefAttr())
    meta.mutable_graph_def()->ParseFromString(bare.getBytes().str());
  GraphDef &proto = *meta.mutable_graph_def();
  if (DictionaryAttr versions = graph.getVersionsAttr()) {
    if (auto producer = versions.getAs<IntegerAttr>("producer"))
      proto.mutable_versions()->set_producer(producer.getInt());
    if (auto consumer = versions.getAs<IntegerAttr>("min_consumer"))
      proto.mutable_versions()->set_min_consumer(consumer.getInt());
  }
  ExportContext shared(module);
  shared.keepsCaptures = keepsCaptures;
  if (failed(BlockExporter(shared, graph.getBody().front(), {}, /*isFunction=*/false).run(*proto.mutable_node())))
    return failure();
  for (auto function : module.getOps<dfg::FuncOp>())
    if (failed(exportFunction(shared, function, *proto.mutable_library()->add_function())))
      return failure();
  return success();
}

/// What collections name of nodes that another task has, or that were written out, is not there: TensorFlow imports no
/// graph with such names.
static void dropMissing(MetaGraphDef &meta) {
  llvm::StringSet<> nodes;
  for (const auto &node : meta.graph_def().node())
    nodes.insert(node.name());
  for (auto &[key, collection] : *meta.mutable_collection_def()) {
    if (!collection.has_node_list())
      continue;
    CollectionDef::NodeList kept;
    for (const std::string &name : collection.node_list().value())
      if (nodes.contains(StringRef(name).ltrim('^').split(':').first))
        kept.add_value(name);
    *collection.mutable_node_list() = std::move(kept);
  }
}

/// Collections name the endpoints, and nothing else where they had several candidates.
static void addEndpoints(ModuleOp module, MetaGraphDef &meta) {
  dfg::GraphOp graph = *module.getOps<dfg::GraphOp>().begin();
  auto add = [&](StringAttr endpoint, const char *collection, StringRef output = "") {
    if (!endpoint)
      return;
    const std::string name = endpoint.getValue().contains(':') ? endpoint.str() : (endpoint.getValue() + output).str();
    auto &names = *(*meta.mutable_collection_def())[collection].mutable_node_list();
    if (names.value_size() == 1 && names.value(0) == name)
      return;
    names.clear_value();
    names.add_value(name);
  };
  // What tf.gradients would know of version 1's loops and conditions; a worker's graph has other nodes.
  for (const char *contexts : {"cond_context", "while_context"})
    meta.mutable_collection_def()->erase(contexts);
  add(graph.getTrainOpAttr(), "train_op");
  add(graph.getInitOpAttr(), "init_op");
  add(graph.getLossAttr(), "losses", ":0");
  if (DictionaryAttr saver = graph.getSaverAttr()) {
    const bool isNew = !meta.has_saver_def();
    SaverDef &def = *meta.mutable_saver_def();
    def.set_filename_tensor_name(saver.getAs<StringAttr>("filename").str());
    def.set_save_tensor_name(saver.getAs<StringAttr>("save").str());
    def.set_restore_op_name(saver.getAs<StringAttr>("restore").str());
    // As tf.train.Saver has them.
    if (isNew) {
      def.set_max_to_keep(5);
      def.set_keep_checkpoint_every_n_hours(10000);
      def.set_version(SaverDef::V2);
    }
  }
  DictionaryAttr more = graph.getMoreCollectionsAttr();
  for (NamedAttribute entry : more ? more.getValue() : ArrayRef<NamedAttribute>())
    for (Attribute element : llvm::cast<ArrayAttr>(entry.getValue())) {
      CollectionDef &collection = (*meta.mutable_collection_def())[entry.getName().str()];
      if (auto number = llvm::dyn_cast<IntegerAttr>(element))
        collection.mutable_int64_list()->add_value(number.getInt());
      else
        collection.mutable_node_list()->add_value(llvm::cast<StringAttr>(element).str());
    }
  dropMissing(meta);
}

static LogicalResult write(ModuleOp module, llvm::raw_ostream &os, bool text, bool alwaysMetaGraph) {
  google::protobuf::Arena arena;
  auto *meta = google::protobuf::Arena::CreateMessage<MetaGraphDef>(&arena);
  bool isMetaGraph = false;
  if (failed(exportGraph(module, *meta, isMetaGraph, /*keepsCaptures=*/!alwaysMetaGraph)))
    return failure();
  if (alwaysMetaGraph)
    addEndpoints(module, *meta);
  const google::protobuf::Message &message =
      isMetaGraph || alwaysMetaGraph ? static_cast<const google::protobuf::Message &>(*meta) : meta->graph_def();
  std::string output;
  if (text)
    google::protobuf::TextFormat::PrintToString(message, &output);
  else if (!serialize(message, output))
    return module.emitError("is larger than 2 GB, which no protocol buffer can be");
  os << output;
  return success();
}

LogicalResult exportGraph(ModuleOp module, llvm::raw_ostream &os, bool text) {
  return write(module, os, text, /*alwaysMetaGraph=*/false);
}

LogicalResult exportMetaGraph(ModuleOp module, llvm::raw_ostream &os) {
  return write(module, os, /*text=*/false, /*alwaysMetaGraph=*/true);
}

} // namespace distc::tf
