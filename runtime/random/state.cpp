//===- state.cpp - Where stateful random operations left off -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "random/state.h"

using namespace drt;

Philox drt::initialGenerator(int32_t state, int64_t seed, int64_t seed2, uint64_t entropy) {
  // The state's number keeps two unseeded operations of one graph apart.
  return seed == 0 && seed2 == 0 ? Philox(entropy, static_cast<uint64_t>(state) + 1)
                                 : Philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
}

RandomStates::RandomStates(int32_t count, uint64_t entropy) : states(static_cast<size_t>(count)), entropy(entropy) {}

Philox RandomStates::reserve(int32_t state, int64_t seed, int64_t seed2, uint64_t reserved) {
  State &kept = states[static_cast<size_t>(state)];
  if (!kept.started) {
    kept.generator = initialGenerator(state, seed, seed2, entropy);
    kept.started = true;
  }
  Philox generator = kept.generator;
  kept.generator.skip(reserved);
  return generator;
}
