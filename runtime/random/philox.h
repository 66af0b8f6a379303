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

  /// `low` is the key, `high` the upper half of the first position.
  Philox(uint64_t low, uint64_t high) : key(low), positionLow(0), positionHigh(high) {}

  /// The words of this position; goes on to the next.
  Words next() {
    Words words = at(positionLow, positionHigh);
    skip(1);
    return words;
  }

  /// Goes on by `count` positions.
  void skip(uint64_t count) {
    positionLow += count;
    positionHigh += positionLow < count;
  }

private:
  Words at(uint64_t low, uint64_t high) const {
    uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
    uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      uint64_t product0 = uint64_t{0xD2511F53u} * c0;
      uint64_t product1 = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(product1);
      c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(product0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
  }

  uint64_t key = 0;
  uint64_t positionLow = 0;
  uint64_t positionHigh = 0;
};

} // namespace drt

#endif // DRT_RANDOM_PHILOX_H
