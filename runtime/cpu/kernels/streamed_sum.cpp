//===- streamed_sum.cpp - The sum of products over a long contracted axis -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/streamed_sum.h"

#include "core/memory.h"

#include <algorithm>
#include <cstring>

using namespace drt;

namespace {
// A panel of the right operand stays in the first-level cache while groups of the left one's rows pass; a chunk of
// panels is packed at once, so that long runs of its rows are read.
constexpr int64_t blockSteps = 192, chunkColumns = 256;

size_t floats(int64_t count) { return static_cast<size_t>(count) * sizeof(float); }

// The steps of each of as few blocks as there can be.
int64_t equalBlocks(int64_t steps) {
  const int64_t blocks = (steps + blockSteps - 1) / blockSteps;
  return (steps + blocks - 1) / blocks;
}

int64_t chunkElements(int64_t n, int64_t steps, const TileKernels &kernels) {
  return roundUp(std::min(n, chunkColumns), kernels.columns) * std::min(steps, blockSteps);
}

// Of a whole tile's rows, without a loop or a call for each run.
template <int length> void copyRuns(const float *from, int64_t pitch, int64_t runs, float *to, int64_t apart) {
  for (int64_t run = 0; run < runs; ++run, from += pitch, to += apart)
    std::memcpy(to, from, length * sizeof(float));
}
} // namespace

void drt::copyRuns(const float *from, int64_t pitch, int64_t runs, int64_t length, float *to, int64_t apart) {
  if (length == 12)
    return ::copyRuns<12>(from, pitch, runs, to, apart);
  if (length == 6)
    return ::copyRuns<6>(from, pitch, runs, to, apart);
  for (int64_t run = 0; run < runs; ++run, from += pitch, to += apart)
    for (int64_t i = 0; i < length; ++i)
      to[i] = from[i];
}

// The steps [step, step + depth) as runs of single terms' own.
template <class Visit> void StreamedSum::forEachTerm(int64_t step, int64_t depth, Visit visit) const {
  for (int64_t end = step + depth; step < end;) {
    const int64_t own = step % k, length = std::min(k - own, end - step);
    visit(step / k, own, length);
    step += length;
  }
}

bool StreamedSum::suits(const drt_matmul_desc &desc) {
  return desc.dtype == DRT_F32 && desc.transpose_a && !desc.transpose_b && desc.n >= 16 && desc.m >= 8 && desc.k > 0;
}

StreamedSum::StreamedSum(const TileKernels &kernels, const drt_matmul_desc &desc, int64_t terms, int64_t maxRows,
                         Scratch &scratch)
    : kernels(kernels), m(desc.m), n(desc.n), k(desc.k), steps(desc.k * terms), depthOfBlock(equalBlocks(steps)),
      left(scratch, floats(maxRows * std::min(steps, blockSteps))),
      right(scratch, floats(2 * chunkElements(n, steps, kernels))),
      product(scratch, floats(roundUp(n, kernels.columns) * maxRows)) {}

// Panels of columns; within one a step's columns behind each other.
Packing StreamedSum::packingRight(const void *const *b, int64_t step, int64_t depth, int64_t column, float *to) const {
  const int64_t panels = step < steps ? std::min(chunkColumns, n - column) / kernels.columns : 0;
  if (panels == 0)
    return Packing(nullptr, 0, 0, 0, nullptr, 0);
  return Packing(b + step / k, k, step % k, column, n, depth, panels, to, depth * kernels.columns);
}

// The columns from `column` on, which are no whole panel, as one: with zeros behind them.
void StreamedSum::packLastPanel(const void *const *b, int64_t step, int64_t depth, int64_t column, float *to) const {
  forEachTerm(step, depth, [&](int64_t term, int64_t own, int64_t length) {
    const float *from = static_cast<const float *>(b[term]) + own * n + column;
    for (int64_t i = 0; i < length; ++i, from += n, to += kernels.columns)
      std::fill(std::copy_n(from, n - column, to), to + kernels.columns, 0.0f);
  });
}

void StreamedSum::unpack(int64_t rows, float scale, float *c) const {
  const int64_t width = kernels.columns;
  const float *tile = product.as<float>();
  for (int64_t column = 0; column < n; column += width)
    for (int64_t row = 0; row < rows; ++row, tile += width)
      std::transform(tile, tile + std::min(width, n - column), c + row * n + column,
                     [=](float x) { return scale * x; });
}

// The first chunk of the right operand, which nothing hides.
void StreamedSum::begin(const void *const *b) {
  now = right.as<float>(), next = now + chunkElements(n, steps, kernels);
  Packing start = packingRight(b, 0, depthAt(0), 0, now);
  kernels.finish(start);
}

// The block of steps from `step` on of the packed left rows, a group for each tile, is added to the product.
void StreamedSum::multiply(const void *const *b, int64_t rows, int64_t step) {
  const int64_t width = kernels.columns;
  const int64_t depth = depthAt(step);
  float *to = product.as<float>();
  for (int64_t chunk = 0; chunk < n; chunk += chunkColumns) {
    const int64_t columns = std::min(chunkColumns, n - chunk), whole = columns / width * width;
    // What is packed while these are multiplied.
    const bool last = chunk + chunkColumns >= n;
    Packing errand = last ? packingRight(b, step + depthOfBlock, depthAt(step + depthOfBlock), 0, next)
                          : packingRight(b, step, depth, chunk + chunkColumns, next);
    if (whole < columns)
      packLastPanel(b, step, depth, chunk + whole, now + whole * depth);
    const float *panel = now;
    for (int64_t column = 0; column < columns; column += width, panel += depth * width) {
      const float *group = left.as<float>();
      for (int64_t first = 0; first < rows; first += kernels.rows) {
        const int64_t count = std::min<int64_t>(kernels.rows, rows - first);
        kernels.packing({depth, group, 0, panel, to, width, step > 0}, static_cast<int>(count), errand);
        group += count * depth;
        to += count * width;
      }
    }
    kernels.finish(errand);
    std::swap(now, next);
  }
}

void StreamedSum::run(const void *const *a, const void *const *b, Range rows, float scale, float *c) {
  runPacked(
      [&](int64_t first, int64_t count, int64_t step, int64_t depth, float *to) {
        forEachTerm(step, depth, [&](int64_t term, int64_t own, int64_t length) {
          const float *from = static_cast<const float *>(a[term]) + own * m + first;
          copyRuns(from, m, length, count, to, count);
          to += length * count;
        });
      },
      b, rows, scale, c);
}
