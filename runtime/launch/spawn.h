//===- spawn.h - Run tasks as child processes, once -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_SPAWN_H
#define DRT_LAUNCH_SPAWN_H

#include <string>
#include <utility>
#include <vector>

namespace drt {

/// A child runs this program's own executable.
struct Child {
  std::string name;                                             // for messages, and before each line of its stderr
  std::vector<std::string> command;                             // argv
  std::vector<std::pair<std::string, std::string>> environment; // added to this process's
  bool prefix_stderr = false;                                   // else it has this process's stderr
  int inherited = -1; // a descriptor that this child alone gets, under the same number
  // Seconds after which a child that is stopped (SIGSTOP) is killed; 0: never. For one that tasks elsewhere wait for,
  // whose own supervisors cannot end it.
  double stopped_timeout = 0;
};

struct Outcome {
  int status = 0;      // 0, that of the first child that failed, 128 + N where signal N ended it
  std::string failed;  // "worker:1 was killed by signal 9 (Killed)", "" where none failed
  int signal = 0;      // INT or TERM that this process was sent, 0 for none
  std::string reports; // the bytes that children wrote to report_variable's descriptor

  bool reported(char what) const { return reports.find(what) != std::string::npos; }
};

/// Runs them to their end. INT and TERM are passed on, HUP as TERM, and after a second one, or when a
/// child has ended after the first, the others are killed a little later. When one fails, the others
/// get a while to end by themselves (they hear of it from the rendezvous), then TERM,
/// then KILL, all within `failure_timeout` seconds. The children are killed with this
/// process, whatever ends it: who starts it again finds nobody at its files and its port.
/// Call it while the process has one thread. Throws Error.
Outcome run_children(const std::vector<Child> &children, double failure_timeout);

/// The environment variable that tells a child the descriptor of Outcome::reports.
inline constexpr const char *report_variable = "DRT_REPORT_FD";

} // namespace drt

#endif // DRT_LAUNCH_SPAWN_H
