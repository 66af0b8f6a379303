//===- number_flags.h - Numbers on a command line -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Checks of CLI11's options that take numbers. CLI11's own conversions saturate,
// wrap negative numbers around, and read octal ones, NaN and infinity; these take a
// decimal number in a range and nothing else, and say the range.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_NUMBER_FLAGS_H
#define DRT_CORE_NUMBER_FLAGS_H

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>

namespace drt {

/// A whole number from `least` to `most`.
inline CLI::Validator wholeNumber(int64_t least, int64_t most) {
  return CLI::Validator(
      [least, most](std::string &text) {
        int64_t value = 0;
        const char *end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc() || rest != end || value < least || value > most)
          return "'" + text + "' is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
        text = std::to_string(value); // no leading zeros, which CLI11 takes for octal
        return std::string();
      },
      "");
}

/// A number from `least` to `most`, with a fraction or without.
inline CLI::Validator realNumber(double least, double most) {
  return CLI::Validator(
      [least, most](std::string &text) {
        double value = 0;
        const char *end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && rest == end && value >= least && value <= most)
          return std::string();
        char range[64];
        std::snprintf(range, sizeof range, "%.15g to %.15g", least, most);
        return "'" + text + "' is not a number from " + range;
      },
      "");
}

/// More than any run's steps, examples or seconds, and far from what overflows.
inline constexpr int64_t mostCount = 1'000'000'000'000'000;
inline constexpr double mostSeconds = 1e9;

} // namespace drt

#endif // DRT_CORE_NUMBER_FLAGS_H
