//===- mutants.h - Damaged files ------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Copies of a file with a few random changes: bits and bytes, numbers that are
// likely to be a size or an offset, parts cut out, put in, doubled or moved. All
// follows from a seed, which a failing test says. DISTC_MUTANTS=N makes N of them
// instead of some hundreds.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_SUPPORT_MUTANTS_H
#define DISTC_TEST_UNIT_SUPPORT_MUTANTS_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace distc_test {

inline int mutantCount() {
  const char *count = std::getenv("DISTC_MUTANTS");
  return count ? std::atoi(count) : 300;
}

inline std::string mutant(std::string bytes, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t limit) { return limit ? random() % limit : 0; };
  for (size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = below(bytes.size()), size = 1 + below(std::min<size_t>(bytes.size() - at, 24));
    switch (below(8)) {
    case 0:
      bytes[at] ^= static_cast<char>(1u << below(8));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2: { // a number of 1, 2, 4 or 8 bytes
      constexpr uint64_t likely[] = {0, 1, 0x7f, 0x80, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 62, ~0ull};
      const uint64_t number = likely[below(std::size(likely))];
      const size_t width = std::min<size_t>(size_t{1} << below(4), bytes.size() - at);
      bytes.replace(at, width, std::string(reinterpret_cast<const char *>(&number), width));
      break;
    }
    case 3:
      bytes.erase(at, size);
      break;
    case 4:
      bytes.insert(at, size, static_cast<char>(random()));
      break;
    case 5:
      bytes.insert(below(bytes.size()), bytes.substr(at, size));
      break;
    case 6:
      bytes.resize(at);
      break;
    default: { // a digit, for headers that are text
      const size_t digit = bytes.find_first_of("0123456789", at);
      if (digit != std::string::npos)
        bytes[digit] = static_cast<char>('0' + below(10));
      break;
    }
    }
  }
  return bytes;
}

} // namespace distc_test

#endif // DISTC_TEST_UNIT_SUPPORT_MUTANTS_H
