//===- StrategyFile.cpp - Reading and writing strategies -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StrategyFile.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <google/protobuf/io/tokenizer.h>
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

llvm::Expected<Strategy> parseStrategy(llvm::StringRef content, llvm::StringRef name) {
  Strategy strategy;
  if (hasControlCharacters(content)) {
    if (strategy.ParseFromArray(content.data(), content.size()))
      return strategy;
    return llvm::createStringError(name + ": neither a binary nor a text Strategy; `distc strategy build` writes one");
  }
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (parser.ParseFromString(content.str(), &strategy))
    return strategy;
  // A binary strategy without entries may hold printable bytes alone.
  Strategy binary;
  if (binary.ParseFromArray(content.data(), content.size()) && binary.GetReflection()->GetUnknownFields(binary).empty())
    return binary;
  return llvm::createStringError(name + ":" + errors.text);
}

llvm::Expected<Strategy> readStrategy(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError("cannot read strategy '" + path + "': " + buffer.getError().message());
  return parseStrategy((*buffer)->getBuffer(), path);
}

std::string printStrategy(const Strategy &strategy) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(strategy, &text);
  return text;
}

llvm::Error writeStrategy(const Strategy &strategy, llvm::StringRef path) {
  std::string bytes = path.ends_with(".pb") ? strategy.SerializeAsString() : printStrategy(strategy);
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    os << bytes;
    return llvm::Error::success();
  });
}

} // namespace distc::strategies
