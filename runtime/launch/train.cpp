//===- train.cpp - A training run: its tasks, their place, their end ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/output_file.h"
#include "launch/group.h"
#include "launch/program.h"
#include "launch/run_report.h"
#include "launch/run_timeline.h"
#include "launch/secret.h"
#include "launch/signals.h"
#include "launch/start_point.h"
#include "launch/supervise.h"
#include "launch/trainer.h"
#include "launch/variables.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <unistd.h>

namespace drt {
namespace {

int launchTasks(const Options &options, const std::vector<Task> &tasks, const Place &place) {
  LaunchOptions launching;
  launching.tasks = tasks;
  launching.place = place;
  launching.command = options.command;
  launching.max_restarts = options.maxRestarts;
  launching.failure_timeout = options.failureTimeout;
  launching.elastic = options.minWorkers.has_value();
  const bool saves = place.kind != PlaceKind::Member || place.rank == 0;
  if (saves && !options.checkpointDir.empty()) {
    // What lay in the folder before is not this run's.
    const std::string &folder = options.checkpointDir;
    const std::string before = options.overwrite ? "" : CheckpointManager(folder).latest();
    launching.latest_checkpoint = [folder, before] {
      const std::string latest = newestSoundCheckpoint(folder);
      return latest == before ? std::string() : latest;
    };
  }
  if (saves)
    launching.remove_unfinished = [&options] { removeUnfinished(options); };
  return launch(launching);
}

// A lost task makes the collectives throw; whatever else this task may be doing, it ends soon after. A silent task is
// noticed after 0.6 of the failure timeout, so that both together stay below it.
void endSoon(const std::string &message, double failureTimeout) {
  std::thread([message, grace = std::chrono::duration<double>(0.3 * failureTimeout)] {
    std::this_thread::sleep_for(grace);
    removeUnfinishedFiles();
    std::fprintf(stderr, "error: %s\n", message.c_str());
    _exit(1);
  }).detach();
}

/// What this task does when another one has failed, though none of its own threads may ever get to it: a collective may
/// not notice.
class AfterFailure {
public:
  /// Null: nothing. Returns when nobody is at what was set before.
  void set(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  void run() {
    const std::lock_guard lock(mutex_);
    if (work_)
      work_();
  }

private:
  std::mutex mutex_;
  std::function<void()> work_;
};

std::unique_ptr<Group> joinGroup(const drt_program &program, const Options &options, const std::vector<Task> &tasks,
                                 const Place &place, bool ended, const std::shared_ptr<AfterFailure> &afterFailure) {
  const auto number = [](std::optional<int64_t> value) { return std::to_string(value.value_or(-1)) + " "; };
  GroupOptions group;
  group.tasks = tasks;
  group.rank = place.rank;
  group.rendezvous = place.rendezvous;
  group.listen_socket = inherited_listen_socket();
  group.secret = find_secret(options.secretFile);
  if (options.tls.any())
    group.tls = openTls(options.tls);
  group.network = options.collectives == "network";
  group.fingerprint = std::string(program.graph) + " " + program.strategy + " " + program.distc_version + " " +
                      std::to_string(program.num_replicas) + " " + std::to_string(program.arena_bytes) + " " +
                      number(program.global_batch) + number(options.steps) + number(options.epochs) +
                      (options.shuffle ? "shuffled " + number(options.shuffleWindow) : "") + " last batch " +
                      std::to_string(static_cast<int>(options.lastBatch));
  for (const auto &[feed, feature] : options.features)
    group.fingerprint += " " + feed + "=" + feature;
  for (const auto &[feed, value] : options.values)
    group.fingerprint += " " + feed + "=" + std::to_string(std::bit_cast<uint64_t>(value));
  // What every task must take part in.
  group.fingerprint +=
      " evaluated every " + number(options.evalEvery) + (options.stopWhen ? options.stopWhen->text : "");
  for (const std::string &fetch : options.fetches)
    group.fingerprint += " " + fetch;
  if (!options.report.empty())
    group.fingerprint += " reported";
  if (!options.timeline.empty()) {
    group.fingerprint += " with a timeline";
    group.compares_clocks = true;
  }
  if (hasSpread(program))
    group.fingerprint += (options.checkpointDir.empty() ? " " : " saved every ") + number(options.saveEvery) +
                         (options.exportNpz.empty() ? "" : "exported");
  // Where the run is known to have ended, task 0 may be, too, and nobody has to wait for it.
  group.arrival_timeout = ended ? std::min(*options.arrivalTimeout, options.failureTimeout) : *options.arrivalTimeout;
  group.failure_timeout = options.failureTimeout;
  group.stall_warning = options.stallWarning;
  if (options.minWorkers) {
    group.sizes = elasticSizes(program, options);
    group.last_call = options.lastCall;
    group.fingerprint += " elastic";
    for (const int size : group.sizes)
      group.fingerprint += " " + std::to_string(size);
  }
  group.finished = ended || has_finished();
  group.on_lost = report_lost_another;
  group.comes_again = isStartedAgain;
  group.on_failure = [timeout = options.failureTimeout, afterFailure](const std::string &message) {
    endSoon(message, timeout);
    std::thread([afterFailure] { afterFailure->run(); }).detach();
  };
  return Group::join(std::move(group));
}

TaskConfig configOf(const drt_program &program, const Options &options, const std::vector<Task> &tasks, int rank) {
  const Task &mine = tasks[rank];
  TaskConfig config;
  config.firstReplica = mine.first_replica;
  config.localReplicas = mine.num_replicas;
  config.numReplicas = program.num_replicas;
  config.hostReplicas = 0;
  for (size_t i = 0; i < tasks.size(); ++i)
    if (tasks[i].host == mine.host) {
      config.hostReplicas += tasks[i].num_replicas;
      config.hostOffset += static_cast<int>(i) < rank ? tasks[i].num_replicas : 0;
    }
  config.pin = options.pin;
  config.timeline = !options.timeline.empty();
  config.metered = !options.report.empty();
  config.shareDevices = options.shareDevices;
  config.tuning = options.tuning;
  config.stallWarning = options.stallWarning;
  config.failureTimeout = options.failureTimeout;
  config.entropy =
      options.seed ? *options.seed : std::random_device{}() * UINT64_C(0x100000001) + std::random_device{}();
  return config;
}

/// `group`: null where the plan has one task; taken, and never destroyed, where threads of a failed task may still be
/// in it.
int trainTask(const drt_program &given, const Options &options, const std::vector<Task> &tasks, int rank,
              std::unique_ptr<Group> &group, AfterFailure &afterFailure) {
  Communicator *communicator = group && tasks.size() > 1 ? &group->communicator() : nullptr;
  const bool hasCommonMemory = communicator && communicator->has_common_memory();
  const drt_program &program = hasCommonMemory ? jointProgram(given) : given;
  TaskConfig config = configOf(program, options, tasks, rank);
  config.joint = isJoint(program);
  if (group)
    config.failing = [group = group.get()](const std::string &why) {
      // Its words may come a moment after what it breaks.
      constexpr double patience = 0.2;
      std::string cause = group->cause(patience);
      if (!cause.empty())
        return cause;
      group->fail(why);
      return why;
    };
  RunTimeline timeline(options.timeline, std::string(program.graph) + " in " + options.checkpointDir, tasks, rank,
                       group.get());
  if (communicator) {
    communicator->describe(0, "the seed");
    communicator->broadcast(&config.entropy, sizeof config.entropy, 0);
  }
  std::unique_ptr<RunReport> report;
  if (!options.report.empty()) {
    report = std::make_unique<RunReport>(options.report, program, tasks, rank, communicator);
    communicator = report->communicator();
  }
  std::optional<ElasticTask> elastic;
  if (options.minWorkers) {
    elastic.emplace();
    elastic->shallGrow = [group = group.get()] { return group->can_grow(); };
    for (const Task &task : tasks)
      elastic->names.push_back(task.name());
  }
  auto trainer = std::make_unique<Trainer>(program, options, communicator, config, report.get(), std::move(elastic));
  const auto writeTimeline = [&timeline, trainer = trainer.get()] {
    timeline.writeAfterFailure(trainer->timelineRows(), trainer->goesOnAt());
  };
  afterFailure.set(writeTimeline);
  const std::unique_ptr<AfterFailure, void (*)(AfterFailure *)> unset(&afterFailure,
                                                                      [](AfterFailure *set) { set->set(nullptr); });
  try {
    const int signal = trainer->run();
    timeline.write(trainer->timelineRows(), trainer->goesOnAt());
    if (group && trainer->formsAgain()) {
      group->form_again();
      group->leave();
      if (signal == 0)
        report_form_again();
    } else if (group) {
      if (signal == 0) {
        trainer->markFinished();
        report_finished();
      }
      group->leave();
      report_all_done();
      if (signal == 0 && options.minWorkers)
        group->tell_late_tasks();
    }
    return signal ? 128 + signal : 0;
  } catch (const std::exception &error) {
    if (group)
      group->fail(error.what());
    writeTimeline();
    // A replica that computes on and on cannot be joined; it ends with the process.
    if (!trainer->task().atRest()) {
      trainer.release();
      report.release();
      (void)group.release();
    }
    throw;
  }
}

/// A task of an elastic run's group, with the program for as many as have come.
int trainMember(const drt_program &program, const Options &options, const std::vector<Task> &tasks, int rank,
                std::unique_ptr<Group> &group, AfterFailure &afterFailure) {
  const std::vector<int> ranks = group->members();
  const drt_program &formed = *programOf(program, static_cast<int64_t>(ranks.size()));
  std::vector<Task> members = plan_tasks(formed, false);
  std::string names;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Task &named = tasks[static_cast<size_t>(ranks[i])];
    members[i].job = named.job;
    members[i].index = named.index;
    names += (i ? ", " : "") + named.name();
  }
  if (rank == 0)
    std::fprintf(stderr, "note: %zu of %zu workers compute: %s\n", ranks.size(), tasks.size(), names.c_str());
  const auto own = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return trainTask(formed, options, members, static_cast<int>(own), group, afterFailure);
}

} // namespace

int train(const drt_program &program, Options options) {
  const std::vector<Task> tasks = plan_tasks(program, false);
  const Place place = find_place(tasks, options.task, options.rendezvous, process_environment(), options.command);
  if (options.minWorkers && place.kind != PlaceKind::Member)
    throw Error(
        "--min-workers is for workers that are started one by one, each with a supervisor of its own, which can "
        "go without the others: give each --task worker:I and --rendezvous HOST:PORT, or start " +
            std::to_string(tasks.size()) + " with torchrun, srun or mpirun",
        2);
  // Before any task is started: what is wrong with the files is said once.
  if (options.tls.any())
    openTls(options.tls);
  // Once, by the process that starts the run, or by the task that saves.
  std::optional<CheckpointDirLock> lock;
  if (!isLaunched() && (place.kind != PlaceKind::Member || place.rank == 0)) {
    if (!options.checkpointDir.empty())
      lock.emplace(options.checkpointDir);
    settleCheckpointDir(options);
    removeUnfinished(options);
    checkOutputs(options);
  }
  if (needs_launch(place, options.maxRestarts))
    return launchTasks(options, tasks, place);
  takeSignals();
  std::unique_ptr<Group> group;
  const auto afterFailure = std::make_shared<AfterFailure>();
  if (place.kind == PlaceKind::Sole)
    return trainTask(program, options, tasks, 0, group, *afterFailure);
  try {
    group = joinGroup(program, options, tasks, place, hasEnded(options), afterFailure);
  } catch (const RunIsOver &over) {
    std::fprintf(stderr, "note: %s\n", over.what());
    report_all_done();
    return 0;
  }
  try {
    if (options.minWorkers)
      return trainMember(program, options, tasks, place.rank, group, *afterFailure);
    return trainTask(program, options, tasks, place.rank, group, *afterFailure);
  } catch (const std::exception &error) {
    if (group)
      group->fail(error.what());
    throw;
  }
}

} // namespace drt
