//===- Builders.cpp - The registry of strategies, and how they are asked for -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Builder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace distc::strategies {

Builder makeAllReduce();

llvm::ArrayRef<Builder> getBuilders() {
  static const std::vector<Builder> builders = {makeAllReduce()};
  return builders;
}

int64_t Arguments::getInteger(llvm::StringRef name) const {
  int64_t value = 0;
  get(name).getAsInteger(10, value);
  return value;
}

static const Builder *findBuilder(llvm::StringRef name) {
  const Builder *found = llvm::find_if(getBuilders(), [&](const Builder &builder) { return builder.name == name; });
  return found == getBuilders().end() ? nullptr : found;
}

static llvm::Error checkValue(const Builder &builder, const Parameter &parameter, llvm::StringRef value) {
  if (!parameter.choices.empty()) {
    if (llvm::is_contained(parameter.choices, value))
      return llvm::Error::success();
    return llvm::createStringError("strategy " + builder.name + ": " + parameter.name + "=" + value +
                                   " is not one of: " + llvm::join(parameter.choices, ", "));
  }
  int64_t number;
  if (value.getAsInteger(10, number) || number < parameter.minimum)
    return llvm::createStringError("strategy " + builder.name + ": " + parameter.name + "=" + value +
                                   " is not a whole number of at least " + llvm::Twine(parameter.minimum));
  return llvm::Error::success();
}

/// Puts the values of "key=value,key=value" over the defaults.
static llvm::Error parseArguments(const Builder &builder, llvm::StringRef text, Arguments &arguments) {
  for (const Parameter &parameter : builder.parameters)
    arguments.set(parameter.name, parameter.defaultValue);
  llvm::SmallVector<llvm::StringRef> pairs;
  text.split(pairs, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef pair : pairs) {
    auto [key, value] = pair.split('=');
    auto parameter =
        llvm::find_if(builder.parameters, [key = key](const Parameter &known) { return known.name == key; });
    if (parameter == builder.parameters.end() || !pair.contains('=')) {
      std::string message = ("strategy " + builder.name + ": ").str();
      message += (pair.contains('=') ? "unknown parameter '" + key + "'" : "'" + pair + "' is not key=value").str();
      message += builder.parameters.empty() ? "; it has none" : "; it has";
      for (const Parameter &known : builder.parameters)
        message += ((&known == &builder.parameters.front() ? " " : ", ") + known.name + "=" + known.defaultValue +
                    " (" + known.help + ")")
                       .str();
      return llvm::createStringError(message);
    }
    if (llvm::Error error = checkValue(builder, *parameter, value))
      return error;
    arguments.set(key, value);
  }
  return llvm::Error::success();
}

bool isBuilderSpec(llvm::StringRef spec) { return findBuilder(spec.split(':').first) != nullptr; }

llvm::Expected<Strategy> buildStrategy(llvm::StringRef spec, const GraphFacts &facts, const Resources &resources) {
  auto [name, text] = spec.split(':');
  const Builder *builder = findBuilder(name);
  if (!builder) {
    std::string names =
        llvm::join(llvm::map_range(getBuilders(), [](const Builder &known) { return known.name; }), ", ");
    // AutoDist's other builders.
    static constexpr llvm::StringRef planned[] = {"PS",
                                                  "PSLoadBalancing",
                                                  "PartitionedPS",
                                                  "UnevenPartitionedPS",
                                                  "PartitionedAR",
                                                  "RandomAxisPartitionAR",
                                                  "Parallax",
                                                  "Auto"};
    if (llvm::is_contained(planned, name))
      return llvm::createStringError("strategy " + name + " is not supported yet; there are: " + names);
    return llvm::createStringError("no strategy is called '" + name + "', and no file; there are: " + names);
  }
  Arguments arguments;
  if (llvm::Error error = parseArguments(*builder, text, arguments))
    return error;
  llvm::Expected<Strategy> strategy = builder->build(facts, resources, arguments);
  if (strategy) {
    strategy->set_builder(spec.str());
    strategy->set_id(spec.str());
  }
  return strategy;
}

} // namespace distc::strategies
