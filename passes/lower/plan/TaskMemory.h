//===- TaskMemory.h - What a task's replicas keep in memory ---------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_TASKMEMORY_H
#define DISTC_PASSES_LOWER_PLAN_TASKMEMORY_H

#include "dialects/drt/Drt.h"

namespace distc {

/// Of the task that has most; its replicas have an arena each beside the variables.
struct TaskMemory {
  int64_t variables = 0; // bytes, shares of all its replicas included
  int64_t replicas = 1;
};
TaskMemory getTaskMemory(drt::ProgramOp program);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_TASKMEMORY_H
