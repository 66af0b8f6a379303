//===- trainer.cpp - The steps of a run, in one task ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/trainer.h"
#include "core/dtype.h"
#include "launch/program.h"
#include "launch/signals.h"
#include "launch/supervise.h"
#include "launch/values.h"
#include "launch/variables.h"

#include <csignal>
#include <cstdio>

namespace drt {
namespace {

// Steps that a checkpoint's variables had seen: its global step, else its name's.
int64_t stepOf(const drt_program &program, const std::string &prefix) {
  if (prefix.empty())
    return 0;
  if (program.global_step < 0)
    return std::max<int64_t>(checkpointStep(prefix), 0);
  const drt_variable &variable = program.variables[program.global_step];
  char value[8] = {};
  CheckpointReader(prefix).read(variable.name, variable.type.dtype, {}, value);
  return static_cast<int64_t>(valueAt(variable.type.dtype, value, 0));
}

} // namespace

Trainer::Trainer(const drt_program &program, const Options &options, Communicator *communicator, TaskConfig config)
    : program_(program), options_(options), first_(!communicator || communicator->rank() == 0),
      task_(program, communicator, config), step_(task_.findEntry("step")) {
  if (!step_)
    throw Error("the program has no entry 'step': it was compiled without a train op", 70);
  if (!options.data.empty())
    data_ = Dataset::open(options.data);
  FeederConfig feeding;
  feeding.firstReplica = config.firstReplica;
  feeding.localReplicas = config.localReplicas;
  feeding.numReplicas = config.numReplicas;
  if (options.shuffle)
    feeding.shuffleSeed = config.entropy;
  feeder_.emplace(data_ ? &*data_ : nullptr, *step_, feeding);
  if (options.epochs && feeder_->batch() == 0)
    throw Error("the graph reads no examples, so there are no epochs; say --steps N", 2);
  end_ = options.epochs ? (*options.epochs * feeder_->examples() + feeder_->batch() - 1) / feeder_->batch()
                        : options.steps.value_or(0);
  if (step_->num_fetches > 0 && isFloat(step_->fetches[0].type.dtype) && elementCount(step_->fetches[0].type) == 1)
    loss_ = &step_->fetches[0];
}

int Trainer::run() {
  initialize();
  openFiles();
  catchSignals();
  report_training_started();
  startNs_ = nowNs();
  done_ = begin_;
  steps();
  finish();
  return signal_;
}

void Trainer::initialize() {
  base_ = stepOf(program_, options_.restore);
  if (!options_.resume.empty())
    begin_ = std::max<int64_t>(0, checkpointStep(options_.resume) - base_);
  if (first_) {
    // What a checkpoint does not hold keeps its initial value.
    if (const drt_entry *init = task_.findEntry("init"))
      task_.run(*init, 0);
    const std::string &prefix = options_.resume.empty() ? options_.restore : options_.resume;
    if (!prefix.empty())
      restoreVariables(task_, prefix);
  }
  task_.broadcastVariables();
}

void Trainer::openFiles() {
  if (!first_)
    return;
  if (!options_.checkpointDir.empty())
    checkpoints_ = std::make_unique<CheckpointManager>(options_.checkpointDir, options_.keep);
  if (!options_.logJson.empty())
    log_ = std::make_unique<StepLog>(options_.logJson, program_, begin_);
  if (!options_.summaryDir.empty())
    events_ = std::make_unique<EventFile>(options_.summaryDir);
  if (!options_.quiet && end_ > begin_)
    progress_ = std::make_unique<Progress>(begin_, end_, program_.global_batch);
}

double Trainer::localLoss() {
  double sum = 0;
  for (int32_t i = 0; loss_ && i < task_.localReplicas(); ++i)
    sum += valueAt(loss_->type.dtype, task_.replica(i).arena + loss_->arena_offset, 0);
  return sum / program_.num_replicas;
}

void Trainer::steps() {
  const Feeder::SetFeed setFeed = [this](int32_t feed, const void *share0, int64_t shareBytes) {
    task_.setFeed(feed, share0, shareBytes);
  };
  const bool alone = task_.communicator() == nullptr;
  int64_t before = nowNs();
  for (int64_t k = begin_; k < end_; ++k) {
    feeder_->feed(k, setFeed);
    task_.run(*step_, k);
    done_ = k + 1;
    const int64_t now = nowNs();
    const StepRecord record = {k, loss_ != nullptr, localLoss(), now - before, now};
    before = now;
    bool stop;
    if (alone) {
      report(record);
      signal_ = caughtSignal();
      stop = signal_ != 0;
    } else {
      // All tasks see the same sums, so they stop after the same step.
      stop = agreeOnStop();
      pending_ = record;
      isPending_ = true;
      const int caught = caughtSignal();
      sums_[0] = record.loss;
      sums_[1] = caught == SIGINT;
      sums_[2] = caught == SIGTERM;
      task_.startSum(sums_, 3);
    }
    if (stop)
      break;
    if (options_.saveEvery > 0 && done_ % options_.saveEvery == 0) {
      save();
      before = nowNs();
    }
  }
  agreeOnStop();
  if (done_ == end_)
    signal_ = 0; // it came when everything was done
}

// Collects the sums of the step before; true where a task was told to stop.
bool Trainer::agreeOnStop() {
  if (!isPending_)
    return false;
  task_.finishSum();
  isPending_ = false;
  pending_.loss = sums_[0];
  report(pending_);
  if (signal_ == 0)
    signal_ = sums_[2] > 0 ? SIGTERM : sums_[1] > 0 ? SIGINT : 0;
  return signal_ != 0;
}

void Trainer::report(StepRecord record) {
  last_ = record;
  if (log_)
    log_->write(record);
  if (events_ && record.hasLoss)
    events_->scalar(loss_->name, base_ + record.step + 1, static_cast<float>(record.loss));
  if (progress_)
    progress_->update(record);
}

void Trainer::save() {
  if (!checkpoints_ || savedAt_ == done_)
    return;
  checkpoint_ = checkpoints_->save(base_ + done_, [this](CheckpointWriter &writer) { saveVariables(task_, writer); });
  savedAt_ = done_;
  if (log_)
    log_->flush(); // a restart from here continues it
}

void Trainer::finish() {
  save();
  if (!options_.exportNpz.empty() && first_)
    exportVariables(task_, options_.exportNpz);
  const double seconds = static_cast<double>(nowNs() - startNs_) * 1e-9;
  if (progress_ && done_ > begin_)
    progress_->finish(last_);
  if (log_)
    log_->done(done_, seconds, checkpoint_, signal_);
  if (events_)
    events_->flush();
  if (!first_ || options_.quiet)
    return;
  std::printf("%s after %lld steps in %.3g s", signal_ ? "stopped by a signal" : "done",
              static_cast<long long>(done_ - begin_), seconds);
  if (last_.hasLoss)
    std::printf(", loss %.6g", last_.loss);
  std::printf(checkpoint_.empty() ? "\n" : ", checkpoint %s\n", checkpoint_.c_str());
  std::fflush(stdout);
}

} // namespace drt
