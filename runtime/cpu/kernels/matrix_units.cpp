//===- matrix_units.cpp - Products of float32 on matrix units of bfloat16 -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/matrix_units.h"

#include "cpu/kernels/tile.h"

#include <algorithm>

#ifdef __x86_64__
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace drt;

#ifdef __x86_64__
// Functions for the machine that has them, as in tiles.cpp.
#define DRT_AMX [[gnu::target("amx-tile,amx-bf16,avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]]

namespace {
constexpr int64_t lanes = 16, half = MatrixUnits::tile;
constexpr int64_t tileBytes = 1024, partBytes = 2 * tileBytes;
static_assert(MatrixUnits::groupBytes == 3 * partBytes && partBytes == 2 * tileBytes);

/// The three parts of 16 floats, each in the upper half of a word whose lower half is zero.
struct Parts {
  __m512i high, middle, low;
};

struct Splitter {
  __m512 witness; // NaN once there was an element without parts

  DRT_AMX [[gnu::always_inline]] inline Splitter() : witness(_mm512_setzero_ps()) {}

  // The first part is rounded, so that what is left has either sign and the products that are left out cancel; 15 bits
  // are left, so that the others are exact.
  DRT_AMX [[gnu::always_inline]] inline Parts split(__m512 value) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    Parts parts;
    parts.high = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(value), _mm512_set1_epi32(0x8000)), upper);
    const __m512 rest = _mm512_sub_ps(value, _mm512_castsi512_ps(parts.high));
    witness = _mm512_fmadd_ps(rest, _mm512_setzero_ps(), witness);
    parts.middle = _mm512_and_si512(_mm512_castps_si512(rest), upper);
    parts.low = _mm512_castps_si512(_mm512_sub_ps(rest, _mm512_castsi512_ps(parts.middle)));
    return parts;
  }

  DRT_AMX [[gnu::always_inline]] inline bool allHaveParts() const {
    return _mm512_cmp_ps_mask(witness, witness, _CMP_UNORD_Q) == 0;
  }
};

DRT_AMX [[gnu::always_inline]] inline __mmask16 maskOf(int64_t count) {
  return static_cast<__mmask16>(count >= lanes ? 0xffff : count <= 0 ? 0 : (1u << count) - 1);
}

// Steps 0 to 15 and 16 to 31 of a row.
DRT_AMX [[gnu::always_inline]] inline void storeRow(const Parts &first, const Parts &second, char *to) {
  const __m512i upper =
      _mm512_set_epi32(0x003f003d, 0x003b0039, 0x00370035, 0x00330031, 0x002f002d, 0x002b0029, 0x00270025, 0x00230021,
                       0x001f001d, 0x001b0019, 0x00170015, 0x00130011, 0x000f000d, 0x000b0009, 0x00070005, 0x00030001);
  _mm512_store_si512(to, _mm512_permutex2var_epi16(first.high, upper, second.high));
  _mm512_store_si512(to + partBytes, _mm512_permutex2var_epi16(first.middle, upper, second.middle));
  _mm512_store_si512(to + 2 * partBytes, _mm512_permutex2var_epi16(first.low, upper, second.low));
}

DRT_AMX [[gnu::always_inline]] inline __m512i pairWords(__m512i even, __m512i odd) {
  return _mm512_or_si512(_mm512_srli_epi32(even, 16), odd);
}

// Two steps of 16 columns, side by side.
DRT_AMX [[gnu::always_inline]] inline void storePair(const Parts &even, const Parts &odd, char *to) {
  _mm512_store_si512(to, pairWords(even.high, odd.high));
  _mm512_store_si512(to + partBytes, pairWords(even.middle, odd.middle));
  _mm512_store_si512(to + 2 * partBytes, pairWords(even.low, odd.low));
}

typedef float Vector __attribute__((vector_size(64)));

// Rows of an operand in memory: that many elements apart, or wherever they lie.
struct DenseRows {
  const float *first;
  int64_t pitch;
  const float *operator[](int64_t row) const { return first + row * pitch; }
};
struct AnyRows {
  const float *const *rows;
  const float *operator[](int64_t row) const { return rows[row]; }
};

// square = up to 16 rows of up to 16 elements, transposed.
template <class Rows>
DRT_AMX [[gnu::always_inline]] inline void loadTransposed(const Rows &from, int64_t rows, int64_t columns,
                                                          Vector (&square)[lanes]) {
  const __mmask16 mask = maskOf(columns);
#pragma GCC unroll 16
  for (int64_t row = 0; row < lanes; ++row)
    square[row] = row < rows ? (Vector)_mm512_maskz_loadu_ps(mask, from[row]) : Vector{};
  transposeSquare<lanes>(square);
}

DRT_AMX [[gnu::always_inline]] inline void clearTile(char *tile) {
  for (int64_t row = 0; row < half; ++row)
    storeRow({}, {}, tile + row * 64);
}

// A tile of the left operand, of `count` lanes and `steps` steps: rows in memory are lanes, or, in two halves, steps.
template <class Rows>
DRT_AMX [[gnu::always_inline]] inline void packLanes(const Rows &from, int64_t count, int64_t steps, __m512 factor,
                                                     Splitter &splitter, char *tile) {
  const __mmask16 low = maskOf(steps), high = maskOf(steps - lanes);
  for (int64_t row = 0; row < count; ++row)
    storeRow(splitter.split(_mm512_maskz_loadu_ps(low, from[row]) * factor),
             splitter.split(_mm512_maskz_loadu_ps(high, from[row] + lanes) * factor), tile + row * 64);
  for (int64_t row = count; row < half; ++row)
    storeRow({}, {}, tile + row * 64);
}
template <class Rows>
DRT_AMX [[gnu::always_inline]] inline void packSteps(const Rows &first, const Rows &second, int64_t count,
                                                     int64_t steps, __m512 factor, Splitter &splitter, char *tile) {
  Vector low[lanes], high[lanes];
  loadTransposed(first, steps, count, low);
  loadTransposed(second, steps - lanes, count, high);
#pragma GCC unroll 16
  for (int64_t row = 0; row < lanes; ++row)
    storeRow(splitter.split((__m512)low[row] * factor), splitter.split((__m512)high[row] * factor), tile + row * 64);
}

DRT_AMX bool packLeft(const SplitOperand &left, const SplitRange &range, float scale, char *to) {
  Splitter splitter;
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t panel = 0; panel < range.lanes; panel += MatrixUnits::panel)
    for (int64_t step = 0; step < range.depth; step += MatrixUnits::group, to += MatrixUnits::groupBytes)
      for (int64_t first = panel; first < panel + MatrixUnits::panel; first += half) {
        char *tile = to + (first - panel) / half * tileBytes;
        const int64_t count = std::min(half, range.lanes - first), steps = range.depth - step;
        if (count <= 0) {
          clearTile(tile);
          continue;
        }
        const DenseRows rows = {left.at(range.step + step, range.lane + first), left.pitch};
        if (left.stepsAreRows)
          packSteps(rows, {rows[lanes], left.pitch}, count, steps, factor, splitter, tile);
        else
          packLanes(rows, count, steps, factor, splitter, tile);
      }
  return splitter.allHaveParts();
}

DRT_AMX bool packRows(const float *const *rows, bool stepsAreRows, int64_t depth, int64_t count, char *to) {
  Splitter splitter;
  const __m512 one = _mm512_set1_ps(1.0f);
  for (int64_t panel = 0; panel < count; panel += MatrixUnits::panel)
    for (int64_t step = 0; step < depth; step += MatrixUnits::group, to += MatrixUnits::groupBytes)
      for (int64_t first = panel; first < panel + MatrixUnits::panel; first += half) {
        char *tile = to + (first - panel) / half * tileBytes;
        if (first >= count) {
          clearTile(tile);
        } else if (stepsAreRows) {
          const AnyRows low = {rows + first / half * depth + step};
          packSteps(low, {low.rows + lanes}, half, depth - step, one, splitter, tile);
        } else {
          packLanes(AnyRows{rows + step / MatrixUnits::group * count + first}, std::min(half, count - first),
                    MatrixUnits::group, one, splitter, tile);
        }
      }
  return splitter.allHaveParts();
}

// Packs a panel of the right operand step by step.
class RightPacker {
public:
  DRT_AMX [[gnu::always_inline]] inline explicit RightPacker(const PanelPacking &packing)
      : right(packing.right), range(packing.range), to(packing.to),
        perGroup(right.stepsAreRows ? MatrixUnits::group : 4) {
    if (range.depth > 0)
      from = right.at(range.step, range.lane);
  }

  int64_t steps() const { return (range.depth + MatrixUnits::group - 1) / MatrixUnits::group * perGroup; }

  // Two steps of the operand times 16 columns, or, where its rows are columns, 16 times 16. The panel that follows is
  // fetched.
  DRT_AMX [[gnu::always_inline]] inline void step() {
    right.stepsAreRows ? packPair() : packSquare();
    if (++next < perGroup)
      return;
    next = 0;
    done += MatrixUnits::group;
    to += MatrixUnits::groupBytes;
    if (done < range.depth)
      from = right.at(range.step + done, range.lane);
  }

  DRT_AMX [[gnu::always_inline]] inline bool allHaveParts() const { return splitter.allHaveParts(); }

private:
  // Both halves of a row behind each other.
  DRT_AMX [[gnu::always_inline]] inline void packPair() {
    const int64_t pair = next >> 1, column = (next & 1) * half, left = range.depth - done - 2 * pair;
    const __mmask16 mask = maskOf(range.lanes - column);
    const float *even = from + 2 * pair * right.pitch + column, *odd = even + right.pitch;
    _mm_prefetch(even + MatrixUnits::panel, _MM_HINT_T1);
    _mm_prefetch(odd + MatrixUnits::panel, _MM_HINT_T1);
    storePair(splitter.split(_mm512_maskz_loadu_ps(left > 0 ? mask : 0, even)),
              splitter.split(_mm512_maskz_loadu_ps(left > 1 ? mask : 0, odd)), to + (next & 1) * tileBytes + pair * 64);
  }

  DRT_AMX [[gnu::always_inline]] inline void packSquare() {
    const int64_t first = (next & 1) * lanes, column = (next >> 1) * half, left = range.depth - done;
    const float *rows = from + column * right.pitch + first;
    for (int64_t row = 0; row < lanes; ++row)
      _mm_prefetch(rows + (MatrixUnits::panel + row) * right.pitch, _MM_HINT_T1);
    Vector square[lanes];
    loadTransposed(DenseRows{rows, right.pitch}, range.lanes - column, left - first, square);
    char *tile = to + (next >> 1) * tileBytes + (next & 1) * tileBytes / 2;
#pragma GCC unroll 8
    for (int64_t pair = 0; pair < lanes / 2; ++pair)
      storePair(splitter.split((__m512)square[2 * pair]), splitter.split((__m512)square[2 * pair + 1]),
                tile + pair * 64);
  }

  SplitOperand right;
  SplitRange range;
  const float *from = nullptr; // the group's
  char *to;
  int64_t perGroup, next = 0, done = 0;
  Splitter splitter;
};

DRT_AMX void packRight(PanelPacking &packing) {
  RightPacker packer(packing);
  for (int64_t left = packer.steps(); left > 0; --left)
    packer.step();
  packing.complete = packer.allHaveParts();
}

// An errand of `steps` steps, which are spread over `slots` slots between products of tiles; and the tile of sums that
// follows is fetched, some rows a slot, and what of the left operand comes next.
struct Spread {
  RightPacker packer;
  int64_t steps, slots, due = 0;
  const char *sums = nullptr;
  int64_t rows = 0, pitch = 0, rowsPerSlot = 0; // of what is fetched

  void fetch(const float *from, int64_t count, int64_t bytes, int64_t slotsOfTile) {
    sums = reinterpret_cast<const char *>(from), rows = count, pitch = bytes;
    rowsPerSlot = (count + slotsOfTile - 1) / slotsOfTile;
  }

  // `next`: a tile's worth of memory.
  DRT_AMX [[gnu::always_inline]] inline void slot(const char *next) {
    for (int64_t line = 0; line < tileBytes; line += 64)
      __builtin_prefetch(next + line, 0, 3);
    for (int64_t row = 0; row < rowsPerSlot && rows > 0; ++row, --rows, sums += pitch) {
      __builtin_prefetch(sums, 1, 2);
      __builtin_prefetch(sums + 64, 1, 2);
    }
    for (due += steps; due >= slots; due -= slots)
      packer.step();
  }
};

// Of the tiles 0 to 3 are the sums', 4 and 5 a part of the left operand, 6 and 7 one of the right operand.
template <int count> DRT_AMX [[gnu::always_inline]] inline void takeLeft(const char *from) {
  _tile_loadd(4, from, 64);
  if (count > 1)
    _tile_loadd(5, from + tileBytes, 64);
}
template <int count> DRT_AMX [[gnu::always_inline]] inline void takeRight(const char *from) {
  _tile_loadd(6, from, 64);
  if (count > 1)
    _tile_loadd(7, from + tileBytes, 64);
}
template <int rows, int columns> DRT_AMX [[gnu::always_inline]] inline void multiplyParts() {
  _tile_dpbf16ps(0, 4, 6);
  if (columns > 1)
    _tile_dpbf16ps(1, 4, 7);
  if (rows > 1)
    _tile_dpbf16ps(2, 5, 6);
  if (rows > 1 && columns > 1)
    _tile_dpbf16ps(3, 5, 7);
}

// Rows and columns are counted in tiles; `pitch` in bytes.
template <int rows, int columns>
DRT_AMX void multiplyPanels(const char *left, const char *right, int64_t groups, float *c, int64_t pitch, bool add,
                            Spread &given) {
  Spread errand = given; // in registers
  float *below = c + half * pitch / 4;
  if (add) {
    _tile_loadd(0, c, pitch);
    if (columns > 1)
      _tile_loadd(1, c + half, pitch);
    if (rows > 1)
      _tile_loadd(2, below, pitch);
    if (rows > 1 && columns > 1)
      _tile_loadd(3, below + half, pitch);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  constexpr int64_t high = 0, middle = partBytes, low = 2 * partBytes;
  for (int64_t i = 0; i < groups; ++i, left += MatrixUnits::groupBytes, right += MatrixUnits::groupBytes) {
    const char *next = left + MatrixUnits::groupBytes;
    // One operand of a product stays for the next one. The least products first, and the largest last: what is
    // multiplied by 1 is put together without rounding.
    takeLeft<rows>(left + low);
    takeRight<columns>(right + high);
    multiplyParts<rows, columns>();
    errand.slot(next);
    takeLeft<rows>(left + middle);
    multiplyParts<rows, columns>();
    errand.slot(next + tileBytes);
    takeRight<columns>(right + middle);
    multiplyParts<rows, columns>();
    errand.slot(next + 2 * tileBytes);
    takeLeft<rows>(left + high);
    multiplyParts<rows, columns>();
    errand.slot(next + 3 * tileBytes);
    takeRight<columns>(right + low);
    multiplyParts<rows, columns>();
    errand.slot(next + 4 * tileBytes);
    takeRight<columns>(right + high);
    multiplyParts<rows, columns>();
    errand.slot(next + 5 * tileBytes);
  }
  given = errand;
  _tile_stored(0, c, pitch);
  if (columns > 1)
    _tile_stored(1, c + half, pitch);
  if (rows > 1)
    _tile_stored(2, below, pitch);
  if (rows > 1 && columns > 1)
    _tile_stored(3, below + half, pitch);
}

struct [[gnu::packed]] TileConfiguration {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t bytesOfRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

// A panel of rows. Whole tiles are written where they belong.
DRT_AMX void multiplyRows(const char *left, int64_t height, const char *right, int64_t groups, int64_t columns,
                          float *c, int64_t ldc, bool add, Spread &errand) {
  constexpr int64_t panel = MatrixUnits::panel;
  alignas(64) float aside[panel * panel];
  const bool whole = height % half == 0 && columns % half == 0;
  float *to = whole ? c : aside;
  const int64_t pitch = (whole ? ldc : panel) * 4;
  if (height > half && columns > half)
    multiplyPanels<2, 2>(left, right, groups, to, pitch, whole && add, errand);
  else if (height > half)
    multiplyPanels<2, 1>(left, right, groups, to, pitch, whole && add, errand);
  else if (columns > half)
    multiplyPanels<1, 2>(left, right, groups, to, pitch, whole && add, errand);
  else
    multiplyPanels<1, 1>(left, right, groups, to, pitch, whole && add, errand);
  for (int64_t row = 0; !whole && row < height; ++row)
    for (int64_t column = 0; column < columns; ++column)
      c[row * ldc + column] = aside[row * panel + column] + (add ? c[row * ldc + column] : 0.0f);
}

DRT_AMX void multiply(std::span<const PackedRows> rows, const char *right, int64_t depth, int64_t column,
                      int64_t columns, int64_t ldc, bool add, PanelPacking &next) {
  static const TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  const int64_t panelBytes = MatrixUnits::panelBytes(depth), groups = panelBytes / MatrixUnits::groupBytes;
  constexpr int64_t panel = MatrixUnits::panel, slotsOfGroup = 6;
  int64_t panels = 0;
  for (const PackedRows &of : rows)
    panels += (of.count + panel - 1) / panel;
  const RightPacker packer(next);
  Spread errand = {packer, packer.steps(), panels * groups * slotsOfGroup};
  for (size_t i = 0; i < rows.size(); ++i) {
    const PackedRows &of = rows[i];
    const char *left = of.left;
    float *c = of.c + column;
    for (int64_t row = 0; row < of.count; row += panel, left += panelBytes, c += panel * ldc) {
      const bool isLast = row + panel >= of.count;
      const PackedRows *behind = isLast && i + 1 < rows.size() ? &rows[i + 1] : nullptr;
      errand.fetch(behind ? behind->c + column : c + panel * ldc,
                   std::clamp<int64_t>(behind ? behind->count : of.count - row - panel, 0, panel), ldc * 4,
                   groups * slotsOfGroup);
      multiplyRows(left, std::min(panel, of.count - row), right, groups, columns, c, ldc, add, errand);
    }
  }
  _tile_release();
  next.complete = errand.packer.allHaveParts();
}

// The system keeps the tiles of a process only if it has asked for them.
bool systemKeepsTiles() {
  constexpr long requestState = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, requestState, tileData) == 0;
}
} // namespace

const MatrixUnits *drt::matrixUnits() {
  static constexpr MatrixUnits units = {packLeft, packRows, packRight, multiply};
  static const bool present = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
                              __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                              systemKeepsTiles();
  return present ? &units : nullptr;
}
#else
const MatrixUnits *drt::matrixUnits() { return nullptr; }
#endif
