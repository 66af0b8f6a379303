//===- rows.cpp - drt.h's operations on rows by index ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "cpu/task.h"
#include "drt/drt.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

using namespace drt;

namespace {

int64_t indexAt(const void *indices, int32_t dtype, int64_t i) {
  return dtype == DRT_I64 ? static_cast<const int64_t *>(indices)[i] : static_cast<const int32_t *>(indices)[i];
}

void store(void *numbers, int32_t dtype, int64_t i, int64_t value) {
  if (dtype == DRT_I64)
    static_cast<int64_t *>(numbers)[i] = value;
  else
    static_cast<int32_t *>(numbers)[i] = static_cast<int32_t>(value);
}

// A function of its own, so that the string is gone when the replica escapes.
const char *describe(char (&text)[160], int64_t index, int64_t size) {
  std::snprintf(text, sizeof text, "index %lld is outside of the %lld rows; the data names a row that is not there",
                static_cast<long long>(index), static_cast<long long>(size));
  return text;
}

[[noreturn]] void failOutside(drt_replica *replica, int64_t index, int64_t size) {
  char text[160];
  drt_fail(replica, describe(text, index, size));
  __builtin_unreachable();
}

// Whether index i is inside of every axis; where it is not, `axis` is the first.
bool isInside(const drt_indices_desc &d, const void *indices, int64_t i, int32_t &axis) {
  for (axis = 0; axis < d.rows.depth; ++axis) {
    const int64_t index = indexAt(indices, d.rows.index_dtype, i * d.rows.depth + axis);
    if (index == -1 && d.padded)
      return true;
    if (index < 0 || index >= d.rows.sizes[axis])
      return false;
  }
  return true;
}

const char *describe(char (&text)[512], const drt_replica *replica, const drt_indices_desc &d, const void *indices,
                     int64_t i, int32_t axis, const char *name) {
  char row[128] = "";
  if (d.per_row > 0)
    std::snprintf(row, sizeof row, " in row %lld of the batch of step %lld",
                  static_cast<long long>((replica->global_index * d.rows.count + i) / d.per_row),
                  static_cast<long long>(replica->step));
  std::snprintf(text, sizeof text,
                "%.200s has %lld%s, which is outside of [0, %lld); correct the data (--no-asserts when compiling "
                "leaves this check out)",
                name, static_cast<long long>(indexAt(indices, d.rows.index_dtype, i * d.rows.depth + axis)), row,
                static_cast<long long>(d.rows.sizes[axis]));
  return text;
}

// Apart, so that the loop is short, and the text is gone when the replica escapes.
[[noreturn]] void failOutside(drt_replica *replica, const drt_indices_desc &d, const void *indices, int64_t i,
                              int32_t axis, const char *name) {
  char text[512];
  drt_fail(replica, describe(text, replica, d, indices, i, axis, name));
  __builtin_unreachable();
}

// The number of the slice that index i names; -1: padding, which names none.
int64_t sliceOf(drt_replica *replica, const drt_rows_desc &d, const void *indices, int64_t i) {
  int64_t slice = 0;
  for (int32_t axis = 0; axis < d.depth; ++axis) {
    const int64_t index = indexAt(indices, d.index_dtype, i * d.depth + axis);
    if (index < 0)
      return -1;
    if (index >= d.sizes[axis])
      failOutside(replica, index, d.sizes[axis]);
    slice = slice * d.sizes[axis] + index;
  }
  return slice;
}

// What changes nothing.
template <class T> T neutral(int32_t kind) {
  switch (kind) {
  case DRT_SCATTER_MUL:
    return 1;
  case DRT_SCATTER_MIN:
    return std::numeric_limits<T>::max();
  case DRT_SCATTER_MAX:
    return std::numeric_limits<T>::lowest();
  }
  return 0;
}

// `fromNothing`: of a segment, where NaN takes the place of what came before, and what comes behind it its own, as
// TensorFlow's kernel has it; else a row that is there keeps what it has.
template <class T> void combine(T *out, const T *update, int64_t count, int32_t kind, bool fromNothing) {
  // Integers wrap around as TensorFlow's: signed ones must not overflow.
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (kind) {
  case DRT_SCATTER_UPDATE:
    std::copy_n(update, count, out);
    return;
  case DRT_SCATTER_ADD:
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<T>(static_cast<Sum>(out[i]) + static_cast<Sum>(update[i]));
    return;
  case DRT_SCATTER_SUB:
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<T>(static_cast<Sum>(out[i]) - static_cast<Sum>(update[i]));
    return;
  case DRT_SCATTER_MUL:
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<T>(static_cast<Sum>(out[i]) * static_cast<Sum>(update[i]));
    return;
  case DRT_SCATTER_MIN:
    for (int64_t i = 0; i < count; ++i)
      out[i] = fromNothing ? std::min(update[i], out[i]) : std::min(out[i], update[i]);
    return;
  case DRT_SCATTER_MAX:
    for (int64_t i = 0; i < count; ++i)
      out[i] = fromNothing ? std::max(update[i], out[i]) : std::max(out[i], update[i]);
    return;
  }
}

template <class T>
void scatter(drt_replica *replica, const drt_scatter_desc &d, const T *initial, const void *indices, const T *updates,
             T *out) {
  if (initial)
    std::copy_n(initial, d.elements, out);
  else
    std::fill_n(out, d.elements, neutral<T>(d.kind));
  for (int64_t i = 0; i < d.rows.count; ++i)
    if (const int64_t slice = sliceOf(replica, d.rows, indices, i); slice >= 0)
      combine(out + slice * d.rows.row, updates + i * d.rows.row, d.rows.row, d.kind, !initial);
}

// Multiplies so that neighbouring numbers spread over the table (Knuth, The Art of Computer Programming, 6.4).
uint64_t spread(int64_t value) { return static_cast<uint64_t>(value) * 0x9E3779B97F4A7C15u; }

template <class T> void unique(drt_replica *r, const drt_unique_desc &d, const T *x, T *y, void *idx, void *counts) {
  int bits = 4;
  while ((int64_t(1) << bits) < 2 * d.count)
    ++bits;
  const int64_t slots = int64_t(1) << bits, mask = slots - 1;
  // Positions in y, by the value that lies there; -1 is free.
  auto *table = static_cast<int64_t *>(Replica::of(r).scratch(slots * static_cast<int64_t>(sizeof(int64_t))));
  std::fill_n(table, slots, int64_t(-1));
  int64_t distinct = 0;
  for (int64_t i = 0; i < d.count; ++i) {
    int64_t slot = static_cast<int64_t>(spread(static_cast<int64_t>(x[i])) >> (64 - bits));
    while (table[slot] >= 0 && y[table[slot]] != x[i])
      slot = (slot + 1) & mask;
    if (table[slot] < 0) {
      table[slot] = distinct;
      y[distinct] = x[i];
      if (counts)
        store(counts, d.index_dtype, distinct, 0);
      ++distinct;
    }
    store(idx, d.index_dtype, i, table[slot]);
    if (counts)
      store(counts, d.index_dtype, table[slot], indexAt(counts, d.index_dtype, table[slot]) + 1);
  }
  for (int64_t i = distinct; i < d.count; ++i) {
    y[i] = static_cast<T>(-1);
    if (counts)
      store(counts, d.index_dtype, i, 0);
  }
}

// Begins to bring what will be written into the cache: of a long row its beginning, the rest follows by itself.
void prefetch(const char *row, int64_t bytes) {
  for (int64_t offset = 0; offset < std::min<int64_t>(bytes, 512); offset += 64)
    __builtin_prefetch(row + offset, 1);
}

// What taker `taker` of `takers` updates: the rows of its blocks, in the order of their positions, so that rows which
// occur several times are updated in one order, whatever the number of takers. A block is several rows: neighbours
// share cache lines.
void updateRows(drt_replica *r, const drt_sparse_update_desc &d, const void *indices, const void *values,
                drt_range_kernel kernel, void *const *arguments, int64_t taker, int64_t takers) {
  constexpr int64_t block = 16;
  // The memory fetches so many rows at once; each alone takes longer than its arithmetic.
  constexpr int64_t ahead = 16;
  const int64_t rowBytes = d.rows.row * dtypeSize(d.dtype);
  for (int64_t first = 0; first < d.rows.count; first += ahead) {
    const int64_t last = std::min(first + ahead, d.rows.count);
    int64_t slices[ahead];
    for (int64_t i = first; i < last; ++i) {
      const int64_t slice = sliceOf(r, d.rows, indices, i);
      const bool own = slice >= 0 && slice / block % takers == taker;
      slices[i - first] = own ? slice : -1;
      for (int32_t table = 0; own && table < d.tables; ++table)
        prefetch(static_cast<const char *>(arguments[table]) + slice * rowBytes, rowBytes);
    }
    for (int64_t i = first; i < last; ++i)
      if (const int64_t slice = slices[i - first]; slice >= 0)
        kernel(slice * d.rows.row, (slice + 1) * d.rows.row, static_cast<const char *>(values) + i * rowBytes,
               arguments);
  }
}

template <class T> bool allFinite(const void *x, int64_t count) {
  const T *elements = static_cast<const T *>(x);
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(static_cast<double>(elements[i])))
      return false;
  return true;
}

// Calls fn with a null pointer to the element's type; others end the task.
template <class Fn> void dispatch(drt_replica *replica, int32_t dtype, Fn fn) {
  switch (dtype) {
  case DRT_F32:
    return fn(static_cast<float *>(nullptr));
  case DRT_F64:
    return fn(static_cast<double *>(nullptr));
  case DRT_I64:
    return fn(static_cast<int64_t *>(nullptr));
  case DRT_I32:
    return fn(static_cast<int32_t *>(nullptr));
  case DRT_I16:
    return fn(static_cast<int16_t *>(nullptr));
  case DRT_I8:
    return fn(static_cast<int8_t *>(nullptr));
  case DRT_U8:
  case DRT_BOOL:
    return fn(static_cast<uint8_t *>(nullptr));
  }
  drt_fail(replica, "rows of this element type have no code; cast them to float32 before");
}

} // namespace

extern "C" {

void drt_unique(drt_replica *r, const drt_unique_desc *d, const void *x, void *y, void *idx, void *counts) {
  dispatch(r, d->dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (std::is_integral_v<T>)
      unique(r, *d, static_cast<const T *>(x), static_cast<T *>(y), idx, counts);
    else
      drt_fail(r, "distinct values are found among integers only; cast the values to integers before");
  });
}

void drt_scatter(drt_replica *r, const drt_scatter_desc *d, const void *initial, const void *indices,
                 const void *updates, void *out) {
  dispatch(r, d->dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    scatter(r, *d, static_cast<const T *>(initial), indices, static_cast<const T *>(updates), static_cast<T *>(out));
  });
}

void drt_sparse_update(drt_replica *r, const drt_sparse_update_desc *d, const void *indices, const void *values,
                       drt_range_kernel kernel, void *const *arguments) {
  Replica &replica = Replica::of(r);
  if (d->owner > 0 && !replica.task().isTask(static_cast<int32_t>(d->owner - 1)))
    return;
  // Only the replica's own thread can leave the entry.
  for (int64_t i = 0; replica.cores.size() > 1 && i < d->rows.count; ++i)
    sliceOf(r, d->rows, indices, i);
  replica.onEachCore([&](int core, int cores) {
    updateRows(r, *d, indices, values, kernel, arguments, r->local_index * cores + core, r->local_replicas * cores);
  });
}

void drt_check_indices(drt_replica *r, const drt_indices_desc *d, const void *indices, const char *name) {
  int32_t axis = 0;
  for (int64_t i = 0; i < d->rows.count; ++i)
    if (!isInside(*d, indices, i, axis)) [[unlikely]]
      failOutside(r, *d, indices, i, axis, name);
}

void drt_check_numerics(drt_replica *r, int32_t dtype, int64_t count, const void *x, const char *message) {
  bool finite = true;
  if (dtype == DRT_F64)
    finite = allFinite<double>(x, count);
  else if (dtype == DRT_F32)
    finite = allFinite<float>(x, count);
  else if (dtype == DRT_F16)
    finite = allFinite<_Float16>(x, count);
  if (!finite)
    drt_fail(r, message);
}

} // extern "C"
