//===- random.cpp - drt.h's random numbers -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "drt/random_state.h"
#include "random/distributions.h"
#include "random/state.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

using namespace drt;

static int64_t firstElement(const drt_replica *replica, const drt_random_desc &desc) {
  return desc.per_replica ? replica->global_index * desc.count : desc.first;
}

// ---- Where a tensor's numbers begin ------------------------------------------------------

static Philox takeState(drt_replica *replica, int32_t state, const drt_random_desc &desc, uint64_t positions) {
  return randomStatesOf(*replica).reserve(state, desc.seed, desc.seed2, positions);
}

static Philox stateful(drt_replica *replica, int32_t state, const drt_random_desc &desc) {
  return takeState(replica, state, desc, reservedPositions(desc, replica->num_replicas));
}

static Philox keyed(const int64_t *keyAndCounter) {
  const auto word = [&](int at) { return static_cast<uint64_t>(keyAndCounter[at]); };
  return Philox(word(0), word(1), word(2));
}

// ---- Tensors -------------------------------------------------------------------------------

static void fill(const Philox &generator, drt_replica *replica, const drt_random_desc &desc, const void *minval,
                 const void *maxval, void *out) {
  try {
    fillRandom(generator, desc, firstElement(replica, desc), minval, maxval, out);
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}

extern "C" void drt_random(drt_replica *replica, int32_t state, const drt_random_desc *desc, const void *minval,
                           const void *maxval, void *out) {
  if (desc->distribution == DRT_RANDOM_STATE) {
    const Philox generator = takeState(replica, state, *desc, *static_cast<const uint64_t *>(minval));
    const std::array<uint32_t, 6> words = generator.state();
    std::memcpy(out, words.data(), sizeof words);
    return;
  }
  fill(stateful(replica, state, *desc), replica, *desc, minval, maxval, out);
}

extern "C" void drt_random_stateless(drt_replica *replica, const drt_random_desc *desc, const int64_t *seed,
                                     const void *minval, const void *maxval, void *out) {
  fill(statelessGenerator(seed), replica, *desc, minval, maxval, out);
}

extern "C" void drt_random_keyed(drt_replica *replica, const drt_random_desc *desc, const int64_t *key_and_counter,
                                 const void *minval, const void *maxval, void *out) {
  fill(keyed(key_and_counter), replica, *desc, minval, maxval, out);
}

// ---- Draws of updates ------------------------------------------------------------------------

// So many numbers at once: what an update reads of them is in the first cache still.
static constexpr int64_t kDrawnAtOnce = 1024;
static constexpr int64_t kVectorBytes = 64;

static void fill(const drt_draw &draw, int64_t first, int64_t count, void *out) {
  std::array<uint32_t, 6> words;
  std::copy_n(draw.generator, words.size(), words.begin());
  const drt_random_desc desc = {draw.dtype, draw.distribution, 0, 0, count, 0, 0, 0, 0};
  fillRandom(Philox(words), desc, draw.first + first, draw.bounded ? &draw.minval : nullptr,
             draw.bounded ? &draw.maxval : nullptr, out);
}

static void begin(const Philox &generator, drt_replica *replica, const drt_random_desc &desc, const void *minval,
                  const void *maxval, drt_draw *draw) {
  const std::array<uint32_t, 6> words = generator.state();
  std::copy(words.begin(), words.end(), draw->generator);
  draw->dtype = desc.dtype;
  draw->distribution = desc.distribution;
  draw->first = firstElement(replica, desc);
  draw->bounded = minval != nullptr;
  draw->minval = draw->maxval = 0;
  if (minval) {
    std::memcpy(&draw->minval, minval, dtypeSize(desc.dtype));
    std::memcpy(&draw->maxval, maxval, dtypeSize(desc.dtype));
  }
  // What the distribution cannot give ends the run here: a range kernel has no replica to end.
  try {
    fill(*draw, 0, 0, nullptr);
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}

extern "C" void drt_draw_random(drt_replica *replica, int32_t state, const drt_random_desc *desc, const void *minval,
                                const void *maxval, drt_draw *draw) {
  begin(stateful(replica, state, *desc), replica, *desc, minval, maxval, draw);
}

extern "C" void drt_draw_stateless(drt_replica *replica, const drt_random_desc *desc, const int64_t *seed,
                                   const void *minval, const void *maxval, drt_draw *draw) {
  begin(statelessGenerator(seed), replica, *desc, minval, maxval, draw);
}

extern "C" void drt_draw_keyed(drt_replica *replica, const drt_random_desc *desc, const int64_t *key_and_counter,
                               const void *minval, const void *maxval, drt_draw *draw) {
  begin(keyed(key_and_counter), replica, *desc, minval, maxval, draw);
}

extern "C" void drt_update_drawn(int64_t begin, int64_t end, const void *gradient, void *const *pointer) {
  const auto &update = *reinterpret_cast<const drt_drawn_update *>(pointer);
  struct alignas(kVectorBytes) Numbers {
    // An element is as far from a multiple of kVectorBytes as it is in a tensor.
    char bytes[kDrawnAtOnce * sizeof(int64_t) + kVectorBytes];
  } numbers[DRT_MAX_DRAWS];
  std::vector<void *> arguments(update.arguments, update.arguments + update.num_arguments);
  for (int64_t part = begin; part < end; part += kDrawnAtOnce) {
    const int64_t count = std::min(kDrawnAtOnce, end - part);
    int64_t place = 0;
    for (int64_t i = 0; i < update.num_arguments; ++i) {
      if (!(update.drawn >> i & 1))
        continue;
      const auto &draw = *static_cast<const drt_draw *>(update.arguments[i]);
      const int64_t bytes = dtypeSize(draw.dtype);
      char *first = numbers[place++].bytes + part * bytes % kVectorBytes;
      fill(draw, update.first + part, count, first);
      // The kernel counts its elements from the update's first one.
      arguments[i] = first - part * bytes;
    }
    update.kernel(part, part + count, gradient, arguments.data());
  }
}
