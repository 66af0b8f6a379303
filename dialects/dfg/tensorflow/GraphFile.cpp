//===- GraphFile.cpp - A graph's file, whatever its form -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/GraphFile.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <limits>

using namespace mlir;

namespace distc::tf {
namespace {

constexpr llvm::StringLiteral kForms = "is neither a MetaGraphDef nor a GraphDef nor a SavedModel, binary or text";

/// The top-level fields of a binary message.
struct Outline {
  int count[8] = {};
  bool firstIsVarint = false;
  int64_t size = 0;
  /// Where the field that does not end begins, or -1.
  int64_t tornAt = -1;
  bool invalid = false;
};

Outline outline(llvm::StringRef content) {
  using google::protobuf::io::CodedInputStream;
  Outline result;
  result.size = content.size();
  CodedInputStream input(reinterpret_cast<const uint8_t *>(content.data()), static_cast<int>(content.size()));
  while (input.CurrentPosition() < static_cast<int>(content.size())) {
    int64_t begin = input.CurrentPosition();
    uint32_t tag = input.ReadTag();
    uint32_t field = tag >> 3, wire = tag & 7, length = 0;
    uint64_t value;
    bool complete = true;
    if (field == 0 || (wire != 0 && wire != 1 && wire != 2 && wire != 5)) {
      result.invalid = true;
      return result;
    }
    if (wire == 0)
      complete = input.ReadVarint64(&value);
    else if (wire == 2)
      complete = input.ReadVarint32(&length) && input.Skip(static_cast<int>(length));
    else
      complete = input.Skip(wire == 1 ? 8 : 4);
    if (begin == 0)
      result.firstIsVarint = wire == 0 && field == 1;
    if (field < 8)
      ++result.count[field];
    if (!complete) {
      result.tornAt = begin;
      return result;
    }
  }
  return result;
}

/// Takes the text parser's complaints: the first stands for all.
class FirstError : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string &message) override {
    if (this->line < 0) {
      this->line = line;
      this->column = column;
      this->message = message;
    }
  }
  int line = -1, column = 0;
  std::string message;
};

class Parser {
public:
  Parser(llvm::MemoryBufferRef buffer, MLIRContext *context)
      : content(buffer.getBuffer()), context(context), file(std::make_unique<GraphFile>()) {
    file->name = buffer.getBufferIdentifier().str();
  }

  std::unique_ptr<GraphFile> parse() {
    if (content.size() > std::numeric_limits<int>::max())
      return fail() << "is larger than 2 GB, which no protocol buffer can be";
    if (content.trim().empty())
      return fail() << kForms << ": it is empty";
    // Field lengths of a binary message are control characters.
    bool isText = llvm::all_of(content.take_front(4096), [](unsigned char c) { return c >= 0x20 || llvm::isSpace(c); });
    bool done = isText ? parseText() : parseBinary();
    if (!done)
      return nullptr;
    if (file->meta->graph_def().node_size() == 0)
      return fail() << kForms << ": it has no nodes";
    return std::move(file);
  }

private:
  struct Failure {
    InFlightDiagnostic diagnostic;
    template <typename T> Failure &operator<<(T &&part) {
      diagnostic << part;
      return *this;
    }
    operator std::unique_ptr<GraphFile>() { return nullptr; }
    operator bool() { return false; }
  };
  Failure fail(int line = 0, int column = 0) {
    Failure failure{emitError(FileLineColLoc::get(context, file->name, line, column))};
    failure << "'" << file->name << "' ";
    return failure;
  }

  bool parseBinary() {
    Outline found = outline(content);
    if (found.invalid)
      return fail() << kForms << ": it is no protocol buffer";
    if (found.tornAt >= 0)
      return fail() << kForms << ", or not all of one: the file ends at byte " << found.size
                    << ", within what begins at byte " << found.tornAt << "; copy it again";
    if (found.firstIsVarint) {
      auto *saved = google::protobuf::Arena::CreateMessage<SavedModel>(&file->arena);
      return saved->ParseFromArray(content.data(), content.size())
                 ? choose(*saved)
                 : bool(fail() << kForms << ": its messages are damaged");
    }
    // Both begin with field 1; a MetaGraphDef has one, and its field 2 holds nodes.
    file->meta = google::protobuf::Arena::CreateMessage<MetaGraphDef>(&file->arena);
    if (found.count[1] <= 1 && found.count[2] == 1 && file->meta->ParseFromArray(content.data(), content.size()) &&
        file->meta->graph_def().node_size() > 0 && !file->meta->graph_def().node(0).op().empty()) {
      file->isMetaGraph = true;
      return true;
    }
    file->meta->Clear();
    if (!file->meta->mutable_graph_def()->ParseFromArray(content.data(), content.size()))
      return fail() << kForms << ": its messages are damaged";
    return true;
  }

  bool parseText() {
    // A name alone at the beginning of a line belongs to the outermost message.
    auto begins = [&](llvm::StringRef field) {
      return content.starts_with(field) || content.contains(("\n" + field).str());
    };
    FirstError error;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&error);
    parser.AllowUnknownField(true);
    std::string text = content.str();
    if (begins("saved_model_schema_version") || begins("meta_graphs")) {
      auto *saved = google::protobuf::Arena::CreateMessage<SavedModel>(&file->arena);
      return parser.ParseFromString(text, saved) ? choose(*saved) : complain(error);
    }
    file->meta = google::protobuf::Arena::CreateMessage<MetaGraphDef>(&file->arena);
    file->isMetaGraph = begins("graph_def") || begins("meta_info_def");
    bool done = file->isMetaGraph ? parser.ParseFromString(text, file->meta)
                                  : parser.ParseFromString(text, file->meta->mutable_graph_def());
    return done || complain(error);
  }

  bool complain(const FirstError &error) {
    return fail(error.line + 1, error.column + 1) << kForms << ": " << error.message;
  }

  /// The graph to train: the one that is tagged so, else the only one.
  bool choose(SavedModel &saved) {
    file->isMetaGraph = true;
    for (MetaGraphDef &meta : *saved.mutable_meta_graphs())
      if (llvm::is_contained(meta.meta_info_def().tags(), "train"))
        file->meta = &meta;
    if (!file->meta && saved.meta_graphs_size() == 1)
      file->meta = saved.mutable_meta_graphs(0);
    if (!file->meta)
      return fail() << "has " << saved.meta_graphs_size() << " graphs, none of them tagged 'train'";
    return true;
  }

  llvm::StringRef content;
  MLIRContext *context;
  std::unique_ptr<GraphFile> file;
};

} // namespace

std::unique_ptr<GraphFile> parseGraph(llvm::MemoryBufferRef buffer, MLIRContext *context) {
  return Parser(buffer, context).parse();
}

} // namespace distc::tf
