//===- shares.cpp - Gradients and variables in shares, between tasks ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A share is ceil(n / N) elements, flat; a task has those of its replicas, side by
// side. What a parameter server would hold is one task's alone, its owner's.
//
//===----------------------------------------------------------------------===//
#include "core/shares.h"
#include "cpu/task.h"

namespace drt {

Range CpuTask::partOf(int32_t rank, const drt_member &member) const {
  if (member.owner > 0)
    return {0, member.owner - 1 == rank ? member.count : 0};
  return layout_.shareOf(layout_.tasks[rank], member.count);
}

void CpuTask::gatherPart(int32_t index, Range bytes, void *part) {
  if (communicator_)
    drain();
  drt::gatherPart(program_.variables[index], layout_, communicator_, variables_[index], bytes, part);
}

void CpuTask::scatterPart(int32_t index, Range bytes, const void *part) {
  if (communicator_)
    drain();
  drt::scatterPart(program_.variables[index], layout_, communicator_, part, bytes, variables_[index]);
}

} // namespace drt
