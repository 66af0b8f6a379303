//===- program.h - What an executable does --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_PROGRAM_H
#define DRT_LAUNCH_PROGRAM_H

#include "core/task.h"
#include "drt/drt.h"
#include "launch/options.h"

#include <string>
#include <vector>

namespace drt {

/// Reads the command line and does what it says. Returns the exit status: 0, 1
/// the input is wrong, 2 the command line is, 70 a defect, 128 + N after signal N.
/// An error is one line on stderr.
int runProgram(const drt_program &program, int argc, char **argv);

/// The program as tasks run it that have memory in common, which those of one host have; `program` where there is none
/// such.
const drt_program &jointProgram(const drt_program &program);
bool isJoint(const drt_program &program);

/// The programs of the same graph by number of workers, fewest first; `program` alone where it is compiled for one.
std::vector<const drt_program *> programsOf(const drt_program &program);

/// The one of so many workers; null where there is none.
const drt_program *programOf(const drt_program &program, int64_t workers);

/// Numbers of workers that an elastic run's group can have, fewest first: those between --min-workers and
/// --max-workers.
std::vector<int> elasticSizes(const drt_program &program, const Options &options);

/// "1, 2 or 4 workers": the numbers that there are programs for.
std::string workersText(const drt_program &program);

/// Trains; this process is a task of the plan or starts them. Returns the exit status.
int train(const drt_program &program, Options options);

/// Runs the entry "eval" over the data, with all replicas of the plan in this process.
int evaluate(const drt_program &program, const Options &options);

/// A program without initializers starts from a checkpoint alone: throws where it is given none.
void checkInitialized(const TaskRuntime &task, bool restores);

/// What --plan prints; with the schedule, --plan=full. Memory is what this process has, and what it would have more:
/// the data that the options name are opened for it.
std::string planText(const drt_program &program, bool schedule, const Options *options = nullptr);

/// "12.5 MB"
std::string bytesText(int64_t bytes);

} // namespace drt

#endif // DRT_LAUNCH_PROGRAM_H
