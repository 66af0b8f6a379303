//===- api.cpp - drt.h's random numbers -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "drt/random_state.h"
#include "random/distributions.h"
#include "random/state.h"

#include <cstring>
#include <exception>

using namespace drt;

static int64_t firstElement(const drt_replica *replica, const drt_random_desc &desc) {
  return desc.per_replica ? replica->global_index * desc.count : 0;
}

extern "C" void drt_random(drt_replica *replica, int32_t state, const drt_random_desc *desc, const void *minval,
                           const void *maxval, void *out) {
  const auto reserve = [&](uint64_t positions) {
    return randomStatesOf(*replica).reserve(state, desc->seed, desc->seed2, positions);
  };
  if (desc->distribution == DRT_RANDOM_STATE) {
    const Philox generator = reserve(*static_cast<const uint64_t *>(minval));
    const std::array<uint32_t, 6> words = generator.state();
    std::memcpy(out, words.data(), sizeof words);
    return;
  }
  try {
    const Philox generator = reserve(reservedPositions(*desc, replica->num_replicas));
    fillRandom(generator, *desc, firstElement(replica, *desc), minval, maxval, out);
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}

static void fillFrom(const Philox &generator, drt_replica *replica, const drt_random_desc &desc, const void *minval,
                     const void *maxval, void *out) {
  try {
    fillRandom(generator, desc, firstElement(replica, desc), minval, maxval, out);
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}

extern "C" void drt_random_stateless(drt_replica *replica, const drt_random_desc *desc, const int64_t *seed,
                                     const void *minval, const void *maxval, void *out) {
  fillFrom(statelessGenerator(seed), replica, *desc, minval, maxval, out);
}

extern "C" void drt_random_keyed(drt_replica *replica, const drt_random_desc *desc, const int64_t *key_and_counter,
                                 const void *minval, const void *maxval, void *out) {
  const auto word = [&](int at) { return static_cast<uint64_t>(key_and_counter[at]); };
  fillFrom(Philox(word(0), word(1), word(2)), replica, *desc, minval, maxval, out);
}
