//===- ctc_loss.cpp - drt.h's routine for connectionist temporal classification ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A. Graves, S. Fernández, F. Gomez, J. Schmidhuber: Connectionist temporal
// classification: labelling unsegmented sequence data with recurrent neural
// networks. ICML 2006, section 4: forward and backward variables, here as
// logarithms in float64. What is refused, and what counts as none, is as in
// TensorFlow's kernel.
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace drt;

namespace {

constexpr double kLogZero = -std::numeric_limits<double>::infinity();

double addLogs(double a, double b) {
  if (a < b)
    std::swap(a, b);
  return b == kLogZero ? a : a + std::log1p(std::exp(b - a));
}

/// What drt.h says of `p`.
struct Options {
  int64_t dtype, examples, steps, classes, columns;
  bool collapseRepeated, mergeRepeated, ignoreLonger;

  explicit Options(const int64_t *p)
      : dtype(p[0]), examples(p[1]), steps(p[2]), classes(p[3]), columns(p[4]), collapseRepeated(p[5] != 0),
        mergeRepeated(p[6] != 0), ignoreLonger(p[7] != 0) {}
  int32_t blank() const { return static_cast<int32_t>(classes - 1); }
};

/// The labels of one example: of the first `count` those that are no blank. Nothing may follow a blank.
std::vector<int32_t> readLabels(const Options &options, const int32_t *row, int64_t count, int64_t example) {
  std::vector<int32_t> labels;
  bool ended = false;
  for (int64_t i = 0; i < count; ++i) {
    if (options.collapseRepeated && i > 0 && row[i] == row[i - 1])
      continue;
    if (row[i] >= options.blank())
      ended = true;
    else if (ended)
      throw std::runtime_error("a label of a CTC loss follows one that is no class but the blank or above (" +
                               std::to_string(options.blank()) + "), in example " + std::to_string(example));
    else
      labels.push_back(row[i]);
  }
  return labels;
}

/// One example: `steps` of it, row-major [step, class].
template <typename T> class Example {
public:
  Example(const Options &options, const std::vector<int32_t> &labels, int64_t steps, const T *inputs)
      : options(options), steps(steps), width(2 * static_cast<int64_t>(labels.size()) + 1),
        path(width, options.blank()), logs(steps * options.classes) {
    for (size_t i = 0; i < labels.size(); ++i)
      path[2 * i + 1] = labels[i];
    for (int64_t t = 0; t < steps; ++t) {
      const T *x = inputs + t * options.classes;
      const double largest = *std::max_element(x, x + options.classes);
      double sum = 0;
      for (int64_t c = 0; c < options.classes; ++c)
        sum += std::exp(x[c] - largest);
      for (int64_t c = 0; c < options.classes; ++c)
        logs[t * options.classes + c] = x[c] - largest - std::log(sum);
    }
  }

  /// The loss; writes its gradient with respect to the inputs.
  double differentiate(T *gradient) const {
    const std::vector<double> forward = walk(/*ahead=*/true), backward = walk(/*ahead=*/false);
    double likelihood = kLogZero;
    for (int64_t u = 0; u < width; ++u)
      likelihood = addLogs(likelihood, forward[u] + backward[u]);
    std::vector<double> on(options.classes);
    for (int64_t t = 0; t < steps; ++t) {
      std::fill(on.begin(), on.end(), kLogZero);
      for (int64_t u = 0; u < width; ++u)
        on[path[u]] = addLogs(on[path[u]], forward[t * width + u] + backward[t * width + u]);
      for (int64_t c = 0; c < options.classes; ++c) {
        const double expected = likelihood == kLogZero ? 0 : std::exp(on[c] - likelihood);
        gradient[t * options.classes + c] = static_cast<T>(std::exp(at(t, c)) - expected);
      }
    }
    return -likelihood;
  }

private:
  double at(int64_t step, int64_t label) const { return logs[step * options.classes + label]; }

  /// Whether a path may go from place `from` to place `to`.
  bool mayFollow(int64_t from, int64_t to) const {
    if (from == to)
      return options.mergeRepeated || path[to] == options.blank();
    if (to - from == 1)
      return true;
    // Past a blank: not between equal labels, which would be one.
    return path[from] != options.blank() && !(options.mergeRepeated && path[from] == path[to]);
  }

  /// Forward variables (with the step's own probability), or backward ones (without): [step, place on the path].
  std::vector<double> walk(bool ahead) const {
    std::vector<double> sums(steps * width, kLogZero);
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = ahead ? i : steps - 1 - i, last = ahead ? t - 1 : t + 1;
      for (int64_t u = 0; u < width; ++u) {
        double sum = kLogZero;
        if (i == 0)
          sum = (ahead ? u < 2 : u >= width - 2) ? 0 : kLogZero;
        else
          for (int64_t distance = 0; distance <= 2; ++distance) {
            const int64_t other = ahead ? u - distance : u + distance;
            if (other < 0 || other >= width || !(ahead ? mayFollow(other, u) : mayFollow(u, other)))
              continue;
            sum = addLogs(sum, sums[last * width + other] + (ahead ? 0 : at(last, path[other])));
          }
        sums[t * width + u] = sum + (ahead ? at(t, path[u]) : 0);
      }
    }
    return sums;
  }

  const Options &options;
  int64_t steps, width;
  std::vector<int32_t> path; // labels between blanks
  std::vector<double> logs;  // of probabilities
};

template <typename T> void differentiate(const Options &options, void *const *tensors) {
  const auto *inputs = static_cast<const T *>(tensors[0]);
  const auto *labels = static_cast<const int32_t *>(tensors[1]), *lengths = static_cast<const int32_t *>(tensors[2]);
  auto *losses = static_cast<T *>(tensors[3]), *gradients = static_cast<T *>(tensors[4]);
  const int64_t size = options.steps * options.classes;
  std::fill_n(losses, options.examples, T(0));
  std::fill_n(gradients, options.examples * size, T(0));
  for (int64_t b = 0; b < options.examples; ++b) {
    const int64_t steps = lengths[b];
    if (steps < 0 || steps > options.steps)
      throw std::runtime_error("a sequence of a CTC loss has " + std::to_string(steps) + " of " +
                               std::to_string(options.steps) + " steps, in example " + std::to_string(b));
    const int32_t *row = labels + b * options.columns;
    const int64_t count = std::find_if(row, row + options.columns, [](int32_t label) { return label < 0; }) - row;
    const std::vector<int32_t> own = readLabels(options, row, count, b);
    if (own.empty())
      throw std::runtime_error("an example of a CTC loss has no label: example " + std::to_string(b));
    // All that are given count, repeated ones and blanks as well.
    if (count > steps) {
      if (options.ignoreLonger)
        continue;
      throw std::runtime_error("a sequence of a CTC loss has " + std::to_string(steps) + " steps for " +
                               std::to_string(count) + " labels or more, in example " + std::to_string(b));
    }
    losses[b] = static_cast<T>(Example<T>(options, own, steps, inputs + b * size).differentiate(gradients + b * size));
  }
}

} // namespace

void drt_routine_ctc_loss(drt_replica *replica, const int64_t *p, void *const *tensors) {
  try {
    const Options options(p);
    options.dtype == DRT_F64 ? differentiate<double>(options, tensors) : differentiate<float>(options, tensors);
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}
