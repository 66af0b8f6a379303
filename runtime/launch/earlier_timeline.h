//===- earlier_timeline.h - What earlier starts of a run have written -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A run that is started again, as it failed or as the group of an elastic run is formed anew, goes on with its timeline
// as with its log: what there is of steps that are not done again stays, of each row as much as a row keeps. Times go
// on where task 0 still has the same clock.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_EARLIER_TIMELINE_H
#define DRT_LAUNCH_EARLIER_TIMELINE_H

#include "core/timeline.h"

#include <optional>
#include <string>

namespace drt {

class EarlierTimeline {
public:
  /// The file at `path`. Nothing where there is none, or none that TimelineWriter wrote of the same `run`.
  static std::optional<EarlierTimeline> find(const std::string &path, const std::string &run);

  /// Where its times begin.
  int64_t originNs() const { return originNs_; }

  /// Adds its events of steps before `end` to a file that has the same origin, and all of this start's events already.
  /// Returns what it says of its tasks: JSON objects, each with a comma in front.
  std::string copyTo(TimelineWriter &writer, int64_t end) const;

private:
  std::string path_;
  int64_t originNs_ = 0;
};

} // namespace drt

#endif // DRT_LAUNCH_EARLIER_TIMELINE_H
