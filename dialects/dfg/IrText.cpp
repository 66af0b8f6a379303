//===- IrText.cpp - Text of IR that may be damaged --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/IrText.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace distc::dfg {

/// More than any operation's; what a table of as many takes is no burden.
constexpr uint64_t kMaxResults = uint64_t(1) << 20;

LogicalResult checkResultNumbers(StringRef text, StringRef path, MLIRContext *context) {
  unsigned line = 1;
  auto isOfName = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-'; };
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') {
      ++line;
    } else if (text[at] == '"') {
      // To the end of the string.
      for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
        at += text[at] == '\\';
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

} // namespace distc::dfg
