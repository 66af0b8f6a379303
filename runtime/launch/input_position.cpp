//===- input_position.cpp - Where a checkpoint's run stood in its data ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/input_position.h"

#include "checkpoint/checkpoint.h"
#include "core/error.h"

#include <fstream>
#include <string_view>

namespace drt {

std::string inputPositionText(const InputPosition &position) {
  return "next_example: " + std::to_string(position.position) + "\nshuffle_seed: " + std::to_string(position.seed) +
         "\n" + (position.stopped.empty() ? "" : "stopped_when: " + position.stopped + "\n");
}

std::optional<InputPosition> readInputPosition(const std::string &prefix) {
  const std::string path = inputPath(prefix);
  std::ifstream file(path);
  if (!file)
    return std::nullopt;
  InputPosition read;
  std::string example, seed;
  // Without the newline a digit may be missing.
  if (!(file >> example >> read.position >> seed >> read.seed) || file.get() != '\n' || example != "next_example:" ||
      seed != "shuffle_seed:" || read.position < 0 || read.position > INT64_MAX / 4)
    throw Error(path +
                " is damaged: it does not say at which example the run goes on; without it the run goes on at the "
                "checkpoint's step times the batch");
  constexpr std::string_view stopped = "stopped_when: ";
  if (std::string line; std::getline(file, line) && line.starts_with(stopped))
    read.stopped = line.substr(stopped.size());
  return read;
}

} // namespace drt
