//===- Aggregators.cpp - How the replicas' gradients become one ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Bounds on f and m: trimmed mean from Yin et al. (ICML 2018), Krum and Multi-Krum from Blanchard et al. (NIPS 2017).
//
//===----------------------------------------------------------------------===//

#include "strategies/Aggregators.h"
#include "llvm/ADT/STLExtras.h"

namespace distc::strategies {
namespace {

struct AggregatorName {
  llvm::StringRef name;
  Aggregator::Kind kind;
  int numbers; // that follow the name: f, m
};

constexpr AggregatorName kAggregators[] = {{"auto", Aggregator::AUTO, 0},
                                           {"mean", Aggregator::MEAN, 0},
                                           {"sum", Aggregator::SUM, 0},
                                           {"median", Aggregator::MEDIAN, 0},
                                           {"trimmed_mean", Aggregator::TRIMMED_MEAN, 1},
                                           {"krum", Aggregator::KRUM, 1},
                                           {"multi_krum", Aggregator::MULTI_KRUM, 2},
                                           {"geometric_median", Aggregator::GEOMETRIC_MEDIAN, 0}};

const AggregatorName *findName(Aggregator::Kind kind) {
  const AggregatorName *found =
      llvm::find_if(kAggregators, [&](const AggregatorName &entry) { return entry.kind == kind; });
  return found == std::end(kAggregators) ? nullptr : found;
}

} // namespace

llvm::Expected<Aggregator> parseAggregator(llvm::StringRef text) {
  static constexpr const char *wrong = "is not one of: auto, mean, sum, median, trimmed_mean:f, krum:f, "
                                       "multi_krum:f,m, geometric_median (f and m are whole numbers)";
  auto [name, numbers] = text.split(':');
  const AggregatorName *entry =
      llvm::find_if(kAggregators, [name = name](const AggregatorName &known) { return known.name == name; });
  if (entry == std::end(kAggregators) || text.contains(':') != (entry->numbers > 0))
    return llvm::createStringError(wrong);
  Aggregator aggregator;
  aggregator.set_kind(entry->kind);
  auto [first, second] = numbers.split(',');
  int32_t f = 0, m = 0;
  if ((entry->numbers > 0 && (first.getAsInteger(10, f) || f < 0)) ||
      (entry->numbers > 1 && (second.getAsInteger(10, m) || m < 0)) || (entry->numbers == 1 && numbers.contains(',')))
    return llvm::createStringError(wrong);
  aggregator.set_f(f);
  aggregator.set_m(m);
  return aggregator;
}

std::string printAggregator(const Aggregator &aggregator) {
  const AggregatorName *entry = findName(aggregator.kind());
  if (!entry)
    return std::to_string(aggregator.kind());
  std::string text = entry->name.str();
  if (entry->numbers > 0)
    text += ":" + std::to_string(aggregator.f());
  if (entry->numbers > 1)
    text += "," + std::to_string(aggregator.m());
  return text;
}

bool isRobust(const Aggregator &aggregator) {
  return aggregator.kind() != Aggregator::AUTO && aggregator.kind() != Aggregator::MEAN &&
         aggregator.kind() != Aggregator::SUM;
}

std::string checkAggregator(const Aggregator &aggregator, int gradients) {
  const AggregatorName *entry = findName(aggregator.kind());
  if (!entry)
    return "is of no kind that there is";
  int64_t f = aggregator.f(), m = aggregator.m(), n = gradients;
  std::string of = ", but there are " + std::to_string(n) + " gradients";
  if (f < 0 || m < 0)
    return "needs f and m of at least 0";
  if ((entry->numbers < 1 && f) || (entry->numbers < 2 && m))
    return "has an f or m, which it does not use";
  switch (aggregator.kind()) {
  case Aggregator::TRIMMED_MEAN:
    return 2 * f < n ? "" : "needs more than 2f = " + std::to_string(2 * f) + " gradients" + of;
  case Aggregator::MULTI_KRUM:
    if (n >= 2 * f + 3 && (m < 1 || m > n - f - 2))
      return "needs m from 1 to n - f - 2 = " + std::to_string(n - f - 2);
    [[fallthrough]];
  case Aggregator::KRUM:
    return n >= 2 * f + 3 ? "" : "needs at least 2f + 3 = " + std::to_string(2 * f + 3) + " gradients" + of;
  default:
    return "";
  }
}

} // namespace distc::strategies
