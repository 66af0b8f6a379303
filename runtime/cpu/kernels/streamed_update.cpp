//===- streamed_update.cpp - A gradient's product, block by block -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/streamed_update.h"

#include "core/memory.h"

#include <algorithm>

using namespace drt;

namespace {
// The second-level cache holds the packed operand, the block and what the block updates.
constexpr int64_t packedBytes = 1280 * 1024, blockBytes = 96 * 1024;
// Rows that are a multiple of a page apart would meet in the same few sets of the first-level cache.
constexpr int64_t longRow = 512, gap = 32;

const float *matrix(ReplicatedOperand operand, int64_t replica) {
  return reinterpret_cast<const float *>(static_cast<const char *>(operand.base) + replica * operand.stride);
}
} // namespace

bool StreamedUpdate::suits(const drt_matmul_desc &desc, int parts) {
  int64_t depth = desc.k * parts;
  return desc.dtype == DRT_F32 && desc.transpose_a && !desc.transpose_b && depth >= 8 && desc.n >= 16 &&
         depth * desc.n * 4 <= packedBytes;
}

StreamedUpdate::StreamedUpdate(const TileKernels &kernels, const drt_matmul_desc &desc, int parts, Scratch &scratch)
    : kernels(kernels), m(desc.m), n(desc.n), share(desc.k), parts(parts), rowPitch(n < longRow ? n : n + gap),
      rowsOfBlock(kernels.rows * std::max<int64_t>(1, blockBytes / 4 / (kernels.rows * n))),
      left(scratch, static_cast<size_t>(rowsOfBlock * share * parts) * sizeof(float)),
      right(scratch, static_cast<size_t>(roundUp(n, kernels.columns) * share * parts) * sizeof(float)),
      product(scratch, static_cast<size_t>(rowsOfBlock * rowPitch) * sizeof(float)),
      ragged(scratch, static_cast<size_t>(kernels.rows * kernels.columns) * sizeof(float)) {}

void StreamedUpdate::packRight(ReplicatedOperand b) {
  const int64_t width = kernels.columns, depth = share * parts;
  float *panel = right.as<float>();
  for (int64_t column = 0; column < n; column += width, panel += depth * width)
    for (int64_t replica = 0; replica < parts; ++replica) {
      const float *from = matrix(b, replica) + column;
      float *to = panel + replica * share * width;
      if (column + width <= n) {
        Packing whole(from, n, share, 1, to, 0);
        kernels.finish(whole);
        continue;
      }
      for (int64_t step = 0; step < share; ++step, from += n, to += width)
        std::fill(std::copy_n(from, n - column, to), to + width, 0.0f);
    }
}

// A group of rows for each tile; within it a step's rows behind each other.
void StreamedUpdate::packLeft(ReplicatedOperand a, int64_t row, int64_t rows, float scale) {
  float *to = left.as<float>();
  for (int64_t first = 0; first < rows; first += kernels.rows) {
    int64_t count = std::min<int64_t>(kernels.rows, rows - first);
    for (int64_t replica = 0; replica < parts; ++replica) {
      const float *from = matrix(a, replica) + row + first;
      for (int64_t step = 0; step < share; ++step, from += m)
        for (int64_t i = 0; i < count; ++i)
          *to++ = scale * from[i];
    }
  }
}

const float *StreamedUpdate::block(ReplicatedOperand a, int64_t row, int64_t rows, float scale, void *const *variables,
                                   int numVariables) {
  const int64_t width = kernels.columns, depth = share * parts;
  packLeft(a, row, rows, scale);
  int64_t tiles = (n + width - 1) / width * ((rows + kernels.rows - 1) / kernels.rows);
  Prefetch errand(rows * n * 4, tiles * (depth / errandPeriod));
  for (int variable = 0; variable < numVariables; ++variable)
    errand.add(static_cast<const float *>(variables[variable]) + row * n);
  float *c = product.as<float>(), *aside = ragged.as<float>();
  const float *panel = right.as<float>();
  for (int64_t column = 0; column < n; column += width, panel += depth * width) {
    const float *group = left.as<float>();
    bool whole = column + width <= n;
    for (int64_t first = 0; first < rows; first += kernels.rows) {
      int64_t count = std::min<int64_t>(kernels.rows, rows - first);
      float *to = c + first * rowPitch + column;
      kernels.prefetching({depth, group, 0, panel, whole ? to : aside, whole ? rowPitch : width, false},
                          static_cast<int>(count), errand);
      for (int64_t i = 0; !whole && i < count; ++i)
        std::copy_n(aside + i * width, n - column, to + i * rowPitch);
      group += count * depth;
    }
  }
  return c;
}
