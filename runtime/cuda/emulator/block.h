//===- block.h - The threads of a block, one after the other --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_BLOCK_H
#define DRT_CUDA_EMULATOR_BLOCK_H

#include "cuda/emulator/fiber.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace drt::cuda::emulated {

using KernelFunction = void (*)(void **parameters);

struct LaunchShape {
  unsigned grid[3], block[3];

  /// Throws CUDA_ERROR_INVALID_VALUE where no GPU takes it.
  void check() const;
  int64_t blocks() const { return int64_t(grid[0]) * grid[1] * grid[2]; }
  int threads() const { return static_cast<int>(block[0] * block[1] * block[2]); }
};

/// Runs blocks of one launch in the calling thread. Threads run one after the other on one stack, until one waits for
/// others (a barrier, a shuffle): the rest then goes on on a stack of its own, until all have come to where they wait.
class BlockRunner {
public:
  BlockRunner(KernelFunction kernel, const LaunchShape &shape, void **parameters)
      : kernel_(kernel), shape_(shape), parameters_(parameters) {}

  /// `seed` makes the order of the threads. Throws CUDA_ERROR_LAUNCH_FAILED where threads wait for what never comes,
  /// CUDA_ERROR_ILLEGAL_ADDRESS where one goes beyond a tensor.
  void run(int64_t block, uint64_t seed);

  // For emulated.h, from within a thread.
  static BlockRunner &current();
  uint32_t readRegister(int which) const;
  void barrier() { waitAs(State::Barrier); }
  uint32_t shuffle(int mode, uint32_t mask, uint32_t value, uint32_t lane, uint32_t clamp);
  void multiply(const uint32_t *left, const uint32_t *right, float *sums);
  void *beyond(int argument, int64_t offset, int64_t size, int64_t bytes);

private:
  enum class State : uint8_t { Waiting, Running, Barrier, Shuffle, Multiply, Done };
  struct Thread {
    State state;
    Fiber *fiber;
    uint32_t value; // given to a shuffle, then what came of it
    uint32_t mask;  // of the lanes that take part
    int source;     // lane
    // Fragments that are multiplied.
    const uint32_t *left, *right;
    float *sums;
  };
  static void fiberBody(void *runner);
  void startRest();
  void resume(int thread);
  void waitAs(State state);
  bool release();
  unsigned threadId(int dimension) const;
  bool shuffles(int first, uint32_t mask) const;
  bool releaseWarp(int first);
  bool multiplyWarp(int first);

  KernelFunction kernel_;
  LaunchShape shape_;
  void **parameters_;
  unsigned blockId_[3] = {};
  std::vector<Thread> threads_;
  std::vector<int> order_;
  size_t started_ = 0;
  int running_ = 0;
  Fiber *starting_ = nullptr; // where threads that have not begun run
  std::string beyond_;        // the first access beyond a tensor
};

/// A permutation of [0, count) that `seed` makes.
std::vector<int> shuffled(int count, uint64_t seed);

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_BLOCK_H
