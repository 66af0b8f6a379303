//===- delays.cpp - Random pauses that bring threads out of step ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/delays.h"

#include "core/error.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace drt {

std::unique_ptr<Delays> Delays::fromEnvironment(uint64_t thread) {
  const char *text = std::getenv("DRT_DELAYS");
  if (!text || !*text)
    return nullptr;
  char *end = nullptr;
  errno = 0;
  const uint64_t seed = std::strtoull(text, &end, 10);
  if (*end != '\0' || errno != 0 || *text == '-')
    throw Error("DRT_DELAYS is '" + std::string(text) + "'; it is a seed, a number from 0 on, or not set");
  return std::make_unique<Delays>(seed * 1000003 + thread);
}

// SplitMix64 (Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014).
uint64_t Delays::next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void Delays::pause() {
  const uint64_t drawn = next();
  // Mostly short ones, so that a step has many; now and then one that is longer than what the others do meanwhile.
  if (drawn % 8 < 5)
    return;
  const uint64_t most = drawn % 8 == 7 && (drawn >> 8) % 16 == 0 ? 1000 : 50;
  std::this_thread::sleep_for(std::chrono::microseconds((drawn >> 16) % most));
}

} // namespace drt
