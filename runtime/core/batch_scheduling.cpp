//===- batch_scheduling.cpp - Threads that do not interrupt others -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/batch_scheduling.h"

#include <cstdint>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace drt {
namespace {

/// As sched_attr in linux/sched/types.h, which glibc's headers are not to meet before 2.41.
struct Attributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period; // nanoseconds
};

/// From one policy to another; 0 nanoseconds: the system's own slices.
bool change(uint32_t from, uint32_t to, uint64_t slice) {
  Attributes attributes = {};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != from)
    return false;
  attributes.size = sizeof attributes;
  attributes.policy = to;
  attributes.runtime = slice;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

} // namespace

BatchScheduling::BatchScheduling() : isChanged_(change(SCHED_OTHER, SCHED_BATCH, 100'000)) {}

BatchScheduling::~BatchScheduling() {
  if (isChanged_)
    change(SCHED_BATCH, SCHED_OTHER, 0);
}

} // namespace drt
