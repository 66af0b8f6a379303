//===- results_test.cpp - Replicas meet at a bucket's result ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/task.h"
#include "test/unit/support/in_process_communicator.h"
#include "test/unit/support/task_config.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <thread>

using namespace drt;

namespace {

constexpr int64_t elements = 64;
constexpr int mostTasks = 2;

// Of each task: replicas that have come to the result, and how many of them missed another behind it.
std::atomic<int32_t> arrived[mostTasks], missed[mostTasks];

void step(drt_replica *replica) {
  const int32_t task = replica->global_index / replica->local_replicas;
  for (int64_t i = 0; i < elements; ++i)
    reinterpret_cast<float *>(replica->arena)[i] = 1;
  drt_all_reduce_start(replica, 0);
  drt_all_reduce_wait(replica, 0);
  // Twice: what was made for one reader is there for the next.
  for (int32_t round = 1; round <= 2; ++round) {
    // A variable may be read here that another replica updates behind the result.
    if (replica->local_index == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++arrived[task];
    drt_all_reduce_result(replica, 0);
    missed[task] += arrived[task].load() < round * replica->local_replicas;
    drt_barrier(replica);
  }
}

} // namespace

TEST_CASE("replicas meet at a bucket's result, in one task and in several") {
  const int32_t tasks = GENERATE(1, 2), kind = GENERATE(DRT_BUCKET_ALL_REDUCE, DRT_BUCKET_GATHER_ROWS);
  const int32_t replicas = 2 * tasks;
  drt_member member = {"w", 0, elements, 1, elements, 0, 0, -1};
  drt_bucket bucket = {"bucket 0", kind, DRT_F32, DRT_REDUCE_SUM, 0, elements, 1, &member, nullptr};
  drt_entry entry = {"step", step, 0, nullptr, 0, nullptr, 0, nullptr, 1, &bucket};
  const drt_task table[] = {{"worker", 0, "a", 0, 2}, {"worker", 1, "b", 2, 2}};
  drt_program program = {DRT_ABI_VERSION,
                         "0",
                         "g",
                         "s",
                         "cpu",
                         0,
                         replicas,
                         elements * 4 * (1 + replicas),
                         tasks,
                         table,
                         0,
                         nullptr,
                         -1,
                         1,
                         &entry,
                         0,
                         0,
                         1,
                         0,
                         "",
                         nullptr};
  InProcessGroup group(tasks);
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < tasks; ++t) {
    arrived[t] = missed[t] = 0;
    threads.emplace_back([&, t] {
      CpuTask task(program, tasks > 1 ? &group.member(t) : nullptr, configOf(replicas, tasks, t));
      task.run(entry, 0);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  for (int32_t t = 0; t < tasks; ++t) {
    CHECK(arrived[t] == 4);
    CHECK(missed[t] == 0);
  }
}
