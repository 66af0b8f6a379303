//===- filter_gradient.cpp - Gradients of filters by own tiles -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/filter_gradient.h"

#include "cpu/kernels/direct_conv2d.h"

#include <algorithm>

using namespace drt;

namespace {
constexpr int64_t shortestRun = 16;

// What an element of the filter meets of a pixel lies together; so does a row of elements where none reaches beyond the
// images' rows.
bool readsRows(const drt_conv2d_desc &d) {
  return d.dilation_w == 1 && d.pad_left == 0 && (d.ow - 1) * d.stride_w + d.kw <= d.w;
}
int64_t lengthOfRun(const drt_conv2d_desc &d) { return readsRows(d) ? d.kw * d.c : d.c; }

// Of the filter's rows whose sums stay in cache while all pixels pass.
constexpr int64_t blockBytes = 1024 * 1024;

drt_matmul_desc asMatmul(const drt_conv2d_desc &d) {
  drt_matmul_desc product = {};
  product.dtype = DRT_F32;
  product.batch = 1;
  product.m = d.kh * d.kw * d.c, product.n = d.k, product.k = d.n * d.oh * d.ow;
  product.transpose_a = 1;
  return product;
}

int64_t rowsOfBlock(const drt_conv2d_desc &d, const TileKernels &kernels) {
  const int64_t all = d.kh * d.kw * d.c, most = std::max<int64_t>(kernels.rows, blockBytes / 4 / d.k);
  const int64_t blocks = (all + most - 1) / most;
  // Whole groups of rows.
  return roundUp((all + blocks - 1) / blocks, kernels.rows);
}
} // namespace

bool FilterGradient::suits(const drt_conv2d_desc &d) {
  const FilterSteps at = getFilterSteps(d);
  return d.dtype == DRT_F32 && d.groups == 1 && lengthOfRun(d) >= shortestRun && d.n * d.oh * d.ow > 0 &&
         at.output == 1 && at.input == d.k && at.column == d.c * d.k && at.row == d.kw * d.c * d.k &&
         StreamedSum::suits(asMatmul(d));
}

FilterGradient::FilterGradient(const TileKernels &kernels, const drt_conv2d_desc &desc, Scratch &scratch)
    : desc(desc), rows(desc.kh * desc.kw * desc.c), length(lengthOfRun(desc)), blockRows(rowsOfBlock(desc, kernels)),
      sum(kernels, asMatmul(desc), 1, blockRows, scratch) {}

// A step is a pixel of the outputs, a row an input of an element of the filter: what that element meets there.
void FilterGradient::packRows(const float *input, int64_t first, int64_t count, int64_t step, int64_t depth,
                              float *to) const {
  for (int64_t row = first; row < first + count;) {
    const int64_t run = row / length, channel = row % length, width = std::min(length - channel, first + count - row);
    const int64_t runs = desc.kw * desc.c / length; // of a row of the filter
    const int64_t aboveRow = run / runs * desc.dilation_h - desc.pad_top,
                  leftColumn = run % runs * desc.dilation_w - desc.pad_left;
    float *place = to + (row - first);
    // Runs of a row of the outputs.
    for (int64_t at = step; at < step + depth;) {
      const int64_t begin = at % desc.ow, end = std::min(desc.ow, begin + step + depth - at);
      const int64_t image = at / desc.ow / desc.oh, y = at / desc.ow % desc.oh * desc.stride_h + aboveRow;
      // Those that meet a pixel of the image.
      int64_t inside = begin, outside = end;
      if (y < 0 || y >= desc.h) {
        outside = inside;
      } else {
        inside = std::clamp((-leftColumn + desc.stride_w - 1) / desc.stride_w, begin, end);
        outside = std::clamp((desc.w - 1 - leftColumn + desc.stride_w) / desc.stride_w, inside, end);
      }
      auto clear = [&](int64_t pixels) {
        for (; pixels > 0; --pixels, place += count)
          std::fill_n(place, width, 0.0f);
      };
      clear(inside - begin);
      if (inside < outside) {
        copyRuns(input + ((image * desc.h + y) * desc.w + inside * desc.stride_w + leftColumn) * desc.c + channel,
                 desc.stride_w * desc.c, outside - inside, width, place, count);
        place += (outside - inside) * count;
      }
      clear(end - outside);
      at += end - begin;
    }
    row += width;
  }
}

void FilterGradient::run(const float *input, const float *outputGrad, float *filterGrad) {
  const void *const right = outputGrad;
  for (int64_t begin = 0; begin < rows; begin += blockRows) {
    const Range block{begin, std::min(rows, begin + blockRows)};
    sum.runPacked([&](int64_t first, int64_t count, int64_t step, int64_t depth,
                      float *to) { packRows(input, first, count, step, depth, to); },
                  &right, block, 1.0f, filterGrad + begin * desc.k);
  }
}
