//===- StrategyFile.h - Reading and writing strategies ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_STRATEGYFILE_H
#define DISTC_STRATEGIES_STRATEGYFILE_H

#include "strategies/strategy.pb.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace distc::strategies {

using Strategy = autodist::proto::Strategy;

/// The strategy in `content`, binary or text, told apart by what it holds.
/// Errors begin with "`name`:line:column: " where it is text.
llvm::Expected<Strategy> parseStrategy(llvm::StringRef content, llvm::StringRef name);
llvm::Expected<Strategy> readStrategy(llvm::StringRef path);

/// Protocol Buffers' text form.
std::string printStrategy(const Strategy &strategy);

/// Writes text, or binary where `path` ends with ".pb"; "-" is standard output.
/// The file is there whole or not at all.
llvm::Error writeStrategy(const Strategy &strategy, llvm::StringRef path);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_STRATEGYFILE_H
