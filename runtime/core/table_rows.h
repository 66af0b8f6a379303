//===- table_rows.h - Rows of a table by their numbers --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_TABLE_ROWS_H
#define DRT_CORE_TABLE_ROWS_H

#include "drt/drt.h"

#include <cstdint>
#include <cstring>

namespace drt {

/// Numbers of rows, of DRT_I32 or DRT_I64. Does not own them.
struct RowNumbers {
  int32_t dtype;
  const void *data;
  int64_t count;

  int64_t operator[](int64_t i) const {
    return dtype == DRT_I64 ? static_cast<const int64_t *>(data)[i] : static_cast<const int32_t *>(data)[i];
  }
};

/// Copies the row of each number to `out`, one behind the other, from where `find(row)` says; a number that is no row
/// of the table, which has `rows` of them, gives zeros.
template <class Find> void takeRows(const RowNumbers &numbers, int64_t rows, int64_t rowBytes, void *out, Find find) {
  char *next = static_cast<char *>(out);
  for (int64_t i = 0; i < numbers.count; ++i, next += rowBytes)
    if (const int64_t row = numbers[i]; row >= 0 && row < rows)
      std::memcpy(next, find(row), static_cast<size_t>(rowBytes));
    else
      std::memset(next, 0, static_cast<size_t>(rowBytes));
}

} // namespace drt

#endif // DRT_CORE_TABLE_ROWS_H
