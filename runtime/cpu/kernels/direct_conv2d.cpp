//===- direct_conv2d.cpp - Convolutions by their definition -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/direct_conv2d.h"

#include <algorithm>
#include <stdexcept>
#include <string>

using namespace drt;

FilterSteps drt::getFilterSteps(const drt_conv2d_desc &d) {
  const int64_t inputs = d.c / d.groups;
  switch (d.filter_layout) {
  case DRT_FILTER_HWIO:
    return {d.kw * inputs * d.k, inputs * d.k, d.k, 1};
  case DRT_FILTER_OHWI:
    return {d.kw * inputs, inputs, 1, d.kh * d.kw * inputs};
  case DRT_FILTER_OIHW:
    return {d.kw, 1, d.kh * d.kw, inputs * d.kh * d.kw};
  }
  throw std::runtime_error("there is no convolution for filter layout " + std::to_string(d.filter_layout));
}

namespace {
// Calls visit(image element, filter element, output element) with the places of the
// first channel of every group's meeting of an image's pixel, a tap and an output pixel.
template <class Visit> void forEachMeeting(const drt_conv2d_desc &d, const FilterSteps &steps, Visit visit) {
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
            int64_t tap = ky * steps.row + kx * steps.column;
            int64_t out = ((n * d.oh + oy) * d.ow + ox) * d.k;
            for (int64_t group = 0; group < d.groups; ++group)
              visit(image + group * inputs, tap + group * outputs * steps.output, out + group * outputs);
          }
}
} // namespace

template <class T> void drt::directConv2d(const drt_conv2d_desc &d, const T *input, const T *filter, T *output) {
  int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
  const FilterSteps steps = getFilterSteps(d);
  std::fill(output, output + d.n * d.oh * d.ow * d.k, T(0));
  forEachMeeting(d, steps, [&](int64_t image, int64_t tap, int64_t out) {
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t o = 0; o < outputs; ++o)
        output[out + o] += input[image + i] * filter[tap + i * steps.input + o * steps.output];
  });
}

template <class T>
void drt::directConv2dGradInput(const drt_conv2d_desc &d, const T *filter, const T *outputGrad, T *inputGrad) {
  int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
  const FilterSteps steps = getFilterSteps(d);
  std::fill(inputGrad, inputGrad + d.n * d.h * d.w * d.c, T(0));
  forEachMeeting(d, steps, [&](int64_t image, int64_t tap, int64_t out) {
    for (int64_t i = 0; i < inputs; ++i) {
      T sum = 0;
      for (int64_t o = 0; o < outputs; ++o)
        sum += outputGrad[out + o] * filter[tap + i * steps.input + o * steps.output];
      inputGrad[image + i] += sum;
    }
  });
}

template <class T>
void drt::directConv2dGradFilter(const drt_conv2d_desc &d, const T *input, const T *outputGrad, T *filterGrad) {
  int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
  const FilterSteps steps = getFilterSteps(d);
  std::fill(filterGrad, filterGrad + d.kh * d.kw * inputs * d.k, T(0));
  forEachMeeting(d, steps, [&](int64_t image, int64_t tap, int64_t out) {
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t o = 0; o < outputs; ++o)
        filterGrad[tap + i * steps.input + o * steps.output] += input[image + i] * outputGrad[out + o];
  });
}

template void drt::directConv2d(const drt_conv2d_desc &, const float *, const float *, float *);
template void drt::directConv2d(const drt_conv2d_desc &, const double *, const double *, double *);
template void drt::directConv2dGradInput(const drt_conv2d_desc &, const float *, const float *, float *);
template void drt::directConv2dGradInput(const drt_conv2d_desc &, const double *, const double *, double *);
template void drt::directConv2dGradFilter(const drt_conv2d_desc &, const float *, const float *, float *);
template void drt::directConv2dGradFilter(const drt_conv2d_desc &, const double *, const double *, double *);
