//===- supervise.h - Start tasks as child processes, again where they fail -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The process that was started becomes the parent of the tasks it has to run,
// and computes nothing itself: all tasks of a plan on this machine (a plain
// start), or its own one under --max-restarts. Call it before any thread exists.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_SUPERVISE_H
#define DRT_LAUNCH_SUPERVISE_H

#include "launch/tasks.h"

#include <functional>
#include <string>
#include <vector>

namespace drt {

struct LaunchOptions {
  std::vector<Task> tasks;
  Place place;
  std::vector<std::string> command; // argv
  int max_restarts = 0;             // --max-restarts
  double failure_timeout = 10;      // after a task failed, the others are ended within this
  // The newest complete checkpoint's prefix, "" where there is none (yet). A
  // restart adds `--resume PREFIX` to the command, which means: restore this
  // instead of --restore, and finish the steps that the first start would have done.
  // Empty for a task that is told by task 0 where it goes on.
  std::function<std::string()> latest_checkpoint = {};
  std::function<void()> remove_unfinished = {}; // what tasks that were killed have left; none runs then
  bool elastic = false;                         // the others go on without a task that is lost
};

/// `command` with the flag, which then stands at the end with that value alone; without it, and its value if it has
/// one.
std::vector<std::string> withFlag(const std::vector<std::string> &command, const std::string &flag,
                                  const std::string &value);
std::vector<std::string> withoutFlag(const std::vector<std::string> &command, const std::string &flag);

/// Whether launch() of another process started this one.
bool isLaunched();

/// Whether this process has to call launch() instead of running a task.
bool needs_launch(const Place &place, int max_restarts);

/// Whether what launched this process starts it again if it fails now, unless it has done so often enough: training has
/// begun, in this start or in one before, or another task was lost.
bool isStartedAgain();

/// Runs the tasks to their end and returns the exit status: 0, that of the first
/// task that failed, or 128 + N after signal N. INT and TERM are passed on to the
/// tasks, and end the run also where another launcher's tasks were sent them. When one
/// fails the others are ended. Up to max_restarts times they are started again: after a
/// failure once training has begun, in this start or in one before, and at any time where
/// a task was killed, or has lost another one or waited for it. Wrong input and a wrong command line never
/// are. Says on stderr what happened.
int launch(const LaunchOptions &options);

// In a task, to its launcher; without effect where there is none.

/// The input was right and the first step begins, so that a failure from here on is worth a restart.
void report_training_started();

/// This task ends because another one was lost or has not come, which may come yet.
void report_lost_another();

/// An elastic run's group ends at a checkpoint, to be formed again: this task is to be started again.
void report_form_again();

/// This task has written what it had to. Where the run has to go on from a checkpoint it still may have a part.
void report_finished();

/// Whether an earlier start of this task has reported so, and no later one has trained.
bool has_finished();

/// All tasks have written what they had to: whatever ends this one now, nothing is to be done again.
void report_all_done();

/// In task 0 of a plain start: the listening socket that launch() opened for the
/// rendezvous (GroupOptions::listen_socket), else -1.
int inherited_listen_socket();

} // namespace drt

#endif // DRT_LAUNCH_SUPERVISE_H
