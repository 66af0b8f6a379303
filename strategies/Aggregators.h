//===- Aggregators.h - How the replicas' gradients become one -----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_AGGREGATORS_H
#define DISTC_STRATEGIES_AGGREGATORS_H

#include "strategies/strategy.pb.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace distc::strategies {

using Aggregator = autodist::proto::Aggregator;

/// Reads "auto", "mean", "sum", "median", "trimmed_mean:f", "krum:f", "multi_krum:f,m" or "geometric_median".
/// An error says what a value is not: "is not one of: ...".
llvm::Expected<Aggregator> parseAggregator(llvm::StringRef text);

/// The text that parseAggregator() reads.
std::string printAggregator(const Aggregator &aggregator);

/// Whether it is neither a mean nor a sum: it then needs each replica's gradient by itself.
bool isRobust(const Aggregator &aggregator);

/// Says what is wrong with f and m for `gradients` gradients: "needs ..."; nothing where all is right.
std::string checkAggregator(const Aggregator &aggregator, int gradients);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_AGGREGATORS_H
