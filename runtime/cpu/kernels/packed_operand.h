//===- packed_operand.h - A right operand that is packed once for several products -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_PACKED_OPERAND_H
#define DRT_CPU_KERNELS_PACKED_OPERAND_H

#include "core/ranges.h"
#include "cpu/kernels/split_matmul.h"

#include <cstdint>

namespace drt {

/// What a machine's products would else make of a right operand of float32 each time.
enum class PackedForm : int64_t {
  AsItLies, // nothing of our own: the library takes it where it lies, or packs it by itself
  Split,    // parts for matrix units (SplitPanels)
  Blocks,   // copied by blocks into rows that do not collide in the cache (Feed::Blocks)
};

/// op(b)[k, n] in memory that drt_pack has written, in the form that it says there. What belongs to a product that
/// computes some columns is packed for itself.
class PackedOperand {
public:
  /// Of drt_packed_bytes(k, n), or null: nothing is packed.
  PackedOperand(void *memory, int64_t k, int64_t n) : memory(static_cast<char *>(memory)), k(k), n(n) {}

  PackedForm form() const;
  SplitPanels panels() const;

  /// Of PackedForm::Blocks: rows [step, …) of the columns [column, …) until the next multiple of blockSize, and how far
  /// apart rows lie.
  static constexpr int64_t blockSize = 256;
  const float *block(int64_t step, int64_t column) const;
  int64_t blockPitch(int64_t column) const;

  /// What this machine's products take, of a matrix whose rows lie `pitch` elements apart.
  static PackedForm chooseForm(bool transposed, int64_t pitch);

  /// What cores can pack apart, and to pack some of it; whoever has the first says which form it is. It is
  /// PackedForm::AsItLies where it does not fit in `bytes`.
  int64_t parts(PackedForm form) const;
  void pack(PackedForm form, const float *b, bool transposed, int64_t pitch, int64_t bytes, Range parts);

private:
  int64_t columnBlocks() const { return (n + blockSize - 1) / blockSize; }

  char *memory;
  int64_t k, n;
};

} // namespace drt

#endif // DRT_CPU_KERNELS_PACKED_OPERAND_H
