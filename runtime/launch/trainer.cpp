//===- trainer.cpp - The steps of a run, in one task ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/trainer.h"
#include "core/dtype.h"
#include "launch/program.h"
#include "launch/supervise.h"
#include "launch/values.h"
#include "launch/variables.h"

#include <csignal>
#include <cstdio>

namespace drt {
namespace {

// Updates that a checkpoint's variables had seen: its global step, else its name's.
int64_t updatesOf(const drt_program &program, const std::string &prefix) {
  if (prefix.empty())
    return 0;
  if (program.global_step < 0)
    return std::max<int64_t>(checkpointStep(prefix), 0);
  const drt_variable &variable = program.variables[program.global_step];
  char value[8] = {};
  CheckpointReader(prefix).read(variable.name, variable.type.dtype, {}, value);
  const int64_t updates = static_cast<int64_t>(valueAt(variable.type.dtype, value, 0));
  // A variable of that name may count something else; a count of updates begins at 0.
  if (updates < 0)
    return 0;
  if (updates > INT64_MAX / 4 / program.accumulate_steps)
    throw Error("checkpoint " + prefix + ": the global step '" + variable.name + "' is " + std::to_string(updates) +
                ", which cannot be counted on from; take another checkpoint");
  return updates;
}

std::string taskName(const drt_program &program, size_t rank) {
  const drt_task &task = program.tasks[rank];
  return std::string(task.job) + ":" + std::to_string(task.index) + " (" + task.host + ")";
}

} // namespace

Trainer::Trainer(const drt_program &program, const Options &options, Communicator *communicator, TaskConfig config)
    : program_(program), options_(options), first_(!communicator || communicator->rank() == 0),
      task_(makeTask(program, communicator, config)) {
  if (!task_->findEntry("step"))
    throw Error("the program has no entry 'step': it was compiled without a train op", 70);
  if (!options.data.empty())
    data_ = Dataset::open(options.data);
  feeding_.firstReplica = config.firstReplica;
  feeding_.localReplicas = config.localReplicas;
  feeding_.numReplicas = config.numReplicas;
  if (options.shuffle)
    feeding_.shuffleSeed = config.entropy;
  feeding_.alternates = program.accumulate_steps > 1;
  step_ = entryOf("step");
  if (program.accumulate_steps > 1)
    accumulate_ = entryOf("accumulate");
  // Behind the feeds' own checks, which say more where a feed is missing.
  if (data_)
    checkAllRead(*data_, program);
  const Feeder &feeder = *step_.feeder;
  if (options.epochs && feeder.batch() == 0)
    throw Error("the graph reads no examples, so there are no epochs; say --steps N", 2);
  wanted_ = options.steps.value_or(0);
  if (options.epochs && (__builtin_mul_overflow(*options.epochs, feeder.examples(), &wanted_) ||
                         __builtin_add_overflow(wanted_, feeder.batch() - 1, &wanted_)))
    throw Error("--epochs " + std::to_string(*options.epochs) + " of " + std::to_string(feeder.examples()) +
                    " examples are more steps than can be counted; say fewer",
                2);
  if (options.epochs)
    wanted_ /= feeder.batch();
}

Trainer::Entry Trainer::entryOf(const char *name) {
  Entry made;
  made.entry = task_->findEntry(name);
  made.feeder.emplace(data_ ? &*data_ : nullptr, *made.entry, feeding_);
  const drt_entry &entry = *made.entry;
  if (entry.num_fetches > 0 && isFloat(entry.fetches[0].type.dtype) && elementCount(entry.fetches[0].type) == 1)
    made.loss = &entry.fetches[0];
  return made;
}

int Trainer::run() {
  initialize();
  openFiles();
  catchSignals();
  stopDeadline_.emplace();
  report_training_started();
  startNs_ = nowNs();
  steps();
  finish();
  stopDeadline_.reset();
  return signal_;
}

// Steps are counted on from those that the restored variables have seen, as the names of checkpoints are. Task 0 says
// so: it alone needs to have the checkpoint.
void Trainer::count() {
  int64_t counts[2] = {}; // steps before the run, and before this start of it
  if (first_) {
    counts[0] = counts[1] = updatesOf(program_, options_.restore) * program_.accumulate_steps;
    if (!options_.resume.empty())
      counts[1] = std::max(counts[0], checkpointStep(options_.resume) * program_.accumulate_steps);
  }
  if (Communicator *communicator = task_->communicator()) {
    communicator->describe(0, "the first step");
    communicator->broadcast(counts, sizeof counts, 0);
  }
  begin_ = done_ = counts[1];
  if (__builtin_add_overflow(counts[0], wanted_, &end_) ||
      end_ > INT64_MAX / std::max<int64_t>(step_.feeder->batch(), 1) - 1)
    throw Error("the run would end in step " + std::to_string(counts[0]) + " + " + std::to_string(wanted_) +
                    ", which is more than can be counted; say fewer --steps or --epochs",
                2);
}

// Tasks that were given other data or another checkpoint would train, to nobody's numbers. A checkpoint that a task
// does not have is none: task 0 sends what is in it.
void Trainer::compareInputs() {
  Communicator *communicator = task_->communicator();
  if (!communicator)
    return;
  struct Inputs {
    uint32_t data = 0, restores = 0, checkpoint = 0;
  } own;
  own.data = step_.feeder->digest();
  own.restores = !options_.restore.empty();
  own.checkpoint = own.restores ? checkpointDigest(options_.restore) : 0;
  std::vector<Inputs> all(static_cast<size_t>(communicator->size()));
  communicator->describe(0, "what the tasks were given");
  communicator->all_gather(&own, sizeof own, all.data());
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const char *other = nullptr;
    if (all[rank].data != all[0].data)
      other = "other --data than";
    else if (all[rank].restores != all[0].restores ||
             (all[rank].checkpoint != 0 && all[0].checkpoint != 0 && all[rank].checkpoint != all[0].checkpoint))
      other = "another --restore than";
    if (other)
      throw Error(taskName(program_, rank) + " was given " + other + " " + taskName(program_, 0) +
                  "; give the same data and the same checkpoint to every task");
  }
}

void Trainer::initialize() {
  compareInputs();
  count();
  // Where variables are held in shares each task has its own to fill.
  if (first_ || hasShares(program_)) {
    // What a checkpoint does not hold keeps its initial value.
    if (const drt_entry *init = task_->findEntry("init"))
      task_->run(*init, 0);
    const std::string &prefix = options_.resume.empty() ? options_.restore : options_.resume;
    if (!prefix.empty())
      restoreVariables(*task_, prefix);
  }
  task_->broadcastVariables();
}

void Trainer::openFiles() {
  if (!first_)
    return;
  if (!options_.checkpointDir.empty())
    checkpoints_ = std::make_unique<CheckpointManager>(options_.checkpointDir, options_.keep);
  if (!options_.logJson.empty())
    log_ = std::make_unique<StepLog>(options_.logJson, program_,
                                     options_.resume.empty() ? std::nullopt : std::optional(begin_));
  if (!options_.summaryDir.empty())
    events_ = std::make_unique<EventFile>(options_.summaryDir);
  if (!options_.quiet && end_ > begin_)
    progress_ = std::make_unique<Progress>(begin_, end_, program_.global_batch);
}

double Trainer::localLoss(const drt_fetch *loss) {
  double sum = 0;
  for (int32_t i = 0; loss && i < task_->localReplicas(); ++i)
    sum += valueAt(loss->type.dtype, task_->fetched(i, *loss), 0);
  // A sum over the batch is that of the replicas' shares; what is equal in all has itself for a mean.
  return loss && loss->join == DRT_JOIN_SUM ? sum : sum / program_.num_replicas;
}

void Trainer::steps() {
  const Feeder::SetFeed setFeed = [this](int32_t feed, const void *share0, int64_t shareBytes) {
    task_->setFeed(feed, share0, shareBytes);
  };
  const size_t ahead = task_->runsAhead() ? 1 : 0;
  finishedNs_ = nowNs();
  stopDeadline_->resume();
  // All tasks see the same sums, so they stop after the same step.
  for (int64_t k = begin_; k < end_ && signal_ == 0; ++k) {
    const bool updates = (k + 1) % program_.accumulate_steps == 0;
    Entry &entry = updates ? step_ : accumulate_;
    entry.feeder->feed(k, setFeed);
    task_->enqueue(*entry.entry, k);
    running_.push_back({k, entry.loss});
    done_ = k + 1;
    while (running_.size() > ahead)
      finishStep();
    // At the next update where that many batches are none.
    if (signal_ == 0 && options_.saveEvery > 0 && updates &&
        done_ / options_.saveEvery > (done_ - program_.accumulate_steps) / options_.saveEvery) {
      save();
      finishedNs_ = nowNs();
      stopDeadline_->resume();
    }
  }
  while (!running_.empty())
    finishStep();
  finishSum();
  if (done_ == end_)
    signal_ = 0; // it came when everything was done
}

// The oldest step that is under way.
void Trainer::finishStep() {
  const Enqueued done = running_.front();
  task_->wait();
  running_.erase(running_.begin());
  const int64_t now = nowNs();
  const StepRecord record = {done.step, done.loss != nullptr, localLoss(done.loss), now - finishedNs_, now};
  finishedNs_ = now;
  stopDeadline_->stepDone(record.nanoseconds);
  finishSum();
  const int caught = caughtSignal();
  sums_[0] = record.loss;
  sums_[1] = caught == SIGINT;
  sums_[2] = caught == SIGTERM;
  summed_ = record;
  task_->startSum(sums_, 3);
  if (!task_->communicator())
    finishSum();
}

// Collects the sums of the step before; a task may have been told to stop.
void Trainer::finishSum() {
  if (!summed_)
    return;
  task_->finishSum();
  StepRecord record = *summed_;
  summed_.reset();
  record.loss = sums_[0];
  report(record);
  if (signal_ == 0)
    signal_ = sums_[2] > 0 ? SIGTERM : sums_[1] > 0 ? SIGINT : 0;
}

void Trainer::report(StepRecord record) {
  last_ = record;
  if (log_)
    log_->write(record);
  if (events_ && record.hasLoss)
    events_->scalar(step_.loss->name, record.step + 1, static_cast<float>(record.loss));
  if (progress_)
    progress_->update(record);
}

void Trainer::save() {
  if (options_.checkpointDir.empty() || savedAt_ == updates())
    return;
  savedAt_ = updates();
  while (!running_.empty()) // what the log says of them goes with the checkpoint
    finishStep();
  finishSum();
  stopDeadline_->pause();
  if (!checkpoints_ && !hasShares(program_))
    return;
  const WholeVariables variables(*task_);
  if (!checkpoints_)
    return;
  // Before the checkpoint is there: a restart from it does not run these steps again.
  if (log_)
    log_->sync();
  if (events_)
    events_->flush();
  checkpoint_ = checkpoints_->save(updates(), [&](CheckpointWriter &writer) { saveVariables(variables, writer); });
}

void Trainer::finish() {
  save();
  stopDeadline_->pause();
  if (!options_.exportNpz.empty() && (first_ || hasShares(program_))) {
    const WholeVariables variables(*task_);
    if (first_)
      exportVariables(variables, options_.exportNpz);
  }
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
