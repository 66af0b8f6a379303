//===- training.h - Trains the hand-written device program ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_CUDA_TRAINING_H
#define DISTC_TEST_UNIT_CUDA_TRAINING_H

#include "core/task.h"
#include "test/unit/cuda/program/device_program.h"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace device_program {

inline drt::TaskConfig configOf(int32_t replicas, int32_t tasks, int32_t task) {
  drt::TaskConfig config;
  config.numReplicas = replicas;
  config.localReplicas = replicas / tasks;
  config.firstReplica = task * config.localReplicas;
  config.hostReplicas = replicas;
  config.hostOffset = config.firstReplica;
  config.shareDevices = true; // where the machine has few
  return config;
}

inline double distance(const void *w, const std::vector<float> &expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max(
        worst, std::abs(static_cast<double>(static_cast<const float *>(w)[i]) - static_cast<double>(expected[i])) /
                   (1 + std::abs(static_cast<double>(expected[i]))));
  return worst;
}

/// Trains as the launcher does: a step is waited for when the next one is enqueued.
class Training {
public:
  Training(drt::TaskRuntime &task, const std::vector<float> &x, float rate) : task_(task), x_(x), rate_(rate) {
    task.run(*task.findEntry("init"), 0);
    task.broadcastVariables();
    task.setFeed(1, &rate_, 0);
  }

  void steps(int64_t count) {
    const drt_entry &step = *task_.findEntry("step");
    for (int64_t k = 0; k < count; ++k) {
      const int64_t batch = rows * task_.config().numReplicas, examples = static_cast<int64_t>(x_.size()) / columns;
      const int64_t first = (k * batch + task_.config().firstReplica * rows) % examples;
      // The rows are gone when enqueue returns.
      std::vector<float> own(x_.begin() + first * columns,
                             x_.begin() + (first + task_.localReplicas() * rows) * columns);
      task_.setFeed(0, own.data(), rows * columns * 4);
      task_.enqueue(step, k);
      std::fill(own.begin(), own.end(), NAN);
      if (k > 0)
        finish();
    }
    finish();
  }

  std::vector<double> losses;                  // mean over the task's replicas
  std::vector<std::array<uint32_t, 6>> states; // of replica 0's random operation

private:
  void finish() {
    const drt_entry &step = *task_.findEntry("step");
    task_.wait();
    double loss = 0;
    for (int32_t i = 0; i < task_.localReplicas(); ++i)
      loss += static_cast<double>(*static_cast<const float *>(task_.fetched(i, step.fetches[0])));
    losses.push_back(loss / task_.localReplicas());
    std::memcpy(states.emplace_back().data(), task_.fetched(0, step.fetches[1]), 24);
  }

  drt::TaskRuntime &task_;
  const std::vector<float> &x_;
  const float rate_;
};

} // namespace device_program

#endif // DISTC_TEST_UNIT_CUDA_TRAINING_H
