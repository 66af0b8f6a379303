//===- scratch_test.cpp - Call sites that share their scratch memory -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/conv2d.h"
#include "cpu/kernels/matmul.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <functional>

using namespace drt;

namespace {
drt_matmul_desc product(int32_t dtype, int64_t m, int64_t n, int64_t k) {
  drt_matmul_desc desc = {};
  desc.dtype = dtype, desc.batch = 1, desc.m = m, desc.n = n, desc.k = k;
  return desc;
}

drt_conv2d_desc convolution(int64_t size, int64_t inputs, int64_t outputs, int64_t window) {
  drt_conv2d_desc desc = {};
  desc.dtype = DRT_F32, desc.filter_layout = DRT_FILTER_HWIO, desc.groups = 1;
  desc.n = 2, desc.h = desc.w = desc.oh = desc.ow = size, desc.c = inputs, desc.k = outputs;
  desc.kh = desc.kw = window, desc.stride_h = desc.stride_w = desc.dilation_h = desc.dilation_w = 1;
  desc.pad_top = desc.pad_left = desc.pad_bottom = desc.pad_right = window / 2;
  return desc;
}

void store(int64_t begin, int64_t end, const void *gradient, void *const *arguments) {
  std::copy_n(static_cast<const float *>(gradient), end - begin, static_cast<float *>(arguments[0]) + begin);
}

/// Call sites of one core, of all kinds, smaller and larger ones in turn.
struct Calls {
  explicit Calls(PrimitiveCache &cache) : cache(cache) {
    Random random(17);
    for (int64_t size : {9, 33, 14}) {
      const drt_conv2d_desc image = convolution(size, 8, 24, 3);
      const auto pixels = random.tensor<float>(2 * size * size * 8), filter = random.tensor<float>(9 * 8 * 24),
                 gradient = random.tensor<float>(2 * size * size * 24);
      add(gradient.size(), [=](PrimitiveCache &cache, int32_t site, void *to) {
        conv2d(cache, site, image, pixels.data(), filter.data(), nullptr, to);
      });
      add(pixels.size(), [=](PrimitiveCache &cache, int32_t site, void *to) {
        conv2dGradInput(cache, site, image, filter.data(), gradient.data(), to);
      });
      add(filter.size(), [=](PrimitiveCache &cache, int32_t site, void *to) {
        conv2dGradFilter(cache, site, image, pixels.data(), gradient.data(), to);
      });
    }
    for (int64_t size : {16, 300, 70}) {
      const auto a = random.tensor<float>(2 * size * size), b = random.tensor<float>(2 * size * size);
      const int64_t bytes = size * size * 4;
      const drt_matmul_desc plain = product(DRT_F32, size, size, size);
      const size_t elements = static_cast<size_t>(size * size);
      add(elements, [=](PrimitiveCache &cache, int32_t site, void *to) {
        matmul(cache, site, plain, {0, matmulParts(plain).count}, a.data(), b.data(), nullptr, to);
      });
      add(2 * elements, [=](PrimitiveCache &cache, int32_t site, void *to) {
        matmulJoined(cache, site, plain, {0, 1}, {a.data(), bytes, 2}, b.data(), nullptr, to, bytes);
      });
      drt_matmul_desc gradient = plain;
      gradient.transpose_a = 1;
      add(elements, [=](PrimitiveCache &cache, int32_t site, void *to) {
        float *first = const_cast<float *>(a.data()), *second = const_cast<float *>(b.data());
        void *const terms[] = {first, first + elements, second, second + elements};
        matmulSum(cache, site, gradient, {0, size}, 2, terms, to);
      });
      for (int64_t stride : {bytes, bytes - size * 4}) // joined and not
        add(elements, [=](PrimitiveCache &cache, int32_t site, void *to) {
          void *arguments[] = {to};
          matmulUpdate(cache, site, gradient, {0, 1}, {a.data(), stride, 2}, {b.data(), stride, 2}, 0.5, store,
                       arguments);
        });
    }
  }

  std::vector<float> operator()(size_t call) const {
    std::vector<float> result(elements[call]);
    calls[call](cache, static_cast<int32_t>(call), result.data());
    return result;
  }
  size_t size() const { return calls.size(); }

private:
  using Call = std::function<void(PrimitiveCache &, int32_t, void *)>;
  void add(size_t count, Call call) {
    elements.push_back(count);
    calls.push_back(std::move(call));
  }

  PrimitiveCache &cache;
  std::vector<size_t> elements;
  std::vector<Call> calls;
};
} // namespace

TEST_CASE("call sites of one core leave nothing to each other, and need nothing of their last call", "[scratch]") {
  PrimitiveCache cache(64);
  const Calls calls(cache);
  std::vector<std::vector<float>> alone;
  for (size_t call = 0; call < calls.size(); ++call) {
    PrimitiveCache own(64);
    alone.push_back(Calls(own)(call));
  }
  for (size_t call = 0; call < calls.size(); ++call) {
    INFO("call " << call);
    CHECK(calls(call) == alone[call]); // made while others are there
  }
  Scratch &scratch = cache.scratchOfNewSite();
  REQUIRE(scratch.data());
  Random random(18);
  for (int trial = 0; trial < 60; ++trial) {
    std::memset(scratch.data(), 0xff, scratch.bytes()); // NaN
    const size_t call = static_cast<size_t>(random.integer(0, static_cast<int32_t>(calls.size()) - 1));
    INFO("call " << call);
    CHECK(calls(call) == alone[call]);
  }
}

TEST_CASE("buffers of a site lie apart, those of two sites over each other", "[scratch]") {
  Scratch scratch;
  scratch.begin();
  const Buffer none(scratch, 0), first(scratch, 100), second(scratch, 1000);
  CHECK(none.data() == nullptr);
  CHECK(second.as<char>() - first.as<char>() >= 100);
  CHECK(reinterpret_cast<uintptr_t>(second.data()) % 64 == 0);
  scratch.begin();
  const Buffer larger(scratch, 1 << 20);
  CHECK(larger.data() == first.data());
  CHECK(scratch.bytes() >= 1 << 20);
  std::memset(larger.data(), 1, 1 << 20);
  CHECK(second.as<char>()[999] == 1);
}
