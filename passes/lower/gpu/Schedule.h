//===- Schedule.h - How a kernel's work is laid over threads --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A schedule is a file of its own: whether it is for a kernel, and how the kernel
// is written. `getSchedules` (ScheduleForGpu.cpp) is the order in which they are
// asked.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_SCHEDULE_H
#define DISTC_PASSES_LOWER_GPU_SCHEDULE_H

#include "passes/lower/gpu/KernelWriter.h"

namespace distc::schedule {

struct Schedule {
  llvm::StringLiteral name;
  bool (*matches)(Kernel &kernel);
  void (*write)(Kernel &kernel, KernelWriter &writer);
};

extern const Schedule kTranspose, kElementwise, kRows, kColumns, kFusedRows, kPlain, kLoops;

/// Whether the kernel is several operations over rows that threads hold in registers: each row is read once, and what
/// one operation makes another does not read from memory.
bool holdsRows(Kernel &kernel);

} // namespace distc::schedule

#endif // DISTC_PASSES_LOWER_GPU_SCHEDULE_H
