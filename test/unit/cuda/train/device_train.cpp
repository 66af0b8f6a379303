//===- device_train.cpp - An executable for devices, without distc --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Trains the hand-written program. DEVICE_PLAN="REPLICAS TASKS" says how (a variable of the environment, so that tasks
// which it starts see it, too).
//
//===----------------------------------------------------------------------===//
#include "launch/program.h"
#include "test/unit/cuda/program/device_program.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  int replicas = 1, tasks = 1;
  if (const char *plan = std::getenv("DEVICE_PLAN"))
    std::sscanf(plan, "%d %d", &replicas, &tasks);
  return drt::runProgram(device_program::program(replicas, tasks), argc, argv);
}
