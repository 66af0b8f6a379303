//===- delays.h - Random pauses that bring threads out of step ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_DELAYS_H
#define DRT_CORE_DELAYS_H

#include <cstdint>
#include <memory>

namespace drt {

/// A test of a plan's order: with the environment's DRT_DELAYS=SEED every thread of a task pauses at random where a
/// scope or a wait begins or ends. What the plan orders comes out the same, bit for bit, whatever the seed. One
/// thread's.
class Delays {
public:
  /// Null where DRT_DELAYS is not set. `thread` tells the threads of one task apart, and its tasks. Throws Error where
  /// it is no number.
  static std::unique_ptr<Delays> fromEnvironment(uint64_t thread);

  explicit Delays(uint64_t seed) : state_(seed) {}

  /// Goes on at once most of the time, else sleeps for up to a millisecond.
  void pause();

private:
  uint64_t next();

  uint64_t state_;
};

} // namespace drt

#endif // DRT_CORE_DELAYS_H
