//===- compare_run.cpp - A run's losses and variables against expected ones ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
//   compare_run EXPECT.npz LOG.jsonl FINAL.npz LOSS_RTOL VARIABLES_RTOL
//
// For machines without Python. EXPECT has the array `loss`, one element a step, and `var/NAME` for each variable; LOG
// is what --log-json wrote, FINAL what --export-npz wrote. A loss may be off by LOSS_RTOL of itself, the difference of
// a variable by VARIABLES_RTOL of the variable's norm. Prints what is off, then how far apart they are. Exit status: 0
// all agree, 1 not, 2 wrong usage or files.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "core/values.h"
#include "data/npz.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace drt;

namespace {

constexpr std::string_view variablePrefix = "var/";

std::vector<double> numbersOf(const NpyArray &array) {
  std::vector<double> numbers(array.bytes / dtypeSize(array.dtype));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = valueAt(array.dtype, array.data, static_cast<int64_t>(i));
  return numbers;
}

std::vector<double> lossesOf(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read " + path);
  std::vector<double> losses;
  for (std::string line; std::getline(file, line);)
    if (const nlohmann::json record = nlohmann::json::parse(line); record.contains("loss"))
      losses.push_back(record["loss"].is_null() ? NAN : record["loss"].get<double>());
  return losses;
}

class Comparison {
public:
  Comparison(double lossTolerance, double variableTolerance)
      : lossTolerance_(lossTolerance), variableTolerance_(variableTolerance) {}

  void losses(const std::vector<double> &got, const std::vector<double> &want) {
    if (got.size() != want.size())
      return wrong(std::to_string(got.size()) + " losses were logged, " + std::to_string(want.size()) +
                   " are expected");
    for (size_t i = 0; i < want.size(); ++i) {
      const double off = std::abs(got[i] - want[i]) / std::max(std::abs(want[i]), 1e-12);
      if (!(off <= lossTolerance_))
        wrong("the loss of step " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
              std::to_string(want[i]));
      worstLoss_ = std::max(worstLoss_, off);
    }
  }

  void variable(const std::string &name, const NpyArray &got, const NpyArray &want) {
    if (got.shape != want.shape)
      return wrong("variable " + name + " has another shape than expected");
    const std::vector<double> g = numbersOf(got), w = numbersOf(want);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      difference += (g[i] - w[i]) * (g[i] - w[i]);
      norm += w[i] * w[i];
    }
    const double off = std::sqrt(difference) / std::max(std::sqrt(norm), 1e-6);
    if (!(off <= variableTolerance_)) {
      char text[32];
      std::snprintf(text, sizeof text, "%.1e", off);
      wrong("variable " + name + " is off by " + text);
    }
    if (!(off <= worstVariable_)) {
      worstVariable_ = off;
      worstName_ = name;
    }
  }

  void wrong(const std::string &what) {
    ++wrong_;
    std::printf("%s\n", what.c_str());
  }

  int finish() const {
    std::printf("losses within %.1e, variables within %.1e %s\n", worstLoss_, worstVariable_, worstName_.c_str());
    return wrong_ ? 1 : 0;
  }

private:
  const double lossTolerance_, variableTolerance_;
  double worstLoss_ = 0, worstVariable_ = 0;
  std::string worstName_;
  int wrong_ = 0;
};

int compare(char **arguments) {
  const NpzReader expect(arguments[1]), final(arguments[3]);
  Comparison comparison(std::atof(arguments[4]), std::atof(arguments[5]));
  comparison.losses(lossesOf(arguments[2]), numbersOf(expect.read("loss")));
  for (const std::string &key : expect.names())
    if (key.starts_with(variablePrefix)) {
      const std::string name = key.substr(variablePrefix.size());
      if (final.has(name))
        comparison.variable(name, final.read(name), expect.read(key));
      else
        comparison.wrong("variable " + name + " is missing");
    }
  return comparison.finish();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s EXPECT.npz LOG.jsonl FINAL.npz LOSS_RTOL VARIABLES_RTOL\n", argv[0]);
    return 2;
  }
  try {
    return compare(argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
