//===- StrategyCommand.cpp - distc strategy build, show and diff -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/strategy/GraphFacts.h"
#include "strategies/Builder.h"
#include "strategies/LoadStrategy.h"
#include "strategies/StrategyText.h"
#include "tools/distc/Pipeline.h"
#include "tools/distc/Session.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace distc {
namespace {

/// What strategies are made from and checked against; nothing after an error, which was said.
struct Surroundings {
  strategies::GraphFacts facts;
  strategies::Resources resources;
};

std::optional<Surroundings> readSurroundings(Session &session, const CompileOptions &options) {
  Surroundings read;
  read.resources = strategies::Resources::local(options.replicas, options.servers);
  if (!options.resources.empty()) {
    auto file = strategies::readResources(options.resources);
    if (auto *message = std::get_if<std::string>(&file)) {
      session.fail(*message);
      return std::nullopt;
    }
    read.resources = std::get<strategies::Resources>(file);
  }
  mlir::OwningOpRef<mlir::ModuleOp> module = session.import(options);
  if (!module || !session.run(*module, [](mlir::OpPassManager &manager) { addGraphStage(manager); }))
    return std::nullopt;
  mlir::FailureOr<strategies::GraphFacts> facts = computeGraphFacts(*module);
  if (failed(facts))
    return std::nullopt;
  read.facts = std::move(*facts);
  return read;
}

/// The strategy that `spec` names, checked; remarks are printed. Nothing after an error, which was said.
std::optional<strategies::Strategy> load(Session &session, const std::string &file, const std::string &spec,
                                         const Surroundings &surroundings) {
  std::vector<std::string> remarks;
  llvm::Expected<strategies::Strategy> strategy =
      strategies::loadStrategy(spec, surroundings.facts, surroundings.resources, remarks);
  for (const std::string &remark : remarks)
    llvm::errs() << file << ": remark: " << remark << "\n";
  if (strategy)
    return std::move(*strategy);
  session.fail(llvm::toString(strategy.takeError()));
  return std::nullopt;
}

/// The status of `use`, which gets the strategy that the command line names; or of the error before it.
int withStrategy(const CompileOptions &options,
                 llvm::function_ref<int(Session &, const strategies::Strategy &, const Surroundings &)> use) {
  Session session(options);
  std::optional<Surroundings> surroundings = readSurroundings(session, options);
  if (!surroundings)
    return session.status();
  std::optional<strategies::Strategy> strategy = load(session, options.graph, options.strategy, *surroundings);
  return strategy ? use(session, *strategy, *surroundings) : session.status();
}

} // namespace

std::vector<std::string> listBuilders() {
  std::vector<std::string> names;
  for (const strategies::Builder &builder : strategies::getBuilders())
    names.push_back(builder.name.str());
  return names;
}

std::string describeBuilders() {
  std::string text = "NAME and its keys:\n", keys;
  llvm::StringSet<> seen;
  auto addKeys = [&](llvm::ArrayRef<strategies::Parameter> parameters) {
    text += "     ";
    for (const strategies::Parameter &parameter : parameters) {
      text += (" " + parameter.name + "=" + parameter.defaultValue).str();
      if (seen.insert(parameter.name).second)
        keys += llvm::formatv("  {0,-22} {1}\n", parameter.name, parameter.help);
    }
    text += "\n";
  };
  for (const strategies::Builder &builder : strategies::getBuilders()) {
    text += llvm::formatv("  {0,-22} {1}\n", builder.name, builder.summary);
    addKeys(builder.parameters);
  }
  text += "  all of them\n";
  addKeys(strategies::getCommonParameters());
  return text + "\nKeys:\n" + keys;
}

int strategyBuildCommand(const CompileOptions &options) {
  return withStrategy(options,
                      [&](Session &session, const strategies::Strategy &strategy, const Surroundings &) -> int {
                        if (llvm::Error error = strategies::writeStrategy(strategy, options.output))
                          return session.fail(llvm::toString(std::move(error)));
                        return kDone;
                      });
}

int strategyShowCommand(const CompileOptions &options) {
  return withStrategy(options,
                      [](Session &, const strategies::Strategy &strategy, const Surroundings &surroundings) -> int {
                        strategies::printTables(strategy, surroundings.facts, surroundings.resources, llvm::outs());
                        return kDone;
                      });
}

int strategyDiffCommand(const CompileOptions &options) {
  const std::string specs[] = {options.strategy, options.otherStrategy};
  CompileOptions about = options;
  if (about.graph.empty())
    about.graph = options.strategy; // what messages begin with
  Session session(about);
  std::optional<Surroundings> surroundings;
  if (!options.graph.empty()) {
    surroundings = readSurroundings(session, options);
    if (!surroundings)
      return session.status();
  }
  strategies::Strategy read[2];
  for (int i = 0; i < 2; ++i) {
    if (surroundings) {
      std::optional<strategies::Strategy> strategy = load(session, options.graph, specs[i], *surroundings);
      if (!strategy)
        return session.status();
      read[i] = std::move(*strategy);
      continue;
    }
    if (strategies::isBuilderSpec(specs[i]))
      return session.fail("'" + specs[i] +
                          "' is a builder, not a file: give GRAPH, and --replicas or --resources, that " +
                          "it is to build for");
    llvm::Expected<strategies::Strategy> strategy = strategies::readStrategy(specs[i]);
    if (!strategy)
      return session.fail(llvm::toString(strategy.takeError()));
    read[i] = std::move(*strategy);
  }
  return strategies::printDifferences(read[0], read[1], llvm::outs()) ? kWrongInput : kDone;
}

} // namespace distc
