//===- event_file.h - Scalars for TensorBoard -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_EVENT_FILE_H
#define DRT_LAUNCH_EVENT_FILE_H

#include "core/growing_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace drt {

/// DIR/events.out.tfevents.TIME.HOST: TFRecords of tensorflow.Event
/// (tensorflow/core/util/event.proto). Throws drt::Error.
class EventFile {
public:
  /// Makes the folder where it is missing. restartedAt: a restart says so, and TensorBoard drops what earlier files
  /// have of that step and those behind it, which are done again.
  explicit EventFile(const std::string &directory, std::optional<int64_t> restartedAt = std::nullopt);

  void scalar(std::string_view tag, int64_t step, float value);
  void flush() { file_.flush(); }

private:
  void record(const std::string &event);
  GrowingFile file_;
  double flushed_ = 0; // wall time
};

} // namespace drt

#endif // DRT_LAUNCH_EVENT_FILE_H
