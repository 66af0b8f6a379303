//===- row_exchange.cpp - Rows of a table that one task holds -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/row_exchange.h"
#include "core/error.h"

#include <algorithm>

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

} // namespace drt
