//===- split_conv2d.cpp - Convolutions of float32 on matrix units -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/split_conv2d.h"

#include "cpu/kernels/direct_conv2d.h"
#include "cpu/kernels/matrix_units.h"
#include "cpu/kernels/split_matmul.h"

#include <algorithm>
#include <vector>

using namespace drt;

namespace {
// What padding is.
alignas(64) constexpr float zeros[MatrixUnits::group] = {};

// The windows of a convolution's images: an element [pixel of the output, element of the window].
class Windows {
public:
  Windows(const drt_conv2d_desc &desc, const float *images) : d(desc), images(images) {}

  int64_t pixels() const { return d.n * d.oh * d.ow; }
  int64_t elements() const { return d.kh * d.kw * d.c; }

  /// Where the elements from `element` on, of one place of the window, lie of `count` pixels from `pixel` on.
  void addresses(int64_t element, int64_t pixel, int64_t count, const float **to) const {
    const int64_t place = element / d.c, channel = element % d.c;
    const int64_t above = place / d.kw * d.dilation_h - d.pad_top, left = place % d.kw * d.dilation_w - d.pad_left;
    // Runs of a row of the output.
    for (const int64_t end = pixel + count; pixel < end;) {
      const int64_t column = pixel % d.ow, row = pixel / d.ow % d.oh, run = std::min(d.ow - column, end - pixel);
      const int64_t y = row * d.stride_h + above;
      const float *from = images + (pixel / d.ow / d.oh * d.h + y) * d.w * d.c + channel;
      for (int64_t i = 0; i < run; ++i) {
        const int64_t x = (column + i) * d.stride_w + left;
        *to++ = y < 0 || y >= d.h || x < 0 || x >= d.w ? zeros : from + x * d.c;
      }
      pixel += run;
    }
  }

private:
  const drt_conv2d_desc &d;
  const float *images;
};

// The windows as a left operand: pixels are the rows and elements of the window the steps, or the other way round.
class WindowOperand final : public GatheredOperand {
public:
  WindowOperand(const Windows &windows, bool pixelsAreSteps) : windows(windows), pixelsAreSteps(pixelsAreSteps) {}

  bool pack(const MatrixUnits &units, const SplitRange &range, char *to) override {
    // As many elements as packRows takes of one place; for each of these runs the addresses of all pixels.
    const int64_t run = pixelsAreSteps ? MatrixUnits::tile : MatrixUnits::group;
    const int64_t element = pixelsAreSteps ? range.lane : range.step, pixel = pixelsAreSteps ? range.step : range.lane;
    const int64_t elements = pixelsAreSteps ? range.lanes : range.depth,
                  pixels = pixelsAreSteps ? range.depth : range.lanes;
    table.resize(static_cast<size_t>(elements / run * pixels));
    for (int64_t own = 0; own < elements; own += run)
      windows.addresses(element + own, pixel, pixels, table.data() + own / run * pixels);
    return units.packRows(table.data(), pixelsAreSteps, range.depth, range.lanes, to);
  }

private:
  const Windows &windows;
  const bool pixelsAreSteps;
  std::vector<const float *> table;
};

// The gradient of an input is a convolution of the output's gradient by the reversed filter.
drt_conv2d_desc reversed(const drt_conv2d_desc &d) {
  drt_conv2d_desc of = d;
  of.h = d.oh, of.w = d.ow, of.c = d.k;
  of.oh = d.h, of.ow = d.w, of.k = d.c;
  of.pad_top = (d.kh - 1) * d.dilation_h - d.pad_top;
  of.pad_left = (d.kw - 1) * d.dilation_w - d.pad_left;
  return of;
}
} // namespace

bool drt::suitsMatrixUnits(const drt_conv2d_desc &d, ConvolutionPass pass) {
  const FilterSteps at = getFilterSteps(d);
  if (d.dtype != DRT_F32 || d.groups != 1 || at.output != 1 || at.input != d.k || at.column != d.c * d.k ||
      at.row != d.kw * d.c * d.k)
    return false;
  const int64_t elements = d.kh * d.kw * d.c, pixels = d.n * d.oh * d.ow;
  // What of the windows is packed meets as many channels. A core of a Xeon of the Sapphire Rapids generation, GFLOP/s,
  // units and library, forward, gradient of the input and of the filter:
  //
  //   image         filter          units         library
  //   4x56x56x64    3x3x64x64     159 151 136   160 146 157
  //   4x28x28x128   3x3x128x128   224 202 188   177 163 172
  //   4x14x14x256   3x3x256x256   222 206 201   171 158 145
  //   4x7x7x512     3x3x512x512   200 195 159   135 117 110
  constexpr int64_t fewestChannels = 128;
  auto suits = [](int64_t channels, int64_t others, int64_t rows, int64_t steps) {
    return channels % MatrixUnits::group == 0 && others >= fewestChannels &&
           suitsMatrixUnits(GemmShape{rows, others, steps, false, false, steps, others, others, false});
  };
  switch (pass) {
  case ConvolutionPass::Forward:
    // The library has these vectorized.
    if (d.epilogue == DRT_EPILOGUE_TANH || d.epilogue == DRT_EPILOGUE_SIGMOID)
      return false;
    return suits(d.c, d.k, pixels, elements);
  case ConvolutionPass::GradInput:
    return d.stride_h == 1 && d.stride_w == 1 && suits(d.k, d.c, d.n * d.h * d.w, d.kh * d.kw * d.k);
  case ConvolutionPass::GradFilter:
    return suits(d.c, d.k, elements, pixels);
  }
  return false;
}

bool drt::splitConv2d(const drt_conv2d_desc &d, const float *input, const float *filter, float *output) {
  const Windows windows(d, input);
  WindowOperand left(windows, /*pixelsAreSteps=*/false);
  return splitGathered(windows.pixels(), d.k, windows.elements(), left, {filter, d.k, true}, output);
}

bool drt::splitConv2dGradInput(const drt_conv2d_desc &d, const float *filter, const float *outputGrad,
                               float *inputGrad) {
  const drt_conv2d_desc of = reversed(d);
  const Windows windows(of, outputGrad);
  WindowOperand left(windows, /*pixelsAreSteps=*/false);
  const int64_t places = d.kh * d.kw;
  std::vector<const void *> terms;
  for (int64_t place = 0; place < places; ++place)
    terms.push_back(filter + (places - 1 - place) * d.c * d.k);
  return splitGathered(windows.pixels(), d.c, windows.elements(), left, {nullptr, d.k, false, terms.data(), d.k},
                       inputGrad);
}

bool drt::splitConv2dGradFilter(const drt_conv2d_desc &d, const float *input, const float *outputGrad,
                                float *filterGrad) {
  const Windows windows(d, input);
  WindowOperand left(windows, /*pixelsAreSteps=*/true);
  return splitGathered(windows.elements(), d.k, windows.pixels(), left, {outputGrad, d.k, true}, filterGrad);
}
