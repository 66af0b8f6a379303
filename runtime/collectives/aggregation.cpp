//===- aggregation.cpp - Rules that outvote wrong gradients ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/aggregation.h"
#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace drt {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Elements whose distances are summed by one thread: sums do not depend on how many there are.
constexpr int64_t chunkElements = 8192;

template <class T> const T *partOf(Contributions c, int32_t part) {
  return reinterpret_cast<const T *>(c.first + part * c.stride);
}

// Calls fn with a T of the bucket's element type.
template <class Fn> void withType(int32_t dtype, Fn fn) {
  if (dtype == DRT_F32)
    fn(float());
  else
    fn(double());
}

// One element of all gradients after the other, sorted. Insertion: there are few.
template <class T, class Choose> void sorted(T *out, Contributions c, int64_t count, Choose choose) {
  constexpr int32_t most = 64;
  T few[most];
  std::vector<T> many(c.parts > most ? c.parts : 0);
  T *values = c.parts > most ? many.data() : few;
  for (int64_t i = 0; i < count; ++i) {
    for (int32_t part = 0; part < c.parts; ++part) {
      const T value = partOf<T>(c, part)[i];
      int32_t at = part;
      // Not a number is not less than anything, so it stays behind all numbers.
      for (; at > 0 && (value < values[at - 1] || (values[at - 1] != values[at - 1] && value == value)); --at)
        values[at] = values[at - 1];
      values[at] = value;
    }
    out[i] = choose(values);
  }
}

template <class T> void median(T *out, Contributions c, int64_t count, T factor) {
  const int32_t middle = c.parts / 2;
  if (c.parts % 2)
    sorted(out, c, count, [=](const T *v) { return v[middle] * factor; });
  else
    sorted(out, c, count, [=](const T *v) { return (v[middle - 1] / 2 + v[middle] / 2) * factor; });
}

template <class T> void trimmedMean(T *out, Contributions c, int64_t count, int32_t f, T factor) {
  const T scale = factor / static_cast<T>(c.parts - 2 * f);
  sorted(out, c, count, [=](const T *v) { return std::accumulate(v + f, v + c.parts - f, T(0)) * scale; });
}

template <class T>
void weighted(T *out, Contributions c, int64_t count, const std::vector<double> &weights, double factor) {
  constexpr int64_t tile = 512; // out may be the first gradient
  T sum[tile];
  for (int64_t at = 0; at < count; at += tile) {
    const int64_t n = std::min(tile, count - at);
    std::fill_n(sum, n, T(0));
    for (int32_t part = 0; part < c.parts; ++part) {
      const T weight = static_cast<T>(weights[part] * factor);
      if (weight == 0) // it may not be finite
        continue;
      const T *values = partOf<T>(c, part) + at;
      for (int64_t i = 0; i < n; ++i)
        sum[i] += weight * values[i];
    }
    std::copy_n(sum, n, out + at);
  }
}

template <class T> double squaredDistance(const T *a, const T *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return sum;
}

template <class T> double product(const T *a, const T *b, const T *origin, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += (static_cast<double>(a[i]) - static_cast<double>(origin[i])) *
           (static_cast<double>(b[i]) - static_cast<double>(origin[i]));
  return sum;
}

template <class T> double squaredNorm(const T *a, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  return sum;
}

} // namespace

std::unique_ptr<Aggregation> Aggregation::make(const drt_bucket &bucket, int32_t parts, int32_t localReplicas) {
  const drt_exchange &rule = *bucket.exchange;
  if (rule.aggregator == DRT_AGGREGATE_NONE)
    return nullptr;
  if (bucket.dtype != DRT_F32 && bucket.dtype != DRT_F64)
    throw Error(
        "gradients of this type are aggregated in float32, which the compiler has not written: an internal error", 70);
  const bool isKrum = rule.aggregator == DRT_AGGREGATE_KRUM || rule.aggregator == DRT_AGGREGATE_MULTI_KRUM;
  const int32_t least = rule.aggregator == DRT_AGGREGATE_TRIMMED_MEAN ? 2 * rule.f + 1 : isKrum ? rule.f + 3 : 1;
  if (parts < least)
    throw Error(std::string(isKrum ? "Krum" : "a trimmed mean") + " with f = " + std::to_string(rule.f) + " needs " +
                std::to_string(least) + " replicas or more, and there are " + std::to_string(parts) +
                "; take a smaller f or more replicas");
  if (rule.m > parts)
    throw Error("multi-Krum with m = " + std::to_string(rule.m) + " needs as many replicas, and there are " +
                std::to_string(parts));
  return std::unique_ptr<Aggregation>(new Aggregation(bucket, parts, localReplicas));
}

Aggregation::Aggregation(const drt_bucket &bucket, int32_t parts, int32_t localReplicas)
    : bucket_(bucket), rule_(*bucket.exchange), parts_(parts), factor_(bucket.reduction == DRT_REDUCE_SUM ? parts : 1),
      own_(localReplicas) {
  if (!isWeighted())
    return;
  for (int32_t m = 0; m < bucket.num_members; ++m) {
    const int64_t end = bucket.members[m].offset + bucket.members[m].count;
    for (int64_t begin = bucket.members[m].offset; begin < end; begin += chunkElements)
      chunks_.push_back({begin, std::min(begin + chunkElements, end)});
  }
  sums_.resize(chunks_.size() * pairs());
  for (PerReplica &own : own_) {
    own.weights.resize(parts);
    own.matrix.resize(static_cast<size_t>(parts) * parts);
  }
}

bool Aggregation::isWeighted() const {
  return rule_.aggregator != DRT_AGGREGATE_MEDIAN && rule_.aggregator != DRT_AGGREGATE_TRIMMED_MEAN;
}

// The geometric median takes products around one of the gradients, which the distances choose.
int32_t Aggregation::passes() const {
  return !isWeighted() ? 0 : rule_.aggregator == DRT_AGGREGATE_GEOMETRIC_MEDIAN ? 2 : 1;
}

void Aggregation::measure(int32_t pass, int32_t localReplica, int32_t localReplicas, Contributions parts) {
  const int32_t anchor = own_[localReplica].anchor;
  const Range mine = rangeOf(static_cast<int64_t>(chunks_.size()), localReplicas, localReplica, 1);
  withType(bucket_.dtype, [&](auto type) {
    using T = decltype(type);
    for (int64_t chunk = mine.begin; chunk < mine.end; ++chunk) {
      const Range range = chunks_[chunk];
      double *sum = sums_.data() + chunk * pairs();
      for (int32_t i = 0; i < parts_; ++i)
        for (int32_t j = 0; j <= i; ++j) {
          const T *a = partOf<T>(parts, i) + range.begin, *b = partOf<T>(parts, j) + range.begin;
          // On the diagonal whether it is finite.
          *sum++ = pass == 1 ? product(a, b, partOf<T>(parts, anchor) + range.begin, range.size())
                   : i == j  ? squaredNorm(a, range.size())
                             : squaredDistance(a, b, range.size());
        }
    }
  });
}

void Aggregation::weigh(int32_t pass, int32_t localReplica) {
  PerReplica &own = own_[localReplica];
  std::vector<double> &matrix = own.matrix;
  size_t pair = 0;
  for (int32_t i = 0; i < parts_; ++i)
    for (int32_t j = 0; j <= i; ++j, ++pair) {
      double sum = 0;
      for (size_t chunk = 0; chunk < chunks_.size(); ++chunk)
        sum += sums_[chunk * pairs() + pair];
      matrix[i * parts_ + j] = matrix[j * parts_ + i] = std::isfinite(sum) ? sum : infinite;
    }
  if (pass == 1)
    weiszfeld(own);
  else if (rule_.aggregator == DRT_AGGREGATE_GEOMETRIC_MEDIAN)
    findAnchor(own);
  else
    krum(own);
}

void Aggregation::krum(PerReplica &own) const {
  std::vector<double> scores(parts_), distances;
  for (int32_t i = 0; i < parts_; ++i) {
    distances.clear();
    for (int32_t j = 0; j < parts_; ++j)
      if (j != i)
        distances.push_back(own.matrix[i * parts_ + j]);
    std::sort(distances.begin(), distances.end());
    scores[i] = std::accumulate(distances.begin(), distances.begin() + (parts_ - rule_.f - 2), 0.0);
  }
  std::vector<int32_t> best(parts_);
  std::iota(best.begin(), best.end(), 0);
  std::stable_sort(best.begin(), best.end(), [&](int32_t a, int32_t b) { return scores[a] < scores[b]; });
  const int32_t chosen = rule_.aggregator == DRT_AGGREGATE_KRUM ? 1 : rule_.m > 0 ? rule_.m : parts_ - rule_.f;
  std::fill(own.weights.begin(), own.weights.end(), 0);
  for (int32_t i = 0; i < chosen; ++i)
    own.weights[best[i]] = 1.0 / chosen;
}

// The gradient with the smallest sum of distances to the others is near to where the median is: products around it lose
// nothing to a gradient that is far away, and the iteration begins there.
void Aggregation::findAnchor(PerReplica &own) const {
  const auto isFinite = [&](int32_t i) { return std::isfinite(own.matrix[i * parts_ + i]); };
  double least = infinite;
  own.anchor = 0;
  for (int32_t i = 0; i < parts_; ++i) {
    double sum = 0;
    for (int32_t j = 0; j < parts_; ++j)
      if (j != i && isFinite(j))
        sum += std::sqrt(own.matrix[i * parts_ + j]);
    if (isFinite(i) && sum < least) {
      least = sum;
      own.anchor = i;
    }
  }
  double total = 0, most = 0;
  const double *squares = own.matrix.data() + own.anchor * parts_;
  for (int32_t i = 0; i < parts_; ++i)
    if (i != own.anchor && isFinite(i) && squares[i] > 0)
      most = std::max(most, 1 / std::sqrt(squares[i]));
  for (int32_t i = 0; i < parts_; ++i) {
    const bool isNear = i == own.anchor || squares[i] == 0;
    own.weights[i] = !isFinite(i) ? 0 : most == 0 ? 1 : isNear ? most : 1 / std::sqrt(squares[i]);
    total += own.weights[i];
  }
  for (double &weight : own.weights)
    weight = total > 0 ? weight / total : 1.0 / parts_;
}

// A point is the median where unit vectors from it to all others add up to less than the number of gradients that lie
// in it. No gradient but the anchor can be: the median's sum of distances is the smallest. The iteration would come to
// it at 1/n of the way after n steps (Vardi and Zhang, PNAS 2000).
bool Aggregation::isMedianAnchor(const PerReplica &own) const {
  // On a line of an even number both middle ones are, as is all between them, where the iteration goes to.
  constexpr double margin = 1e-9;
  const auto at = [&](int32_t i, int32_t j) { return own.matrix[i * parts_ + j]; };
  double square = 0, here = 0;
  for (int32_t i = 0; i < parts_; ++i) {
    if (own.weights[i] == 0)
      continue; // not finite
    here += at(i, i) == 0;
    for (int32_t j = 0; at(i, i) > 0 && j < parts_; ++j)
      if (own.weights[j] > 0 && at(j, j) > 0)
        square += at(i, j) / std::sqrt(at(i, i)) / std::sqrt(at(j, j));
  }
  return square < here * here * (1 - margin);
}

// The median is a weighted mean of the gradients, so its distance to each follows from their products:
// |x_i - sum_j w_j x_j|^2 = G_ii - 2 sum_j w_j G_ij + sum_jk w_j w_k G_jk.
void Aggregation::weiszfeld(PerReplica &own) const {
  // Near to one of the gradients each step is a small part of the way: some thousand. They cost parts^2 each.
  const int32_t iterations = std::clamp(int32_t{4'000'000} / (parts_ * parts_), 100, 10'000);
  // Where the median is one of the gradients, the others' weights go to nothing, and all distances with them.
  constexpr double smoothing = 1e-6, tolerance = 1e-9, least = 1e-300;
  std::vector<double> &w = own.weights;
  if (isMedianAnchor(own)) {
    for (int32_t i = 0; i < parts_; ++i)
      w[i] = i == own.anchor;
    return;
  }
  std::vector<double> next(parts_), products(parts_);
  for (int32_t iteration = 0; iteration < iterations; ++iteration) {
    double square = 0, scale = 0, total = 0, moved = 0;
    for (int32_t i = 0; i < parts_; ++i) {
      products[i] = 0;
      for (int32_t j = 0; w[i] > 0 && j < parts_; ++j)
        if (w[j] > 0)
          products[i] += w[j] * own.matrix[i * parts_ + j];
      square += w[i] > 0 ? w[i] * products[i] : 0;
    }
    for (int32_t i = 0; i < parts_; ++i)
      if (w[i] > 0) {
        next[i] = std::sqrt(std::max(0.0, own.matrix[i * parts_ + i] - 2 * products[i] + square));
        scale = std::max(scale, w[i] * next[i]);
      }
    if (scale == 0)
      return; // all are the same
    for (int32_t i = 0; i < parts_; ++i) {
      next[i] = w[i] > 0 ? 1 / std::max({next[i], smoothing * scale, least}) : 0; // scale: of a distance
      total += next[i];
    }
    for (int32_t i = 0; i < parts_; ++i) {
      next[i] /= total;
      moved = std::max(moved, std::abs(next[i] - w[i]) - tolerance * w[i]);
    }
    std::swap(w, next);
    if (moved <= 0)
      return;
  }
}

void Aggregation::combine(int32_t localReplica, void *out, Contributions parts, int64_t count) const {
  withType(bucket_.dtype, [&](auto type) {
    using T = decltype(type);
    T *to = static_cast<T *>(out);
    if (rule_.aggregator == DRT_AGGREGATE_MEDIAN)
      median(to, parts, count, static_cast<T>(factor_));
    else if (rule_.aggregator == DRT_AGGREGATE_TRIMMED_MEAN)
      trimmedMean(to, parts, count, rule_.f, static_cast<T>(factor_));
    else
      weighted(to, parts, count, own_[localReplica].weights, factor_);
  });
}

} // namespace drt
