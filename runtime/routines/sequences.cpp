//===- sequences.cpp - drt.h's routines on labels, sparse places and rows that do not increase ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace {

/// The first length of `count` that is not from [0, steps]; `count` where all are.
int64_t findWrongLength(const int32_t *lengths, int64_t count, int64_t steps) {
  return std::find_if(lengths, lengths + count, [&](int32_t length) { return length < 0 || length > steps; }) - lengths;
}

template <typename T> void decodeGreedily(const int64_t *p, void *const *tensors) {
  const int64_t steps = p[1], examples = p[2], classes = p[3];
  const T *scores = static_cast<const T *>(tensors[0]);
  const int32_t *lengths = static_cast<const int32_t *>(tensors[1]);
  int64_t *places = static_cast<int64_t *>(tensors[2]), *labels = static_cast<int64_t *>(tensors[3]),
          *sizes = static_cast<int64_t *>(tensors[4]);
  T *sums = static_cast<T *>(tensors[5]);
  int64_t found = 0, longest = 0;
  for (int64_t example = 0; example < examples; ++example) {
    sums[example] = 0;
    int64_t before = -1, length = 0;
    for (int64_t step = 0; step < lengths[example]; ++step) {
      const T *row = scores + (step * examples + example) * classes;
      int64_t best = 0;
      for (int64_t label = 1; label < classes; ++label)
        if (row[label] > row[best])
          best = label;
      sums[example] -= row[best];
      if (best != p[5] && !(p[4] && best == before)) {
        places[2 * found] = example;
        places[2 * found + 1] = length++;
        labels[found++] = best;
      }
      before = best;
    }
    longest = std::max(longest, length);
  }
  sizes[0] = examples;
  sizes[1] = longest;
  std::fill(places + 2 * found, places + 2 * steps * examples, -1);
  std::fill(labels + found, labels + steps * examples, 0);
}

/// Levenshtein's, with one row of the table.
int64_t distance(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// The sequence of each cell of the result; false where a place is of none.
bool readSequences(const int64_t *sizes, int64_t axes, int64_t count, const void *places, const void *values,
                   std::vector<std::vector<int64_t>> &cells) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t *place = static_cast<const int64_t *>(places) + i * (axes + 1);
    if (std::find(place, place + axes + 1, -1) != place + axes + 1)
      continue;
    int64_t cell = 0;
    for (int64_t axis = 0; axis < axes; ++axis) {
      if (place[axis] < 0 || place[axis] >= sizes[axis])
        return false;
      cell = cell * sizes[axis] + place[axis];
    }
    cells[cell].push_back(static_cast<const int64_t *>(values)[i]);
  }
  return true;
}

bool compareSequences(const int64_t *p, int64_t axes, void *const *tensors) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < axes; ++axis)
    count *= p[3 + axis];
  std::vector<std::vector<int64_t>> hypotheses(count), truths(count);
  if (!readSequences(p + 3, axes, p[0], tensors[0], tensors[1], hypotheses) ||
      !readSequences(p + 3, axes, p[1], tensors[2], tensors[3], truths))
    return false;
  for (int64_t cell = 0; cell < count; ++cell) {
    const auto edits = static_cast<float>(distance(hypotheses[cell], truths[cell]));
    const auto length = static_cast<float>(truths[cell].size());
    // Of nothing that should be there: none, or infinitely many times as much.
    const float relative = edits == 0 ? 0 : length == 0 ? std::numeric_limits<float>::infinity() : edits / length;
    static_cast<float *>(tensors[4])[cell] = p[2] ? relative : edits;
  }
  return true;
}

/// Pool adjacent violators: Kruskal, Nonmetric multidimensional scaling, 1964.
template <typename T> void regress(const int64_t *p, void *const *tensors) {
  struct Piece {
    int64_t begin, end;
    T sum, mean;
  };
  const int64_t columns = p[2];
  std::vector<Piece> pieces;
  for (int64_t row = 0; row < p[1]; ++row) {
    const T *x = static_cast<const T *>(tensors[0]) + row * columns;
    T *y = static_cast<T *>(tensors[1]) + row * columns;
    int32_t *numbers = static_cast<int32_t *>(tensors[2]) + row * columns;
    pieces.clear();
    for (int64_t column = 0; column < columns; ++column) {
      pieces.push_back({column, column + 1, x[column], x[column]});
      while (pieces.size() > 1 && pieces.back().mean > pieces[pieces.size() - 2].mean) {
        Piece &before = pieces[pieces.size() - 2];
        before.end = pieces.back().end;
        before.sum += pieces.back().sum;
        before.mean = before.sum / static_cast<T>(before.end - before.begin);
        pieces.pop_back();
      }
    }
    for (size_t piece = 0; piece < pieces.size(); ++piece) {
      std::fill(y + pieces[piece].begin, y + pieces[piece].end, pieces[piece].mean);
      std::fill(numbers + pieces[piece].begin, numbers + pieces[piece].end, static_cast<int32_t>(piece));
    }
  }
}

} // namespace

void drt_routine_ctc_greedy_decoder(drt_replica *replica, const int64_t *p, void *const *tensors) {
  if (findWrongLength(static_cast<const int32_t *>(tensors[1]), p[2], p[1]) != p[2])
    drt_fail(replica, "a sequence_length is negative or more than there are steps");
  p[0] == DRT_F32 ? decodeGreedily<float>(p, tensors) : decodeGreedily<double>(p, tensors);
}

void drt_routine_edit_distance(drt_replica *replica, const int64_t *p, void *const *tensors) {
  if (!compareSequences(p + 1, p[0], tensors))
    drt_fail(replica, "a place of a sparse tensor is outside of its shape");
}

void drt_routine_isotonic_regression(drt_replica *, const int64_t *p, void *const *tensors) {
  p[0] == DRT_F32 ? regress<float>(p, tensors) : regress<double>(p, tensors);
}

void drt_routine_sparse_block(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t count = p[0], axes = p[1];
  const int64_t *places = static_cast<const int64_t *>(tensors[0]), *start = static_cast<const int64_t *>(tensors[1]),
                *size = static_cast<const int64_t *>(tensors[2]);
  int64_t *rows = static_cast<int64_t *>(tensors[3]), *inBlock = static_cast<int64_t *>(tensors[4]), found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t *place = places + i * axes;
    bool isInside = true;
    for (int64_t axis = 0; axis < axes; ++axis)
      isInside &= place[axis] >= 0 && place[axis] >= start[axis] && place[axis] - start[axis] < size[axis];
    if (!isInside)
      continue;
    rows[found] = i;
    for (int64_t axis = 0; axis < axes; ++axis)
      inBlock[found * axes + axis] = place[axis] - start[axis];
    ++found;
  }
  std::fill(rows + found, rows + count, -1);
  std::fill(inBlock + found * axes, inBlock + count * axes, -1);
}

void drt_routine_sparse_block_rows(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t count = p[0], axes = p[1], most = p[2];
  const int64_t *places = static_cast<const int64_t *>(tensors[0]), *start = static_cast<const int64_t *>(tensors[1]),
                *inBlock = static_cast<const int64_t *>(tensors[2]);
  int64_t *rows = static_cast<int64_t *>(tensors[3]), next = 0;
  // Both are in one order.
  for (int64_t i = 0; i < count; ++i) {
    bool isNext = next < most;
    for (int64_t axis = 0; axis < axes && isNext; ++axis) {
      const int64_t at = inBlock[next * axes + axis];
      isNext = at >= 0 && places[i * axes + axis] - start[axis] == at;
    }
    rows[i] = isNext ? next++ : -1;
  }
}
