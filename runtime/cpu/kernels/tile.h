//===- tile.h - One tile of a product, in registers -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The innermost loops of the products in streamed.h. While a tile is multiplied,
// the memory that comes next is fetched: a tile takes an errand along, of which
// it runs one step every few steps of its own. The arithmetic hides the errand
// where the processor alone, which does not see past a panel's end, would wait.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_TILE_H
#define DRT_CPU_KERNELS_TILE_H

#include <cstdint>
#include <utility>

namespace drt {

/// c[rows, columns] = (or +=, with `add`) the sum over `depth` steps of left[step, row] * right[step, column].
/// right is packed: a step's columns behind each other, on a cache line. left is packed
/// too (a step's rows behind each other) with leftPitch = 0; else row r's steps lie
/// behind each other at left + r * leftPitch. Distances are in elements.
struct Tile {
  int64_t depth;
  const float *left;
  int64_t leftPitch;
  const float *right;
  float *c;
  int64_t ldc;
  bool add;
};

/// An errand: the same range of up to `maxStreams` arrays, which are going to be written, is fetched, some lines a
/// step.
class Prefetch {
public:
  static constexpr int maxStreams = 4;

  Prefetch() = default;
  /// `steps`: how often `step` will be called.
  Prefetch(int64_t bytes, int64_t steps)
      : end(bytes), linesPerStep(steps > 0 ? (bytes / lineBytes + steps - 1) / steps : 0) {}
  void add(const void *from) {
    if (streams < maxStreams)
      at[streams++] = static_cast<const char *>(from);
  }

  template <int lanes> [[gnu::always_inline]] void step() {
    for (int64_t line = 0; line < linesPerStep && next < end; ++line, next += lineBytes)
      for (int stream = 0; stream < streams; ++stream)
        __builtin_prefetch(at[stream] + next, 1, 2);
  }

private:
  static constexpr int64_t lineBytes = 64;
  const char *at[maxStreams] = {};
  int streams = 0;
  int64_t next = 0, end = 0, linesPerStep = 0;
};

/// An errand: `rows` rows of `panels` panels, which lie side by side at `from`, are packed, each panel's rows behind
/// each other at `to`. Rows that follow are fetched. What the tiles left is done by `finish`.
class Packing {
public:
  Packing(const float *from, int64_t pitch, int64_t rows, int64_t panels, float *to, int64_t panelPitch)
      : from(from), to(to), pitch(pitch), rows(panels > 0 ? rows : 0), panels(panels), panelPitch(panelPitch),
        rowsOfTerm(rows) {}
  /// Rows of several matrices of `rowsOfTerm` rows each, from row `first` of the first one on; `column` of each.
  Packing(const void *const *terms, int64_t rowsOfTerm, int64_t first, int64_t column, int64_t pitch, int64_t rows,
          int64_t panels, float *to, int64_t panelPitch)
      : from(static_cast<const float *>(*terms) + first * pitch + column), to(to), pitch(pitch),
        rows(panels > 0 ? rows : 0), panels(panels), panelPitch(panelPitch), terms(terms), rowsOfTerm(rowsOfTerm),
        ownRow(first), column(column) {}

  template <int lanes> [[gnu::always_inline]] void step() {
    typedef float Vector __attribute__((vector_size(lanes * 4)));
    typedef float Loose __attribute__((vector_size(lanes * 4), aligned(4)));
    if (row >= rows)
      return;
    const float *source = from + panel * 2 * lanes;
    float *target = to + panel * panelPitch + row * 2 * lanes;
    for (int half = 0; half < 2; ++half) {
      __builtin_prefetch(source + rowsAhead * pitch + half * lanes, 0, 2);
      *reinterpret_cast<Vector *>(target + half * lanes) = *reinterpret_cast<const Loose *>(source + half * lanes);
    }
    if (++panel == panels)
      nextRow();
  }

  template <int lanes> [[gnu::always_inline]] void finish() {
    while (row < rows)
      step<lanes>();
  }

private:
  [[gnu::always_inline]] void nextRow() {
    panel = 0;
    from += pitch;
    if (++row < rows && ++ownRow == rowsOfTerm) {
      ownRow = 0;
      from = static_cast<const float *>(*++terms) + column;
    }
  }

  static constexpr int64_t rowsAhead = 2;
  const float *from; // the row
  float *to;
  int64_t pitch, rows, panels, panelPitch;
  const void *const *terms = nullptr;
  int64_t rowsOfTerm, ownRow = 0, column = 0;
  int64_t row = 0, panel = 0;
};

/// Steps of a tile between two of its errand.
constexpr int errandPeriod = 8;

// Always inlined, so that it is compiled for the machine of the function around it.
template <int lanes, int rows, bool packedLeft, class Errand>
[[gnu::always_inline]] inline void multiplyTile(const Tile &tile, Errand &given) {
  typedef float Vector __attribute__((vector_size(lanes * 4)));
  typedef float Loose __attribute__((vector_size(lanes * 4), aligned(4)));
  Vector acc[rows][2] = {};
  Errand errand = given; // in registers
  const float *right = tile.right, *left = tile.left;
  // Three rows' addresses reach the others with what an instruction can add.
  const int64_t pitch = tile.leftPitch;
  const float *bases[3] = {left, left + 4 * pitch, left + 8 * pitch};
  auto step = [&]() __attribute__((always_inline)) {
    Vector first = *reinterpret_cast<const Vector *>(right), second = *reinterpret_cast<const Vector *>(right + lanes);
    right += 2 * lanes;
#pragma GCC unroll 12
    for (int row = 0; row < rows; ++row) {
      float factor = packedLeft ? left[row] : bases[row / 4][row % 4 * pitch];
      acc[row][0] += factor * first;
      acc[row][1] += factor * second;
    }
    left += rows;
    for (const float *&base : bases)
      ++base;
  };
  int64_t at = 0;
  for (; at + errandPeriod <= tile.depth; at += errandPeriod) {
    errand.template step<lanes>();
#pragma GCC unroll 8
    for (int i = 0; i < errandPeriod; ++i)
      step();
  }
  for (; at < tile.depth; ++at)
    step();
  given = errand;
#pragma GCC unroll 12
  for (int row = 0; row < rows; ++row)
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      auto *to = reinterpret_cast<Loose *>(tile.c + row * tile.ldc + half * lanes);
      *to = tile.add ? *to + acc[row][half] : acc[row][half];
    }
}

// Exchanges the elements of two vectors whose index has the bit `half` with those of the other where it has not.
template <int half, class Vector, int... index>
[[gnu::always_inline]] inline void exchange(Vector &a, Vector &b, std::integer_sequence<int, index...>) {
  constexpr int lanes = sizeof...(index);
  Vector low = __builtin_shufflevector(a, b, ((index & half) ? lanes + index - half : index)...);
  b = __builtin_shufflevector(a, b, ((index & half) ? lanes + index : index + half)...);
  a = low;
}

template <int lanes, int half = lanes / 2, class Vector>
[[gnu::always_inline]] inline void transposeSquare(Vector (&square)[lanes]) {
#pragma GCC unroll 16
  for (int row = 0; row < lanes; ++row)
    if (!(row & half))
      exchange<half>(square[row], square[row + half], std::make_integer_sequence<int, lanes>());
  if constexpr (half > 1)
    transposeSquare<lanes, half / 2>(square);
}

/// to[i * pitch + row] = from[row][i] for `count` <= lanes rows of `depth` elements. What follows the rows of a step,
/// up to `lanes` elements, is overwritten: steps are written in order.
template <int lanes>
[[gnu::always_inline]] inline void transposeRows(const float *const *from, int count, int64_t depth, float *to,
                                                 int64_t pitch) {
  typedef float Vector __attribute__((vector_size(lanes * 4)));
  typedef float Loose __attribute__((vector_size(lanes * 4), aligned(4)));
  int64_t at = 0;
  for (; at + lanes <= depth; at += lanes) {
    Vector square[lanes] = {};
    if (count == lanes) {
#pragma GCC unroll 16
      for (int row = 0; row < lanes; ++row)
        square[row] = *reinterpret_cast<const Loose *>(from[row] + at);
    } else {
      for (int row = 0; row < count; ++row)
        square[row] = *reinterpret_cast<const Loose *>(from[row] + at);
    }
    transposeSquare<lanes>(square);
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i)
      *reinterpret_cast<Loose *>(to + (at + i) * pitch) = square[i];
  }
  for (; at < depth; ++at)
    for (int row = 0; row < count; ++row)
      to[at * pitch + row] = from[row][at];
}

} // namespace drt

#endif // DRT_CPU_KERNELS_TILE_H
