//===- clock_alignment.h - A task's clock beside task 0's -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Clocks of hosts begin when the hosts do and run at rates of their own. A task asks task 0 for the time as NTP does
// (RFC 5905, section 8): it sends at t1, task 0 receives at t2 and answers at t3, and the answer is there at t4; t1 and
// t4 are on the task's clock. Whatever either way takes, the task's clock is ahead by t1 - t2 at least and by t4 - t3
// at most: the middle is off by no more than half of the time that the messages were on their way. So the quickest
// exchanges say most.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_CLOCK_ALIGNMENT_H
#define DRT_LAUNCH_CLOCK_ALIGNMENT_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace drt {

/// Of an exchange, in nanoseconds.
struct ClockSample {
  int64_t atNs;          // on the task's clock
  int64_t aheadNs;       // what that is ahead of task 0's
  int64_t uncertaintyNs; // by which aheadNs may be wrong
};

/// Converts times of a task's clock to task 0's. Between two samples their offsets are interpolated, before the first
/// and behind the last one they are kept.
class ClockAlignment {
public:
  enum class Kind : uint8_t {
    Unknown,  // there was no exchange: times stay as they are
    Shared,   // the task has task 0's own clock
    Measured, // as the samples say
  };
  /// What two clocks drift apart at most, as a part of the time: crystals are within 50 ppm.
  static constexpr double drift = 1e-4;

  /// Unknown.
  ClockAlignment() = default;
  static ClockAlignment shared();
  /// Of samples in the order of their times, of which those are taken that others do not make useless.
  static ClockAlignment measured(const std::vector<ClockSample> &samples);

  Kind kind() const { return kind_; }
  /// What the clock is ahead at a time of its own.
  int64_t aheadNs(int64_t ownNs) const;
  int64_t toReference(int64_t ownNs) const { return ownNs - aheadNs(ownNs); }
  /// By how much times from `beginNs` to `endNs` of the task's clock may be wrong, with the drift since the samples.
  int64_t uncertaintyNs(int64_t beginNs, int64_t endNs) const;
  const std::vector<ClockSample> &samples() const { return samples_; }

private:
  Kind kind_ = Kind::Unknown;
  std::vector<ClockSample> samples_;
};

std::string_view nameOf(ClockAlignment::Kind kind);

/// Collects exchanges, however long the run: the best one of each second, and of longer periods where there were more
/// than a thousand.
class ClockComparison {
public:
  /// The four times of an exchange. One that cannot be (it went back in time) is left out.
  void exchanged(int64_t sentNs, int64_t receivedNs, int64_t answeredNs, int64_t returnedNs);

  /// `isShared`: this task and task 0 say that they have the same clock, which is believed where no exchange
  /// contradicts it (a virtual machine that was copied while it ran has the other's identity).
  ClockAlignment alignment(bool isShared) const;

private:
  static constexpr size_t most_ = 1024;
  std::vector<ClockSample> samples_;
  int64_t periodNs_ = 1'000'000'000, periodEndNs_ = 0;
};

} // namespace drt

#endif // DRT_LAUNCH_CLOCK_ALIGNMENT_H
