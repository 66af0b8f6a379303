//===- Parameters.h - What a builder can be asked for -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The text of a strategy's parameters is "key=value,key=value". A part between two commas that is a number alone
// continues the value before it, so that lists need no quotes: "aggregator=multi_krum:1,3,chunk_size=8".
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_PARAMETERS_H
#define DISTC_STRATEGIES_PARAMETERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace distc::strategies {

/// A parameter of a builder: made by one of the functions below.
struct Parameter {
  llvm::StringRef name;
  llvm::StringRef defaultValue;
  llvm::StringRef help;
  /// Says what is wrong with a value: "is not ...", or nothing.
  std::string (*check)(const Parameter &, llvm::StringRef value) = nullptr;
  int64_t minimum = 0;
  std::vector<llvm::StringRef> choices;

  /// A whole number from `minimum` on.
  static Parameter integer(llvm::StringRef name, llvm::StringRef defaultValue, llvm::StringRef help,
                           int64_t minimum = 0);
  /// A number of at least 0 and at most 1.
  static Parameter fraction(llvm::StringRef name, llvm::StringRef defaultValue, llvm::StringRef help);
  static Parameter choice(llvm::StringRef name, llvm::StringRef defaultValue, llvm::StringRef help,
                          std::vector<llvm::StringRef> choices);
  /// true or false.
  static Parameter flag(llvm::StringRef name, llvm::StringRef defaultValue, llvm::StringRef help);
  /// An aggregator (Aggregators.h).
  static Parameter aggregator(llvm::StringRef name, llvm::StringRef help);
};

/// The parameters' values, checked; every parameter of the builder has one.
class Arguments {
public:
  int64_t getInteger(llvm::StringRef name) const;
  double getFraction(llvm::StringRef name) const;
  bool getFlag(llvm::StringRef name) const { return get(name) == "true"; }
  llvm::StringRef get(llvm::StringRef name) const { return values.find(name)->second; }
  void set(llvm::StringRef name, llvm::StringRef value) { values[name] = value.str(); }

private:
  llvm::StringMap<std::string> values;
};

/// Reads "key=value,..." over the defaults of `parameters`. Errors begin with `what`, and name what is near, or list
/// what there is.
llvm::Expected<Arguments> parseArguments(llvm::StringRef what, llvm::ArrayRef<Parameter> parameters,
                                         llvm::StringRef text);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_PARAMETERS_H
