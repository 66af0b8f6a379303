//===- packed_operand.cpp - A right operand that is packed once for several products -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/packed_operand.h"

#include "core/memory.h"
#include "cpu/kernels/sgemm.h"
#include "drt/drt.h"

#include <algorithm>

using namespace drt;

namespace {
constexpr int64_t headerBytes = 64; // a cache line, in front of what is packed
constexpr int64_t line = 16;        // floats
} // namespace

PackedForm PackedOperand::form() const {
  return memory ? *reinterpret_cast<const PackedForm *>(memory) : PackedForm::AsItLies;
}

SplitPanels PackedOperand::panels() const { return {memory + headerBytes, k, n}; }

int64_t PackedOperand::blockPitch(int64_t column) const {
  return roundUp(std::min(blockSize, n - column / blockSize * blockSize), line) + line;
}

// Rows of blocks, in each of which they lie behind each other.
const float *PackedOperand::block(int64_t step, int64_t column) const {
  const int64_t first = step / blockSize * blockSize, depth = std::min(blockSize, k - first);
  const int64_t last = columnBlocks() - 1, whole = blockSize + line;
  return reinterpret_cast<const float *>(memory + headerBytes) + first * (last * whole + blockPitch(last * blockSize)) +
         column / blockSize * whole * depth;
}

PackedForm PackedOperand::chooseForm(bool transposed, int64_t pitch) {
  if (matrixUnits())
    return PackedForm::Split;
  return copiesBlocks(transposed, pitch) ? PackedForm::Blocks : PackedForm::AsItLies;
}

int64_t PackedOperand::parts(PackedForm form) const {
  if (form == PackedForm::Split)
    return SplitPanels::count(n);
  return form == PackedForm::Blocks ? (k + blockSize - 1) / blockSize * columnBlocks() : 1;
}

void PackedOperand::pack(PackedForm form, const float *b, bool transposed, int64_t pitch, int64_t bytes, Range range) {
  if (bytes < drt_packed_bytes(k, n))
    form = PackedForm::AsItLies;
  if (range.begin == 0)
    *reinterpret_cast<PackedForm *>(memory) = form;
  if (form == PackedForm::Split)
    panels().pack({b, pitch, !transposed}, range.begin, range.end);
  if (form != PackedForm::Blocks)
    return;
  for (int64_t part = range.begin; part < range.end; ++part) {
    const int64_t step = part / columnBlocks() * blockSize, column = part % columnBlocks() * blockSize;
    float *to = const_cast<float *>(block(step, column));
    for (int64_t row = step; row < std::min(k, step + blockSize); ++row, to += blockPitch(column))
      std::copy_n(b + row * pitch + column, std::min(blockSize, n - column), to);
  }
}
