//===- batch_scheduling.h - Threads that do not interrupt others -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_BATCH_SCHEDULING_H
#define DRT_CORE_BATCH_SCHEDULING_H

namespace drt {

/// While it lives the calling thread is scheduled as SCHED_BATCH, and the threads that it starts are from then on: one
/// that is woken does not interrupt another on its core, and runs for a tenth of a millisecond at a time (from
/// Linux 6.12 on). Nothing changes where the system refuses it, or where the thread's policy is somebody's choice.
class BatchScheduling {
public:
  BatchScheduling();
  ~BatchScheduling();
  BatchScheduling(const BatchScheduling &) = delete;
  BatchScheduling &operator=(const BatchScheduling &) = delete;

private:
  bool isChanged_ = false;
};

} // namespace drt

#endif // DRT_CORE_BATCH_SCHEDULING_H
