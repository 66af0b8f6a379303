//===- input_position.cpp - Where a checkpoint's run stood in its data ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/input_position.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/crc32c.h"
#include "core/error.h"
#include "launch/supervise.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace drt {

namespace {
constexpr std::string_view dataKey = "data: ", stoppedKey = "stopped_when: ", randomKey = "random: ",
                           finishedKey = "finished: ", checksumKey = "crc32c: ";

// The last line: without it a file that is cut, or that has lost a line, goes on with other numbers.
std::string checksumLine(std::string_view text) {
  return std::string(checksumKey) + std::to_string(maskCrc32c(crc32c(0, text.data(), text.size()))) + "\n";
}
} // namespace

std::string inputPositionText(const InputPosition &position) {
  std::string text =
      "next_example: " + std::to_string(position.position) + "\nshuffle_seed: " + std::to_string(position.seed) + "\n";
  text += std::string(dataKey) + std::to_string(position.data) + "\n";
  if (!position.stopped.empty())
    text += std::string(stoppedKey) + position.stopped + "\n";
  // A random operation's number, whether by its own seeds, and the six words of its generator.
  for (const RandomPosition &random : position.random) {
    text += std::string(randomKey) + std::to_string(random.state) + (random.isSeeded ? " seeded" : " unseeded");
    for (const uint32_t word : random.generator)
      text += " " + std::to_string(word);
    text += "\n";
  }
  if (!position.finished.empty())
    text += std::string(finishedKey) + position.finished + "\n";
  return text + checksumLine(text);
}

std::string runText(const std::vector<std::string> &command) {
  std::vector<std::string> words = command;
  for (const char *flag : {"--resume", "--task", "--rendezvous", "--max-restarts"})
    words = withoutFlag(words, flag);
  std::string text;
  for (const std::string &word : words) {
    text += text.empty() ? "" : " ";
    for (const char c : word)
      text += c == '\n' ? ' ' : c;
  }
  return text;
}

std::optional<InputPosition> readInputPosition(const std::string &prefix) {
  const std::string path = inputPath(prefix);
  std::ifstream whole(path);
  if (!whole)
    return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(whole), {}};
  const size_t last = text.rfind(checksumKey);
  if (last == std::string::npos || text.substr(last) != checksumLine(std::string_view(text).substr(0, last)))
    throw Error(path + " is damaged: its checksum is not that of its lines; without the file the run goes on at the "
                       "checkpoint's step times the batch");
  std::istringstream file(text.substr(0, last));
  InputPosition read;
  std::string example, seed;
  // Without the newline a digit may be missing.
  if (!(file >> example >> read.position >> seed >> read.seed) || file.get() != '\n' || example != "next_example:" ||
      seed != "shuffle_seed:" || read.position < 0 || read.position > INT64_MAX / 4)
    throw Error(path +
                " is damaged: it does not say at which example the run goes on; without it the run goes on at the "
                "checkpoint's step times the batch");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(finishedKey)) {
      read.finished = line.substr(finishedKey.size());
    } else if (line.starts_with(dataKey)) {
      std::istringstream(line.substr(dataKey.size())) >> read.data;
    } else if (line.starts_with(stoppedKey)) {
      read.stopped = line.substr(stoppedKey.size());
    } else if (line.starts_with(randomKey)) {
      std::istringstream words(line.substr(randomKey.size()));
      RandomPosition random;
      std::string seeded;
      words >> random.state >> seeded;
      for (uint32_t &word : random.generator)
        words >> word;
      random.isSeeded = seeded == "seeded";
      if (!words || file.eof() || (!random.isSeeded && seeded != "unseeded"))
        throw Error(path + " is damaged: it does not say where the random operations go on");
      read.random.push_back(random);
    }
  }
  return read;
}

} // namespace drt
