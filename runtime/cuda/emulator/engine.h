//===- engine.h - Work that runs when somebody waits ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Whatever is enqueued on an emulated device is a Work, behind the works that it depends on. No thread runs it until
// some thread waits for something; then that thread runs works in a random order that the dependencies allow: as often
// all that are ready as only those that it waits for. So what was forgotten (an event, a wait before the host reads)
// shows as wrong numbers, not as a race that is seldom lost. Threads that wait at the same time run works side by side.
//
// Every function is called with the lock that the engine was made with; run functions are called without it.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_ENGINE_H
#define DRT_CUDA_EMULATOR_ENGINE_H

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace drt::cuda::emulated {

/// Pending: not now; to be called again after Engine::wake.
enum class Progress { Done, Pending };
using Run = std::function<Progress()>;

struct Work {
  std::string label;
  int device = 0;
  Run run; // empty: nothing to do
  bool done = false;
  std::chrono::steady_clock::time_point end;

  // The engine's.
  int waitsFor = 0;
  uint64_t triedAt = 0;
  std::vector<std::shared_ptr<Work>> dependencies; // those not done when it was added; empty when it is done
  std::vector<std::shared_ptr<Work>> followers;
};
using WorkPtr = std::shared_ptr<Work>;
using Lock = std::unique_lock<std::mutex>;

class Engine {
public:
  /// `failed(device)`: whether its works are to be left out. `fail` is given what a run function throws.
  struct Errors {
    std::function<bool(int device)> failed;
    std::function<void(const Work &, std::exception_ptr)> fail;
  };
  explicit Engine(Errors errors) : errors_(std::move(errors)) {}

  void seed(uint64_t value) { random_.seed(value); }
  uint64_t random() { return random_(); }

  /// `dependencies` may hold nulls and works that are done.
  WorkPtr add(std::string label, int device, Run run, const std::vector<WorkPtr> &dependencies);

  /// Returns when `work` (may be null) is done.
  void wait(Lock &lock, const WorkPtr &work);
  /// Runs some works, if some are ready: who polls makes progress.
  void poll(Lock &lock);
  /// Pending works are to be called again.
  void wake();

private:
  WorkPtr pick(const Work *target);
  void run(Lock &lock, const WorkPtr &work);
  void finish(Work &work);

  Errors errors_;
  std::mt19937_64 random_{1};
  std::vector<WorkPtr> ready_;
  uint64_t generation_ = 1;
  std::condition_variable changed_;
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_ENGINE_H
