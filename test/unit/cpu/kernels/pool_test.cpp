//===- pool_test.cpp - Pooling against the definition -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/pool.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace drt;

namespace {
template <class T> void check(const drt_pool_desc &d, Random &random) {
  INFO("kind " << d.kind << " image " << d.n << 'x' << d.h << 'x' << d.w << 'x' << d.c << " window " << d.kh << 'x'
               << d.kw << " strides " << d.stride_h << ' ' << d.stride_w << " pads " << d.pad_top << ' ' << d.pad_left);
  auto input = random.tensor<T>(d.n * d.h * d.w * d.c);
  for (T &value : input) // ties, for the rule of the first
    value = static_cast<T>(static_cast<int>(value * 3));
  auto outputGrad = random.tensor<T>(d.n * d.oh * d.ow * d.c);
  std::vector<T> output(outputGrad.size()), inputGrad(input.size(), std::numeric_limits<T>::quiet_NaN());
  std::vector<double> expectedGrad(input.size());
  pool(d, input.data(), output.data());
  poolGrad(d, input.data(), output.data(), outputGrad.data(), inputGrad.data());
  for (int64_t at = 0; at < d.n * d.oh * d.ow * d.c; ++at) {
    int64_t c = at % d.c, ox = at / d.c % d.ow, oy = at / d.c / d.ow % d.oh, n = at / d.c / d.ow / d.oh;
    std::vector<size_t> places;
    for (int64_t y = oy * d.stride_h - d.pad_top; y < oy * d.stride_h - d.pad_top + d.kh; ++y)
      for (int64_t x = ox * d.stride_w - d.pad_left; x < ox * d.stride_w - d.pad_left + d.kw; ++x)
        if (y >= 0 && y < d.h && x >= 0 && x < d.w)
          places.push_back(static_cast<size_t>(((n * d.h + y) * d.w + x) * d.c + c));
    double sum = 0;
    size_t first = places.front(), out = static_cast<size_t>(at);
    for (size_t place : places) {
      sum += static_cast<double>(input[place]);
      first = input[place] > input[first] ? place : first;
    }
    double size = static_cast<double>(places.size()), grad = static_cast<double>(outputGrad[out]);
    if (d.kind == DRT_POOL_MAX) {
      REQUIRE(output[out] == input[first]);
      expectedGrad[first] += grad;
    } else {
      REQUIRE(static_cast<double>(output[out]) == Approx(sum / size).margin(1e-6));
      for (size_t place : places)
        expectedGrad[place] += grad / size;
    }
  }
  for (size_t at = 0; at < input.size(); ++at)
    REQUIRE(static_cast<double>(inputGrad[at]) == Approx(expectedGrad[at]).margin(1e-5));
}
} // namespace

TEST_CASE("pooling of random shapes and its gradient", "[pool]") {
  Random random(9);
  for (int trial = 0; trial < 60; ++trial) {
    drt_pool_desc d = {};
    d.kind = trial % 2 ? DRT_POOL_MAX : DRT_POOL_AVG;
    d.n = random.integer(0, 3), d.h = random.integer(4, 9), d.w = random.integer(4, 9), d.c = random.integer(1, 150);
    d.kh = random.integer(1, 4), d.kw = random.integer(1, 4);
    d.stride_h = random.integer(1, 3), d.stride_w = random.integer(1, 3);
    d.pad_top = random.integer(0, static_cast<int32_t>(d.kh - 1)),
    d.pad_left = random.integer(0, static_cast<int32_t>(d.kw - 1));
    d.pad_bottom = random.integer(0, static_cast<int32_t>(d.kh - 1)),
    d.pad_right = random.integer(0, static_cast<int32_t>(d.kw - 1));
    d.oh = (d.h + d.pad_top + d.pad_bottom - d.kh) / d.stride_h + 1;
    d.ow = (d.w + d.pad_left + d.pad_right - d.kw) / d.stride_w + 1;
    d.dtype = DRT_F32;
    check<float>(d, random);
    d.dtype = DRT_F64;
    check<double>(d, random);
  }
}
