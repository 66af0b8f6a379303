//===- pipeline_test.cpp - Updates by owners, piece by piece -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/pipeline.h"
#include "cpu/task.h"
#include "test/unit/support/in_process_communicator.h"
#include "test/unit/support/task_config.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace drt;

namespace {

constexpr int variables = 5;
// In pieces of 65,536 elements: some, a few elements, some and a rest, exactly one, none.
constexpr int64_t sizes[] = {200003, 3, 70000, 65536, 0};
constexpr int64_t offsets[] = {0, 200016, 0, 70000, 70000};
constexpr int64_t elements[] = {200032, 135536}; // of each bucket
constexpr int bucketOf[] = {0, 0, 1, 1, 1};
constexpr int64_t starts[] = {0, 200064 * 4}; // of each bucket, in bytes

float gradientOf(int64_t step, int32_t replica, int64_t element, int variable) {
  return static_cast<float>((element * 7 + step * 13 + replica * 29 + variable) % 17);
}

// w -= m, m = m / 2 + gradient
void momentum(int64_t begin, int64_t end, const void *gradient, void *const *arguments) {
  float *w = static_cast<float *>(arguments[0]), *m = static_cast<float *>(arguments[1]);
  for (int64_t i = begin; i < end; ++i) {
    m[i] = m[i] / 2 + static_cast<const float *>(gradient)[i - begin];
    w[i] -= m[i];
  }
}

// Of each variable: what the tests below set, and the step reads.
int32_t owners[variables];
bool isReversed; // updates in another order than that in which gradients come

void step(drt_replica *replica) {
  for (int b = 0; b < 2; ++b) {
    for (int v = 0; v < variables; ++v)
      if (bucketOf[v] == b)
        for (int64_t i = 0; i < sizes[v]; ++i)
          reinterpret_cast<float *>(replica->arena + starts[b])[offsets[v] + i] =
              gradientOf(replica->step, replica->global_index, i, v);
    drt_all_reduce_start(replica, b);
  }
  drt_all_reduce_wait(replica, 0);
  drt_all_reduce_wait(replica, 1);
  for (int i = 0; i < variables; ++i) {
    const int v = isReversed ? variables - 1 - i : i;
    void *arguments[] = {replica->variables[v], replica->variables[variables + v]};
    drt_update_owned(replica, owners[v], bucketOf[v], offsets[v], sizes[v], momentum, arguments);
  }
  for (int b = 2; b < 4; ++b)
    drt_all_reduce_start(replica, b);
  for (int b = 2; b < 4; ++b)
    drt_all_reduce_wait(replica, b);
}

struct Program {
  std::string names[2 * variables];
  drt_variable table[2 * variables];
  drt_member gradients[variables], values[variables];
  drt_bucket buckets[4];
  drt_entry entry;
  drt_program program;

  explicit Program(int32_t replicas) {
    for (int v = 0; v < variables; ++v) {
      names[v] = "w" + std::to_string(v);
      names[variables + v] = names[v] + "/m";
      table[v] = {names[v].c_str(), {DRT_F32, 1, &sizes[v]}, sizes[v] * 4, 0, nullptr, nullptr, 0, 0, 0};
      table[variables + v] = {names[variables + v].c_str(),
                              {DRT_F32, 1, &sizes[v]},
                              sizes[v] * 4,
                              0,
                              nullptr,
                              nullptr,
                              0,
                              0,
                              0,
                              owners[v] + 1};
      gradients[v] = {names[v].c_str(), offsets[v], sizes[v], 1, sizes[v], owners[v] + 1, 0, v};
      values[v] = {names[v].c_str(), 0, sizes[v], 1, sizes[v], owners[v] + 1, 0, v};
    }
    const auto bucket = [&](const char *name, int32_t kind, int b, const drt_member *members) -> drt_bucket {
      return {name,      kind,
              DRT_F32,   DRT_REDUCE_MEAN,
              starts[b], elements[b],
              b ? 3 : 2, members + (b ? 2 : 0),
              nullptr,   DRT_ALL_REDUCE_AUTO,
              1};
    };
    for (int b = 0; b < 2; ++b) {
      buckets[b] = bucket(b ? "bucket 1" : "bucket 0", DRT_BUCKET_REDUCE_SCATTER, b, gradients);
      buckets[2 + b] = bucket(b ? "gather 3" : "gather 2", DRT_BUCKET_GATHER, b, values);
    }
    entry = {"step", step, 0, nullptr, 0, nullptr, 0, nullptr, 4, buckets};
    program = {DRT_ABI_VERSION,
               "0",
               "g",
               "s",
               "cpu",
               0,
               replicas,
               starts[1] + elements[1] * 4,
               1,
               nullptr,
               2 * variables,
               table,
               -1,
               1,
               &entry,
               0,
               0,
               1,
               0,
               "",
               nullptr};
  }
};

/// The variables of every task after some steps.
std::vector<std::vector<float>> train(int32_t replicas, int32_t tasks, bool bothWays) {
  Program plan(replicas);
  InProcessGroup group(tasks, bothWays);
  std::vector<std::vector<float>> all(static_cast<size_t>(tasks));
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < tasks; ++t)
    threads.emplace_back([&, t] {
      CpuTask task(plan.program, tasks > 1 ? &group.member(t) : nullptr, configOf(replicas, tasks, t));
      for (int64_t s = 0; s < 3; ++s)
        task.run(plan.entry, s);
      for (int v = 0; v < variables; ++v) {
        const float *values = static_cast<const float *>(task.variable(v));
        all[static_cast<size_t>(t)].insert(all[static_cast<size_t>(t)].end(), values, values + sizes[v]);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return all;
}

struct Delayed {
  Delayed() { setenv("DRT_DELAYS", "5", 1); }
  ~Delayed() { unsetenv("DRT_DELAYS"); }
};

} // namespace

TEST_CASE("a bucket is cut into pieces of one owner, in rounds of all owners") {
  std::fill_n(owners, variables, 0);
  owners[1] = 1;
  Program plan(2);
  InProcessGroup oneWay(2), bothWays(2, true);
  CHECK(PipelinedBucket::make(plan.buckets[0], nullptr, 1) == nullptr);
  CHECK(PipelinedBucket::make(plan.buckets[0], &oneWay.member(0), 1) == nullptr);
  CHECK(PipelinedBucket::make(plan.buckets[2], &bothWays.member(0), 1) == nullptr);
  auto bucket = PipelinedBucket::make(plan.buckets[0], &bothWays.member(0), 1);
  REQUIRE(bucket);
  std::vector<int32_t> found;
  int64_t bytes = 0;
  for (const PipelinedBucket::Piece &piece : bucket->pieces()) {
    found.push_back(piece.owner);
    bytes += piece.bytes;
  }
  CHECK(found == std::vector<int32_t>{0, 1, 0, 0, 0});
  CHECK(bytes == (sizes[0] + sizes[1]) * 4);
  plan.buckets[0].pipelined = 0;
  CHECK(PipelinedBucket::make(plan.buckets[0], &bothWays.member(0), 1) == nullptr);
}

TEST_CASE("values that come piece by piece are those that come whole") {
  const int32_t tasks = GENERATE(2, 3), replicas = GENERATE(3, 5);
  isReversed = GENERATE(false, true);
  const bool isDelayed = GENERATE(false, true);
  const int way = GENERATE(0, 1, 2); // one owner, two, all
  for (int v = 0; v < variables; ++v)
    owners[v] = way == 0 ? 1 : way == 1 ? v % 2 : (v * 2) % tasks;
  const std::vector<std::vector<float>> whole = train(replicas, tasks, false);
  const std::optional<Delayed> delays = isDelayed ? std::optional<Delayed>(std::in_place) : std::nullopt;
  const std::vector<std::vector<float>> pieces = train(replicas, tasks, true);
  for (int32_t t = 0; t < tasks; ++t) {
    CHECK(whole[static_cast<size_t>(t)] == whole[0]);
    CHECK(pieces[static_cast<size_t>(t)] == whole[0]);
  }
}

TEST_CASE("a task that fails ends the others, whatever is on its way") {
  std::fill_n(owners, variables, 0);
  isReversed = false;
  Program plan(2);
  InProcessGroup group(2, true);
  std::string errors[2];
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      CpuTask task(plan.program, &group.member(t), configOf(2, 2, t));
      try {
        for (int64_t s = 0;; ++s) {
          if (t == 1 && s == 2)
            group.member(t).abort("stopped in a test");
          task.run(plan.entry, s);
        }
      } catch (const std::exception &error) {
        errors[t] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &error : errors)
    CHECK(error == "stopped in a test");
}
