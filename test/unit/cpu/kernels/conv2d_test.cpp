//===- conv2d_test.cpp - Convolutions against the definition -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/conv2d.h"
#include "cpu/kernels/filter_gradient.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace drt;

namespace {
/// The place of an element of a filter, or of its gradient, in the descriptor's layout: `tap` is one of (height, width,
/// input), `k` an output.
size_t placeInFilter(const drt_conv2d_desc &d, int64_t tap, int64_t k) {
  int64_t inputs = d.c / d.groups, window = d.kh * d.kw;
  switch (d.filter_layout) {
  case DRT_FILTER_OHWI:
    return static_cast<size_t>(k * window * inputs + tap);
  case DRT_FILTER_OIHW:
    return static_cast<size_t>((k * inputs + tap % inputs) * window + tap / inputs);
  default:
    return static_cast<size_t>(tap * d.k + k);
  }
}

struct Reference {
  std::vector<double> output, inputGrad, filterGrad;

  template <class T>
  Reference(const drt_conv2d_desc &d, const std::vector<T> &input, const std::vector<T> &filter,
            const std::vector<T> &outputGrad)
      : output(outputGrad.size()), inputGrad(input.size()), filterGrad(filter.size()) {
    int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
    for (int64_t at = 0; at < d.n * d.oh * d.ow * d.k; ++at) {
      int64_t k = at % d.k, ox = at / d.k % d.ow, oy = at / d.k / d.ow % d.oh, n = at / d.k / d.ow / d.oh;
      for (int64_t tap = 0; tap < d.kh * d.kw * inputs; ++tap) {
        int64_t c = tap % inputs, kx = tap / inputs % d.kw, ky = tap / inputs / d.kw;
        int64_t y = oy * d.stride_h + ky * d.dilation_h - d.pad_top,
                x = ox * d.stride_w + kx * d.dilation_w - d.pad_left;
        if (y < 0 || x < 0 || y >= d.h || x >= d.w)
          continue;
        size_t in = static_cast<size_t>(((n * d.h + y) * d.w + x) * d.c + k / outputs * inputs + c);
        size_t weight = placeInFilter(d, tap, k), out = static_cast<size_t>(at);
        output[out] += static_cast<double>(input[in]) * static_cast<double>(filter[weight]);
        inputGrad[in] += static_cast<double>(outputGrad[out]) * static_cast<double>(filter[weight]);
        filterGrad[weight] += static_cast<double>(outputGrad[out]) * static_cast<double>(input[in]);
      }
    }
  }
};

template <class T> void same(const std::vector<T> &actual, const std::vector<double> &expected) {
  const double rounded = isHalf<T> ? 1.0 / 128 : 1e-4;
  for (size_t at = 0; at < actual.size(); ++at)
    REQUIRE(static_cast<double>(actual[at]) == Approx(expected[at]).epsilon(rounded).margin(1e-4));
}

// `Grad`: of the filter's gradient.
template <class T, class Grad = T> void check(const drt_conv2d_desc &d, Random &random) {
  INFO("image " << d.n << 'x' << d.h << 'x' << d.w << 'x' << d.c << " filter " << d.kh << 'x' << d.kw << 'x' << d.k
                << " strides " << d.stride_h << ' ' << d.stride_w << " dilations " << d.dilation_h << ' '
                << d.dilation_w << " pads " << d.pad_top << ' ' << d.pad_left << ' ' << d.pad_bottom << ' '
                << d.pad_right << " groups " << d.groups << " bias " << d.has_bias << " epilogue " << d.epilogue
                << " filter layout " << d.filter_layout);
  PrimitiveCache cache(3);
  for (int call = 0; call < 2; ++call) {
    auto input = random.tensor<T>(d.n * d.h * d.w * d.c), filter = random.tensor<T>(d.kh * d.kw * d.c / d.groups * d.k);
    auto outputGrad = random.tensor<T>(d.n * d.oh * d.ow * d.k), bias = random.tensor<T>(d.k);
    Reference expected(d, input, filter, outputGrad);
    const T unread(std::numeric_limits<float>::quiet_NaN());
    std::vector<T> output(outputGrad.size(), unread), inputGrad(input.size(), unread);
    std::vector<Grad> filterGrad(filter.size(), Grad(std::numeric_limits<float>::quiet_NaN()));

    conv2d(cache, 0, d, input.data(), filter.data(), d.has_bias ? bias.data() : nullptr, output.data());
    for (size_t at = 0; at < output.size(); ++at) {
      double &value = expected.output[at];
      value += d.has_bias ? static_cast<double>(bias[at % bias.size()]) : 0;
      if (d.epilogue == DRT_EPILOGUE_RELU)
        value = std::max(0.0, value);
      else if (d.epilogue == DRT_EPILOGUE_TANH)
        value = std::tanh(value);
    }
    same(output, expected.output);
    conv2dGradInput(cache, 1, d, filter.data(), outputGrad.data(), inputGrad.data());
    same(inputGrad, expected.inputGrad);
    conv2dGradFilter(cache, 2, d, input.data(), outputGrad.data(), filterGrad.data());
    same(filterGrad, expected.filterGrad);
  }
}

drt_conv2d_desc randomConvolution(Random &random, int64_t groups, int64_t inputs, int64_t outputs) {
  drt_conv2d_desc d = {};
  d.dtype = DRT_F32;
  d.n = random.integer(1, 3), d.h = random.integer(5, 12), d.w = random.integer(5, 12);
  d.groups = groups, d.c = groups * inputs, d.k = groups * outputs;
  d.kh = random.integer(1, 3), d.kw = random.integer(1, 3);
  d.stride_h = random.integer(1, 2), d.stride_w = random.integer(1, 2);
  d.dilation_h = random.integer(1, 2), d.dilation_w = random.integer(1, 2);
  d.pad_top = random.integer(0, static_cast<int32_t>(d.kh - 1)),
  d.pad_left = random.integer(0, static_cast<int32_t>(d.kw - 1));
  d.pad_bottom = random.integer(0, static_cast<int32_t>(d.kh - 1)),
  d.pad_right = random.integer(0, static_cast<int32_t>(d.kw - 1));
  d.oh = (d.h + d.pad_top + d.pad_bottom - (d.kh - 1) * d.dilation_h - 1) / d.stride_h + 1;
  d.ow = (d.w + d.pad_left + d.pad_right - (d.kw - 1) * d.dilation_w - 1) / d.stride_w + 1;
  d.has_bias = random.integer(0, 1), d.epilogue = random.integer(0, 2);
  d.filter_layout = random.integer(DRT_FILTER_HWIO, DRT_FILTER_OIHW);
  return d;
}
} // namespace

TEST_CASE("convolutions of random shapes and their gradients", "[conv2d]") {
  Random random(6);
  for (int trial = 0; trial < 40; ++trial) {
    drt_conv2d_desc d = randomConvolution(random, 1, random.integer(1, 20), random.integer(1, 20));
    check<float>(d, random);
    d.dtype = DRT_F64;
    check<double>(d, random);
  }
}

TEST_CASE("convolutions of bfloat16, with a filter's gradient of float32", "[conv2d][bf16]") {
  Random random(12);
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t groups = trial % 4 ? 1 : random.integer(2, 9);
    drt_conv2d_desc d = randomConvolution(random, groups, random.integer(1, 20), random.integer(1, 20));
    d.dtype = DRT_BF16, d.widens = 1;
    if (trial == 0)
      d.n = 0;
    check<BFloat16, float>(d, random);
  }
  drt_conv2d_desc d = randomConvolution(random, 1, 3, 4);
  d.dtype = DRT_BF16;
  PrimitiveCache cache(3);
  REQUIRE_THROWS_WITH(conv2dGradFilter(cache, 0, d, nullptr, nullptr, nullptr), Catch::Contains("is float32"));
}

TEST_CASE("gradients of filters by tiles", "[conv2d]") {
  Random random(13);
  for (auto kernels = allTileKernels(); *kernels; ++kernels)
    for (int trial = 0; trial < 40; ++trial) {
      drt_conv2d_desc d = randomConvolution(random, 1, random.integer(16, 40), random.integer(16, 50));
      d.filter_layout = DRT_FILTER_HWIO;
      if (trial % 4 == 0) // as much padding as there can be, so that some of the filter meets no pixel
        d.pad_left = d.pad_top = 4 * d.dilation_w, d.ow += 2, d.oh += 1;
      if (trial == 0) // several blocks of rows
        d.k = 2500;
      if (trial % 4 == 1) { // few channels, of windows within the images
        d = randomConvolution(random, 1, 6, 16);
        d.kw = 3, d.dilation_w = 1, d.pad_left = d.pad_right = 0, d.ow = (d.w - 3) / d.stride_w + 1;
        d.filter_layout = DRT_FILTER_HWIO;
      }
      INFO("trial " << trial);
      auto input = random.tensor<float>(d.n * d.h * d.w * d.c), filter = random.tensor<float>(d.kh * d.kw * d.c * d.k),
           outputGrad = random.tensor<float>(d.n * d.oh * d.ow * d.k);
      const Reference expected(d, input, filter, outputGrad);
      REQUIRE(FilterGradient::suits(d));
      Scratch scratch;
      FilterGradient gradient(**kernels, d, scratch);
      for (int call = 0; call < 2; ++call) {
        std::vector<float> filterGrad(filter.size(), std::numeric_limits<float>::quiet_NaN());
        gradient.run(input.data(), outputGrad.data(), filterGrad.data());
        same(filterGrad, expected.filterGrad);
      }
    }
  // What is left to the library.
  drt_conv2d_desc d = randomConvolution(random, 1, 16, 16);
  d.filter_layout = DRT_FILTER_OHWI;
  CHECK_FALSE(FilterGradient::suits(d));
  d.filter_layout = DRT_FILTER_HWIO, d.c = 3, d.pad_left = 1;
  CHECK_FALSE(FilterGradient::suits(d));
  d = randomConvolution(random, 2, 16, 16);
  CHECK_FALSE(FilterGradient::suits(d));
}

// Sizes that matrix units take, where the machine has them.
TEST_CASE("convolutions of many channels", "[conv2d]") {
  Random random(7);
  for (int trial = 0; trial < 6; ++trial) {
    drt_conv2d_desc d = randomConvolution(random, 1, 32 * random.integer(4, 5), 32 * random.integer(4, 6));
    d.filter_layout = DRT_FILTER_HWIO;
    if (trial % 2)
      d.stride_h = d.stride_w = 1, d.oh = d.h + d.pad_top + d.pad_bottom - (d.kh - 1) * d.dilation_h,
      d.ow = d.w + d.pad_left + d.pad_right - (d.kw - 1) * d.dilation_w;
    check<float>(d, random);
  }
}

TEST_CASE("infinities and NaN go through convolutions of many channels", "[conv2d]") {
  Random random(8);
  drt_conv2d_desc d = randomConvolution(random, 1, 128, 128);
  d.filter_layout = DRT_FILTER_HWIO, d.has_bias = 0, d.epilogue = DRT_EPILOGUE_NONE;
  for (float special : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto input = random.tensor<float>(d.n * d.h * d.w * d.c), filter = random.tensor<float>(d.kh * d.kw * d.c * d.k);
    auto outputGrad = random.tensor<float>(d.n * d.oh * d.ow * d.k);
    auto output = outputGrad, inputGrad = input, filterGrad = filter;
    input[input.size() / 2] = outputGrad[outputGrad.size() / 2] = special;
    const Reference expected(d, input, filter, outputGrad);
    PrimitiveCache cache(3);
    conv2d(cache, 0, d, input.data(), filter.data(), nullptr, output.data());
    conv2dGradInput(cache, 1, d, filter.data(), outputGrad.data(), inputGrad.data());
    conv2dGradFilter(cache, 2, d, input.data(), outputGrad.data(), filterGrad.data());
    auto finite = [](const auto &values) {
      return std::count_if(values.begin(), values.end(), [](auto value) { return std::isfinite(value); });
    };
    CHECK(finite(output) == finite(expected.output));
    CHECK(finite(inputGrad) == finite(expected.inputGrad));
    CHECK(finite(filterGrad) == finite(expected.filterGrad));
  }
}

TEST_CASE("grouped and depthwise convolutions", "[conv2d]") {
  Random random(7);
  for (int trial = 0; trial < 30; ++trial) {
    int64_t inputs = trial % 2 ? 1 : random.integer(1, 8); // every other one is depthwise
    drt_conv2d_desc d = randomConvolution(random, random.integer(2, 17), inputs, random.integer(1, 3));
    check<float>(d, random);
    d.dtype = DRT_F64;
    check<double>(d, random);
  }
}

TEST_CASE("a filter layout that there is not is an error", "[conv2d]") {
  Random random(9);
  drt_conv2d_desc d = randomConvolution(random, 1, 3, 4);
  d.filter_layout = 3;
  PrimitiveCache cache(3);
  REQUIRE_THROWS_WITH(conv2d(cache, 0, d, nullptr, nullptr, nullptr, nullptr), Catch::Contains("filter layout 3"));
}

TEST_CASE("an empty batch has a filter gradient of zero", "[conv2d]") {
  Random random(8);
  drt_conv2d_desc d = randomConvolution(random, 1, 3, 4);
  d.n = 0;
  check<float>(d, random);
}
