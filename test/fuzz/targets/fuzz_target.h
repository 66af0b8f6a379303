//===- fuzz_target.h - What libFuzzer's targets share --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A target is one reader of bytes that come from outside: it must take any of them, or throw drt::Error. It includes
// this once, defines `seeds` and `readBytes`, and is a program by libFuzzer's main.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_FUZZ_TARGETS_FUZZ_TARGET_H
#define DISTC_TEST_FUZZ_TARGETS_FUZZ_TARGET_H

#include "core/error.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

/// Sound inputs, which mutants are made from as well.
std::vector<std::string> seeds();
/// Throws drt::Error for what is not sound.
void readBytes(std::string_view bytes);

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// One in sixteen begins at a seed: a corpus that needs no files.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  static const std::vector<std::string> all = seeds();
  if (size < 2 || seed % 16 == 0) {
    const std::string &from = all[seed / 16 % all.size()];
    size = std::min(from.size(), maxSize);
    std::memcpy(data, from.data(), size);
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A seed that is not sound would leave the code behind the first checks untried.
  static const bool checked = [] {
    for (const std::string &seed : seeds())
      readBytes(seed);
    return true;
  }();
  (void)checked;
  try {
    readBytes({reinterpret_cast<const char *>(data), size});
  } catch (const drt::Error &) {
  }
  return 0;
}

#endif // DISTC_TEST_FUZZ_TARGETS_FUZZ_TARGET_H
