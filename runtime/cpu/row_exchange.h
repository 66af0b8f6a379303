//===- row_exchange.h - Rows of a table that one task holds ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_ROW_EXCHANGE_H
#define DRT_CPU_ROW_EXCHANGE_H

#include "collectives/communicator.h"
#include "drt/drt.h"

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace drt {

/// What a replica asks for: the bucket's `count` indices, and where a row for each shall be.
struct RowRequest {
  const void *indices = nullptr;
  void *rows = nullptr;
};

/// What a replica gives: the bucket's `count` indices, and a row of values for each; and where those of all replicas
/// shall be, as drt_push_rows says.
struct RowPush {
  const void *indices = nullptr;
  const void *values = nullptr;
  void *allIndices = nullptr;
  void *allValues = nullptr;
};

inline int64_t indexOf(const drt_bucket &plan, const void *indices, int64_t i) {
  return plan.dtype == DRT_I64 ? static_cast<const int64_t *>(indices)[i] : static_cast<const int32_t *>(indices)[i];
}

/// Copies the row of each index from where `find(row)` says; an index that is no row of the `rows` gives zeros.
template <class Find>
void takeRows(const drt_bucket &plan, int64_t rows, int64_t rowBytes, RowRequest request, Find find) {
  char *out = static_cast<char *>(request.rows);
  for (int64_t i = 0; i < plan.count; ++i, out += rowBytes) {
    const int64_t row = indexOf(plan, request.indices, i);
    if (row >= 0 && row < rows)
      std::memcpy(out, find(row), static_cast<size_t>(rowBytes));
    else
      std::memset(out, 0, static_cast<size_t>(rowBytes));
  }
}

/// A bucket of kind DRT_BUCKET_PULL_ROWS, between tasks: each says which rows its replicas need, once each, and the
/// owner sends them. Memory follows from the batch, never from the table. Belongs to one thread.
class RowExchange {
public:
  /// `data` is read in the owner alone.
  struct Table {
    const char *data;
    int64_t rows, rowBytes;
  };

  /// Every task calls it, with the requests of its replicas; `owner` is a rank, and replicas[t] how many requests task
  /// t has at most, the same in every task. Throws as collectives do.
  void pull(Communicator &communicator, int owner, const Table &table, const drt_bucket &plan,
            const std::vector<int64_t> &replicas, const std::vector<RowRequest> &requests);

  /// A bucket of kind DRT_BUCKET_PUSH_ROWS. Every task calls it, with what its replicas give, which are replicas[t] in
  /// task t. Tasks that own nothing receive nothing: every owner has the indices of all, and of each row's values only
  /// the task that owns it.
  void push(Communicator &communicator, const drt_bucket &plan, const std::vector<int64_t> &replicas,
            const std::vector<RowPush> &pushes);

private:
  void collect(const Table &table, const drt_bucket &plan, const std::vector<RowRequest> &requests);

  std::unordered_map<int64_t, int64_t> positions_; // among the rows that are asked for, of each
  // How many rows, and which, with room for as many as there can be: so nobody need be told the length before. Own, and
  // in the owner those of all tasks.
  std::vector<int64_t> asked_, wanted_;
  std::vector<int64_t> to_, from_;
  std::vector<char> sent_, received_, indices_;
};

} // namespace drt

#endif // DRT_CPU_ROW_EXCHANGE_H
