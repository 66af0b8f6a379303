//===- state.cpp - Where stateful random operations left off -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "random/state.h"

#include <algorithm>
#include <iterator>

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
    kept.isSeeded = seed != 0 || seed2 != 0;
    if (const RandomPosition *position = findPosition(begins, state, kept.isSeeded, kept.generator)) {
      kept.generator = Philox(position->generator);
      begins.erase(begins.begin() + (position - begins.data()));
    }
  }
  Philox generator = kept.generator;
  kept.generator.skip(reserved);
  return generator;
}

std::vector<RandomPosition> RandomStates::positions() const {
  // The later of two with one number counts where a program goes on.
  std::vector<RandomPosition> all = begins;
  addStarted(all);
  return all;
}

std::vector<RandomPosition> RandomStates::positionsWith(const RandomStates &other) const {
  std::vector<RandomPosition> all;
  std::copy_if(begins.begin(), begins.end(), std::back_inserter(all), [&](const RandomPosition &position) {
    return std::find(other.begins.begin(), other.begins.end(), position) != other.begins.end();
  });
  addStarted(all);
  other.addStarted(all);
  return all;
}

void RandomStates::addStarted(std::vector<RandomPosition> &positions) const {
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].started)
      positions.push_back({static_cast<int32_t>(i), states[i].isSeeded, states[i].generator.state()});
}

const RandomPosition *drt::findPosition(const std::vector<RandomPosition> &positions, int32_t state, bool isSeeded,
                                        const Philox &initial) {
  const std::array<uint32_t, 6> begin = initial.state();
  const RandomPosition *found = nullptr;
  for (const RandomPosition &position : positions) {
    // The seeds are the key and the counter's upper half.
    const bool fits = position.isSeeded == isSeeded &&
                      (isSeeded ? std::equal(begin.begin() + 2, begin.end(), position.generator.begin() + 2)
                                : position.state == state);
    if (fits && (!found || position.state == state))
      found = &position;
  }
  return found;
}
