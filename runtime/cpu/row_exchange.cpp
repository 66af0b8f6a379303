//===- row_exchange.cpp - Rows of a table that one task holds -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/row_exchange.h"
#include "core/error.h"
#include "core/row_buckets.h"

#include <algorithm>
#include <numeric>

namespace drt {

void RowExchange::pull(Communicator &communicator, const std::vector<PulledTable> &tables, const drt_bucket &plan,
                       const std::vector<int64_t> &replicas, const std::vector<RowRequest> &requests) {
  const auto tasks = static_cast<size_t>(communicator.size());
  const int own = communicator.rank();
  constexpr auto indexBytes = static_cast<int64_t>(sizeof(int64_t));
  // The owner asks itself for nothing.
  const auto words = [&](int task, const PulledTable &table) {
    return task == table.owner ? 0 : 1 + replicas[static_cast<size_t>(task)] * table.count;
  };
  tables_.resize(tables.size());
  asked_.clear();
  to_.assign(tasks, 0);
  from_.assign(tasks, 0);
  int64_t all = 0;
  for (size_t task = 0; task < tasks; ++task)
    for (size_t i = 0; i < tables.size(); ++i) {
      const PulledTable &table = tables[i];
      if (table.owner == own) {
        const int64_t count = words(static_cast<int>(task), table);
        from_[task] += count * indexBytes;
        all += count;
      } else if (table.owner == static_cast<int>(task)) {
        ask(table, tables_[i], plan, requests, i);
        asked_.resize(tables_[i].begin + static_cast<size_t>(words(own, table)));
        to_[task] += words(own, table) * indexBytes;
      }
    }
  wanted_.resize(static_cast<size_t>(all));
  communicator.all_to_all(asked_.data(), to_, wanted_.data(), from_);

  sent_.clear();
  to_.assign(tasks, 0);
  const int64_t *next = wanted_.data();
  for (size_t task = 0; task < tasks; ++task)
    for (const PulledTable &table : tables)
      if (const int64_t most = table.owner == own ? words(static_cast<int>(task), table) : 0; most > 0) {
        to_[task] += answer(table, next, most);
        next += most;
      }
  from_.assign(tasks, 0);
  int64_t received = 0;
  for (size_t task = 0; task < tasks; ++task)
    for (size_t i = 0; i < tables.size(); ++i)
      if (tables[i].owner == static_cast<int>(task) && tables[i].owner != own) {
        const int64_t bytes = asked_[tables_[i].begin] * tables[i].rowBytes;
        tables_[i].received = received;
        from_[task] += bytes;
        received += bytes;
      }
  received_.resize(static_cast<size_t>(received));
  communicator.all_to_all(sent_.data(), to_, received_.data(), from_);

  for (size_t i = 0; i < tables.size(); ++i) {
    const PulledTable &table = tables[i];
    const Asked &asked = tables_[i];
    for (const RowRequest &request : requests)
      takeRows(plan, table, request.indices[i], request.rows[i], [&](int64_t row) {
        return table.owner == own ? table.data + row * table.rowBytes
                                  : received_.data() + asked.received + asked.positions.at(row) * table.rowBytes;
      });
  }
}

void RowExchange::ask(const PulledTable &table, Asked &asked, const drt_bucket &plan,
                      const std::vector<RowRequest> &requests, size_t member) {
  asked.positions.clear();
  asked.begin = asked_.size();
  asked_.push_back(0);
  for (const RowRequest &request : requests)
    for (int64_t i = 0; i < table.count; ++i)
      if (const int64_t row = indexOf(plan, request.indices[member], i); row >= 0 && row < table.rows)
        if (asked.positions.try_emplace(row, static_cast<int64_t>(asked.positions.size())).second)
          asked_.push_back(row);
  asked_[asked.begin] = static_cast<int64_t>(asked.positions.size());
}

int64_t RowExchange::answer(const PulledTable &table, const int64_t *wanted, int64_t most) {
  const int64_t count = wanted[0];
  // What is read here must be there, whoever asks.
  if (count < 0 || count >= most)
    throw Error("a task asks for " + std::to_string(count) + " rows of a table at once: an internal error");
  for (int64_t i = 1; i <= count; ++i) {
    if (wanted[i] < 0 || wanted[i] >= table.rows)
      throw Error("a task asks for row " + std::to_string(wanted[i]) + " of a table of " + std::to_string(table.rows) +
                  ": an internal error");
    const char *row = table.data + wanted[i] * table.rowBytes;
    sent_.insert(sent_.end(), row, row + table.rowBytes);
  }
  return count * table.rowBytes;
}

namespace {

/// A table of a bucket whose rows are pushed.
struct PushedTable {
  const drt_member *shards;
  int32_t numShards;
  int64_t count; // a replica's indices
  size_t rowBytes;

  /// A rank; none where no shard has the row.
  int ownerOf(int64_t row) const {
    for (const drt_member *shard = shards; shard != shards + numShards; ++shard)
      if (row >= shard->offset && row < shard->offset + shard->count)
        return static_cast<int>(shard->owner - 1);
    return -1;
  }
  bool isOf(int task) const {
    return std::any_of(shards, shards + numShards, [&](const drt_member &shard) { return shard.owner - 1 == task; });
  }
};

std::vector<PushedTable> tablesOf(const drt_bucket &plan) {
  std::vector<PushedTable> tables;
  for (int32_t i = 0; i < plan.num_members; ++i) {
    const drt_member &shard = plan.members[i];
    if (isFirstShard(plan, i))
      tables.push_back({&shard, 0, shard.kept, static_cast<size_t>(shard.columns)});
    ++tables.back().numShards;
  }
  return tables;
}

} // namespace

void RowExchange::push(Communicator &communicator, const drt_bucket &plan, const std::vector<int64_t> &replicas,
                       const std::vector<RowPush> &pushes) {
  const int tasks = communicator.size(), own = communicator.rank();
  const int64_t indexBytes = plan.dtype == DRT_I64 ? 8 : 4;
  const std::vector<PushedTable> tables = tablesOf(plan);
  const auto prepare = [&] {
    to_.assign(static_cast<size_t>(tasks), 0);
    from_.assign(static_cast<size_t>(tasks), 0);
    sent_.clear();
  };
  const auto send = [&](int task, const void *data, size_t bytes) {
    sent_.insert(sent_.end(), static_cast<const char *>(data), static_cast<const char *>(data) + bytes);
    to_[static_cast<size_t>(task)] += static_cast<int64_t>(bytes);
  };
  /// For each table of this task what another gives, in the order in which it comes.
  const auto ofOthers = [&](auto visit) {
    for (int task = 0; task < tasks; ++task)
      for (size_t i = 0; task != own && i < tables.size(); ++i)
        if (tables[i].isOf(own))
          visit(static_cast<size_t>(task), tables[i]);
  };

  // What a row's values are for both ends know by the indices.
  prepare();
  for (int task = 0; task < tasks; ++task)
    for (size_t i = 0; task != own && i < tables.size(); ++i)
      if (tables[i].isOf(task))
        for (const RowPush &push : pushes)
          send(task, push.indices[i], static_cast<size_t>(tables[i].count * indexBytes));
  ofOthers([&](size_t task, const PushedTable &table) { from_[task] += replicas[task] * table.count * indexBytes; });
  indices_.resize(static_cast<size_t>(std::accumulate(from_.begin(), from_.end(), int64_t{0})));
  communicator.all_to_all(sent_.data(), to_, indices_.data(), from_);

  prepare();
  for (int task = 0; task < tasks; ++task)
    for (size_t i = 0; task != own && i < tables.size(); ++i)
      if (const PushedTable &table = tables[i]; table.isOf(task))
        for (const RowPush &push : pushes)
          for (int64_t n = 0; n < table.count; ++n)
            if (table.ownerOf(indexOf(plan, push.indices[i], n)) == task)
              send(task, static_cast<const char *>(push.values[i]) + static_cast<size_t>(n) * table.rowBytes,
                   table.rowBytes);
  const char *given = indices_.data();
  ofOthers([&](size_t task, const PushedTable &table) {
    const int64_t count = replicas[task] * table.count;
    for (int64_t n = 0; n < count; ++n)
      if (table.ownerOf(indexOf(plan, given, n)) == own)
        from_[task] += static_cast<int64_t>(table.rowBytes);
    given += count * indexBytes;
  });
  received_.resize(static_cast<size_t>(std::accumulate(from_.begin(), from_.end(), int64_t{0})));
  communicator.all_to_all(sent_.data(), to_, received_.data(), from_);

  if (pushes.empty())
    return;
  given = indices_.data();
  const char *rows = received_.data();
  std::vector<int64_t> joined(tables.size()); // rows so far
  for (int task = 0; task < tasks; ++task)
    for (size_t i = 0; i < tables.size(); ++i) {
      const PushedTable &table = tables[i];
      const bool isOwned = table.isOf(own);
      for (int64_t replica = 0; replica < replicas[static_cast<size_t>(task)]; ++replica) {
        char *indices = static_cast<char *>(pushes[0].allIndices[i]) + joined[i] * indexBytes;
        char *values = static_cast<char *>(pushes[0].allValues[i]) + static_cast<size_t>(joined[i]) * table.rowBytes;
        const RowPush *push = task == own ? &pushes[static_cast<size_t>(replica)] : nullptr;
        const char *from = push ? static_cast<const char *>(push->indices[i]) : given;
        for (int64_t n = 0; n < table.count; ++n, indices += indexBytes, values += table.rowBytes) {
          if (!isOwned || table.ownerOf(indexOf(plan, from, n)) != own) {
            std::memset(indices, 0xff, static_cast<size_t>(indexBytes)); // -1
            std::memset(values, 0, table.rowBytes);
            continue;
          }
          std::memcpy(indices, from + n * indexBytes, static_cast<size_t>(indexBytes));
          const char *row =
              push ? static_cast<const char *>(push->values[i]) + static_cast<size_t>(n) * table.rowBytes : rows;
          std::memcpy(values, row, table.rowBytes);
          if (!push)
            rows += table.rowBytes;
        }
        if (!push && isOwned)
          given += table.count * indexBytes;
        joined[i] += table.count;
      }
    }
  for (size_t r = 1; r < pushes.size(); ++r)
    for (size_t i = 0; i < tables.size(); ++i) {
      std::memcpy(pushes[r].allIndices[i], pushes[0].allIndices[i], static_cast<size_t>(joined[i] * indexBytes));
      std::memcpy(pushes[r].allValues[i], pushes[0].allValues[i], static_cast<size_t>(joined[i]) * tables[i].rowBytes);
    }
}

} // namespace drt
