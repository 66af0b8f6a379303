//===- state.h - Where stateful random operations left off -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_RANDOM_STATE_H
#define DRT_RANDOM_STATE_H

#include "drt/drt.h"
#include "random/philox.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace drt {

/// The generator of stateful random operation `state` before its first run. `entropy` keys the operations whose two
/// seeds are both zero: --seed, or drawn from the system.
Philox initialGenerator(int32_t state, int64_t seed, int64_t seed2, uint64_t entropy);

/// Where a random operation left off. All replicas that keep in step are at the same place.
struct RandomPosition {
  int32_t state = 0;
  bool isSeeded = false;                  // its numbers follow from its own seeds, and not from the entropy
  std::array<uint32_t, 6> generator = {}; // Philox::state

  bool operator==(const RandomPosition &) const = default;
};

/// The one of `positions` at which operation `state` goes on whose generator begins at `initial`: of a program of
/// another plan, states of which have other numbers, one with the same seeds. Null where there is none.
const RandomPosition *findPosition(const std::vector<RandomPosition> &positions, int32_t state, bool isSeeded,
                                   const Philox &initial);

/// The generators of one replica's stateful random operations, one a number in
/// drt_program's num_rng_states. Belongs to the replica; used by its thread alone.
class RandomStates {
public:
  /// The same entropy gives the same numbers: all replicas have the
  /// same, and draw their own part (drt_random_desc::per_replica) where they shall differ.
  RandomStates(int32_t count, uint64_t entropy);

  /// The generator as the operation's last run left it, moved on by
  /// `reserved` groups of four words for the next run.
  Philox reserve(int32_t state, int64_t seed, int64_t seed2, uint64_t reserved);

  /// Of the operations that have run, and those that others are to begin at.
  std::vector<RandomPosition> positions() const;
  /// The same of both, of which each runs operations of its own: what `other` has begun is left to nobody.
  std::vector<RandomPosition> positionsWith(const RandomStates &other) const;
  /// Operations that have not run yet begin there.
  void goOn(std::vector<RandomPosition> positions) { begins = std::move(positions); }

private:
  struct State {
    Philox generator;
    bool started = false, isSeeded = false;
  };
  void addStarted(std::vector<RandomPosition> &positions) const;

  std::vector<State> states;
  std::vector<RandomPosition> begins; // at which none has begun yet
  uint64_t entropy;
};

/// The states that belong to a replica. Defined beside the replica class in
/// runtime/cpu, so that this library need not know it.
RandomStates &randomStatesOf(drt_replica &replica);

} // namespace drt

#endif // DRT_RANDOM_STATE_H
