//===- sgemm.cpp - oneDNN's sgemm, fed so that it stays fast -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/sgemm.h"
#include "core/memory.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/packed_operand.h"
#include "cpu/kernels/split_matmul.h"
#include "cpu/kernels/tiles.h"

#include <algorithm>
#include <vector>

using namespace drt;

namespace {
constexpr int64_t panelRows = 128;
constexpr int64_t collidingElements = 512, smallestColliding = 1024;

// Of b, copied: half of the second-level cache, and rows a cache line longer than what they hold.
constexpr int64_t blockSize = PackedOperand::blockSize, blockPitch = blockSize + 16;
constexpr int64_t collidingBlocks = 256, leastBlockRows = 12, leastBlockColumns = 16;

// What the library packs by itself where it has 256 bits (nocopy_checker_avx2 of its gemm_driver.cpp).
bool isPackedByLibrary(const GemmShape &s) {
  constexpr int64_t least = 378;
  return s.m >= least && s.n >= least && s.k >= least && 1.0 / s.m + 1.0 / s.n < 0.0038;
}
} // namespace

bool drt::feedsByBlocks() {
  return tileKernels() && tileKernels()->lanes == 8 && usedLibraryThreads && usedLibraryThreads() == 1;
}

bool drt::copiesBlocks(bool transposed, int64_t pitch) {
  return feedsByBlocks() && !transposed && pitch % collidingBlocks == 0;
}

Feed drt::chooseFeed(const GemmShape &s) {
  if (s.transposeB || s.n <= 1)
    return Feed::Whole;
  if (feedsByBlocks())
    return s.m >= leastBlockRows && s.n >= leastBlockColumns && copiesBlocks(s.transposeB, s.ldb) &&
                   !isPackedByLibrary(s)
               ? Feed::Blocks
               : Feed::Whole;
  const bool widest = tileKernels() && tileKernels()->lanes == 16;
  return widest && s.k > panelRows && s.ldb >= smallestColliding && s.ldb % collidingElements == 0 ? Feed::CutAlongK
                                                                                                   : Feed::Whole;
}

// c += scale * product, where own loops have no scale.
static void ownSgemm(const GemmShape &s, float scale, const float *a, const float *b, float *c) {
  if (scale == 1.0f)
    return gemm(s, a, b, c);
  GemmShape dense = s;
  dense.ldc = s.n;
  dense.accumulate = false;
  std::vector<float> product(static_cast<size_t>(s.m * s.n));
  gemm(dense, a, b, product.data());
  for (int64_t row = 0; row < s.m; ++row)
    for (int64_t column = 0; column < s.n; ++column) {
      float &to = c[row * s.ldc + column];
      to = (s.accumulate ? to : 0.0f) + scale * product[static_cast<size_t>(row * s.n + column)];
    }
}

void drt::blockSgemm(const GemmShape &s, float scale, const float *a, const float *b, float *c,
                     const PackedOperand *packed) {
  if (packed && packed->form() != PackedForm::Blocks)
    packed = nullptr;
  static thread_local const Memory copied(blockSize * blockPitch * static_cast<int64_t>(sizeof(float)));
  float *block = reinterpret_cast<float *>(copied.data());
  for (int64_t step = 0; step < s.k; step += blockSize)
    for (int64_t column = 0; column < s.n; column += blockSize) {
      GemmShape part = s;
      part.n = std::min(blockSize, s.n - column);
      part.ldb = packed ? packed->blockPitch(column) : blockPitch;
      const int64_t depth = std::min(blockSize, s.k - step);
      for (int64_t row = 0; !packed && row < depth; ++row)
        std::copy_n(b + (step + row) * s.ldb + column, part.n, block + row * blockPitch);
      librarySgemm(part, depth, scale, a + (s.transposeA ? step * s.lda : step),
                   packed ? packed->block(step, column) : block, s.accumulate || step > 0 ? 1.0f : 0.0f, c + column);
    }
}

void drt::sgemm(const GemmShape &s, float scale, const float *a, const float *b, float *c,
                const PackedOperand *packed) {
  if (!suitsMatrixUnits(s))
    return vectorSgemm(s, scale, a, b, c, packed);
  const LeftOperand left = {a, c};
  splitMatmul(s, scale, {&left, 1}, b, packed);
}

void drt::vectorSgemm(const GemmShape &s, float scale, const float *a, const float *b, float *c,
                      const PackedOperand *packed) {
  if (!librarySgemm)
    return ownSgemm(s, scale, a, b, c);
  const Feed feed = chooseFeed(s);
  if (feed == Feed::Blocks)
    return blockSgemm(s, scale, a, b, c, packed);
  int64_t step = feed == Feed::CutAlongK ? panelRows : std::max<int64_t>(1, s.k);
  for (int64_t begin = 0; begin < s.k; begin += step) {
    const float *from = a + (s.transposeA ? begin * s.lda : begin);
    const float *with = b + (s.transposeB ? begin : begin * s.ldb);
    librarySgemm(s, std::min(step, s.k - begin), scale, from, with, s.accumulate || begin > 0 ? 1.0f : 0.0f, c);
  }
}
