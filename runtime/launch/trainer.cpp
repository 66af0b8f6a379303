//===- trainer.cpp - The steps of a run, in one task ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/trainer.h"
#include "core/batch_scheduling.h"
#include "core/counted.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/values.h"
#include "launch/program.h"
#include "launch/supervise.h"
#include "launch/variables.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <sched.h>
#include <thread>

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

std::optional<cpu_set_t> ownCores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::optional(cores) : std::nullopt;
}

/// Whether a compressor has a state, which checkpoints do not hold.
bool keepsBack(const drt_program &program) {
  for (int32_t e = 0; e < program.num_entries; ++e)
    for (int32_t b = 0; b < program.entries[e].num_buckets; ++b)
      if (const drt_exchange *exchange = program.entries[e].buckets[b].exchange)
        switch (exchange->compressor) {
        case DRT_COMPRESS_F16_EF:
        case DRT_COMPRESS_BF16_EF:
        case DRT_COMPRESS_POWER_SGD:
        case DRT_COMPRESS_TOP_K:
          return true;
        default:
          break;
        }
  // On devices it is variables.
  return std::any_of(program.variables, program.variables + program.num_variables,
                     [](const drt_variable &variable) { return variable.flags & DRT_VARIABLE_CARRIED; });
}

// Null where the program has none.
const drt_fetch *findLoss(const drt_entry &step) {
  const drt_fetch *first = step.num_fetches > 0 ? &step.fetches[0] : nullptr;
  return first && isFloat(first->type.dtype) && elementCount(first->type) == 1 ? first : nullptr;
}

} // namespace

Trainer::Trainer(const drt_program &program, const Options &options, Communicator *communicator, TaskConfig config,
                 RunReport *runReport, std::optional<ElasticTask> elastic)
    : program_(program), options_(options), first_(!communicator || communicator->rank() == 0), cores_(ownCores()),
      task_(makeTask(program, communicator, config)), elastic_(std::move(elastic)), runReport_(runReport) {
  if (!task_->findEntry("step"))
    throw Error("the program was compiled without an operation that trains, and can only --eval: compile it again with "
                "--train-op",
                1);
  if (!options.data.empty())
    data_ = Dataset::open(options.data);
  feeding_ = feedingOf(options);
  feeding_.firstReplica = config.firstReplica;
  feeding_.localReplicas = config.localReplicas;
  feeding_.numReplicas = config.numReplicas;
  shuffleSeed_ = config.entropy & INT64_MAX; // what --seed can say
  if (options.shuffle)
    feeding_.shuffleSeed = shuffleSeed_;
  feeding_.cores = cores_;
  checkFeedFlags(feeding_, program);
  feeding_.alternates = program.accumulate_steps > 1 || !options.evalData.empty();
  update_ = task_->findEntry("update");
  chooseLogged();
  step_ = entryOf("step");
  if (program.accumulate_steps > 1)
    accumulate_ = entryOf("accumulate");
  // Behind the feeds' own checks, which say more where a feed is missing.
  if (data_)
    checkAllRead(*data_, program);
  if (!options.evalData.empty() && first_) {
    evalData_ = Dataset::open(options.evalData, "--eval-data");
    std::vector<std::string> names = options.fetches;
    std::erase_if(names, [&](const std::string &name) { return !findFetch(task_->findEntry("eval"), name); });
    evaluation_ = std::make_unique<Evaluation>(*task_, &*evalData_, names, feeding_);
    checkAllRead(*evalData_, program);
    const drt_entry &eval = *task_->findEntry("eval");
    // Rows that other tasks hold they give meanwhile.
    const bool reduces = std::any_of(eval.buckets, eval.buckets + eval.num_buckets,
                                     [](const drt_bucket &bucket) { return bucket.kind != DRT_BUCKET_PULL_ROWS; });
    if (communicator && reduces)
      throw Error("--eval-data: what is evaluated is reduced over the tasks, which one task cannot do while the others "
                  "wait; evaluate the checkpoints with --eval",
                  2);
  }
  if (program.servers)
    for (int32_t i = 0; i <= config.localReplicas; ++i) {
      FeederConfig feeding = feeding_;
      feeding.firstReplica = config.firstReplica + i % config.localReplicas;
      feeding.localReplicas = 1;
      const drt_entry *entry = task_->findEntry(i < config.localReplicas ? "step" : "update");
      servedFeeders_.push_back(std::make_unique<Feeder>(data_ ? &*data_ : nullptr, *entry, std::move(feeding)));
    }
  const Feeder &feeder = *step_.feeder;
  if (options.epochs && feeder.batch() == 0)
    throw Error("the graph reads no examples, so there are no epochs; say --steps N", 2);
  wanted_ = options.steps.value_or(0);
  if (!options.epochs)
    return;
  const std::optional<int64_t> batches = feeder.batchesOf(*options.epochs);
  if (!batches)
    throw Error("--epochs " + std::to_string(*options.epochs) + " of " + std::to_string(feeder.examples()) +
                    " examples are more steps than can be counted; say fewer",
                2);
  wanted_ = *batches;
  // What is counted are updates.
  if (const drt_servers *servers = program.servers) {
    if (wanted_ > INT64_MAX / program.num_replicas)
      throw Error("--epochs " + std::to_string(*options.epochs) + " are more updates than can be counted; say fewer",
                  2);
    wanted_ = (wanted_ * program.num_replicas + servers->required - 1) / servers->required;
  }
}

Trainer::Entry Trainer::entryOf(const char *name) {
  Entry made;
  made.entry = task_->findEntry(name);
  FeederConfig feeding = feeding_;
  const int64_t every = program_.accumulate_steps;
  const bool accumulates = made.entry == task_->findEntry("accumulate");
  if (every > 1)
    feeding.nextStep = [every, accumulates](int64_t step) {
      return !accumulates ? step + every : (step + 2) % every == 0 ? step + 2 : step + 1;
    };
  if (!options_.timeline.empty()) {
    // Behind the replicas and the communication.
    made.row = std::make_unique<TimelineRow>("data", program_.num_replicas + (accumulates ? 2 : 1));
    feeding.timeline = made.row.get();
  }
  made.feeder = std::make_unique<Feeder>(data_ ? &*data_ : nullptr, *made.entry, std::move(feeding));
  const drt_entry &entry = *made.entry;
  made.loss = findLoss(entry);
  for (const Logged &logged : logged_) {
    const drt_fetch *fetch = findFetch(&entry, logged.name);
    made.logged.push_back(fetch ? fetch : findFetch(update_, logged.name));
  }
  return made;
}

// Every task has the same ones: they are summed over the tasks.
void Trainer::chooseLogged() {
  const drt_entry &step = *task_->findEntry("step"), *eval = task_->findEntry("eval");
  // What servers that serve on their own give of an update, beside what replicas give of their steps.
  const auto findOfStep = [&](std::string_view name) {
    const drt_fetch *fetch = findFetch(&step, name);
    return fetch ? fetch : findFetch(update_, name);
  };
  const auto isNumber = [](const drt_fetch &fetch) {
    return elementCount(fetch.type) == 1 && fetch.join != DRT_JOIN_CONCAT;
  };
  const auto names = [&] {
    std::string text;
    for (const drt_entry *entry : {&step, update_})
      for (int32_t i = 0; entry && i < entry->num_fetches; ++i)
        if (isNumber(entry->fetches[i]))
          text += (text.empty() ? "" : ", ") + std::string(entry->fetches[i].name);
    return text.empty() ? "none" : text;
  };
  const auto add = [&](const drt_fetch &fetch, bool asked) {
    if (std::none_of(logged_.begin(), logged_.end(), [&](const Logged &other) { return other.name == fetch.name; }))
      logged_.push_back({fetch.name, fetch.summary ? fetch.summary : "", asked});
  };
  for (const std::string &name : options_.fetches) {
    const drt_fetch *fetch = findOfStep(name);
    if (fetch && isNumber(*fetch))
      add(*fetch, true);
    else if (options_.evalData.empty() || !findFetch(eval, name))
      throw Error("--fetch " + name +
                      (fetch ? " gives more than one number, which no log takes" : " is not compiled in") +
                      "; the step gives: " + names() + ". Compile again with --fetch, or use --eval",
                  2);
  }
  if (const std::optional<StopCondition> &stop = options_.stopWhen) {
    // The log calls it so, whatever the tensor's name is.
    const bool isLoss = stop->name == "loss" && findLoss(step) && !findFetch(&step, "loss") && !findFetch(eval, "loss");
    stopName_ = isLoss ? findLoss(step)->name : stop->name;
    const drt_fetch *evaluated = options_.evalData.empty() ? nullptr : findFetch(eval, stopName_);
    const drt_fetch *fetch = findOfStep(stopName_);
    const drt_fetch *watched = evaluated ? evaluated : fetch;
    if (!watched || !isNumber(*watched))
      throw Error("--stop-when " + stop->text + ": '" + stop->name +
                      (watched ? "' is more than one number" : "' is not compiled in") +
                      "; the step gives: " + names() + ". Compile again with --fetch " + stop->name,
                  2);
    if (!evaluated)
      add(*fetch, false);
  }
  for (const drt_entry *entry : {&step, update_})
    for (int32_t i = 0; entry && i < entry->num_fetches; ++i)
      if (entry->fetches[i].summary && isNumber(entry->fetches[i]))
        add(entry->fetches[i], false);
  sums_.resize(SumLogged + logged_.size());
}

Trainer::~Trainer() {
  isGone_ = true;
  if (saving_.valid())
    saving_.wait();
  // Where the run has failed nobody may ever take it, and a disk that is full would have the less room.
  if (otherPart_ && !isDone_)
    CheckpointManager::removeOtherPart(options_.checkpointDir, otherPartOf_, *otherPart_);
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
  isDone_ = true;
  return signal_;
}

std::vector<const TimelineRow *> Trainer::timelineRows() const {
  std::vector<const TimelineRow *> rows = task_->timelineRows();
  for (const Entry *entry : {&step_, &accumulate_})
    if (entry->row && !entry->row->events().empty())
      rows.push_back(entry->row.get());
  return rows;
}

// Steps are counted on from those that the restored variables have seen, as the names of checkpoints are. Task 0 says
// so: it alone needs to have the checkpoint.
void Trainer::count() {
  // Steps before the run, and before this start of it; whether there is a checkpoint; where the data go on, and their
  // order; whether --stop-when has ended the run there; how many random operations go on.
  int64_t counts[7] = {};
  if (first_) {
    counts[0] = counts[1] = updatesOf(program_, options_.restore) * program_.accumulate_steps;
    if (isResumed())
      counts[1] = std::max(counts[0], checkpointStep(*options_.resume) * program_.accumulate_steps);
    counts[2] = isResumed() || !options_.restore.empty();
    const std::optional<InputPosition> input =
        isResumed() ? readInputPosition(*options_.resume) : std::optional<InputPosition>();
    counts[3] = input ? input->position : stepsOf(counts[1]) * step_.feeder->batch();
    if (input && input->data && input->data != step_.feeder->digest())
      std::fprintf(stderr,
                   "warning: --data is not what %s was trained with; the run goes on behind the first %lld examples of "
                   "what it is now\n",
                   options_.resume->c_str(), static_cast<long long>(counts[3]));
    counts[4] = static_cast<int64_t>(input && !options_.seed ? input->seed : shuffleSeed_);
    counts[5] = input && options_.stopWhen && input->stopped == options_.stopWhen->text;
    if (input)
      randomBegin_ = input->random;
    // Another --seed is for what has none of its own.
    if (input && options_.seed && *options_.seed != input->seed)
      std::erase_if(randomBegin_, [](const RandomPosition &position) { return !position.isSeeded; });
    counts[6] = static_cast<int64_t>(randomBegin_.size());
  }
  if (Communicator *communicator = task_->communicator()) {
    communicator->describe(0, "the first step");
    communicator->broadcast(counts, sizeof counts, 0);
    randomBegin_.resize(static_cast<size_t>(counts[6]));
    if (!randomBegin_.empty())
      communicator->broadcast(randomBegin_.data(), static_cast<int64_t>(randomBegin_.size() * sizeof randomBegin_[0]),
                              0);
  }
  begin_ = done_ = counts[1];
  if (isResumed())
    goesOnAt_ = begin_;
  shuffleSeed_ = static_cast<uint64_t>(counts[4]);
  restores_ = counts[2] != 0;
  stopped_ = counts[5] != 0;
  if (__builtin_add_overflow(counts[0], wanted_, &end_) ||
      end_ > INT64_MAX / 4 / std::max<int64_t>(step_.feeder->batch(), 1))
    throw Error("the run would end in step " + std::to_string(counts[0]) + " + " + std::to_string(wanted_) +
                    ", which is more than can be counted; say fewer --steps or --epochs",
                2);
  const std::optional<uint64_t> seed = options_.shuffle ? std::optional(shuffleSeed_) : std::nullopt;
  for (Entry *entry : {&step_, &accumulate_})
    if (entry->feeder)
      entry->feeder->startAt(stepsOf(begin_), counts[3], seed);
  for (const std::unique_ptr<Feeder> &feeder : servedFeeders_)
    feeder->startAt(0, counts[3], seed);
}

// Rounded down: what a started step of the replicas read is read again.
int64_t Trainer::stepsOf(int64_t updates) const {
  return program_.servers ? updates * program_.servers->required / program_.num_replicas : updates;
}

void Trainer::serve() {
  task_->serve(
      [this](int32_t replica, int64_t step, const std::function<void(int32_t, const void *)> &set) {
        servedFeeders_[static_cast<size_t>(replica)]->feed(
            step, [&](int32_t feed, const void *share, int64_t) { set(feed, share); });
      },
      begin_);
}

// Of the checkpoint that is saved: an update that is not complete is begun again.
InputPosition Trainer::inputPosition() const {
  return {step_.feeder->position(stepsOf(updates() * program_.accumulate_steps)), shuffleSeed_, step_.feeder->digest(),
          stopped_ ? options_.stopWhen->text : "", randomKept_ ? *randomKept_ : task_->randomPositions()};
}

// Between two updates nothing is saved, but behind the last one.
void Trainer::keepRandomPositions() {
  if (program_.accumulate_steps == 1 || program_.num_rng_states == 0 || !checkpoints_)
    return;
  while (!running_.empty())
    finishStep();
  randomKept_ = task_->randomPositions();
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
      throw Error((elastic_ ? elastic_->names[rank] : taskName(program_, rank)) + " was given " + other + " " +
                  (elastic_ ? elastic_->names[0] : taskName(program_, 0)) +
                  "; give the same data and the same checkpoint to every task");
  }
}

void Trainer::initialize() {
  compareInputs();
  count();
  checkInitialized(*task_, restores_);
  // Where variables are held in shares, or by one task, each has its own to fill.
  if (first_ || hasSpread(program_)) {
    // What a checkpoint does not hold keeps its initial value.
    if (const drt_entry *init = task_->findEntry("init"))
      task_->run(*init, 0);
    if (restores_)
      restoreVariables(*task_, isResumed() ? *options_.resume : options_.restore, &carried_);
  }
  task_->broadcastVariables();
  // Behind the initializers, which draw for what a checkpoint does not hold as they did.
  if (!randomBegin_.empty())
    task_->goOnDrawing(randomBegin_);
}

void Trainer::openFiles() {
  if (!first_)
    return;
  if (isResumed() && keepsBack(program_))
    std::fprintf(stderr, "note: what compressors with error feedback kept back for the next step is in no checkpoint: "
                         "from here on the numbers are not those of a run that was left alone\n");
  if (runReport_)
    runReport_->open();
  if (!options_.checkpointDir.empty())
    checkpoints_ = std::make_unique<CheckpointManager>(options_.checkpointDir, options_.keep);
  if (checkpoints_ && options_.overwrite && !isResumed())
    checkpoints_->clear();
  if (!options_.logJson.empty())
    log_ = std::make_unique<StepLog>(options_.logJson, program_, isResumed() ? std::optional(begin_) : std::nullopt);
  if (!options_.summaryDir.empty())
    events_ = std::make_unique<EventFile>(options_.summaryDir, isResumed() ? std::optional(begin_) : std::nullopt);
  if (!options_.quiet && end_ > begin_)
    progress_ = std::make_unique<ProgressLine>(begin_, end_, examplesOfStep(program_));
}

// This task's part of a fetch's value, to be added over all tasks.
double Trainer::localValue(const drt_fetch *fetch) {
  if (!fetch || (fetch->join == DRT_JOIN_FIRST && !isFloat(fetch->type.dtype) && !first_))
    return 0;
  // A count is the first replica's; its mean might lose digits.
  if (fetch->join == DRT_JOIN_FIRST && !isFloat(fetch->type.dtype))
    return valueAt(fetch->type.dtype, task_->fetched(0, *fetch), 0);
  ReplicaValues values;
  for (int32_t i = 0; i < task_->localReplicas(); ++i)
    values.add(valueAt(fetch->type.dtype, task_->fetched(i, *fetch), 0));
  // A sum over the batch is that of the replicas' shares.
  return fetch->join == DRT_JOIN_SUM ? values.getSum() : values.getShareOfMean(program_.num_replicas);
}

bool Trainer::fetchesAreDue(int64_t done) const { return done % options_.fetchEvery.value_or(1) == 0; }

void Trainer::checkStop(std::string_view name, double value) {
  const std::optional<StopCondition> &stop = options_.stopWhen;
  const bool named = stop && (name == stopName_ || name == stopName_ + ":0");
  stopped_ = stopped_ || (named && stop->holds(value));
}

// Task 0 evaluates, with its own replicas; the others hear whether that ends the training.
void Trainer::evaluate() {
  while (!running_.empty())
    finishStep();
  finishSum();
  stopDeadline_->pause();
  double stops = 0;
  if (evaluation_) {
    evaluation_->run();
    task_->endAlone(*task_->findEntry("eval"));
    for (const NamedValue &value : evaluation_->numbers()) {
      checkStop(value.name, value.value);
      if (events_)
        events_->scalar("eval/" + std::string(value.name), done_, static_cast<float>(value.value));
    }
    if (log_)
      log_->evaluated(done_ - 1, evaluation_->numbers());
    if (progress_)
      progress_->interrupt();
    if (!options_.quiet) {
      std::printf("evaluation after step %lld\n", static_cast<long long>(done_));
      evaluation_->print();
    }
    stops = stopped_;
  } else if (const drt_entry *eval = task_->findEntry("eval")) {
    task_->answer(*eval);
  }
  if (Communicator *communicator = task_->communicator()) {
    communicator->describe(done_, "the evaluation");
    communicator->broadcast(&stops, sizeof stops, 0);
    stopped_ = stops != 0;
  }
  beginStep();
}

// The next step begins here; what was done since the last one is no step's.
void Trainer::beginStep() {
  if (runReport_)
    runReport_->discard();
  finishedNs_ = nowNs();
  stopDeadline_->resume();
}

void Trainer::steps() {
  const Feeder::SetFeed setFeed = [this](int32_t feed, const void *share0, int64_t shareBytes) {
    task_->setFeed(feed, share0, shareBytes);
  };
  // Who stops by a value must know it before the next step.
  const auto ahead = static_cast<size_t>(options_.stopWhen ? 0 : task_->stepsAhead());
  keepRandomPositions();
  beginStep();
  const bool served = program_.servers && begin_ < end_ && !stopped_;
  if (served)
    serve();
  // All tasks see the same sums, so they stop after the same step.
  for (int64_t k = begin_; k < end_ && !isEnding() && !stopped_; ++k) {
    const bool updates = (k + 1) % program_.accumulate_steps == 0;
    Entry &entry = updates ? step_ : accumulate_;
    const int64_t feedsNs = runReport_ ? nowNs() : 0;
    if (!served)
      entry.feeder->feed(k, setFeed);
    if (runReport_)
      runReport_->fed(feedsNs);
    const int64_t runsNs = runReport_ ? nowNs() : 0;
    task_->enqueue(*entry.entry, k);
    if (runReport_)
      runReport_->ran(runsNs, *task_);
    running_.push_back({k, &entry});
    done_ = k + 1;
    while (running_.size() > ahead)
      finishStep();
    if (updates)
      keepRandomPositions();
    finishSave(false);
    if (!isEnding() && options_.evalEvery > 0 && done_ % options_.evalEvery == 0)
      evaluate();
    // At the next update where that many batches are none.
    if (!isEnding() && options_.saveEvery > 0 && updates &&
        done_ / options_.saveEvery > (done_ - program_.accumulate_steps) / options_.saveEvery) {
      save();
      beginStep();
    }
  }
  while (!running_.empty())
    finishStep();
  finishSum();
  task_->stopServing();
  if (done_ == end_ || stopped_) { // it came when everything was done
    signal_ = 0;
    formsAgain_ = false;
  }
  if (formsAgain_)
    signal_ = first_ ? 0 : caughtSignal();
}

// The oldest step that is under way.
void Trainer::finishStep() {
  const Enqueued done = running_.front();
  task_->wait();
  running_.erase(running_.begin());
  const int64_t now = nowNs();
  const Entry &entry = *done.entry;
  StepRecord record = {done.step, entry.loss != nullptr, localValue(entry.loss), now - finishedNs_, now, {}};
  finishedNs_ = now;
  stopDeadline_->stepDone(record.nanoseconds);
  finishSum();
  if (runReport_) {
    runReport_->stepDone(record.nanoseconds, *task_);
    sums_.resize(SumLogged + logged_.size() + static_cast<size_t>(runReport_->numbers()));
    runReport_->put(sums_.data() + SumLogged + logged_.size());
  }
  const int caught = caughtSignal();
  sums_[SumInt] = caught == SIGINT;
  // Who is told to go leaves the others to their work; without task 0, which saves, they have none.
  const bool goes = elastic_ && !first_ && caught == SIGTERM;
  sums_[SumTerm] = caught == SIGTERM && !goes;
  sums_[SumFormAgain] = goes || (elastic_ && first_ && elastic_->shallGrow());
  sums_[SumLoss] = record.loss;
  for (size_t i = 0; i < logged_.size(); ++i) {
    sums_[SumLogged + i] = localValue(entry.logged[i]);
    if (entry.logged[i])
      record.fetches.push_back({logged_[i].name, 0});
  }
  summed_ = std::move(record);
  task_->startSum(sums_.data(), static_cast<int64_t>(sums_.size()));
  if (!task_->communicator() || options_.stopWhen)
    finishSum();
}

// Collects the sums of the step before; a task may have been told to stop.
void Trainer::finishSum() {
  if (!summed_)
    return;
  const int64_t waitsNs = runReport_ ? nowNs() : 0;
  task_->finishSum();
  if (runReport_) {
    runReport_->waited(waitsNs);
    runReport_->take(sums_.data() + SumLogged + logged_.size());
    runReport_->writeIfDue();
  }
  StepRecord record = std::move(*summed_);
  summed_.reset();
  record.loss = sums_[SumLoss];
  size_t next = 0;
  for (size_t i = 0; i < logged_.size() && next < record.fetches.size(); ++i)
    if (record.fetches[next].name == logged_[i].name)
      record.fetches[next++].value = sums_[SumLogged + i];
  // A condition on what is evaluated is not met by a step.
  for (const NamedValue &value : record.fetches)
    if (options_.evalData.empty() || !findFetch(task_->findEntry("eval"), value.name))
      checkStop(value.name, value.value);
  report(record);
  if (signal_ == 0)
    signal_ = sums_[SumTerm] > 0 ? SIGTERM : sums_[SumInt] > 0 ? SIGINT : 0;
  formsAgain_ = formsAgain_ || (signal_ == 0 && sums_[SumFormAgain] > 0);
}

void Trainer::report(const StepRecord &step) {
  StepRecord record = step;
  std::erase_if(record.fetches, [&](const NamedValue &value) {
    const auto logged =
        std::find_if(logged_.begin(), logged_.end(), [&](const Logged &other) { return other.name == value.name; });
    if (events_ && (!logged->asked || fetchesAreDue(record.step + 1)))
      events_->scalar(logged->summary.empty() ? logged->name : logged->summary, record.step + 1,
                      static_cast<float>(value.value));
    return !logged->asked || !fetchesAreDue(record.step + 1);
  });
  last_ = record;
  if (log_)
    log_->write(record);
  if (first_ && options_.fetchEvery && !options_.quiet && !record.fetches.empty()) {
    if (progress_)
      progress_->interrupt();
    std::printf("step %lld", static_cast<long long>(record.step + 1));
    for (const NamedValue &value : record.fetches)
      std::printf("  %s = %.9g", std::string(value.name).c_str(), value.value);
    std::printf("\n");
    std::fflush(stdout);
  }
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
  if (!checkpoints_ && !hasSpread(program_))
    return;
  // Before the checkpoint is there: a restart from it does not run these steps again.
  if (log_)
    log_->sync();
  if (events_)
    events_->flush();
  finishSave(true);
  std::string input;
  if (checkpoints_) {
    savedInput_ = inputPosition();
    if (step_.feeder->batch() > 0 || stopped_ || program_.num_rng_states > 0)
      input = inputPositionText(savedInput_);
  }
  chooseParts();
  if (parts_)
    savePart(input);
  else if (checkpoints_)
    saveWhole(input);
  else
    saveVariables(*task_, {}, nullptr);
}

// By task 0, which others give what they alone have.
void Trainer::saveWhole(const std::string &input) {
  if (hasSpread(program_) || !hasRoomForCopy()) {
    checkpoint_ = checkpoints_->save(
        updates(), [&](CheckpointWriter &writer) { saveVariables(*task_, carried_, &writer); }, input);
    return;
  }
  const BatchScheduling scheduling; // the thread has it from this one: it interrupts no replica
  saving_ = std::async(
      std::launch::async, [this, copy = std::make_shared<const VariablesCopy>(*task_), input, update = updates()] {
        return checkpoints_->save(update, [&](CheckpointWriter &writer) { copy->save(carried_, writer); }, input);
      });
}

// Tasks write what each has where the folder is one for all of them.
void Trainer::chooseParts() {
  if (partsAreChosen_)
    return;
  partsAreChosen_ = true;
  Communicator *communicator = task_->communicator();
  if (!communicator)
    return;
  parts_ = SavedParts::of(program_);
  if (!parts_)
    return;
  if (first_) {
    std::random_device random;
    while (partsRun_ == 0)
      partsRun_ = uint64_t{random()} << 32 | random();
    if (!checkpoints_->leaveMark(partsRun_))
      partsRun_ = 0; // the save says why
  }
  communicator->broadcast(&partsRun_, sizeof partsRun_, 0);
  const uint8_t sees = partsRun_ != 0 && CheckpointManager::seesMark(options_.checkpointDir, partsRun_);
  std::vector<uint8_t> all(static_cast<size_t>(communicator->size()));
  communicator->all_gather(&sees, sizeof sees, all.data());
  if (first_)
    checkpoints_->removeMark(partsRun_);
  if (std::find(all.begin(), all.end(), 0) != all.end())
    parts_.reset();
}

// By every task that alone has some variables, and task 0 for the rest; task 0 publishes what all have written.
void Trainer::savePart(const std::string &input) {
  Communicator *communicator = task_->communicator();
  communicator->describe(updates(), "checkpoint");
  communicator->barrier(); // what is saved is what all updates so far have made
  if (const int part = parts_->partOf(communicator->rank()); part >= 0) {
    const CheckpointPart mine = {part, parts_->parts(), partsRun_};
    if (part > 0) {
      otherPart_ = mine;
      otherPartOf_ = updates();
    }
    using Write = std::function<void(CheckpointWriter &)>;
    const auto publish = [this, communicator, input, update = updates(), mine](const Write &write) -> std::string {
      if (mine.part > 0) {
        CheckpointManager::saveOtherPart(options_.checkpointDir, update, mine, write);
        return "";
      }
      const auto wait = [&] {
        communicator->throw_if_aborted();
        if (isGone_)
          throw Error("the other parts of a checkpoint are not waited for");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      };
      try {
        return checkpoints_->savePart(update, mine, write, wait, input);
      } catch (const Error &) {
        communicator->throw_if_aborted(); // a task that fails takes its part away: that is the effect
        throw;
      }
    };
    if (hasRoomForCopy()) {
      const BatchScheduling scheduling;
      saving_ = std::async(std::launch::async,
                           [this, publish, copy = std::make_shared<const VariablesCopy>(*task_, &*parts_, part)] {
                             return publish([&](CheckpointWriter &writer) { copy->save(carried_, writer); });
                           });
    } else {
      checkpoint_ = publish([&](CheckpointWriter &writer) { drt::savePart(*task_, *parts_, part, carried_, writer); });
    }
  }
  communicator->barrier(); // nobody's next updates come before all are saved, or copied
}

// Where memory is short the training waits for the file instead; so it does at the end, when nothing else is to be
// done.
bool Trainer::hasRoomForCopy() const {
  constexpr int64_t spare = int64_t{64} << 20;
  if (isEnding() || done_ == end_)
    return false;
  Communicator *communicator = task_->communicator();
  const int64_t bytes = parts_ ? VariablesCopy::bytesOf(program_, &*parts_, parts_->partOf(communicator->rank()))
                               : VariablesCopy::bytesOf(program_);
  return bytes + spare < availableBytes().value_or(std::numeric_limits<int64_t>::max());
}

// Of the checkpoint that is being written; if it is there, unless that is waited for. Throws what writing it threw.
void Trainer::finishSave(bool waits) {
  if (saving_.valid() && (waits || saving_.wait_for(std::chrono::seconds(0)) == std::future_status::ready))
    checkpoint_ = saving_.get();
}

void Trainer::markFinished() {
  if (!checkpoints_ || checkpoint_.empty())
    return;
  savedInput_.finished = runText(options_.command);
  try {
    CheckpointManager::writeInput(checkpoint_, inputPositionText(savedInput_));
  } catch (const Error &) {
    // The disk is full. Nothing is missing, but where this task ends alone, its next start does not know it.
  }
}

void Trainer::finish() {
  stopDeadline_->pause(); // no step is under way; a checkpoint may take as long as it takes
  save();
  finishSave(true);
  if (formsAgain_)
    return;
  if (!options_.exportNpz.empty() && (first_ || hasSpread(program_)))
    exportVariables(*task_, options_.exportNpz);
  const double seconds = static_cast<double>(nowNs() - startNs_) * 1e-9;
  if (runReport_)
    runReport_->finish();
  const GradientCounts counts = task_->gradientCounts();
  if (progress_ && done_ > begin_)
    progress_->finish(last_);
  if (log_)
    log_->done(done_, seconds, checkpoint_, signal_, stopped_ ? options_.stopWhen->text : "",
               program_.servers ? std::optional(counts) : std::nullopt);
  if (events_)
    events_->flush();
  if (!first_ || options_.quiet)
    return;
  const std::string how = stopped_ ? "stopped, as " + options_.stopWhen->text + "," : "done";
  std::printf("%s after %s in %.3g s", signal_ ? "stopped by a signal" : how.c_str(),
              countOf(done_ - begin_, "step").c_str(), seconds);
  if (last_.hasLoss)
    std::printf(", loss %.6g", last_.loss);
  if (program_.servers)
    std::printf(", %lld gradients accepted, %lld dropped", static_cast<long long>(counts.accepted),
                static_cast<long long>(counts.dropped));
  std::printf(checkpoint_.empty() ? "\n" : ", checkpoint %s\n", checkpoint_.c_str());
  if (runReport_)
    runReport_->print();
  std::fflush(stdout);
}

} // namespace drt
