//===- streamed_matmul.cpp - Few rows times a large matrix -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/streamed_matmul.h"

#include "core/memory.h"
#include "cpu/kernels/gemm.h"

#include <algorithm>

using namespace drt;

namespace {
constexpr int64_t packedBytes = 1280 * 1024;            // beside it, b passes through the second-level cache
constexpr int64_t chunkSteps = 256, chunkColumns = 256; // of b, packed at a time: long runs of its rows
constexpr int64_t transposedSteps = 512;
constexpr int tilesOfChunk = 4; // whole vectors of columns
constexpr int maxLanes = 16;

size_t floats(int64_t count) { return static_cast<size_t>(count) * sizeof(float); }
} // namespace

// What a call takes at 2048 x 2048, half of the columns, milliseconds (AVX-512; AVX2; the library):
//
//   rows   b as it lies             b transposed
//      8   0.71   0.96   0.43      0.77   0.65   0.88
//     32   1.17   1.56   0.88      0.71   1.15   1.21
//     64   1.76   2.55   1.52      1.34   2.27   1.96
//    128   3.26   4.90   3.10      2.71   4.56   3.32
//
// With no more than AVX2 the library takes 5.4 and 5.3 for 128 rows. Its time is without copying the replicas' rows to
// one operand and the result back, with which 128 rows take 6 % longer in a step than with tiles.
bool StreamedMatmul::suits(const drt_matmul_desc &desc, int parts) {
  int64_t rows = desc.m * parts;
  return desc.dtype == DRT_F32 && desc.k >= 16 && rows >= (desc.transpose_b ? 8 : 96) &&
         rows * desc.k * 4 <= packedBytes;
}

StreamedMatmul::StreamedMatmul(const TileKernels &kernels, const drt_matmul_desc &desc, int parts, int64_t begin,
                               int64_t end, Scratch &scratch)
    : kernels(kernels), desc(desc), rows(desc.m * parts), begin(begin), end(end) {
  int64_t width = kernels.columns;
  if (desc.transpose_b) {
    packedA = Buffer(scratch, floats(roundUp(rows, width) * desc.k + kernels.lanes));
    product = Buffer(scratch, floats(tilesOfChunk * kernels.rows * roundUp(rows, width)));
  } else {
    packedA = Buffer(scratch, floats(rows * chunkSteps + kernels.lanes));
    packedB = Buffer(scratch, floats(2 * chunkSteps * chunkColumns));
    product = Buffer(scratch, floats(rows * roundUp(end - begin, width)));
  }
}

const float *StreamedMatmul::rowOf(ReplicatedOperand a, int64_t row) const {
  return reinterpret_cast<const float *>(static_cast<const char *>(a.base) + row / desc.m * a.stride) +
         row % desc.m * desc.k;
}

float *StreamedMatmul::rowOf(float *c, int64_t cStride, int64_t row) const {
  return reinterpret_cast<float *>(reinterpret_cast<char *>(c) + row / desc.m * cStride) + row % desc.m * desc.n +
         begin;
}

void StreamedMatmul::run(ReplicatedOperand a, const float *b, const float *bias, float *c, int64_t cStride) {
  const int64_t width = kernels.columns, columns = end - begin;
  desc.transpose_b ? multiplyTransposed(a, b, c, cStride) : multiplyPlain(a, b);
  const float *panels = product.as<float>();
  for (int64_t row = 0; row < rows; ++row) {
    float *to = rowOf(c, cStride, row);
    for (int64_t column = 0; !desc.transpose_b && column < columns; column += width)
      std::copy_n(panels + column * rows + row * width, std::min(width, columns - column), to + column);
    applyEpilogue(desc.epilogue, desc.has_bias ? bias + begin : nullptr, 1, columns, to);
  }
}

// A group of rows for each tile; within it a step's rows behind each other.
void StreamedMatmul::packRows(ReplicatedOperand a, int64_t step, int64_t depth) {
  const float *from[maxLanes];
  float *group = packedA.as<float>();
  for (int64_t first = 0; first < rows; first += kernels.rows) {
    int count = static_cast<int>(std::min<int64_t>(kernels.rows, rows - first));
    for (int row = 0; row < count; ++row)
      from[row] = rowOf(a, first + row) + step;
    kernels.transpose(from, count, depth, group, count);
    group += count * depth;
  }
}

void StreamedMatmul::multiplyPlain(ReplicatedOperand a, const float *b) {
  const int64_t width = kernels.columns, columns = end - begin, n = desc.n, k = desc.k;
  const int64_t wholeColumns = columns / width * width;
  const int64_t cuts = (k + chunkSteps - 1) / chunkSteps, longest = (k + cuts - 1) / cuts;
  float *now = packedB.as<float>(), *next = now + chunkSteps * chunkColumns;
  auto packing = [&](int64_t step, int64_t column, float *to) { // of the chunk that starts there
    int64_t depth = step < k ? std::min(longest, k - step) : 0;
    int64_t panels = column < wholeColumns ? std::min(chunkColumns, wholeColumns - column) / width : 0;
    return Packing(b + step * n + begin + column, n, panels > 0 ? depth : 0, panels, to, depth * width);
  };
  Packing start = packing(0, 0, now);
  kernels.finish(start);
  for (int64_t step = 0; step < k; step += longest) {
    const int64_t depth = std::min(longest, k - step);
    packRows(a, step, depth);
    for (int64_t chunk = 0; chunk < columns; chunk += chunkColumns) {
      bool last = chunk + chunkColumns >= columns;
      Packing errand = last ? packing(step + longest, 0, next) : packing(step, chunk + chunkColumns, next);
      for (int64_t column = chunk; column < std::min(columns, chunk + chunkColumns); column += width) {
        float *panel = now + (column - chunk) * depth;
        for (int64_t i = 0; column >= wholeColumns && i < depth; ++i)
          std::fill(std::copy_n(b + (step + i) * n + begin + column, columns - column, panel + i * width),
                    panel + (i + 1) * width, 0.0f);
        const float *group = packedA.as<float>();
        for (int64_t first = 0; first < rows; first += kernels.rows) {
          int64_t count = std::min<int64_t>(kernels.rows, rows - first);
          kernels.packing(
              {depth, group, 0, panel, product.as<float>() + column * rows + first * width, width, step > 0},
              static_cast<int>(count), errand);
          group += count * depth;
        }
      }
      kernels.finish(errand);
      std::swap(now, next);
    }
  }
}

// Panels of the replicas' rows; within one, a step's rows behind each other.
void StreamedMatmul::packColumns(ReplicatedOperand a) {
  const float *from[maxLanes];
  const int64_t width = kernels.columns, k = desc.k;
  float *panel = packedA.as<float>();
  for (int64_t first = 0; first < rows; first += kernels.lanes) {
    int count = static_cast<int>(std::min<int64_t>(kernels.lanes, rows - first));
    for (int row = 0; row < count; ++row)
      from[row] = rowOf(a, first + row);
    kernels.transpose(from, count, k, panel + first / width * width * k + first % width, width);
  }
}

// Columns [first, last) of the product, which lie behind each other.
void StreamedMatmul::unpack(const float *transposed, int64_t pitch, int64_t first, int64_t last, float *c,
                            int64_t cStride) {
  const float *from[maxLanes];
  for (int64_t replica = 0; replica < rows / desc.m; ++replica) {
    float *to = rowOf(c, cStride, replica * desc.m) - begin;
    const float *source = transposed + replica * desc.m;
    int64_t column = first;
    for (; column + kernels.lanes <= last; column += kernels.lanes, source += kernels.lanes * pitch) {
      for (int lane = 0; lane < kernels.lanes; ++lane)
        from[lane] = source + lane * pitch;
      kernels.transpose(from, kernels.lanes, desc.m, to + column, desc.n);
    }
    for (; column < last; ++column, source += pitch) // not whole: the next columns are another replica's
      for (int64_t row = 0; row < desc.m; ++row)
        to[row * desc.n + column] = source[row];
  }
}

void StreamedMatmul::multiplyTransposed(ReplicatedOperand a, const float *b, float *c, int64_t cStride) {
  const int64_t width = kernels.columns, k = desc.k, padded = roundUp(rows, width);
  const int64_t chunkRows = tilesOfChunk * kernels.rows;
  packColumns(a);
  float *transposed = product.as<float>();
  for (int64_t chunk = begin; chunk < end; chunk += chunkRows) {
    int64_t chunkEnd = std::min(end, chunk + chunkRows), following = std::min(end, chunkEnd + chunkRows) - chunkEnd;
    int64_t tiles = padded / width * ((chunkEnd - chunk + kernels.rows - 1) / kernels.rows);
    Prefetch errand(following * k * 4, tiles * (k / errandPeriod));
    errand.add(b + chunkEnd * k);
    for (int64_t step = 0; step < k; step += transposedSteps) {
      int64_t depth = std::min(transposedSteps, k - step);
      for (int64_t column = 0; column < padded; column += width)
        for (int64_t first = chunk; first < chunkEnd; first += kernels.rows)
          kernels.prefetching({depth, b + first * k + step, k, packedA.as<float>() + column * k + step * width,
                               transposed + (first - chunk) * padded + column, padded, step > 0},
                              static_cast<int>(std::min<int64_t>(kernels.rows, chunkEnd - first)), errand);
    }
    unpack(transposed, padded, chunk, chunkEnd, c, cStride);
  }
}
