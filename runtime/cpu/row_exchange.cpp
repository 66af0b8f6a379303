//===- row_exchange.cpp - Rows of a table that one task holds -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/row_exchange.h"
#include "core/error.h"

#include <algorithm>
#include <numeric>

namespace drt {

void RowExchange::collect(const Table &table, const drt_bucket &plan, const std::vector<RowRequest> &requests) {
  positions_.clear();
  asked_.assign(1, 0);
  for (const RowRequest &request : requests)
    for (int64_t i = 0; i < plan.count; ++i)
      if (const int64_t row = indexOf(plan, request.indices, i); row >= 0 && row < table.rows)
        if (positions_.try_emplace(row, asked_.front()).second) {
          asked_.push_back(row);
          ++asked_.front();
        }
}

void RowExchange::pull(Communicator &communicator, int owner, const Table &table, const drt_bucket &plan,
                       const std::vector<int64_t> &replicas, const std::vector<RowRequest> &requests) {
  const auto tasks = static_cast<size_t>(communicator.size());
  const auto own = static_cast<size_t>(communicator.rank()), ownerRank = static_cast<size_t>(owner);
  const bool isOwner = own == ownerRank;
  constexpr auto indexBytes = static_cast<int64_t>(sizeof(int64_t));
  // The owner asks itself for nothing.
  const auto words = [&](size_t task) { return task == ownerRank ? 0 : 1 + replicas[task] * plan.count; };
  collect(table, plan, requests);
  asked_.resize(static_cast<size_t>(std::max<int64_t>(words(own), static_cast<int64_t>(asked_.size()))));
  to_.assign(tasks, 0);
  from_.assign(tasks, 0);
  to_[ownerRank] = words(own) * indexBytes;
  int64_t all = 0;
  for (size_t task = 0; isOwner && task < tasks; ++task) {
    from_[task] = words(task) * indexBytes;
    all += words(task);
  }
  wanted_.resize(static_cast<size_t>(all));
  communicator.all_to_all(asked_.data(), to_, wanted_.data(), from_);

  sent_.clear();
  to_.assign(tasks, 0);
  from_.assign(tasks, 0);
  const int64_t *next = wanted_.data();
  for (size_t task = 0; isOwner && task < tasks; ++task) {
    if (words(task) == 0)
      continue;
    const int64_t count = *next;
    // What is read here must be there, whoever asks.
    if (count < 0 || count >= words(task))
      throw Error("a task asks for " + std::to_string(count) + " rows of a table at once: an internal error");
    for (int64_t i = 1; i <= count; ++i) {
      if (next[i] < 0 || next[i] >= table.rows)
        throw Error("a task asks for row " + std::to_string(next[i]) + " of a table of " + std::to_string(table.rows) +
                    ": an internal error");
      const char *row = table.data + next[i] * table.rowBytes;
      sent_.insert(sent_.end(), row, row + table.rowBytes);
    }
    to_[task] = count * table.rowBytes;
    next += words(task);
  }
  from_[ownerRank] = isOwner ? 0 : asked_.front() * table.rowBytes;
  received_.resize(static_cast<size_t>(from_[ownerRank]));
  communicator.all_to_all(sent_.data(), to_, received_.data(), from_);
  for (const RowRequest &request : requests)
    takeRows(plan, table.rows, table.rowBytes, request, [&](int64_t row) {
      return isOwner ? table.data + row * table.rowBytes : received_.data() + positions_.at(row) * table.rowBytes;
    });
}

void RowExchange::push(Communicator &communicator, const drt_bucket &plan, const std::vector<int64_t> &replicas,
                       const std::vector<RowPush> &pushes) {
  const auto tasks = static_cast<size_t>(communicator.size()), own = static_cast<size_t>(communicator.rank());
  const int64_t indexBytes = plan.dtype == DRT_I64 ? 8 : 4, bytes = plan.count * indexBytes;
  const auto rowBytes = static_cast<size_t>(plan.members[0].columns);
  const auto ownerOf = [&](int64_t row) {
    for (const drt_member *shard = plan.members; shard != plan.members + plan.num_members; ++shard)
      if (row >= shard->offset && row < shard->offset + shard->count)
        return static_cast<size_t>(shard->owner - 1);
    return tasks;
  };
  std::vector<bool> owns(tasks);
  for (int32_t i = 0; i < plan.num_members; ++i)
    owns[static_cast<size_t>(plan.members[i].owner - 1)] = true;

  // What a row's values are for both ends know by the indices.
  const auto prepare = [&] {
    to_.assign(tasks, 0);
    from_.assign(tasks, 0);
    sent_.clear();
  };
  prepare();
  int64_t all = 0;
  for (size_t task = 0; task < tasks; ++task) {
    if (task == own)
      continue;
    if (owns[task])
      for (const RowPush &push : pushes) {
        const auto *data = static_cast<const char *>(push.indices);
        sent_.insert(sent_.end(), data, data + bytes);
        to_[task] += bytes;
      }
    if (owns[own])
      from_[task] = replicas[task] * bytes;
    all += from_[task];
  }
  indices_.resize(static_cast<size_t>(all));
  communicator.all_to_all(sent_.data(), to_, indices_.data(), from_);

  prepare();
  for (size_t task = 0; task < tasks; ++task) {
    if (task == own || !owns[task])
      continue;
    for (const RowPush &push : pushes)
      for (int64_t i = 0; i < plan.count; ++i)
        if (ownerOf(indexOf(plan, push.indices, i)) == task) {
          const char *row = static_cast<const char *>(push.values) + static_cast<size_t>(i) * rowBytes;
          sent_.insert(sent_.end(), row, row + rowBytes);
          to_[task] += static_cast<int64_t>(rowBytes);
        }
  }
  const char *given = indices_.data();
  for (size_t task = 0; task < tasks; ++task)
    if (task != own && owns[own]) {
      for (int64_t i = 0; i < replicas[task] * plan.count; ++i)
        if (ownerOf(indexOf(plan, given, i)) == own)
          from_[task] += static_cast<int64_t>(rowBytes);
      given += replicas[task] * bytes;
    }
  received_.resize(static_cast<size_t>(std::accumulate(from_.begin(), from_.end(), int64_t{0})));
  communicator.all_to_all(sent_.data(), to_, received_.data(), from_);

  if (pushes.empty())
    return;
  auto *indices = static_cast<char *>(pushes[0].allIndices), *values = static_cast<char *>(pushes[0].allValues);
  const char *rows = received_.data();
  given = indices_.data();
  for (size_t task = 0; task < tasks; ++task)
    for (int64_t replica = 0; replica < replicas[task]; ++replica) {
      const RowPush *push = task == own ? &pushes[static_cast<size_t>(replica)] : nullptr;
      const void *from = push ? push->indices : given;
      for (int64_t i = 0; i < plan.count; ++i, indices += indexBytes, values += rowBytes) {
        const bool isHere = owns[own] && ownerOf(indexOf(plan, from, i)) == own;
        if (isHere)
          std::memcpy(indices, static_cast<const char *>(from) + i * indexBytes, static_cast<size_t>(indexBytes));
        else
          std::memset(indices, 0xff, static_cast<size_t>(indexBytes)); // -1
        if (!isHere) {
          std::memset(values, 0, rowBytes);
        } else if (push) {
          std::memcpy(values, static_cast<const char *>(push->values) + static_cast<size_t>(i) * rowBytes, rowBytes);
        } else {
          std::memcpy(values, rows, rowBytes);
          rows += rowBytes;
        }
      }
      if (!push && owns[own])
        given += bytes;
    }
  const auto count = static_cast<size_t>(std::accumulate(replicas.begin(), replicas.end(), int64_t{0}) * plan.count);
  for (size_t i = 1; i < pushes.size(); ++i) {
    std::memcpy(pushes[i].allIndices, pushes[0].allIndices, count * static_cast<size_t>(indexBytes));
    std::memcpy(pushes[i].allValues, pushes[0].allValues, count * rowBytes);
  }
}

} // namespace drt
