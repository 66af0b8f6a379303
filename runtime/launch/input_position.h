//===- input_position.h - Where a checkpoint's run stood in its data ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A text file beside the checkpoint, ckpt-STEP.input: a resumed run goes on at the right example also where it has
// another batch, and in the same order where no --seed says which; and its random operations go on where they were.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_INPUT_POSITION_H
#define DRT_LAUNCH_INPUT_POSITION_H

#include "random/state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drt {

struct InputPosition {
  int64_t position = 0; // of the next example in the sequence of epochs
  uint64_t seed = 0;    // of the order
  uint32_t data = 0;    // Feeder::digest, 0 where nothing is known of it
  std::string stopped;  // the condition of --stop-when that ended the run here, "" for none
  std::vector<RandomPosition> random;
  /// The run whose last checkpoint this is (runText), once everything that task 0 had to write is there; "" before. Who
  /// starts a task once more, whose end nobody saw, asks for nothing that is not there.
  std::string finished;
};

/// What tells a run from others that could go on from its last checkpoint: the command line, but for the flags that say
/// which task is started how.
std::string runText(const std::vector<std::string> &command);

std::string inputPositionText(const InputPosition &position);

/// Of the checkpoint PREFIX; nothing where it has none (TensorFlow wrote it). Throws drt::Error where it cannot be
/// understood.
std::optional<InputPosition> readInputPosition(const std::string &prefix);

} // namespace drt

#endif // DRT_LAUNCH_INPUT_POSITION_H
