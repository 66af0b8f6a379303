//===- progress_line.h - How far a run is, for who watches it ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_PROGRESS_LINE_H
#define DRT_LAUNCH_PROGRESS_LINE_H

#include "launch/step_log.h"

#include <cstdint>

namespace drt {

/// On stderr: a bar that moves ten times a second where that is a terminal, a line
/// every few seconds elsewhere.
class ProgressLine {
public:
  /// examples: of a step, 0 where unknown.
  ProgressLine(int64_t firstStep, int64_t steps, int64_t examples);

  void update(const StepRecord &record) {
    if (record.endNs >= nextNs_)
      show(record);
  }

  /// Before something else is printed: wipes a bar, which comes back with the next state.
  void interrupt();

  /// The last state, and the end of the bar's line.
  void finish(const StepRecord &last);

private:
  void show(const StepRecord &record);

  int64_t firstStep_, steps_, examples_;
  int64_t startNs_, nextNs_, periodNs_;
  int64_t shownStep_, shownNs_;
  bool terminal_;
};

} // namespace drt

#endif // DRT_LAUNCH_PROGRESS_LINE_H
