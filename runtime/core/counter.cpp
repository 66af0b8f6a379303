//===- counter.cpp - A counter that threads wait for ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/counter.h"
#include "core/timeline.h"

#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace drt {
namespace {

void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The kernel looks at the bare integer; std::atomic<uint32_t> is one.
void futexWait(std::atomic<uint32_t> &word, Counter::Between between, uint32_t seen, int64_t nanoseconds) {
  const timespec timeout = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  const int call = between == Counter::Between::Threads ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT;
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), call, seen, &timeout, nullptr, 0);
}

} // namespace

void Counter::wake() {
  const int call = between_ == Between::Threads ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE;
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&value_), call, INT_MAX, nullptr, nullptr, 0);
}

bool Counter::waitLonger(uint32_t target, const Patience &patience) {
  for (int i = 0; i < patience.spins; ++i) {
    pauseCore();
    if (reached(target))
      return true;
    if (patience.stop.load(std::memory_order_acquire))
      return false;
  }
  // A stop that is set between the look at it and the sleep changes no value, so
  // sleeps are short; they also give `waiting` its turns.
  constexpr int64_t napNs = 100'000'000;
  const int64_t since = nowNs();
  while (true) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = value_.load(std::memory_order_seq_cst);
    const bool there = static_cast<int32_t>(seen - target) >= 0;
    const bool stopped = patience.stop.load(std::memory_order_acquire);
    if (!there && !stopped)
      futexWait(value_, between_, seen, napNs);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    if (there || reached(target))
      return true;
    if (stopped)
      return false;
    const int64_t waited = nowNs() - since;
    if (waited >= napNs && patience.watch)
      patience.watch->waiting(patience.operation, static_cast<double>(waited) * 1e-9);
  }
}

} // namespace drt
