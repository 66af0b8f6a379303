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

TEST_CASE("every replica has the rows that it asks for, of every table, whoever holds it") {
  const int32_t tasks = GENERATE(1, 2, 3), dtype = GENERATE(DRT_I32, DRT_I64);
  const int64_t most = GENERATE(1, 200);
  // The last task has two tables, of other sizes; of the others some have none.
  struct Table {
    int32_t owner;
    int64_t rows, columns, count;
    std::vector<float> data;
  };
  std::vector<Table> tables = {{tasks - 1, tableRows, columns, most, {}}, {0, 5, 1, 3, {}}, {tasks - 1, 8, 2, 1, {}}};
  std::vector<drt_member> members;
  int64_t count = 0;
  for (Table &table : tables) {
    for (int64_t i = 0; i < table.rows * table.columns; ++i)
      table.data.push_back(static_cast<float>(i + 1000 * count) - 50.5f);
    members.push_back({"table", count, table.rows * table.columns, table.columns, 0, table.owner + 1, 0, 0});
    count += table.count;
  }
  drt_bucket plan = planOf(members[0], dtype, count);
  plan.num_members = static_cast<int32_t>(members.size());
  checkInEachTask(tasks, [&](int32_t t, Communicator &communicator, int64_t &wrong) {
    RowExchange exchange;
    std::vector<int64_t> replicasOfTasks;
    for (int32_t other = 0; other < tasks; ++other)
      replicasOfTasks.push_back(1 + other);
    std::vector<PulledTable> pulled;
    for (const Table &table : tables) {
      const char *data = t == table.owner ? reinterpret_cast<const char *>(table.data.data()) : nullptr;
      pulled.push_back({table.owner, data, table.rows, table.columns * 4, table.count});
    }
    std::mt19937 random(static_cast<uint32_t>(t));
    // Exchanges of all kinds behind each other: nobody asks, this task only answers, rows that are none.
    for (int round = 0; round < 4; ++round) {
      struct Asked {
        std::vector<int64_t> wide;
        std::vector<int32_t> narrow;
        std::vector<float> rows;
      };
      const int replicas = round == 1 && t > 0 ? 0 : round == 2 ? 0 : 1 + t;
      std::vector<std::vector<Asked>> asked(static_cast<size_t>(replicas), std::vector<Asked>(tables.size()));
      std::vector<std::vector<void *>> indices(asked.size()), rows(asked.size());
      std::vector<RowRequest> requests;
      for (size_t r = 0; r < asked.size(); ++r) {
        for (size_t i = 0; i < tables.size(); ++i) {
          Asked &of = asked[r][i];
          for (int64_t n = 0; n < tables[i].count; ++n) // -1, and the last two: no rows
            of.wide.push_back(static_cast<int64_t>(random() % static_cast<uint32_t>(tables[i].rows + 3)) - 1);
          of.narrow.assign(of.wide.begin(), of.wide.end());
          of.rows.assign(static_cast<size_t>(tables[i].count * tables[i].columns), 7);
          indices[r].push_back(dtype == DRT_I64 ? static_cast<void *>(of.wide.data()) : of.narrow.data());
          rows[r].push_back(of.rows.data());
        }
        requests.push_back({indices[r].data(), rows[r].data()});
      }
      exchange.pull(communicator, pulled, plan, replicasOfTasks, requests);
      for (const std::vector<Asked> &ofReplica : asked)
        for (size_t i = 0; i < tables.size(); ++i)
          for (size_t n = 0; n < ofReplica[i].rows.size(); ++n) {
            const auto width = static_cast<size_t>(tables[i].columns);
            const int64_t row = ofReplica[i].wide[n / width];
            const bool isNone = row < 0 || row >= tables[i].rows;
            wrong +=
                ofReplica[i].rows[n] != (isNone ? 0 : tables[i].data[static_cast<size_t>(row) * width + n % width]);
          }
    }
  });
}

TEST_CASE("rows go to who owns them, of every table, in the places that they have among those of all replicas") {
  const int32_t tasks = GENERATE(1, 2, 3), dtype = GENERATE(DRT_I32, DRT_I64);
  const int64_t most = GENERATE(1, 50);
  const bool isSplit = GENERATE(false, true);
  // Of a split table the last task has two shards, and where there are three one has none; another is the first task's.
  struct Table {
    int64_t count, columns;
    std::vector<std::vector<int64_t>> indices; // of each replica
  };
  std::vector<Table> tables = {{most, columns, {}}, {3, 2, {}}};
  std::vector<drt_member> members;
  if (isSplit)
    members = {{"table", 0, 10, columns * 4, most, tasks, 0, 0},
               {"table", 10, 20, columns * 4, most, 1, 0, 0},
               {"table", 30, 7, columns * 4, most, tasks, 0, 0}};
  else
    members = {{"table", 0, tableRows, columns * 4, most, tasks, 0, 0}};
  members.push_back({"other", 0, 8, 2 * 4, 3, 1, 0, 1});
  drt_bucket plan = planOf(members[0], dtype, most + 3);
  plan.kind = DRT_BUCKET_PUSH_ROWS;
  plan.num_members = static_cast<int32_t>(members.size());
  std::vector<int64_t> replicas;
  std::mt19937 random(7);
  for (int32_t task = 0; task < tasks; ++task) {
    replicas.push_back(1 + task);
    for (int64_t r = 0; r < replicas.back(); ++r)
      for (Table &table : tables) {
        table.indices.emplace_back(static_cast<size_t>(table.count));
        for (int64_t &index : table.indices.back())
          index = static_cast<int64_t>(random() % (tableRows + 1)) - 1; // -1 names none
      }
  }
  const auto valueOf = [](size_t table, size_t replica, size_t i) {
    return static_cast<float>(1 + (table * 10 + replica) * 1000 + i);
  };
  const auto ownerOf = [&](size_t table, int64_t row) {
    for (const drt_member &shard : members)
      if (shard.variable == static_cast<int64_t>(table) && row >= shard.offset && row < shard.offset + shard.count)
        return shard.owner - 1;
    return int64_t{-1};
  };
  checkInEachTask(tasks, [&](int32_t t, Communicator &communicator, int64_t &wrong) {
    RowExchange exchange;
    for (int round = 0; round < 2; ++round) {
      size_t first = 0;
      for (int32_t other = 0; other < t; ++other)
        first += static_cast<size_t>(replicas[other]);
      struct Given {
        std::vector<int32_t> narrow, allNarrow;
        std::vector<int64_t> wide, allWide;
        std::vector<float> values, allValues;
      };
      const auto own = static_cast<size_t>(replicas[t]), all = tables[0].indices.size();
      std::vector<std::vector<Given>> given(own, std::vector<Given>(tables.size()));
      std::vector<std::vector<void *>> indices(own), values(own), allIndices(own), allValues(own);
      std::vector<RowPush> pushes;
      for (size_t r = 0; r < own; ++r) {
        for (size_t i = 0; i < tables.size(); ++i) {
          Given &of = given[r][i];
          const auto count = static_cast<size_t>(tables[i].count), width = static_cast<size_t>(tables[i].columns);
          of.wide = tables[i].indices[first + r];
          of.narrow.assign(of.wide.begin(), of.wide.end());
          of.allWide.assign(all * count, 9);
          of.allNarrow.assign(all * count, 9);
          of.allValues.assign(all * count * width, 9);
          for (size_t n = 0; n < count * width; ++n)
            of.values.push_back(valueOf(i, first + r, n));
          const bool isWide = dtype == DRT_I64;
          indices[r].push_back(isWide ? static_cast<void *>(of.wide.data()) : of.narrow.data());
          allIndices[r].push_back(isWide ? static_cast<void *>(of.allWide.data()) : of.allNarrow.data());
          values[r].push_back(of.values.data());
          allValues[r].push_back(of.allValues.data());
        }
        pushes.push_back({indices[r].data(), values[r].data(), allIndices[r].data(), allValues[r].data()});
      }
      exchange.push(communicator, plan, replicas, pushes);
      for (const std::vector<Given> &ofReplica : given)
        for (size_t i = 0; i < tables.size(); ++i)
          for (size_t from = 0; from < all; ++from)
            for (size_t n = 0; n < static_cast<size_t>(tables[i].count); ++n) {
              const size_t at = from * static_cast<size_t>(tables[i].count) + n;
              const auto width = static_cast<size_t>(tables[i].columns);
              const int64_t index = tables[i].indices[from][n],
                            got = dtype == DRT_I64 ? ofReplica[i].allWide[at] : ofReplica[i].allNarrow[at];
              const bool isHere = ownerOf(i, index) == t;
              wrong += got != (isHere ? index : -1);
              for (size_t c = 0; c < width; ++c)
                wrong += ofReplica[i].allValues[at * width + c] != (isHere ? valueOf(i, from, n * width + c) : 0);
            }
    }
  });
}
