//===- task_clocks.h - How the clocks of tasks differ ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_TASK_CLOCKS_H
#define DRT_LAUNCH_TASK_CLOCKS_H

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace drt {

/// What each task's monotonic clock is ahead of task 0's, in nanoseconds, from collectives that nobody leaves before
/// all have come. Each one bounds it from both sides, as a round trip does; the tightest bounds of some time are taken,
/// since clocks drift.
class TaskClocks {
public:
  explicit TaskClocks(size_t tasks) : ahead_(tasks), least_(tasks), most_(tasks) { forget(); }

  /// When each task came and when it went, on its own clock.
  void joined(const std::vector<double> &came, const std::vector<double> &went) {
    for (size_t task = 1; task < ahead_.size(); ++task) {
      least_[task] = std::max(least_[task], came[task] - went[0]);
      most_[task] = std::min(most_[task], went[task] - came[0]);
    }
    if (began_ < 0)
      began_ = came[0];
    const bool isNew = came[0] - began_ > period;
    if (!known_ || isNew)
      for (size_t task = 1; task < ahead_.size(); ++task)
        ahead_[task] = (least_[task] + most_[task]) / 2;
    if (!isNew)
      return;
    known_ = true;
    forget();
  }

  double ahead(size_t task) const { return ahead_[task]; }

private:
  static constexpr double period = 10e9;
  void forget() {
    std::fill(least_.begin(), least_.end(), -std::numeric_limits<double>::infinity());
    std::fill(most_.begin(), most_.end(), std::numeric_limits<double>::infinity());
    began_ = -1;
  }

  std::vector<double> ahead_, least_, most_;
  double began_ = -1;
  bool known_ = false; // of a whole period
};

} // namespace drt

#endif // DRT_LAUNCH_TASK_CLOCKS_H
