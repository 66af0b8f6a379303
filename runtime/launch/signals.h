//===- signals.h - A wish to stop -----------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_SIGNALS_H
#define DRT_LAUNCH_SIGNALS_H

#include <atomic>
#include <cstdint>
#include <thread>

namespace drt {

/// From now on a broken pipe and a file-size limit are errors of the write, and end no process.
void ignoreWriteSignals();

/// From now on a thread of its own takes INT and TERM, and none that begins later: to be called before there are
/// threads. Until catchSignals() they do what they do to any process.
void takeSignals();

/// From now on INT and TERM only note that they came; the second one ends the process at once. Behind takeSignals().
void catchSignals();

/// The signal that came, 0 for none.
int caughtSignal();

/// Ends the process after a signal where its steps do not: a replica may wait for what never comes. There is then no
/// last checkpoint, since the variables are in the middle of a step. While files are written nothing is ended: the
/// second signal is for that. One at a time, behind catchSignals(); the members belong to the thread that trains.
class StopDeadline {
public:
  StopDeadline();
  ~StopDeadline();
  StopDeadline(const StopDeadline &) = delete;
  StopDeadline &operator=(const StopDeadline &) = delete;

  /// From now on steps run, until pause(); each says that it is done.
  void resume();
  void stepDone(int64_t nanoseconds);
  void pause() { stepping_.store(false, std::memory_order_release); }

private:
  void watch();

  std::atomic<bool> stepping_{false}, quit_{false};
  std::atomic<int64_t> progressNs_{0}, longestNs_{0}; // when a step was done; the longest one
  std::thread thread_;
};

} // namespace drt

#endif // DRT_LAUNCH_SIGNALS_H
