//===- row_exchange_test.cpp - Rows of a table that one task holds --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "cpu/row_exchange.h"
#include "test/unit/support/in_process_communicator.h"

#include <catch2/catch.hpp>

#include <functional>
#include <random>
#include <thread>

using namespace drt;

namespace {

constexpr int64_t tableRows = 37, columns = 5;

drt_bucket planOf(const drt_member &member, int32_t dtype, int64_t count) {
  return {"pull 0", DRT_BUCKET_PULL_ROWS, dtype, DRT_REDUCE_SUM, 0, count, 1, &member, nullptr, 0, 0};
}

/// Runs what each task does, all at once; none may count anything wrong.
void checkInEachTask(int32_t tasks, const std::function<void(int32_t, Communicator &, int64_t &)> &run) {
  InProcessGroup group(tasks);
  std::vector<int64_t> wrong(static_cast<size_t>(tasks));
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < tasks; ++t)
    threads.emplace_back([&, t] { run(t, group.member(t), wrong[t]); });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == std::vector<int64_t>(static_cast<size_t>(tasks)));
}

} // namespace

TEST_CASE("every replica has the rows that it asks for, whoever holds the table") {
  const int32_t tasks = GENERATE(1, 2, 3), dtype = GENERATE(DRT_I32, DRT_I64);
  const int64_t count = GENERATE(1, 200);
  const int32_t owner = tasks - 1;
  std::vector<float> table(tableRows * columns);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<float>(i) - 50.5f;
  const drt_member member = {"table", 0, tableRows * columns, columns, 0, owner + 1, 0, 0};
  const drt_bucket plan = planOf(member, dtype, count);
  checkInEachTask(tasks, [&](int32_t t, Communicator &communicator, int64_t &wrong) {
    RowExchange exchange;
    std::vector<int64_t> most;
    for (int32_t other = 0; other < tasks; ++other)
      most.push_back(1 + other);
    std::mt19937 random(static_cast<uint32_t>(t));
    // Exchanges of all kinds behind each other: nobody asks, this task only answers, rows that are none.
    for (int round = 0; round < 4; ++round) {
      const int replicas = round == 1 && t > 0 ? 0 : round == 2 ? 0 : 1 + t;
      std::vector<std::vector<int64_t>> wide(static_cast<size_t>(replicas), std::vector<int64_t>(count));
      std::vector<std::vector<int32_t>> narrow(static_cast<size_t>(replicas), std::vector<int32_t>(count));
      std::vector<std::vector<float>> rows(static_cast<size_t>(replicas), std::vector<float>(count * columns, 7));
      std::vector<RowRequest> requests;
      for (size_t r = 0; r < static_cast<size_t>(replicas); ++r) {
        for (int64_t i = 0; i < count; ++i) {
          wide[r][i] = static_cast<int64_t>(random() % (tableRows + 3)) - 1; // -1 and 37, 38: no rows
          narrow[r][i] = static_cast<int32_t>(wide[r][i]);
        }
        const void *indices = dtype == DRT_I64 ? static_cast<const void *>(wide[r].data()) : narrow[r].data();
        requests.push_back({indices, rows[r].data()});
      }
      const char *data = t == owner ? reinterpret_cast<const char *>(table.data()) : nullptr;
      exchange.pull(communicator, owner, {data, tableRows, columns * 4}, plan, most, requests);
      for (size_t r = 0; r < rows.size(); ++r)
        for (int64_t i = 0; i < count * columns; ++i) {
          const int64_t row = wide[r][i / columns];
          const float want = row < 0 || row >= tableRows ? 0 : table[row * columns + i % columns];
          wrong += rows[r][i] != want;
        }
    }
  });
}

TEST_CASE("rows go to who owns them, in the places that they have among those of all replicas") {
  const int32_t tasks = GENERATE(1, 2, 3), dtype = GENERATE(DRT_I32, DRT_I64);
  const int64_t count = GENERATE(1, 50);
  const bool isSplit = GENERATE(false, true);
  // Of a split table the last task has two shards, and where there are three one has none.
  std::vector<drt_member> members;
  if (isSplit)
    members = {{"table", 0, 10, columns * 4, 0, tasks, 0, -1},
               {"table", 10, 20, columns * 4, 0, 1, 0, -1},
               {"table", 30, 7, columns * 4, 0, tasks, 0, -1}};
  else
    members = {{"table", 0, tableRows, columns * 4, 0, tasks, 0, -1}};
  drt_bucket plan = planOf(members[0], dtype, count);
  plan.kind = DRT_BUCKET_PUSH_ROWS;
  plan.num_members = static_cast<int32_t>(members.size());
  std::vector<int64_t> replicas;
  std::vector<std::vector<int64_t>> indices; // of each replica
  std::mt19937 random(7);
  for (int32_t task = 0; task < tasks; ++task) {
    replicas.push_back(1 + task);
    for (int64_t r = 0; r < replicas.back(); ++r) {
      indices.emplace_back(count);
      for (int64_t &index : indices.back())
        index = static_cast<int64_t>(random() % (tableRows + 1)) - 1; // -1 names none
    }
  }
  const auto valueOf = [](size_t replica, int64_t i) { return static_cast<float>(1 + replica * 1000 + i); };
  const auto ownerOf = [&](int64_t row) {
    for (const drt_member &shard : members)
      if (row >= shard.offset && row < shard.offset + shard.count)
        return shard.owner - 1;
    return int64_t{-1};
  };
  checkInEachTask(tasks, [&](int32_t t, Communicator &communicator, int64_t &wrong) {
    RowExchange exchange;
    for (int round = 0; round < 2; ++round) {
      size_t first = 0;
      for (int32_t other = 0; other < t; ++other)
        first += static_cast<size_t>(replicas[other]);
      const auto own = static_cast<size_t>(replicas[t]), all = indices.size();
      std::vector<std::vector<int32_t>> narrow(own), allNarrow(own, std::vector<int32_t>(all * count, 9));
      std::vector<std::vector<int64_t>> allWide(own, std::vector<int64_t>(all * count, 9));
      std::vector<std::vector<float>> values(own, std::vector<float>(count * columns)),
          allValues(own, std::vector<float>(all * count * columns, 9));
      std::vector<RowPush> pushes;
      for (size_t r = 0; r < own; ++r) {
        narrow[r].assign(indices[first + r].begin(), indices[first + r].end());
        for (int64_t i = 0; i < count * columns; ++i)
          values[r][i] = valueOf(first + r, i);
        if (dtype == DRT_I64)
          pushes.push_back({indices[first + r].data(), values[r].data(), allWide[r].data(), allValues[r].data()});
        else
          pushes.push_back({narrow[r].data(), values[r].data(), allNarrow[r].data(), allValues[r].data()});
      }
      exchange.push(communicator, plan, replicas, pushes);
      for (size_t r = 0; r < own; ++r)
        for (size_t from = 0; from < all; ++from)
          for (int64_t i = 0; i < count; ++i) {
            const size_t at = from * count + i;
            const int64_t index = indices[from][i], got = dtype == DRT_I64 ? allWide[r][at] : allNarrow[r][at];
            const bool isHere = ownerOf(index) == t;
            wrong += got != (isHere ? index : -1);
            for (int64_t c = 0; c < columns; ++c)
              wrong += allValues[r][at * columns + c] != (isHere ? valueOf(from, i * columns + c) : 0);
          }
    }
  });
}
