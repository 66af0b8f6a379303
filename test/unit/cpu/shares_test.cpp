//===- shares_test.cpp - Updates of shares, and several batches an update -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/task.h"
#include "test/unit/support/in_process_communicator.h"
#include "test/unit/support/task_config.h"

#include <catch2/catch.hpp>

#include <thread>

using namespace drt;

namespace {

constexpr int64_t sizes[] = {1001, 3}; // the second has fewer elements than replicas
constexpr int64_t offsets[] = {0, 1008}, elements = 1024;

float gradientOf(int64_t step, int32_t replica, int64_t element) {
  return static_cast<float>((element * 7 + step * 13 + replica * 29) % 17);
}

// w -= m, m = m / 2 + gradient: the slot is the replica's own share, and w begins at its share.
void momentum(int64_t begin, int64_t end, const void *gradient, void *const *arguments) {
  float *w = static_cast<float *>(arguments[0]), *m = static_cast<float *>(arguments[1]);
  for (int64_t i = begin; i < end; ++i) {
    m[i] = m[i] / 2 + static_cast<const float *>(gradient)[i - begin];
    w[i] -= m[i];
  }
}

void step(drt_replica *replica) {
  for (int v = 0; v < 2; ++v)
    for (int64_t i = 0; i < sizes[v]; ++i)
      reinterpret_cast<float *>(replica->arena)[offsets[v] + i] =
          gradientOf(replica->step, replica->global_index, i + v);
  drt_all_reduce_start(replica, 0);
  drt_all_reduce_wait(replica, 0);
  for (int v = 0; v < 2; ++v) {
    const int64_t share = (sizes[v] + replica->num_replicas - 1) / replica->num_replicas;
    void *arguments[] = {static_cast<float *>(replica->variables[v]) + replica->global_index * share,
                         static_cast<float *>(replica->variables[2 + v]) + replica->local_index * share};
    drt_update_share(replica, 0, offsets[v], sizes[v], share, momentum, arguments);
  }
  drt_all_reduce_start(replica, 1);
  drt_all_reduce_wait(replica, 1);
}

struct Program {
  int64_t shares[2];
  drt_variable variables[4];
  drt_member gradients[2], values[2];
  drt_bucket buckets[2];
  drt_entry entry;
  drt_program program;

  Program(int32_t replicas, int32_t kind) {
    for (int v = 0; v < 2; ++v) {
      shares[v] = (sizes[v] + replicas - 1) / replicas;
      variables[v] = {v ? "v" : "w", {DRT_F32, 1, &sizes[v]}, sizes[v] * 4, 0, nullptr, nullptr, 0, 0, 0};
      variables[2 + v] = {
          v ? "v/m" : "w/m", {DRT_F32, 1, &shares[v]}, shares[v] * 4, 0, &sizes[v], nullptr, replicas, 1, 0};
      gradients[v] = {v ? "v" : "w", offsets[v], sizes[v], 1, sizes[v]};
      values[v] = {v ? "v" : "w", 0, sizes[v], 1, sizes[v], 0, 0, v};
    }
    buckets[0] = {"bucket 0", kind, DRT_F32, DRT_REDUCE_MEAN, 0, elements, 2, gradients, nullptr};
    buckets[1] = {"gather 1", DRT_BUCKET_GATHER, DRT_I8, DRT_REDUCE_SUM, 0, 0, 2, values, nullptr};
    entry = {"step", step, 0, nullptr, 0, nullptr, 0, nullptr, 2, buckets};
    program = {DRT_ABI_VERSION, "0", "g", "s", "cpu", 0,  replicas, elements * 4, 1, nullptr, 4, variables, -1, 1,
               &entry,          0,   0,   1,   0,     "", nullptr};
  }
};

} // namespace

namespace {

/// Runs the plan's steps in tasks that share the replicas: values and slots are those of one replica, in every task,
/// also when slots have been taken to task 0 and put back.
void checkTraining(const Program &plan, int32_t replicas, int32_t tasks) {
  const int64_t steps = 4;
  std::vector<float> w[2], m[2];
  for (int v = 0; v < 2; ++v) {
    w[v].assign(sizes[v], 0);
    m[v].assign(sizes[v], 0);
    for (int64_t s = 0; s < steps; ++s)
      for (int64_t i = 0; i < sizes[v]; ++i) {
        float sum = 0;
        for (int32_t r = 0; r < replicas; ++r)
          sum += gradientOf(s, r, i + v);
        m[v][i] = m[v][i] / 2 + sum / static_cast<float>(replicas);
        w[v][i] -= m[v][i];
      }
  }
  InProcessGroup group(tasks);
  std::vector<int64_t> wrong(tasks);
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < tasks; ++t)
    threads.emplace_back([&, t] {
      CpuTask task(plan.program, tasks > 1 ? &group.member(t) : nullptr, configOf(replicas, tasks, t));
      for (int64_t s = 0; s < steps; ++s)
        task.run(plan.entry, s);
      const auto compare = [&](const float *got, const std::vector<float> &want) {
        for (size_t i = 0; i < want.size(); ++i)
          wrong[t] += !(std::abs(got[i] - want[i]) <= 1e-4f);
      };
      for (int v = 0; v < 2; ++v) {
        compare(static_cast<const float *>(task.variable(v)), w[v]);
        std::vector<float> whole(sizes[v], -1);
        task.gatherShares(2 + v, t == 0 ? whole.data() : nullptr);
        if (t == 0)
          compare(whole.data(), m[v]);
        // Task 0 alone has the whole.
        for (float &element : whole)
          element *= 2;
        task.scatterShares(2 + v, t == 0 ? whole.data() : nullptr);
        std::fill(whole.begin(), whole.end(), -1.0f);
        task.gatherShares(2 + v, t == 0 ? whole.data() : nullptr);
        for (float &element : whole)
          element /= 2;
        if (t == 0)
          compare(whole.data(), m[v]);
        // A part that begins and ends within shares.
        const Range part = {sizes[v] / 3 * 4, sizes[v] * 4 - 4};
        std::vector<float> some(static_cast<size_t>(part.size() / 4));
        task.gatherPart(2 + v, part, t == 0 ? some.data() : nullptr);
        for (float &element : some)
          element /= 2;
        if (t == 0)
          compare(some.data(), {m[v].begin() + part.begin / 4, m[v].begin() + part.end / 4});
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == std::vector<int64_t>(tasks));
}

} // namespace

TEST_CASE("each replica updates its share, and every task has all values") {
  const int32_t replicas = GENERATE(1, 3, 4, 5), tasks = GENERATE(1, 2, 3);
  const int32_t kind = GENERATE(DRT_BUCKET_ALL_REDUCE, DRT_BUCKET_REDUCE_SCATTER);
  if (tasks > replicas)
    return;
  checkTraining(Program(replicas, kind), replicas, tasks);
}

namespace {

// As step, but the task that owns a variable updates all of it.
void ownedStep(drt_replica *replica) {
  for (int v = 0; v < 2; ++v)
    for (int64_t i = 0; i < sizes[v]; ++i)
      reinterpret_cast<float *>(replica->arena)[offsets[v] + i] =
          gradientOf(replica->step, replica->global_index, i + v);
  drt_all_reduce_start(replica, 0);
  drt_all_reduce_wait(replica, 0);
  for (int v = 0; v < 2; ++v) {
    void *arguments[] = {replica->variables[v], replica->variables[2 + v]};
    drt_update_owned(replica, replica->num_replicas % (v + 2), 0, offsets[v], sizes[v], momentum, arguments);
  }
  drt_all_reduce_start(replica, 1);
  drt_all_reduce_wait(replica, 1);
}

} // namespace

TEST_CASE("the owner of a variable updates it alone, and every task has its value") {
  const int32_t tasks = GENERATE(1, 2, 3), replicas = GENERATE(3, 4, 5);
  Program plan(replicas, DRT_BUCKET_REDUCE_SCATTER);
  plan.entry.run = ownedStep;
  // Of one task and of several, both of one and apart.
  const int32_t owners[] = {replicas % 2, replicas % 3};
  if (std::max(owners[0], owners[1]) >= tasks)
    return;
  for (int v = 0; v < 2; ++v) {
    plan.variables[2 + v] = {v ? "v/m" : "w/m", {DRT_F32, 1, &sizes[v]}, sizes[v] * 4, 0, nullptr, nullptr, 0, 0, 0,
                             owners[v] + 1};
    plan.gradients[v].owner = plan.values[v].owner = owners[v] + 1;
  }
  checkTraining(plan, replicas, tasks);
}

TEST_CASE("an accumulator adds up or joins batches, and begins anew") {
  const drt_accumulate_desc sum = {DRT_F32, 0, 2}, join = {DRT_I64, 1, 2};
  Accumulator added, joined;
  const float a[] = {1, 2}, b[] = {3, 4}, c[] = {5, 9};
  const int64_t i[] = {1, 2}, j[] = {3, 4};
  for (int round = 0; round < 2; ++round) {
    float mean[2];
    added.keep(sum, a);
    added.keep(sum, b);
    added.take(sum, 1.0 / 3, c, mean);
    CHECK(mean[0] == Approx(3));
    CHECK(mean[1] == Approx(5));
    int64_t rows[4];
    joined.keep(join, i);
    joined.take(join, 1, j, rows);
    CHECK(std::vector<int64_t>(rows, rows + 4) == std::vector<int64_t>{1, 2, 3, 4});
  }
  float alone[2];
  added.take(sum, 1, a, alone);
  CHECK(alone[1] == 2);
}
