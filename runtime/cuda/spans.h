//===- spans.h - When the work of a device ran ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A span is two events on a stream around a piece of work. In a captured graph they are nodes, and every launch
// records them again; so they are read when a run has ended, before the same graph is launched again.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_SPANS_H
#define DRT_CUDA_SPANS_H

#include "core/timeline.h"
#include "cuda/handles.h"

#include <vector>

namespace drt::cuda {

/// Events of a device on the host's clock. Differences between near events are exact to half a microsecond, between far
/// ones they are not (a float of milliseconds): so each run's first event is placed by the run's before it.
class Clock {
public:
  Clock() = default;
  /// Waits for the stream, which is idle.
  static Clock startOn(CUstream stream);

  /// From now on times are taken from `origin`, which has been recorded on the device since the one before.
  void moveTo(const Event &origin);

  /// On the host's monotonic clock, in nanoseconds. The event has been recorded and reached.
  int64_t timeOf(const Event &event) const;

private:
  Event start_; // the first origin
  const Event *origin_ = nullptr;
  double originNs_ = 0;
};

struct Span {
  TimelineRow *row = nullptr;
  const char *name = nullptr, *category = nullptr;
  Event begin, end;
};

/// The spans of one graph. Events are made before it is captured.
class Spans {
public:
  void reserve(size_t count);
  /// The span's number.
  size_t begin(TimelineRow *row, const char *name, const char *category, CUstream stream);
  void end(size_t span, CUstream stream);

  void report(int64_t step, const Clock &clock) const;

private:
  std::vector<Span> spans_;
  size_t used_ = 0;
};

void addTo(const Span &span, int64_t step, const Clock &clock);

} // namespace drt::cuda

#endif // DRT_CUDA_SPANS_H
