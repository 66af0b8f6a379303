//===- direct_conv2d.cpp - Convolutions by their definition -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/direct_conv2d.h"

#include <algorithm>

using namespace drt;

namespace {
// Calls visit(image element, filter element, output element) with the places of the
// first channel of every group's meeting of an image's pixel, a tap and an output pixel.
template <class Visit> void forEachMeeting(const drt_conv2d_desc &d, Visit visit) {
  int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
  for (int64_t n = 0; n < d.n; ++n)
    for (int64_t oy = 0; oy < d.oh; ++oy)
      for (int64_t ox = 0; ox < d.ow; ++ox)
        for (int64_t ky = 0; ky < d.kh; ++ky)
          for (int64_t kx = 0; kx < d.kw; ++kx) {
            int64_t y = oy * d.stride_h - d.pad_top + ky * d.dilation_h;
            int64_t x = ox * d.stride_w - d.pad_left + kx * d.dilation_w;
            if (y < 0 || y >= d.h || x < 0 || x >= d.w)
              continue;
            int64_t image = ((n * d.h + y) * d.w + x) * d.c;
            int64_t tap = (ky * d.kw + kx) * inputs * d.k;
            int64_t out = ((n * d.oh + oy) * d.ow + ox) * d.k;
            for (int64_t group = 0; group < d.groups; ++group)
              visit(image + group * inputs, tap + group * outputs, out + group * outputs);
          }
}
} // namespace

template <class T> void drt::directConv2d(const drt_conv2d_desc &d, const T *input, const T *filter, T *output) {
  int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
  std::fill(output, output + d.n * d.oh * d.ow * d.k, T(0));
  forEachMeeting(d, [&](int64_t image, int64_t tap, int64_t out) {
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t o = 0; o < outputs; ++o)
        output[out + o] += input[image + i] * filter[tap + i * d.k + o];
  });
}

template <class T>
void drt::directConv2dGradInput(const drt_conv2d_desc &d, const T *filter, const T *outputGrad, T *inputGrad) {
  int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
  std::fill(inputGrad, inputGrad + d.n * d.h * d.w * d.c, T(0));
  forEachMeeting(d, [&](int64_t image, int64_t tap, int64_t out) {
    for (int64_t i = 0; i < inputs; ++i) {
      T sum = 0;
      for (int64_t o = 0; o < outputs; ++o)
        sum += outputGrad[out + o] * filter[tap + i * d.k + o];
      inputGrad[image + i] += sum;
    }
  });
}

template <class T>
void drt::directConv2dGradFilter(const drt_conv2d_desc &d, const T *input, const T *outputGrad, T *filterGrad) {
  int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
  std::fill(filterGrad, filterGrad + d.kh * d.kw * inputs * d.k, T(0));
  forEachMeeting(d, [&](int64_t image, int64_t tap, int64_t out) {
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t o = 0; o < outputs; ++o)
        filterGrad[tap + i * d.k + o] += input[image + i] * outputGrad[out + o];
  });
}

template void drt::directConv2d(const drt_conv2d_desc &, const float *, const float *, float *);
template void drt::directConv2d(const drt_conv2d_desc &, const double *, const double *, double *);
template void drt::directConv2dGradInput(const drt_conv2d_desc &, const float *, const float *, float *);
template void drt::directConv2dGradInput(const drt_conv2d_desc &, const double *, const double *, double *);
template void drt::directConv2dGradFilter(const drt_conv2d_desc &, const float *, const float *, float *);
template void drt::directConv2dGradFilter(const drt_conv2d_desc &, const double *, const double *, double *);
