//===- block.cpp - The threads of a block, one after the other ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/block.h"

#include "cuda/emulator/emulated.h"
#include "cuda/emulator/failure.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <string>

using namespace drt::cuda::emulated;

namespace {
constexpr int warp = 32;
thread_local BlockRunner *runner = nullptr;

// Stacks are kept for the thread's next launch.
struct FiberPool {
  std::vector<std::unique_ptr<Fiber>> all;
  std::vector<Fiber *> idle;
};
thread_local FiberPool pool;
} // namespace

void LaunchShape::check() const {
  bool grids =
      grid[0] >= 1 && grid[0] <= 0x7fffffffu && grid[1] >= 1 && grid[1] <= 65535 && grid[2] >= 1 && grid[2] <= 65535;
  bool blocks = block[0] >= 1 && block[0] <= 1024 && block[1] >= 1 && block[1] <= 1024 && block[2] >= 1 &&
                block[2] <= 64 && block[0] * block[1] * block[2] <= 1024;
  require(grids && blocks, CUDA_ERROR_INVALID_VALUE, "a grid or a block that no GPU takes");
}

std::vector<int> drt::cuda::emulated::shuffled(int count, uint64_t seed) {
  std::vector<int> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::minstd_rand(static_cast<unsigned>(seed)));
  return order;
}

BlockRunner &BlockRunner::current() { return *runner; }

unsigned BlockRunner::threadId(int dimension) const {
  auto index = static_cast<unsigned>(running_);
  for (int d = 0; d < dimension; ++d)
    index /= shape_.block[d];
  return dimension == 2 ? index : index % shape_.block[dimension];
}

// Runs threads that have not begun until one of them waits.
void BlockRunner::fiberBody(void *argument) {
  auto &self = *static_cast<BlockRunner *>(argument);
  while (self.started_ < self.order_.size()) {
    int thread = self.order_[self.started_++];
    self.running_ = thread;
    self.threads_[static_cast<size_t>(thread)].state = State::Running;
    self.threads_[static_cast<size_t>(thread)].fiber = self.starting_;
    self.kernel_(self.parameters_);
    // After a wait this is the thread that waited, not the one that was begun last.
    self.threads_[static_cast<size_t>(self.running_)].state = State::Done;
  }
}

void BlockRunner::waitAs(State state) {
  Thread &thread = threads_[static_cast<size_t>(running_)];
  thread.state = state;
  thread.fiber->suspend();
}

void BlockRunner::startRest() {
  while (started_ < order_.size()) {
    if (pool.idle.empty()) {
      pool.all.push_back(std::make_unique<Fiber>(&BlockRunner::fiberBody));
      pool.idle.push_back(pool.all.back().get());
    }
    Fiber *fiber = pool.idle.back();
    pool.idle.pop_back();
    starting_ = fiber;
    if (fiber->resume(this))
      pool.idle.push_back(fiber);
  }
}

void BlockRunner::resume(int thread) {
  Thread &resumed = threads_[static_cast<size_t>(thread)];
  Fiber *fiber = resumed.fiber;
  resumed.state = State::Running;
  running_ = thread;
  if (fiber->resume(this))
    pool.idle.push_back(fiber);
}

// Whether all lanes of `mask`, of the warp that begins at `first`, are at a shuffle of these lanes.
bool BlockRunner::shuffles(int first, uint32_t mask) const {
  for (int lane = 0; lane < warp && first + lane < static_cast<int>(threads_.size()); ++lane) {
    const Thread &thread = threads_[static_cast<size_t>(first + lane)];
    if ((mask >> lane & 1) != 0 && (thread.state != State::Shuffle || thread.mask != mask))
      return false;
  }
  return true;
}

// Lanes that all have come to a shuffle get what they asked for, and go on.
bool BlockRunner::releaseWarp(int first) {
  int lanes = std::min(warp, static_cast<int>(threads_.size()) - first);
  Thread *thread = &threads_[static_cast<size_t>(first)];
  uint32_t mask = 0;
  for (int lane = 0; lane < lanes && mask == 0; ++lane)
    if (thread[lane].state == State::Shuffle && shuffles(first, thread[lane].mask))
      mask = thread[lane].mask;
  if (mask == 0)
    return false;
  uint32_t given[warp];
  for (int lane = 0; lane < warp; ++lane) // what a lane that takes no part has is not defined
    given[lane] = lane < lanes && (mask >> lane & 1) != 0 ? thread[lane].value : ~0u;
  for (int lane = 0; lane < lanes; ++lane)
    if ((mask >> lane & 1) != 0)
      thread[lane].value = given[thread[lane].source];
  for (int i : order_)
    if (i >= first && i < first + lanes && (mask >> (i - first) & 1) != 0)
      resume(i);
  return true;
}

// Lanes that all have come to a product get their part of it, and go on.
bool BlockRunner::multiplyWarp(int first) {
  if (first + warp > static_cast<int>(threads_.size()))
    return false;
  const Thread *thread = &threads_[static_cast<size_t>(first)];
  for (int lane = 0; lane < warp; ++lane)
    if (thread[lane].state != State::Multiply)
      return false;
  constexpr int rows = 16, columns = 8, depth = 16;
  const auto element = [](uint32_t pair, int which) {
    return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xffff0000u);
  };
  float left[rows][depth], right[depth][columns];
  for (int lane = 0; lane < warp; ++lane) {
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int which = 0; which < 2; ++which) {
      for (int i = 0; i < 4; ++i)
        left[group + i % 2 * 8][pair + i / 2 * 8 + which] = element(thread[lane].left[i], which);
      for (int i = 0; i < 2; ++i)
        right[pair + i * 8 + which][group] = element(thread[lane].right[i], which);
    }
  }
  for (int lane = 0; lane < warp; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      float sum = 0;
      for (int k = 0; k < depth; ++k)
        sum += left[row][k] * right[k][column];
      thread[lane].sums[i] += sum;
    }
  for (int i : order_)
    if (i >= first && i < first + warp)
      resume(i);
  return true;
}

bool BlockRunner::release() {
  bool any = false;
  for (int first = 0; first < static_cast<int>(threads_.size()); first += warp)
    any = releaseWarp(first) || multiplyWarp(first) || any;
  if (any)
    return true;
  for (const Thread &thread : threads_)
    if (thread.state != State::Barrier && thread.state != State::Done)
      return false;
  for (int i : order_)
    if (threads_[static_cast<size_t>(i)].state == State::Barrier)
      resume(i);
  return true;
}

void BlockRunner::run(int64_t block, uint64_t seed) {
  for (int d = 0; d < 3; ++d) {
    blockId_[d] = static_cast<unsigned>(block % shape_.grid[d]);
    block /= shape_.grid[d];
  }
  threads_.assign(static_cast<size_t>(shape_.threads()), Thread{.state = State::Waiting});
  order_ = shuffled(shape_.threads(), seed);
  started_ = 0;
  runner = this;
  startRest();
  auto done = [](const Thread &thread) { return thread.state == State::Done; };
  while (!std::all_of(threads_.begin(), threads_.end(), done))
    if (!release()) {
      // The stacks of those that wait are lost: what is on them cannot be unwound.
      auto waits = [&](State state) { return [state](const Thread &thread) { return thread.state == state; }; };
      throw Failure(CUDA_ERROR_LAUNCH_FAILED,
                    "threads of a block wait for each other: " +
                        std::to_string(std::count_if(threads_.begin(), threads_.end(), waits(State::Barrier))) +
                        " at a barrier, " +
                        std::to_string(std::count_if(threads_.begin(), threads_.end(), waits(State::Shuffle))) +
                        " at a shuffle, " +
                        std::to_string(std::count_if(threads_.begin(), threads_.end(), waits(State::Multiply))) +
                        " at a product, " + std::to_string(std::count_if(threads_.begin(), threads_.end(), done)) +
                        " have ended");
    }
  if (!beyond_.empty())
    throw Failure(CUDA_ERROR_ILLEGAL_ADDRESS, beyond_);
}

void *BlockRunner::beyond(int argument, int64_t offset, int64_t size, int64_t bytes) {
  if (beyond_.empty())
    beyond_ = "argument " + std::to_string(argument) + ", which has " + std::to_string(bytes) +
              " bytes, is accessed beyond them: " + std::to_string(size) + " bytes at " + std::to_string(offset);
  alignas(64) thread_local char elsewhere[64];
  std::fill(std::begin(elsewhere), std::end(elsewhere), '\xff');
  return elsewhere;
}

// As the manual of PTX says it.
uint32_t BlockRunner::shuffle(int mode, uint32_t mask, uint32_t value, uint32_t offset, uint32_t clamp) {
  auto lane = static_cast<uint32_t>(running_ % warp);
  uint32_t segment = clamp >> 8 & 31, bound = clamp & 31;
  offset &= 31;
  uint32_t first = lane & segment, last = first | (bound & ~segment);
  uint32_t source = mode == DRT_EMULATED_UP          ? lane - offset
                    : mode == DRT_EMULATED_DOWN      ? lane + offset
                    : mode == DRT_EMULATED_BUTTERFLY ? lane ^ offset
                                                     : first | (offset & ~segment);
  bool inside = mode == DRT_EMULATED_UP ? static_cast<int32_t>(source) >= static_cast<int32_t>(last) : source <= last;
  Thread &thread = threads_[static_cast<size_t>(running_)];
  thread.value = value;
  thread.mask = mask;
  thread.source = static_cast<int>(inside ? source : lane);
  waitAs(State::Shuffle);
  return thread.value;
}

void BlockRunner::multiply(const uint32_t *left, const uint32_t *right, float *sums) {
  Thread &thread = threads_[static_cast<size_t>(running_)];
  thread.left = left;
  thread.right = right;
  thread.sums = sums;
  waitAs(State::Multiply);
}

uint32_t BlockRunner::readRegister(int which) const {
  if (which == DRT_EMULATED_LANEID)
    return static_cast<uint32_t>(running_ % warp);
  int dimension = which % 3;
  switch (which - dimension) {
  case DRT_EMULATED_TID:
    return threadId(dimension);
  case DRT_EMULATED_NTID:
    return shape_.block[dimension];
  case DRT_EMULATED_CTAID:
    return blockId_[dimension];
  default:
    return shape_.grid[dimension];
  }
}

extern "C" {
uint32_t drt_emulated_register(int32_t which) { return BlockRunner::current().readRegister(which); }
void drt_emulated_barrier(void) { BlockRunner::current().barrier(); }
void drt_emulated_multiply(const uint32_t *left, const uint32_t *right, float *sums) {
  BlockRunner::current().multiply(left, right, sums);
}
void *drt_emulated_beyond(int32_t argument, int64_t offset, int64_t size, int64_t bytes) {
  return BlockRunner::current().beyond(argument, offset, size, bytes);
}
uint32_t drt_emulated_shuffle(int32_t mode, uint32_t mask, uint32_t value, uint32_t lane, uint32_t clamp) {
  return BlockRunner::current().shuffle(mode, mask, value, lane, clamp);
}
} // extern "C"
