//===- Builder.h - Functions from graph and resources to a strategy -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// To add a strategy: one file with a function that returns its Builder, declared
// and listed in Builders.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_BUILDER_H
#define DISTC_STRATEGIES_BUILDER_H

#include "strategies/GraphFacts.h"
#include "strategies/Parameters.h"
#include "strategies/Resources.h"
#include "strategies/StrategyFile.h"
#include "llvm/ADT/ArrayRef.h"

namespace distc::strategies {

/// What a builder works on. It adds an entry for each variable that needs one, in the order of the graph; replicas and
/// the parameters that all builders share are set for it.
struct BuildState {
  const GraphFacts &facts;
  const Resources &resources;
  const Arguments &arguments;
  Strategy &strategy;
  /// What the user should know, a sentence each.
  std::vector<std::string> &remarks;
};

struct Builder {
  llvm::StringRef name;
  llvm::StringRef summary;
  /// Its own; those of getCommonParameters() are added to all.
  std::vector<Parameter> parameters;
  llvm::Error (*build)(BuildState &);
};

/// All builders, in the order in which help lists them.
llvm::ArrayRef<Builder> getBuilders();

/// What every builder can be asked for as well: accumulate_steps, aggregator, ...
llvm::ArrayRef<Parameter> getCommonParameters();

/// Whether `spec` is "NAME" or "NAME:key=value,..." of a builder, in any case, and not a file. Says nothing of its
/// parameters.
bool isBuilderSpec(llvm::StringRef spec);

/// `spec` with the builder's name as the builder has it: "allreduce:chunk_size=4" is AllReduce:chunk_size=4. What names
/// no builder stays as it is.
std::string spellSpec(llvm::StringRef spec);

/// Builds the strategy that "NAME:key=value,..." asks for. Errors list the strategies, the parameters or the choices.
/// What the builder has to say is added to `remarks`. Whether it suits the graph, StrategyCheck.h says.
llvm::Expected<Strategy> buildStrategy(llvm::StringRef spec, const GraphFacts &facts, const Resources &resources,
                                       std::vector<std::string> &remarks);
llvm::Expected<Strategy> buildStrategy(llvm::StringRef spec, const GraphFacts &facts, const Resources &resources);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_BUILDER_H
