//===- philox.cpp - The Philox 4x32-10 counter-based generator -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "random/philox.h"

#include "core/clones.h"

#include <algorithm>

using namespace drt;

namespace {
// Positions computed side by side, so that the rounds run in vector registers.
constexpr int lanes = 16;

DRT_WIDE_CLONES void rounds(uint64_t key, uint64_t low, uint64_t high, uint32_t *words) {
  uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (int i = 0; i < lanes; ++i) {
    uint64_t lower = low + static_cast<uint64_t>(i);
    uint64_t upper = high + (lower < low);
    c0[i] = static_cast<uint32_t>(lower);
    c1[i] = static_cast<uint32_t>(lower >> 32);
    c2[i] = static_cast<uint32_t>(upper);
    c3[i] = static_cast<uint32_t>(upper >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < lanes; ++i) {
      uint64_t product0 = uint64_t{0xD2511F53u} * c0[i];
      uint64_t product1 = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(product1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(product1);
      c2[i] = static_cast<uint32_t>(product0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(product0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < lanes; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}
} // namespace

void Philox::fill(uint32_t *words, int64_t count) {
  uint32_t block[4 * lanes];
  for (; count > 0; count -= lanes, words += 4 * lanes) {
    int64_t now = std::min<int64_t>(count, lanes);
    rounds(key, positionLow, positionHigh, now == lanes ? words : block);
    if (now != lanes)
      std::copy(block, block + 4 * now, words);
    skip(static_cast<uint64_t>(now));
  }
}
