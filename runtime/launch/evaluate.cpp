//===- evaluate.cpp - --eval ----------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/evaluation.h"
#include "launch/program.h"
#include "launch/variables.h"

#include <cstdio>
#include <optional>
#include <random>

namespace drt {

void checkInitialized(const TaskRuntime &task, bool restores) {
  if (!restores && task.program().num_variables > 0 && !task.findEntry("init"))
    throw Error(
        "the program has no initializers (it was compiled with --no-init, or its graph has none): say --restore "
        "with the checkpoint to start from");
}

int evaluate(const drt_program &program, const Options &options) {
  TaskConfig config;
  config.localReplicas = config.numReplicas = config.hostReplicas = program.num_replicas;
  config.pin = options.pin;
  config.shareDevices = options.shareDevices;
  config.tuning = options.tuning;
  config.entropy = options.seed ? *options.seed : std::random_device{}();
  const std::unique_ptr<TaskRuntime> task = makeTask(program, nullptr, config);

  std::optional<Dataset> data;
  if (!options.data.empty())
    data = Dataset::open(options.data);
  FeederConfig feeding;
  feeding.features = options.features;
  feeding.values = options.values;
  checkFeedFlags(feeding, program);
  Evaluation evaluation(*task, data ? &*data : nullptr, options.fetches, std::move(feeding));
  if (data)
    checkAllRead(*data, program);

  checkInitialized(*task, !options.restore.empty());
  if (const drt_entry *init = task->findEntry("init"))
    task->run(*init, 0);
  if (!options.restore.empty())
    restoreVariables(*task, options.restore);
  else if (!options.quiet)
    std::fputs("note: without --restore PREFIX the variables have their initial values\n", stderr);
  // On devices, where each replica has variables of its own: they have the same ones.
  task->broadcastVariables();

  evaluation.run();
  if (!options.exportNpz.empty())
    evaluation.write(options.exportNpz);
  evaluation.print();
  return 0;
}

} // namespace drt
