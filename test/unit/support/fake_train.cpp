//===- fake_train.cpp - An executable as distc makes them, without distc --===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Trains the hand-written program. FAKE_PLAN="REPLICAS TASKS BATCH" says how (a
// variable of the environment, so that tasks which it starts see it, too).
//
//===----------------------------------------------------------------------===//
#include "launch/program.h"
#include "test/unit/support/fake_program.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  int replicas = 1, tasks = 1, batch = 8;
  if (const char *plan = std::getenv("FAKE_PLAN"))
    std::sscanf(plan, "%d %d %d", &replicas, &tasks, &batch);
  if (const char *failing = std::getenv("FAKE_FAILING_REPLICA"))
    fake::failing_replica = std::atoi(failing);
  if (const char *hanging = std::getenv("FAKE_HANGING_REPLICA"))
    fake::hanging_replica = std::atoi(hanging);
  return drt::runProgram(fake::program(replicas, tasks, batch), argc, argv);
}
