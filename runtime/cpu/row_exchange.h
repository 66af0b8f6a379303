//===- row_exchange.h - Rows of a table that one task holds ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_ROW_EXCHANGE_H
#define DRT_CPU_ROW_EXCHANGE_H

#include "collectives/communicator.h"
#include "core/table_rows.h"
#include "drt/drt.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace drt {

/// What a replica asks for: of each member of the bucket its indices, and where a row for each shall be.
struct RowRequest {
  void *const *indices = nullptr;
  void *const *rows = nullptr;
};

/// A member of a bucket of kind DRT_BUCKET_PULL_ROWS.
struct PulledTable {
  int owner;        // a rank
  const char *data; // is read in the owner alone
  int64_t rows, rowBytes;
  int64_t count; // a replica's indices
};

/// What a replica gives of each table of the bucket: its indices, and a row of values for each; and where those of all
/// replicas shall be, as drt_push_rows says.
struct RowPush {
  void *const *indices = nullptr;
  void *const *values = nullptr;
  void *const *allIndices = nullptr;
  void *const *allValues = nullptr;
};

inline int64_t indexOf(const drt_bucket &plan, const void *indices, int64_t i) {
  return RowNumbers{plan.dtype, indices, 0}[i];
}

/// Copies the row of each index of a replica from where `find(row)` says.
template <class Find>
void takeRows(const drt_bucket &plan, const PulledTable &table, const void *indices, void *rows, Find find) {
  takeRows({plan.dtype, indices, table.count}, table.rows, table.rowBytes, rows, find);
}

/// A bucket of kind DRT_BUCKET_PULL_ROWS, between tasks: each says which rows of each table its replicas need, once
/// each, and their owners send them; two exchanges, however many tables there are. Memory follows from the batch, never
/// from a table. Belongs to one thread.
class RowExchange {
public:
  /// Every task calls it, with the requests of its replicas; replicas[t] is how many requests task t has at most, the
  /// same in every task. Throws as collectives do.
  void pull(Communicator &communicator, const std::vector<PulledTable> &tables, const drt_bucket &plan,
            const std::vector<int64_t> &replicas, const std::vector<RowRequest> &requests);

  /// A bucket of kind DRT_BUCKET_PUSH_ROWS, in two exchanges as well. Every task calls it, with what its replicas give,
  /// which are replicas[t] in task t. A task that owns nothing of a table receives nothing of it: every owner has the
  /// indices of all, and of each row's values only the task that owns it.
  void push(Communicator &communicator, const drt_bucket &plan, const std::vector<int64_t> &replicas,
            const std::vector<RowPush> &pushes);

private:
  struct Asked {
    std::unordered_map<int64_t, int64_t> positions; // among the rows of the table that are asked for, of each
    size_t begin;                                   // in asked_
    int64_t received;                               // bytes in front of its rows
  };

  /// Appends to asked_ which rows of bucket member number `member` the replicas need.
  void ask(const PulledTable &table, Asked &asked, const drt_bucket &plan, const std::vector<RowRequest> &requests,
           size_t member);
  /// Appends to sent_ what a task wants of a table of this one, in `most` words; returns the bytes.
  int64_t answer(const PulledTable &table, const int64_t *wanted, int64_t most);

  std::vector<Asked> tables_;
  // A table: how many rows, and which, with room for as many as there can be, so that nobody need be told the length
  // before. Those for each owner together. Own, and those that all tasks want of this one.
  std::vector<int64_t> asked_, wanted_;
  std::vector<int64_t> to_, from_;
  std::vector<char> sent_, received_, indices_;
};

} // namespace drt

#endif // DRT_CPU_ROW_EXCHANGE_H
