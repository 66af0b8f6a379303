//===- replica_use.h - What a replica's time went to ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_REPLICA_USE_H
#define DRT_CORE_REPLICA_USE_H

#include "core/timeline.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace drt {

/// Nanoseconds on the monotonic clock.
struct TimeSpan {
  int64_t beginNs = 0, endNs = 0;
  int64_t length() const { return endNs - beginNs; }
};

/// One run of an entry by one replica. Its thread writes it; it is read while that rests.
struct ReplicaUse {
  TimeSpan run;
  std::vector<TimeSpan> waits; // in order, and apart from each other

  void begin() {
    run.beginNs = nowNs();
    waits.clear();
  }
  void end() { run.endNs = nowNs(); }
};

/// While it lives the replica waits. `use`: null where nobody asks.
class Waiting {
public:
  explicit Waiting(ReplicaUse *use) : use_(use), beginNs_(use ? nowNs() : 0) {}
  ~Waiting() {
    if (use_)
      use_->waits.push_back({beginNs_, nowNs()});
  }
  Waiting(const Waiting &) = delete;
  Waiting &operator=(const Waiting &) = delete;

private:
  ReplicaUse *const use_;
  const int64_t beginNs_;
};

/// What a replica has done so far at its own pace, where servers serve it. Its thread writes it; any may read.
struct ServedUse {
  std::atomic<int64_t> steps{0}, wallNs{0}, waitingNs{0}, transferNs{0}, inputNs{0}, bytes{0};
};

} // namespace drt

#endif // DRT_CORE_REPLICA_USE_H
