//===- Parameters.cpp - What a builder can be asked for --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Parameters.h"
#include "core/near_names.h"
#include "strategies/Aggregators.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace distc::strategies {

static std::string checkInteger(const Parameter &parameter, llvm::StringRef value) {
  // The schema's numbers have 32 bits.
  int32_t number;
  if (!value.getAsInteger(10, number) && number >= parameter.minimum)
    return "";
  return "is not a whole number of at least " + std::to_string(parameter.minimum);
}

static std::string checkFraction(const Parameter &, llvm::StringRef value) {
  double number;
  return !value.getAsDouble(number) && number >= 0 && number <= 1 ? "" : "is not a number between 0 and 1";
}

static std::string checkChoice(const Parameter &parameter, llvm::StringRef value) {
  return llvm::is_contained(parameter.choices, value) ? "" : "is not one of: " + llvm::join(parameter.choices, ", ");
}

static std::string checkAggregator(const Parameter &, llvm::StringRef value) {
  llvm::Expected<Aggregator> aggregator = parseAggregator(value);
  return aggregator ? "" : llvm::toString(aggregator.takeError());
}

Parameter Parameter::integer(llvm::StringRef name, llvm::StringRef defaultValue, llvm::StringRef help,
                             int64_t minimum) {
  return {name, defaultValue, help, checkInteger, minimum, {}};
}

Parameter Parameter::fraction(llvm::StringRef name, llvm::StringRef defaultValue, llvm::StringRef help) {
  return {name, defaultValue, help, checkFraction, 0, {}};
}

Parameter Parameter::choice(llvm::StringRef name, llvm::StringRef defaultValue, llvm::StringRef help,
                            std::vector<llvm::StringRef> choices) {
  return {name, defaultValue, help, checkChoice, 0, std::move(choices)};
}

Parameter Parameter::flag(llvm::StringRef name, llvm::StringRef defaultValue, llvm::StringRef help) {
  return choice(name, defaultValue, help, {"true", "false"});
}

Parameter Parameter::aggregator(llvm::StringRef name, llvm::StringRef help) {
  return {name, "auto", help, checkAggregator, 0, {}};
}

int64_t Arguments::getInteger(llvm::StringRef name) const {
  int64_t value = 0;
  get(name).getAsInteger(10, value);
  return value;
}

double Arguments::getFraction(llvm::StringRef name) const {
  double value = 0;
  get(name).getAsDouble(value);
  return value;
}

/// "a=1,b=2,3" as {"a=1", "b=2,3"}.
static llvm::SmallVector<std::string> splitPairs(llvm::StringRef text) {
  llvm::SmallVector<std::string> pairs;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    if (!pairs.empty() && llvm::all_of(part, llvm::isDigit))
      pairs.back() += "," + part.str();
    else
      pairs.push_back(part.str());
  }
  return pairs;
}

llvm::Expected<Arguments> parseArguments(llvm::StringRef what, llvm::ArrayRef<Parameter> parameters,
                                         llvm::StringRef text) {
  Arguments arguments;
  for (const Parameter &parameter : parameters)
    arguments.set(parameter.name, parameter.defaultValue);
  for (llvm::StringRef pair : splitPairs(text)) {
    auto [key, value] = pair.split('=');
    const Parameter *parameter = llvm::find_if(parameters, [key = key](const Parameter &p) { return p.name == key; });
    if (parameter == parameters.end() || !pair.contains('=')) {
      std::string message = (what + ": ").str();
      message += (pair.contains('=') ? "unknown parameter '" + key + "'" : "'" + pair + "' is not key=value").str();
      std::vector<std::string> names;
      for (const Parameter &known : parameters)
        names.push_back(known.name.str());
      std::string near = ::drt::didYouMean(key, names);
      if (!near.empty() && !llvm::is_contained(names, key))
        return llvm::createStringError(message + near);
      message += "; it has";
      for (const Parameter &known : parameters)
        message += ((&known == &parameters.front() ? " " : ", ") + known.name + "=" + known.defaultValue + " (" +
                    known.help + ")")
                       .str();
      return llvm::createStringError(message);
    }
    if (std::string wrong = parameter->check(*parameter, value); !wrong.empty())
      return llvm::createStringError(what + ": " + key + "=" + value + " " + wrong);
    arguments.set(key, value);
  }
  return arguments;
}

} // namespace distc::strategies
