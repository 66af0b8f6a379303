//===- StrategyFile.cpp - Reading and writing strategies -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StrategyFile.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

namespace distc::strategies {
namespace {

/// Keeps the first error of the text parser.
class FirstError : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string &message) override {
    if (text.empty())
      text = (llvm::Twine(line + 1) + ":" + llvm::Twine(column + 1) + ": " + message).str();
  }
  std::string text;
};

/// Text has no control characters besides white space; a binary strategy that has an entry does (its tag).
bool hasControlCharacters(llvm::StringRef content) {
  return llvm::any_of(content, [](unsigned char c) { return c < 0x20 && c != '\t' && c != '\n' && c != '\r'; });
}

} // namespace

static std::string formatLine(const std::string &file, int line) { return file + ":" + std::to_string(line) + ": "; }

std::string StrategyLines::at(int node, int shard) const {
  if (node >= static_cast<int>(nodes.size()))
    return "";
  bool ofShard = shard >= 0 && shard < static_cast<int>(shards[node].size());
  return formatLine(file, ofShard ? shards[node][shard] : nodes[node]);
}

std::string StrategyLines::atReplica(int replica) const {
  return replica < static_cast<int>(replicas.size()) ? formatLine(file, replicas[replica]) : "";
}

/// The lines of what `strategy` holds, as `tree` of its text has them.
static StrategyLines getLines(const Strategy &strategy, google::protobuf::TextFormat::ParseInfoTree &tree,
                              llvm::StringRef file) {
  StrategyLines lines;
  lines.file = file.str();
  const auto *nodeField = Strategy::descriptor()->FindFieldByNumber(Strategy::kNodeConfigFieldNumber);
  const auto *shardField = Strategy::Node::descriptor()->FindFieldByNumber(Strategy::Node::kPartConfigFieldNumber);
  for (int i = 0; i < strategy.node_config_size(); ++i) {
    lines.nodes.push_back(tree.GetLocation(nodeField, i).line + 1);
    lines.shards.emplace_back();
    auto *node = tree.GetTreeForNested(nodeField, i);
    for (int k = 0; node && k < strategy.node_config(i).part_config_size(); ++k)
      lines.shards.back().push_back(node->GetLocation(shardField, k).line + 1);
  }
  const auto *graphField = Strategy::descriptor()->FindFieldByNumber(Strategy::kGraphConfigFieldNumber);
  const auto *replicaField =
      Strategy::GraphConfig::descriptor()->FindFieldByNumber(Strategy::GraphConfig::kReplicasFieldNumber);
  auto *graph = tree.GetTreeForNested(graphField, -1);
  for (int i = 0; graph && i < strategy.graph_config().replicas_size(); ++i)
    lines.replicas.push_back(graph->GetLocation(replicaField, i).line + 1);
  return lines;
}

/// A variable is named by its tensor in AutoDist's files. No name of a node has a colon.
static void useVariableNames(Strategy::Node &node) {
  if (llvm::StringRef name = node.var_name(); name.consume_back(":0"))
    node.set_var_name(name.str());
  for (Strategy::Node &part : *node.mutable_part_config())
    useVariableNames(part);
}

static llvm::Expected<Strategy> parseEitherForm(llvm::StringRef content, llvm::StringRef name, StrategyLines *lines) {
  // What is wrong is returned, and not logged as well.
  google::protobuf::LogSilencer silencer;
  Strategy strategy;
  if (hasControlCharacters(content)) {
    if (strategy.ParseFromArray(content.data(), content.size()))
      return strategy;
    return llvm::createStringError(name + ": neither a binary nor a text Strategy; `distc strategy build` writes one");
  }
  FirstError errors;
  google::protobuf::TextFormat::ParseInfoTree tree;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (lines)
    parser.WriteLocationsTo(&tree);
  if (parser.ParseFromString(content.str(), &strategy)) {
    if (lines)
      *lines = getLines(strategy, tree, name);
    return strategy;
  }
  // A binary strategy without entries may hold printable bytes alone.
  Strategy binary;
  if (binary.ParseFromArray(content.data(), content.size()) && binary.GetReflection()->GetUnknownFields(binary).empty())
    return binary;
  return llvm::createStringError(name + ":" + errors.text);
}

llvm::Expected<Strategy> parseStrategy(llvm::StringRef content, llvm::StringRef name, StrategyLines *lines) {
  llvm::Expected<Strategy> strategy = parseEitherForm(content, name, lines);
  if (strategy)
    for (Strategy::Node &node : *strategy->mutable_node_config())
      useVariableNames(node);
  return strategy;
}

llvm::Expected<Strategy> readStrategy(llvm::StringRef path, StrategyLines *lines) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError("cannot read strategy '" + path + "': " + buffer.getError().message());
  return parseStrategy((*buffer)->getBuffer(), path, lines);
}

std::string printStrategy(const Strategy &strategy) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(strategy, &text);
  return text;
}

std::string printStrategyLine(const Strategy &strategy) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(strategy, &text);
  // Quotes of either kind are escaped within strings: one that is not begins or ends a string.
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      text[i] = '\'';
  return llvm::StringRef(text).rtrim().str();
}

llvm::Error writeStrategy(const Strategy &strategy, llvm::StringRef path) {
  std::string bytes = path.ends_with(".pb") ? strategy.SerializeAsString() : printStrategy(strategy);
  // A device or a pipe is written to; a file of its name would take its place.
  llvm::sys::fs::file_status status;
  if (path != "-" && !llvm::sys::fs::status(path, status) && llvm::sys::fs::is_other(status)) {
    std::error_code error;
    llvm::raw_fd_ostream os(path, error, llvm::sys::fs::CD_OpenExisting);
    if (!error)
      os << bytes;
    os.flush();
    if (error || (error = os.error())) {
      os.clear_error();
      return llvm::createStringError(error, "cannot write '" + path + "': " + error.message());
    }
    return llvm::Error::success();
  }
  if (path == "-") {
    llvm::outs() << bytes;
    return llvm::Error::success();
  }
  llvm::Expected<llvm::sys::fs::TempFile> file = llvm::sys::fs::TempFile::create(path + "-%%%%%%.tmp");
  if (!file)
    return llvm::createStringError("cannot write '" + path + "': " + llvm::toString(file.takeError()));
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os << bytes;
  os.flush();
  if (std::error_code error = os.error()) {
    os.clear_error();
    llvm::consumeError(file->discard());
    return llvm::createStringError(error, "cannot write '" + path + "': " + error.message());
  }
  return file->keep(path);
}

} // namespace distc::strategies
