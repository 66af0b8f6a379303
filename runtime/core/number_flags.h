//===- number_flags.h - Numbers on a command line -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Checks of CLI11's options that take numbers. CLI11's own conversions saturate,
// wrap negative numbers around, and read octal ones, NaN and infinity; these take a
// decimal number in a range and nothing else, and say what is wrong with another.
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

/// How a number must be to be no less than `least`.
inline std::string atLeastText(double least) {
  char text[64] = "must be positive";
  if (least == 0)
    return "must not be negative";
  if (least != 1)
    std::snprintf(text, sizeof text, "must be at least %.15g", least);
  return text;
}

/// A whole number from `least` to `most`.
inline CLI::Validator wholeNumber(int64_t least, int64_t most) {
  return CLI::Validator(
      [least, most](std::string &text) {
        int64_t value = 0;
        const char *end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc::invalid_argument || rest != end)
          return "'" + text + "' is not a whole number";
        const bool tooLarge = error == std::errc() ? value > most : text.front() != '-';
        if (tooLarge)
          return text + " is too large: at most " + std::to_string(most);
        if (error != std::errc() || value < least)
          return atLeastText(static_cast<double>(least)) + ", not " + text;
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
        if ((error != std::errc() && error != std::errc::result_out_of_range) || rest != end || value != value)
          return "'" + text + "' is not a number";
        if (error == std::errc() && value >= least && value <= most)
          return std::string();
        if (error == std::errc() && value < least)
          return (least == 1 ? "must be at least 1" : atLeastText(least)) + ", not " + text;
        char largest[32];
        std::snprintf(largest, sizeof largest, "%.15g", most);
        return text + " is out of range: at most " + largest;
      },
      "");
}

/// More than any run's steps, examples or seconds, and far from what overflows.
inline constexpr int64_t mostCount = 1'000'000'000'000'000;
inline constexpr double mostSeconds = 1e9;

} // namespace drt

#endif // DRT_CORE_NUMBER_FLAGS_H
