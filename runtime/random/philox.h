//===- philox.h - The Philox 4x32-10 counter-based generator -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers:
// as easy as 1, 2, 3. SC 2011, section 4 (Philox-4x32-10) and table 2 (weights).
//
//===----------------------------------------------------------------------===//
#ifndef DRT_RANDOM_PHILOX_H
#define DRT_RANDOM_PHILOX_H

#include <array>
#include <cstdint>

namespace drt {

/// A position in the stream of one key. Each position gives four 32-bit words, as
/// a function of position and key alone, so skipping costs nothing.
class Philox {
public:
  using Words = std::array<uint32_t, 4>;

  Philox() = default;

  /// Starts at position `positionHigh` * 2^64.
  Philox(uint64_t key, uint64_t positionHigh) : Philox(key, 0, positionHigh) {}
  Philox(uint64_t key, uint64_t positionLow, uint64_t positionHigh)
      : key(key), positionLow(positionLow), positionHigh(positionHigh) {}

  /// Where `state()` of one stood.
  explicit Philox(const std::array<uint32_t, 6> &state)
      : key(join(state[4], state[5])), positionLow(join(state[0], state[1])), positionHigh(join(state[2], state[3])) {}

  /// The words of this position; goes on to the next.
  Words next() {
    Words words;
    fill(words.data(), 1);
    return words;
  }

  /// The words of `count` positions, four after four; goes on behind them.
  void fill(uint32_t *words, int64_t count);

  /// Goes on by `count` positions.
  void skip(uint64_t count) {
    positionLow += count;
    positionHigh += positionLow < count;
  }

  /// Where it stands, as kernels on a device keep it: the counter, lowest word first, then the key.
  std::array<uint32_t, 6> state() const {
    const auto low = [](uint64_t word) { return static_cast<uint32_t>(word); };
    return {low(positionLow), low(positionLow >> 32), low(positionHigh), low(positionHigh >> 32),
            low(key),         low(key >> 32)};
  }

private:
  static uint64_t join(uint32_t low, uint32_t high) { return static_cast<uint64_t>(high) << 32 | low; }

  uint64_t key = 0;
  uint64_t positionLow = 0;
  uint64_t positionHigh = 0;
};

} // namespace drt

#endif // DRT_RANDOM_PHILOX_H
