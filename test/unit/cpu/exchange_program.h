//===- exchange_program.h - One bucket, and a variable that takes its result -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_CPU_EXCHANGE_PROGRAM_H
#define DISTC_TEST_UNIT_CPU_EXCHANGE_PROGRAM_H

#include "cpu/task.h"
#include "test/unit/support/in_process_communicator.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace exchange_test {

/// Gradients: a step, a replica, the elements of the bucket, padding included.
using Gradients = std::vector<std::vector<std::vector<float>>>;

/// A matrix of 40 x 30, a vector, and a matrix too small to be worth compressing; padding between them.
inline const drt_member members[] = {{"matrix", 0, 1200, 30, 60}, {"vector", 1200, 33, 1, 2}, {"small", 1248, 4, 2, 1}};
inline constexpr int64_t count = 1264;

/// Whether an element belongs to a member.
inline bool isElement(int64_t i) { return i < 1233 || (i >= 1248 && i < 1252); }

class Program {
public:
  Program(drt_exchange exchange, int32_t reduction, int32_t replicas) : exchange_(exchange), replicas_(replicas) {
    bucket_ = {"bucket 0", DRT_BUCKET_ALL_REDUCE, DRT_F32, reduction, 0, count, 3, members, &exchange_};
    variable_ = {"w", {DRT_F32, 1, &count}, count * 4, 0, nullptr, nullptr, 0, 0, 0};
    entry_ = {"step", step, 0, nullptr, 0, nullptr, 0, nullptr, 1, &bucket_};
    program_ = {DRT_ABI_VERSION, "0", "g", "s",     "cpu", 0, replicas, count * 4, 1,  nullptr, 1,
                &variable_,      -1,  1,   &entry_, 0,     0, 1,        0,         "", nullptr};
  }

  /// What every step gives, with the replicas split evenly over `tasks`; the same in every task, or an exception.
  std::vector<std::vector<float>> run(const Gradients &gradients, int32_t tasks) {
    current = &gradients;
    InProcessGroup group(tasks);
    std::vector<std::vector<std::vector<float>>> results(tasks);
    std::vector<std::string> errors(tasks);
    std::vector<std::thread> threads;
    for (int32_t i = 0; i < tasks; ++i)
      threads.emplace_back([&, i] {
        drt::TaskConfig config;
        config.numReplicas = replicas_;
        // As evenly as they go: the first tasks have one more.
        const int32_t each = replicas_ / tasks, more = replicas_ % tasks;
        config.localReplicas = each + (i < more);
        config.firstReplica = i * each + std::min(i, more);
        config.hostReplicas = replicas_;
        config.hostOffset = config.firstReplica;
        try {
          drt::CpuTask task(program_, tasks > 1 ? &group.member(i) : nullptr, config);
          for (size_t s = 0; s < gradients.size(); ++s) {
            task.run(entry_, static_cast<int64_t>(s));
            const float *w = static_cast<const float *>(task.variable(0));
            results[i].emplace_back(w, w + count);
          }
        } catch (const drt::Error &error) {
          errors[i] = error.what();
          group.member(i).abort(error.what());
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    for (int32_t i = 0; i < tasks; ++i) {
      if (!errors[i].empty())
        throw drt::Error(errors[i]);
      for (size_t s = 0; i > 0 && s < gradients.size(); ++s)
        for (int64_t at = 0; at < count; ++at)
          if (isElement(at) && results[i][s][at] != results[0][s][at])
            throw drt::Error("tasks have different results");
    }
    return results[0];
  }

private:
  inline static const Gradients *current = nullptr;

  static void store(int64_t begin, int64_t end, const void *gradient, void *const *arguments) {
    std::memcpy(static_cast<float *>(arguments[0]) + begin, gradient, (end - begin) * sizeof(float));
  }

  static void step(drt_replica *replica) {
    const std::vector<float> &own = (*current)[replica->step][replica->global_index];
    std::memcpy(replica->arena, own.data(), count * sizeof(float));
    drt_all_reduce_start(replica, 0);
    drt_all_reduce_wait(replica, 0);
    void *arguments[] = {replica->variables[0]};
    // The matrix block by block, the others from the whole result.
    drt_update(replica, 0, 0, 1200, store, arguments);
    drt_barrier(replica); // the result takes the place of a contribution
    const float *result = static_cast<const float *>(drt_all_reduce_result(replica, 0));
    if (replica->local_index == 0)
      std::memcpy(static_cast<float *>(replica->variables[0]) + 1200, result + 1200, (count - 1200) * sizeof(float));
  }

  drt_exchange exchange_;
  int32_t replicas_;
  drt_bucket bucket_;
  drt_variable variable_;
  drt_entry entry_;
  drt_program program_;
};

/// Numbers of (-1, 1), the same in every run; padding is not a number.
inline Gradients gradientsOf(int32_t steps, int32_t replicas, float spread = 1) {
  uint32_t state = 12345;
  auto draw = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / (1 << 23) - 1;
  };
  Gradients all(steps);
  for (auto &step : all) {
    std::vector<float> common(count);
    for (float &element : common)
      element = draw();
    for (int32_t r = 0; r < replicas; ++r) {
      std::vector<float> own(count, __builtin_nanf(""));
      for (int64_t i = 0; i < count; ++i)
        if (isElement(i))
          own[i] = common[i] + spread * draw();
      step.push_back(own);
    }
  }
  return all;
}

} // namespace exchange_test

#endif // DISTC_TEST_UNIT_CPU_EXCHANGE_PROGRAM_H
