//===- task_config.h - Tasks of a test that share its replicas ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_SUPPORT_TASK_CONFIG_H
#define DISTC_TEST_UNIT_SUPPORT_TASK_CONFIG_H

#include "core/task.h"

#include <algorithm>

/// Of task number `task` of `tasks` on one host; the first ones have a replica more where they cannot be dealt equally.
inline drt::TaskConfig configOf(int32_t replicas, int32_t tasks, int32_t task) {
  drt::TaskConfig config;
  config.numReplicas = config.hostReplicas = replicas;
  config.localReplicas = replicas / tasks + (task < replicas % tasks);
  config.firstReplica = config.hostOffset = task * (replicas / tasks) + std::min(task, replicas % tasks);
  return config;
}

#endif // DISTC_TEST_UNIT_SUPPORT_TASK_CONFIG_H
