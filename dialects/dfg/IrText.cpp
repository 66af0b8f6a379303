//===- IrText.cpp - Text of IR that may be damaged --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/IrText.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include <csignal>
#include <cstring>
#include <sys/time.h>
#include <unistd.h>

using namespace mlir;

namespace distc::dfg {

/// More results than any operation has, and elements than any vector; what a table of as many takes is no burden.
constexpr uint64_t kMaxResults = uint64_t(1) << 20;
constexpr uint64_t kMaxVectorElements = kMaxResults;

/// The number of elements of a vector type whose text goes on with `rest` behind "vector<", 4x[8]xf32 as an example: at
/// most one more than the greatest allowed.
static uint64_t countElements(StringRef rest) {
  uint64_t count = 1;
  while (true) {
    const bool scales = rest.consume_front("[");
    StringRef digits = rest.take_while(llvm::isDigit);
    rest = rest.drop_front(digits.size());
    if (digits.empty() || (scales && !rest.consume_front("]")) || !rest.consume_front("x"))
      return count;
    uint64_t size = 0;
    if (digits.getAsInteger(10, size) || size > kMaxVectorElements)
      return kMaxVectorElements + 1;
    count = std::min(count * std::max<uint64_t>(size, 1), kMaxVectorElements + 1);
  }
}

LogicalResult checkIrText(StringRef text, StringRef path, MLIRContext *context) {
  unsigned line = 1;
  auto isOfName = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-'; };
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') {
      ++line;
    } else if (text[at] == '"') {
      // To the end of the string.
      for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
        at += text[at] == '\\';
    } else if (text[at] == 'v' && text.substr(at).starts_with("vector<")) {
      if (countElements(text.drop_front(at + strlen("vector<"))) > kMaxVectorElements)
        return emitError(FileLineColLoc::get(context, path, line, 1))
               << "has a vector of more than " << kMaxVectorElements << " elements";
    } else if (text[at] == 'a' && text.substr(at).starts_with("array<index")) {
      return emitError(FileLineColLoc::get(context, path, line, 1))
             << "has an array of index; arrays are of integers, floats and truth values";
    } else if (text[at] == '%') {
      StringRef rest = text.drop_front(at + 1);
      rest = rest.drop_while(isOfName);
      if (!rest.consume_front("#"))
        continue;
      StringRef digits = rest.take_while(llvm::isDigit);
      uint64_t number = 0;
      if (!digits.empty() && (digits.getAsInteger(10, number) || number >= kMaxResults))
        return emitError(FileLineColLoc::get(context, path, line, 1))
               << "names result " << digits << " of an operation; there are fewer than " << kMaxResults;
    }
  }
  return success();
}

// Of the parser that runs, for a signal's handler.
static std::string *endlessError = nullptr;

static void reportEndlessParse(int) {
  if (endlessError)
    (void)!write(STDERR_FILENO, endlessError->data(), endlessError->size());
  _exit(1);
}

bool survivesParsing(llvm::function_ref<void()> parse, StringRef path) {
  std::string error = (path + ": error: MLIR's parser comes to no end in it: it is damaged; write it again\n").str();
  endlessError = &error;
  // By its own time: a busy machine is no loop.
  auto *before = std::signal(SIGVTALRM, reportEndlessParse);
  uint64_t bytes = 0;
  (void)llvm::sys::fs::file_size(path, bytes);
  itimerval limit = {};
  limit.it_value.tv_sec = static_cast<time_t>(10 + (bytes >> 20));
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
  llvm::CrashRecoveryContext::Enable();
  const bool survived = llvm::CrashRecoveryContext().RunSafely(parse);
  llvm::CrashRecoveryContext::Disable();
  limit = {};
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
  std::signal(SIGVTALRM, before);
  endlessError = nullptr;
  return survived;
}

} // namespace distc::dfg
