//===- routines.cpp - drt.h's routines on whole tensors: sorting, candidates, assertions ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"
#include "random/philox.h"
#include "routines/log_gamma.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <vector>

using namespace drt;

namespace {

void store(void *numbers, int64_t dtype, int64_t i, int64_t value) {
  if (dtype == DRT_I64)
    static_cast<int64_t *>(numbers)[i] = value;
  else
    static_cast<int32_t *>(numbers)[i] = static_cast<int32_t>(value);
}

// ---- Sorting --------------------------------------------------------------------------------

template <typename T> bool isNan(T x) { return x != x; }

template <typename T> void topK(const int64_t *p, const void *input, void *values, void *indices) {
  const int64_t rows = p[1], columns = p[2], k = p[3];
  std::vector<int32_t> order(columns);
  for (int64_t row = 0; row < rows; ++row) {
    const T *x = static_cast<const T *>(input) + row * columns;
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](int32_t a, int32_t b) {
      if (isNan(x[a]) || isNan(x[b]))
        return isNan(x[a]) == isNan(x[b]) ? a < b : isNan(x[b]);
      return x[a] != x[b] ? x[a] > x[b] : a < b;
    };
    std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
    for (int64_t i = 0; i < k; ++i) {
      static_cast<T *>(values)[row * k + i] = x[order[i]];
      store(indices, p[4], row * k + i, order[i]);
    }
  }
}

// ---- Candidate sampling -----------------------------------------------------------------------

/// Numbers that follow from one seed.
class Stream {
public:
  explicit Stream(uint64_t seed) : philox(seed, 0) {}
  uint64_t next() {
    if (at == 4) {
      words = philox.next();
      at = 0;
    }
    const uint64_t high = words[at], low = words[at + 1];
    at += 2;
    return high << 32 | low;
  }
  /// From [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  Philox philox;
  Philox::Words words{};
  int at = 4;
};

/// TensorFlow's SimplePhilox (core/lib/random/simple_philox.h): the generator's words one by one.
class Words {
public:
  /// `state`: DRT_RANDOM_STATE.
  explicit Words(const uint32_t *state) : philox(join(state + 4), join(state), join(state + 2)) {}
  uint32_t next32() {
    if (at == 4) {
      words = philox.next();
      at = 0;
    }
    return words[at++];
  }
  uint64_t next64() {
    const uint64_t low = next32();
    return low | static_cast<uint64_t>(next32()) << 32;
  }
  float nextFloat() { return std::bit_cast<float>((next32() & 0x7fffffu) | 0x3f800000u) - 1.0f; }
  double nextDouble() {
    const uint64_t high = next32() & 0xfffffu;
    return std::bit_cast<double>(high << 32 | next32() | uint64_t{1023} << 52) - 1.0;
  }
  /// Below n; what would favour small numbers is drawn again.
  template <typename Word> Word below(Word n) {
    const auto draw = [&] { return sizeof(Word) == 8 ? static_cast<Word>(next64()) : static_cast<Word>(next32()); };
    if ((n & (n - 1)) == 0)
      return draw() & (n - 1);
    const Word rest = static_cast<Word>(std::numeric_limits<Word>::max() % n + 1);
    Word word = draw();
    while (word < rest)
      word = draw();
    return word % n;
  }

private:
  static uint64_t join(const uint32_t *words) { return words[0] | static_cast<uint64_t>(words[1]) << 32; }

  Philox philox;
  Philox::Words words{};
  int at = 4;
};

/// A distribution over classes [0, range), as core/kernels/range_sampler.h has it: its numbers, in its precision.
class Sampler {
public:
  virtual ~Sampler() = default;
  virtual int64_t draw(Words &words) const = 0;
  virtual float probability(int64_t value) const = 0;
};

class UniformSampler : public Sampler {
public:
  explicit UniformSampler(int64_t range) : range(static_cast<uint64_t>(range)) {}
  int64_t draw(Words &words) const override { return static_cast<int64_t>(words.below(range)); }
  float probability(int64_t) const override { return static_cast<float>(1.0 / static_cast<double>(range)); }

private:
  uint64_t range;
};

class LogUniformSampler : public Sampler {
public:
  explicit LogUniformSampler(int64_t range) : range(range), logRange(std::log1p(static_cast<double>(range))) {}
  int64_t draw(Words &words) const override {
    return (static_cast<int64_t>(std::exp(words.nextDouble() * logRange)) - 1) % range;
  }
  float probability(int64_t value) const override {
    const double x = static_cast<double>(value);
    return static_cast<float>(std::log((x + 2.0) / (x + 1.0)) / logRange);
  }

private:
  int64_t range;
  double logRange;
};

/// By weights: Walker's alias method, whose tables are those of TensorFlow's core/lib/random/distribution_sampler.cc.
class WeightedSampler : public Sampler {
public:
  WeightedSampler(const float *weights, int64_t range)
      : weights(weights), entries(static_cast<size_t>(range)), total(std::accumulate(weights, weights + range, 0.0f)) {
    const double sum = std::accumulate(weights, weights + range, 0.0);
    std::vector<double> share(entries.size());
    std::vector<int32_t> high, low;
    for (size_t i = 0; i < entries.size(); ++i) {
      share[i] = weights[i] * static_cast<float>(range) / sum;
      (share[i] < 1 ? low : high).push_back(static_cast<int32_t>(i));
    }
    while (!high.empty() && !low.empty()) {
      const int32_t less = low.back(), more = high.back();
      low.pop_back();
      high.pop_back();
      entries[less].other = more;
      share[more] -= 1 - share[less];
      (share[more] < 1 ? low : high).push_back(more);
    }
    for (size_t i = 0; i < entries.size(); ++i)
      entries[i].share = static_cast<float>(share[i]);
    // What rounding leaves over.
    for (const std::vector<int32_t> &rest : {high, low})
      for (int32_t i : rest)
        entries[i] = {1, i};
  }
  int64_t draw(Words &words) const override {
    const float number = words.nextFloat();
    const uint32_t at = words.below(static_cast<uint32_t>(entries.size()));
    return number < entries[at].share ? static_cast<int64_t>(at) : entries[at].other;
  }
  float probability(int64_t value) const override {
    return value < 0 || value >= static_cast<int64_t>(entries.size()) ? 0 : weights[value] / total;
  }

private:
  /// A class is itself with this share, else the other one.
  struct Entry {
    float share = 1;
    int32_t other = 0;
  };
  const float *weights;
  std::vector<Entry> entries;
  float total;
};

std::unique_ptr<Sampler> makeSampler(int64_t distribution, int64_t range, const void *weights) {
  if (distribution == 2)
    return std::make_unique<WeightedSampler>(static_cast<const float *>(weights), range);
  if (distribution == 0)
    return std::make_unique<UniformSampler>(range);
  return std::make_unique<LogUniformSampler>(range);
}

// ---- Assertions ----------------------------------------------------------------------------------

/// Element i, as text.
void print(char (&text)[40], int32_t dtype, const void *x, int64_t i) {
  switch (dtype) {
  case DRT_F32:
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(static_cast<const float *>(x)[i]));
    return;
  case DRT_F64:
    std::snprintf(text, sizeof text, "%.17g", static_cast<const double *>(x)[i]);
    return;
  case DRT_I64:
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(static_cast<const int64_t *>(x)[i]));
    return;
  case DRT_I32:
    std::snprintf(text, sizeof text, "%d", static_cast<const int32_t *>(x)[i]);
    return;
  case DRT_BOOL:
    std::snprintf(text, sizeof text, "%d", static_cast<const uint8_t *>(x)[i]);
    return;
  default:
    std::snprintf(text, sizeof text, "?");
  }
}

// A function of its own, so that nothing is left to destroy when the replica escapes.
void describe(char (&text)[1024], int64_t summarize, const int64_t *types, void *const *tensors, const char *message) {
  size_t length = 0;
  const auto put = [&](const char *part, size_t size) {
    size = std::min(size, sizeof text - 1 - length);
    std::memcpy(text + length, part, size);
    length += size;
  };
  int64_t next = 0;
  for (; *message; ++message) {
    if (*message != '\1') {
      put(message, 1);
      continue;
    }
    const int64_t count = types[2 * next + 1], shown = summarize < 0 ? count : std::min(count, summarize);
    for (int64_t i = 0; i < shown; ++i) {
      char number[40];
      print(number, static_cast<int32_t>(types[2 * next]), tensors[next], i);
      if (i)
        put(" ", 1);
      put(number, std::strlen(number));
    }
    if (shown < count)
      put("...", 3);
    ++next;
  }
  text[length] = 0;
}

} // namespace

void drt_routine_top_k(drt_replica *, const int64_t *p, void *const *tensors) {
  switch (p[0]) {
  case DRT_F32:
    return topK<float>(p, tensors[0], tensors[1], tensors[2]);
  case DRT_F64:
    return topK<double>(p, tensors[0], tensors[1], tensors[2]);
  case DRT_I32:
    return topK<int32_t>(p, tensors[0], tensors[1], tensors[2]);
  default:
    return topK<int64_t>(p, tensors[0], tensors[1], tensors[2]);
  }
}

void drt_routine_sample_candidates(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t trueClasses = p[1], count = p[2];
  const bool isWeighted = p[0] == 2;
  const std::unique_ptr<Sampler> sampler = makeSampler(p[0], p[3], isWeighted ? tensors[2] : nullptr);
  void *const *results = tensors + (isWeighted ? 3 : 2);
  Words words(static_cast<const uint32_t *>(tensors[0]));
  const int64_t *classes = static_cast<const int64_t *>(tensors[1]);
  int64_t *sampled = static_cast<int64_t *>(results[0]);
  int64_t tries = count;
  if (p[4] == 0) {
    for (int64_t i = 0; i < count; ++i)
      sampled[i] = sampler->draw(words);
  } else {
    std::unordered_set<int64_t> taken;
    tries = 0;
    for (int64_t i = 0; i < count; ++tries)
      if (const int64_t value = sampler->draw(words); taken.insert(value).second)
        sampled[i++] = value;
  }
  // Of distinct ones: how probable it is to be among so many tries.
  const auto expected = [&](int64_t value) {
    const float p = sampler->probability(value);
    return tries == count ? p * static_cast<float>(count) : -std::expm1(static_cast<float>(tries) * std::log1p(-p));
  };
  for (int64_t i = 0; i < trueClasses; ++i)
    static_cast<float *>(results[1])[i] = expected(classes[i]);
  for (int64_t i = 0; i < count; ++i)
    static_cast<float *>(results[2])[i] = expected(sampled[i]);
}

void drt_routine_random_permutation(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t count = p[0];
  Words words(static_cast<const uint32_t *>(tensors[0]));
  int32_t *order = static_cast<int32_t *>(tensors[1]);
  std::iota(order, order + count, 0);
  for (int64_t i = 0; i + 1 < count; ++i)
    std::swap(order[i], order[i + words.next32() % static_cast<uint32_t>(count - i)]);
}

void drt_routine_shuffled_rows(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t count = p[0];
  const uint32_t *words = static_cast<const uint32_t *>(tensors[0]);
  int32_t *order = static_cast<int32_t *>(tensors[1]);
  std::iota(order, order + count, 0);
  for (int64_t i = 0; i + 1 < count; ++i)
    std::swap(order[i], order[i + words[i] % static_cast<uint32_t>(count - i)]);
}

void drt_routine_fractional_sequences(drt_replica *, const int64_t *p, void *const *tensors) {
  Philox philox({static_cast<const uint32_t *>(tensors[0])[0], static_cast<const uint32_t *>(tensors[0])[1],
                 static_cast<const uint32_t *>(tensors[0])[2], static_cast<const uint32_t *>(tensors[0])[3],
                 static_cast<const uint32_t *>(tensors[0])[4], static_cast<const uint32_t *>(tensors[0])[5]});
  for (int axis : {0, 1}) {
    if (axis == 1)
      philox.skip(static_cast<uint64_t>(p[5]));
    const auto state = philox.state();
    Words words(state.data());
    const int64_t size = p[axis], windows = p[2 + axis], least = size / windows;
    int64_t *begins = static_cast<int64_t *>(tensors[1 + axis]);
    if (p[4]) {
      const double ratio = static_cast<double>(size) / static_cast<double>(windows);
      const double most = std::min(static_cast<double>(least + 2) / ratio - 1,
                                   static_cast<double>(size + 1 - least) / ratio - static_cast<double>(windows - 1));
      const double u = words.nextDouble() * most;
      begins[0] = 0;
      for (int64_t i = 1; i < windows; ++i)
        begins[i] = static_cast<int64_t>(std::ceil(ratio * (static_cast<double>(i) + u))) - 1;
      begins[windows] = size;
      continue;
    }
    std::vector<int64_t> sizes(static_cast<size_t>(windows), least);
    std::fill_n(sizes.begin(), size % windows, least + 1);
    for (int64_t i = 0; i + 1 < windows; ++i)
      std::swap(sizes[i], sizes[i + words.next32() % static_cast<uint32_t>(windows - i)]);
    begins[0] = 0;
    std::partial_sum(sizes.begin(), sizes.end(), begins + 1);
  }
}

void drt_routine_accidental_hits(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t rows = p[0], perRow = p[1], count = p[2], most = p[3];
  const int64_t *classes = static_cast<const int64_t *>(tensors[0]),
                *sampled = static_cast<const int64_t *>(tensors[1]);
  int32_t *hitRows = static_cast<int32_t *>(tensors[2]);
  int64_t *positions = static_cast<int64_t *>(tensors[3]);
  float *weights = static_cast<float *>(tensors[4]);
  std::unordered_multimap<int64_t, int64_t> where;
  for (int64_t i = count - 1; i >= 0; --i)
    where.emplace(sampled[i], i);
  int64_t hits = 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < perRow; ++i) {
      const auto [first, last] = where.equal_range(classes[row * perRow + i]);
      for (auto it = first; it != last && hits < most; ++it, ++hits) {
        hitRows[hits] = static_cast<int32_t>(row);
        positions[hits] = it->second;
        weights[hits] = -FLT_MAX;
      }
    }
  for (; hits < most; ++hits) {
    hitRows[hits] = -1;
    positions[hits] = -1;
    weights[hits] = 0;
  }
}

void drt_routine_assert(drt_replica *replica, const int64_t *p, void *const *tensors) {
  const bool prints = p[1] != 0;
  if ((*static_cast<const uint8_t *>(tensors[0]) != 0) != prints)
    return;
  char text[1024];
  describe(text, p[0], p + 3, tensors + 1, static_cast<const char *>(tensors[1 + p[2]]));
  if (!prints)
    drt_fail(replica, text);
  else
    std::fprintf(stderr, "%s\n", text);
}

// ---- Distributions that take several numbers a draw ------------------------------------------------------

namespace {

Stream streamOf(double u) {
  uint64_t bits;
  std::memcpy(&bits, &u, sizeof bits);
  return Stream(bits);
}

double normal(Stream &stream) {
  const double radius = std::sqrt(-2 * std::log1p(-stream.uniform()));
  return radius * std::cos(2 * M_PI * stream.uniform());
}

} // namespace

double drt_special_draw_gamma(double alpha, double u) {
  if (!(alpha > 0))
    return std::nan("");
  Stream stream = streamOf(u);
  // Below 1: that of alpha + 1, times a power of a uniform number.
  const double boost = alpha < 1 ? std::pow(1 - stream.uniform(), 1 / alpha) : 1;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(stream), root = 1 + c * x, v = root * root * root;
    if (root > 0 && std::log1p(-stream.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
      return boost * d * v;
  }
}

double drt_special_draw_poisson(double rate, double u) {
  if (!(rate >= 0) || std::isinf(rate))
    return std::nan("");
  Stream stream = streamOf(u);
  if (rate < 10) {
    // Knuth's: how many exponential waits fit.
    double product = 1 - stream.uniform(), limit = std::exp(-rate), count = 0;
    for (; product > limit; ++count)
      product *= 1 - stream.uniform();
    return count;
  }
  // Transformed rejection: Hörmann, The transformed rejection method for generating Poisson random variables, 1993.
  const double log = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverseAlpha = 1.1239 + 1.1328 / (b - 3.4), limit = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double centered = stream.uniform() - 0.5, v = 1 - stream.uniform();
    const double us = 0.5 - std::abs(centered), k = std::floor((2 * a / us + b) * centered + rate + 0.43);
    if (us >= 0.07 && v <= limit)
      return k;
    if (k < 0 || (us < 0.013 && v > us))
      continue;
    if (std::log(v * inverseAlpha / (a / (us * us) + b)) <= -rate + k * log - logGamma(k + 1))
      return k;
  }
}

double drt_special_draw_binomial(double count, double probability, double u) {
  if (!(count >= 0) || std::isinf(count) || !(probability >= 0) || !(probability <= 1))
    return std::nan("");
  count = std::floor(count);
  // Of the rarer of both ends.
  const bool isMirrored = probability > 0.5;
  const double p = isMirrored ? 1 - probability : probability;
  const auto give = [&](double successes) { return isMirrored ? count - successes : successes; };
  if (p == 0 || count == 0)
    return give(0);
  Stream stream = streamOf(u);
  if (count * p < 10) {
    // How many waits for a success fit.
    const double scale = std::log1p(-p);
    double sum = 0, successes = -1;
    do {
      sum += std::floor(std::log1p(-stream.uniform()) / scale) + 1;
      ++successes;
    } while (sum <= count);
    return give(successes);
  }
  // Transformed rejection: Hörmann, The generation of binomial random variates, 1993 (BTRS).
  const double spread = std::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5, alpha = (2.83 + 5.1 / b) * spread, limit = 0.92 - 4.2 / b;
  const double odds = std::log(p / (1 - p)), mode = std::floor((count + 1) * p);
  const double atMode = logGamma(mode + 1) + logGamma(count - mode + 1);
  for (;;) {
    const double centered = stream.uniform() - 0.5, v = 1 - stream.uniform();
    const double us = 0.5 - std::abs(centered), k = std::floor((2 * a / us + b) * centered + c);
    if (us >= 0.07 && v <= limit)
      return give(k);
    if (!(k >= 0) || k > count)
      continue;
    if (std::log(v * alpha / (a / (us * us) + b)) <=
        atMode - logGamma(k + 1) - logGamma(count - k + 1) + (k - mode) * odds)
      return give(k);
  }
}
