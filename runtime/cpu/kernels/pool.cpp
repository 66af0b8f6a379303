//===- pool.cpp - Pooling and its gradient -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/pool.h"

#include "core/clones.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

using namespace drt;

namespace {
// The part of a window that lies in the image, and the output pixel it belongs to.
struct Window {
  int64_t top, bottom, left, right; // half-open
  int64_t image, out;               // pixels before the image and before the output pixel
  int64_t size() const { return std::max<int64_t>(0, bottom - top) * std::max<int64_t>(0, right - left); }
};

template <class Visit> [[gnu::always_inline]] inline void forEachWindow(const drt_pool_desc &d, Visit visit) {
  for (int64_t n = 0; n < d.n; ++n)
    for (int64_t oy = 0; oy < d.oh; ++oy)
      for (int64_t ox = 0; ox < d.ow; ++ox) {
        int64_t y = oy * d.stride_h - d.pad_top, x = ox * d.stride_w - d.pad_left;
        visit(Window{std::max<int64_t>(0, y), std::min(d.h, y + d.kh), std::max<int64_t>(0, x), std::min(d.w, x + d.kw),
                     n * d.h * d.w, (n * d.oh + oy) * d.ow + ox});
      }
}

// visit(pixel) for every pixel of the window.
template <class Visit>
[[gnu::always_inline]] inline void forEachPixel(const drt_pool_desc &d, const Window &window, Visit visit) {
  for (int64_t y = window.top; y < window.bottom; ++y)
    for (int64_t x = window.left; x < window.right; ++x)
      visit(window.image + y * d.w + x);
}

template <class T>
[[gnu::always_inline]] inline void forward(const drt_pool_desc &d, const T *input, T *__restrict output) {
  bool maximum = d.kind == DRT_POOL_MAX;
  forEachWindow(d, [&](const Window &window) __attribute__((always_inline)) {
    T *out = output + window.out * d.c;
    std::fill(out, out + d.c, maximum ? std::numeric_limits<T>::lowest() : T(0));
    forEachPixel(d, window, [&](int64_t pixel) __attribute__((always_inline)) {
      const T *in = input + pixel * d.c;
      if (maximum)
        for (int64_t c = 0; c < d.c; ++c)
          out[c] = in[c] > out[c] ? in[c] : out[c];
      else
        for (int64_t c = 0; c < d.c; ++c)
          out[c] += in[c];
    });
    if (!maximum && window.size() > 0)
      for (int64_t c = 0; c < d.c; ++c)
        out[c] /= static_cast<T>(window.size());
  });
}

// Channels handled together by the maximum's gradient: what is left to give of each.
constexpr int64_t channelBlock = 64;

template <class T>
[[gnu::always_inline]] inline void maxGrad(const drt_pool_desc &d, const T *input, const T *output, const T *outputGrad,
                                           T *__restrict inputGrad) {
  forEachWindow(d, [&](const Window &window) __attribute__((always_inline)) {
    for (int64_t begin = 0; begin < d.c; begin += channelBlock) {
      int64_t count = std::min(channelBlock, d.c - begin);
      T rest[channelBlock];
      const T *largest = output + window.out * d.c + begin;
      std::copy_n(outputGrad + window.out * d.c + begin, count, rest);
      forEachPixel(d, window, [&](int64_t pixel) __attribute__((always_inline)) {
        const T *in = input + pixel * d.c + begin;
        T *grad = inputGrad + pixel * d.c + begin;
        // The first match takes all, so that nothing is left for the next.
        for (int64_t c = 0; c < count; ++c) {
          T taken = in[c] == largest[c] ? rest[c] : T(0);
          grad[c] += taken;
          rest[c] = in[c] == largest[c] ? T(0) : rest[c];
        }
      });
    }
  });
}

template <class T>
[[gnu::always_inline]] inline void averageGrad(const drt_pool_desc &d, const T *outputGrad, T *__restrict inputGrad) {
  forEachWindow(d, [&](const Window &window) __attribute__((always_inline)) {
    const T *out = outputGrad + window.out * d.c;
    T share = T(1) / static_cast<T>(std::max<int64_t>(1, window.size()));
    forEachPixel(d, window, [&](int64_t pixel) __attribute__((always_inline)) {
      T *grad = inputGrad + pixel * d.c;
      for (int64_t c = 0; c < d.c; ++c)
        grad[c] += out[c] * share;
    });
  });
}

template <class T>
[[gnu::always_inline]] inline void backward(const drt_pool_desc &d, const T *input, const T *output,
                                            const T *outputGrad, T *inputGrad) {
  std::fill(inputGrad, inputGrad + d.n * d.h * d.w * d.c, T(0));
  if (d.kind == DRT_POOL_MAX)
    maxGrad(d, input, output, outputGrad, inputGrad);
  else
    averageGrad(d, outputGrad, inputGrad);
}

// Clones cannot be templates, so each type has its own functions.
DRT_WIDE_CLONES void run(const drt_pool_desc &d, const float *in, float *out) { forward(d, in, out); }
DRT_WIDE_CLONES void run(const drt_pool_desc &d, const double *in, double *out) { forward(d, in, out); }
DRT_WIDE_CLONES void runGrad(const drt_pool_desc &d, const float *in, const float *out, const float *grad, float *to) {
  backward(d, in, out, grad, to);
}
DRT_WIDE_CLONES void runGrad(const drt_pool_desc &d, const double *in, const double *out, const double *grad,
                             double *to) {
  backward(d, in, out, grad, to);
}

void requireReal(const drt_pool_desc &desc) {
  if (desc.dtype != DRT_F32 && desc.dtype != DRT_F64)
    throw std::runtime_error("there is no pooling for data type " + std::to_string(desc.dtype) +
                             ": cast the image to float32 or float64");
}
} // namespace

void drt::pool(const drt_pool_desc &desc, const void *input, void *output) {
  requireReal(desc);
  if (desc.dtype == DRT_F32)
    run(desc, static_cast<const float *>(input), static_cast<float *>(output));
  else
    run(desc, static_cast<const double *>(input), static_cast<double *>(output));
}

void drt::poolGrad(const drt_pool_desc &desc, const void *input, const void *output, const void *outputGrad,
                   void *inputGrad) {
  requireReal(desc);
  if (desc.dtype == DRT_F32)
    runGrad(desc, static_cast<const float *>(input), static_cast<const float *>(output),
            static_cast<const float *>(outputGrad), static_cast<float *>(inputGrad));
  else
    runGrad(desc, static_cast<const double *>(input), static_cast<const double *>(output),
            static_cast<const double *>(outputGrad), static_cast<double *>(inputGrad));
}
