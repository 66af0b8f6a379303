//===- api.cpp - drt.h's random numbers -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "random/distributions.h"
#include "random/state.h"

#include <exception>

using namespace drt;

static int64_t firstElement(const drt_replica *replica, const drt_random_desc &desc) {
  return desc.per_replica ? replica->global_index * desc.count : 0;
}

extern "C" void drt_random(drt_replica *replica, int32_t state, const drt_random_desc *desc, const void *minval,
                           const void *maxval, void *out) {
  try {
    Philox generator = randomStatesOf(*replica).reserve(state, desc->seed, desc->seed2,
                                                        reservedPositions(*desc, replica->num_replicas));
    fillRandom(generator, *desc, firstElement(replica, *desc), minval, maxval, out);
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}

extern "C" void drt_random_stateless(drt_replica *replica, const drt_random_desc *desc, const int64_t *seed,
                                     const void *minval, const void *maxval, void *out) {
  try {
    fillRandom(statelessGenerator(seed), *desc, firstElement(replica, *desc), minval, maxval, out);
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}
