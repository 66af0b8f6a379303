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
#include "strategies/Resources.h"
#include "strategies/StrategyFile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

namespace distc::strategies {

/// A parameter of a builder: a whole number from `minimum` on, or one of `choices`.
struct Parameter {
  llvm::StringRef name;
  llvm::StringRef defaultValue;
  llvm::StringRef help;
  int64_t minimum = 0;
  std::vector<llvm::StringRef> choices;
};

/// The parameters' values, checked; every parameter of the builder has one.
class Arguments {
public:
  int64_t getInteger(llvm::StringRef name) const;
  llvm::StringRef get(llvm::StringRef name) const { return values.find(name)->second; }
  void set(llvm::StringRef name, llvm::StringRef value) { values[name] = value.str(); }

private:
  llvm::StringMap<std::string> values;
};

struct Builder {
  llvm::StringRef name;
  llvm::StringRef summary;
  std::vector<Parameter> parameters;
  llvm::Expected<Strategy> (*build)(const GraphFacts &, const Resources &, const Arguments &);
};

/// All builders, in the order in which help lists them.
llvm::ArrayRef<Builder> getBuilders();

/// Whether `spec` is "NAME" or "NAME:key=value,..." of a builder, and not a file. Says nothing of its parameters.
bool isBuilderSpec(llvm::StringRef spec);

/// Builds the strategy that "NAME:key=value,..." asks for. Errors list the strategies, the parameters or the choices.
llvm::Expected<Strategy> buildStrategy(llvm::StringRef spec, const GraphFacts &facts, const Resources &resources);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_BUILDER_H
