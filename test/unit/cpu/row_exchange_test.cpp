//===- row_exchange_test.cpp - Rows of a table that one task holds --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "cpu/row_exchange.h"
#include "test/unit/support/in_process_communicator.h"

#include <catch2/catch.hpp>

#include <random>
#include <thread>

using namespace drt;

namespace {

constexpr int64_t tableRows = 37, columns = 5;

drt_bucket planOf(const drt_member &member, int32_t dtype, int64_t count) {
  return {"pull 0", DRT_BUCKET_PULL_ROWS, dtype, DRT_REDUCE_SUM, 0, count, 1, &member, nullptr, 0, 0};
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
  InProcessGroup group(tasks);
  std::vector<int64_t> wrong(static_cast<size_t>(tasks));
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < tasks; ++t)
    threads.emplace_back([&, t] {
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
        exchange.pull(group.member(t), owner, {data, tableRows, columns * 4}, plan, most, requests);
        for (size_t r = 0; r < rows.size(); ++r)
          for (int64_t i = 0; i < count * columns; ++i) {
            const int64_t row = wide[r][i / columns];
            const float want = row < 0 || row >= tableRows ? 0 : table[row * columns + i % columns];
            wrong[t] += rows[r][i] != want;
          }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == std::vector<int64_t>(static_cast<size_t>(tasks)));
}
