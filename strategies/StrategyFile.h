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
#include <vector>

namespace distc::strategies {

using Strategy = autodist::proto::Strategy;

/// Where a text strategy says what; empty for any other.
struct StrategyLines {
  std::string file;
  std::vector<int> nodes;               // from 1 on
  std::vector<std::vector<int>> shards; // of each node
  std::vector<int> replicas;

  /// "S.pbtxt:12: ", of an entry, one of its shards, or a replica; "" where that is not known.
  std::string at(int node, int shard = -1) const;
  std::string atReplica(int replica) const;
};

/// The strategy in `content`, binary or text, told apart by what it holds. Names that AutoDist writes as tensors'
/// ("dense/kernel:0") become the variables'. Errors begin with "`name`:line:column: " where it is text.
llvm::Expected<Strategy> parseStrategy(llvm::StringRef content, llvm::StringRef name, StrategyLines *lines = nullptr);
llvm::Expected<Strategy> readStrategy(llvm::StringRef path, StrategyLines *lines = nullptr);

/// Protocol Buffers' text form.
std::string printStrategy(const Strategy &strategy);
/// The same in one line with ' for quotes, which a string attribute's form in the IR leaves as it is.
std::string printStrategyLine(const Strategy &strategy);

/// Writes text, or binary where `path` ends with ".pb"; "-" is standard output.
/// The file is there whole or not at all.
llvm::Error writeStrategy(const Strategy &strategy, llvm::StringRef path);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_STRATEGYFILE_H
