//===- trainer.h - The steps of a run, in one task ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_TRAINER_H
#define DRT_LAUNCH_TRAINER_H

#include "checkpoint/checkpoint.h"
#include "core/task.h"
#include "data/feeder.h"
#include "launch/evaluation.h"
#include "launch/event_file.h"
#include "launch/input_position.h"
#include "launch/options.h"
#include "launch/progress_line.h"
#include "launch/run_report.h"
#include "launch/signals.h"
#include "launch/step_log.h"
#include "launch/variables.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drt {

/// What a task of an elastic run knows of its group.
struct ElasticTask {
  std::vector<std::string> names;  // of the group's tasks
  std::function<bool()> shallGrow; // in task 0
};

/// One task's part of a training run. Task 0 (rank 0) alone initializes, restores
/// and writes files; the others are sent its variables. Everything throws drt::Error.
class Trainer {
public:
  /// Opens and checks the data. `communicator`: null where the plan has one task.
  /// `runReport`: null unless --report; outlives it.
  Trainer(const drt_program &program, const Options &options, Communicator *communicator, TaskConfig config,
          RunReport *runReport = nullptr, std::optional<ElasticTask> elastic = {});

  ~Trainer();

  /// Initializes, trains, writes what was asked for. Returns 0, or the signal that ended it early.
  int run();

  /// Whether the group of an elastic run ended early, with a checkpoint, to be formed again. run() then returns 0, but
  /// the signal in a task that was told to go (TERM).
  bool formsAgain() const { return formsAgain_; }

  /// Beside the last checkpoint: all that this task had to write is there.
  void markFinished();

  TaskRuntime &task() { return *task_; }

  /// The step at which a run that was started before goes on; nothing in one that begins, or has not come so far. Any
  /// thread.
  std::optional<int64_t> goesOnAt() const {
    const int64_t step = goesOnAt_.load();
    return step < 0 ? std::optional<int64_t>() : step;
  }

  /// The task's rows of the timeline, and those of the threads that read ahead; empty without one.
  std::vector<const TimelineRow *> timelineRows() const;

private:
  void compareInputs();
  void count();
  void initialize();
  void openFiles();
  void steps();
  void finish();
  void finishStep();
  void finishSum();
  void chooseLogged();
  double localValue(const drt_fetch *fetch);
  bool fetchesAreDue(int64_t done) const;
  void checkStop(std::string_view name, double value);
  void evaluate();
  bool isResumed() const { return options_.resume && !options_.resume->empty(); }
  InputPosition inputPosition() const;
  void keepRandomPositions();
  /// Steps of a replica that so many updates take: as many, unless servers serve on their own.
  int64_t stepsOf(int64_t updates) const;
  void serve();
  int64_t updates() const { return done_ / program_.accumulate_steps; }
  void report(const StepRecord &record);
  void beginStep();
  bool isEnding() const { return signal_ != 0 || formsAgain_; }
  void save();
  void saveWhole(const std::string &input);
  void chooseParts();
  void savePart(const std::string &input);
  bool hasRoomForCopy() const;
  void finishSave(bool waits);

  const drt_program &program_;
  const Options &options_;
  const bool first_;                     // task 0
  const std::optional<cpu_set_t> cores_; // of the process, before the task binds its threads
  // Of the step that is summed: tasks with INT, tasks with TERM, tasks for which the group shall be formed again, loss,
  // and what is logged. Outlives the task, whose communication thread may be at it when another task is lost.
  enum { SumInt, SumTerm, SumFormAgain, SumLoss, SumLogged };
  std::vector<double> sums_;
  const std::unique_ptr<TaskRuntime> task_;
  // An update's last batch runs the entry "step", those before it "accumulate".
  struct Entry {
    const drt_entry *entry = nullptr;
    std::unique_ptr<TimelineRow> row; // of the feeder's thread; null: none
    std::unique_ptr<Feeder> feeder;
    const drt_fetch *loss = nullptr;
    std::vector<const drt_fetch *> logged; // in the order of logged_; null where this entry does not give it
  };
  Entry entryOf(const char *name);

  std::optional<Dataset> data_;
  FeederConfig feeding_;
  uint64_t shuffleSeed_ = 0;
  /// Where random operations go on in this start; and where they stood behind the last update, if batches of the next
  /// one may have been run since.
  std::vector<RandomPosition> randomBegin_;
  std::optional<std::vector<RandomPosition>> randomKept_;
  const drt_entry *update_ = nullptr; // of servers that serve on their own; null: there are none
  Entry step_, accumulate_;
  /// Where servers serve on their own: each replica's, of its own steps, and behind them the servers'.
  std::vector<std::unique_ptr<Feeder>> servedFeeders_;

  // Batches, a step each, counted from the first one that the variables have ever seen: where this start begins, where
  // the run ends, what is done. How many steps the command line wants.
  int64_t begin_ = 0, end_ = 0, done_ = 0, wanted_ = 0;
  std::atomic<int64_t> goesOnAt_ = -1;
  int64_t savedAt_ = -1; // updates
  std::string checkpoint_;
  InputPosition savedInput_;             // beside it
  std::vector<CarriedVariable> carried_; // what each checkpoint has besides; of task 0
  bool restores_ = false;                // task 0 has a checkpoint to start from
  int signal_ = 0;
  const std::optional<ElasticTask> elastic_;
  bool formsAgain_ = false;
  bool stopped_ = false; // --stop-when holds
  std::string stopName_; // what it is asked of, as fetches are named
  int64_t startNs_ = 0;

  // A step is enqueued, waited for, its loss summed over the tasks, and reported. A task that runs ahead waits for a
  // step when the next one is enqueued, and a sum is collected when the next step has been waited for: so neither
  // costs a pause.
  struct Enqueued {
    int64_t step;
    const Entry *entry;
  };
  std::vector<Enqueued> running_; // oldest first; one more than the task runs ahead at most
  std::optional<StepRecord> summed_;
  int64_t finishedNs_ = 0; // when the last step was
  StepRecord last_;
  RunReport *const runReport_; // null: none

  /// A value of each step that goes into the log, the event file, or the condition to stop.
  struct Logged {
    std::string name;    // of the tensor
    std::string summary; // the graph's own tag, "" for none
    bool asked = false;  // by --fetch
  };
  std::vector<Logged> logged_;
  std::optional<Dataset> evalData_; // in task 0, as is what follows
  std::unique_ptr<Evaluation> evaluation_;

  std::optional<StopDeadline> stopDeadline_; // while it runs
  std::unique_ptr<CheckpointManager> checkpoints_;
  std::unique_ptr<StepLog> log_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<ProgressLine> progress_;
  /// Where tasks write checkpoints together: chosen before the first one, with the number that their files have.
  bool partsAreChosen_ = false;
  std::optional<SavedParts> parts_;
  uint64_t partsRun_ = 0;
  /// What this task alone has of the last checkpoint, and of which update that is; none in task 0.
  std::optional<CheckpointPart> otherPart_;
  int64_t otherPartOf_ = 0;
  bool isDone_ = false;              // run() has come to its end
  std::atomic<bool> isGone_ = false; // nobody waits any longer for what others write
  std::future<std::string> saving_; // a checkpoint that is written beside the steps; is waited for before the rest goes
};

} // namespace drt

#endif // DRT_LAUNCH_TRAINER_H
