//===- counter.h - A counter that threads wait for ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_COUNTER_H
#define DRT_CORE_COUNTER_H

#include <atomic>
#include <cstdint>

namespace drt {

/// Is told about long waits, ten times a second, by the thread that waits.
class StallWatch {
public:
  virtual void waiting(const char *operation, double seconds) = 0;

protected:
  ~StallWatch() = default;
};

/// How a wait goes on.
struct Patience {
  const std::atomic<bool> &stop;   // ends it early, within a tenth of a second
  int spins;                       // turns of looking before sleeping; 0 where threads outnumber cores
  StallWatch *watch = nullptr;     // may be null
  const char *operation = nullptr; // what is waited for
};

/// Counts up; what a thread wrote before add() is visible to who sees the sum.
/// Wraps around; waiters are never 2^31 behind.
class Counter {
public:
  enum class Between : uint32_t { Threads, Processes }; // Processes: it lies in memory that they share
  explicit Counter(Between between = Between::Threads) : between_(between) {}

  void add(uint32_t n) {
    value_.fetch_add(n, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0)
      wake();
  }

  bool reached(uint32_t target) const {
    return static_cast<int32_t>(value_.load(std::memory_order_acquire) - target) >= 0;
  }

  uint32_t value() const { return value_.load(std::memory_order_acquire); }

  /// Returns true when the counter has reached target, false when stop came first.
  bool wait(uint32_t target, const Patience &patience) { return reached(target) || waitLonger(target, patience); }

private:
  void wake();
  bool waitLonger(uint32_t target, const Patience &patience);

  alignas(64) std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
  const Between between_;
};

/// Joins a fixed number of threads, again and again. They may be of several processes.
class Barrier {
public:
  explicit Barrier(uint32_t threads, Counter::Between between = Counter::Between::Threads)
      : threads_(threads), missing_(threads), generation_(between) {}

  /// False when stop came first; the barrier is of no more use then.
  bool wait(const Patience &patience) {
    const uint32_t next = generation_.value() + 1;
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      missing_.store(threads_, std::memory_order_relaxed);
      generation_.add(1);
      return true;
    }
    return generation_.wait(next, patience);
  }

private:
  const uint32_t threads_;
  alignas(64) std::atomic<uint32_t> missing_;
  Counter generation_;
};

} // namespace drt

#endif // DRT_CORE_COUNTER_H
