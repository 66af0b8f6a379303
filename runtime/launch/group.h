//===- group.h - The tasks of a plan, connected -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// One call joins this process to the others of its plan: it meets them at task
// 0's rendezvous, keeps a control connection there that notices who is lost, and
// connects the collectives.
//
// What happens when a task fails
//   - A task that cannot go on calls fail(reason); the others hear "worker:1
//     failed: reason" at once.
//   - A task that dies closes its control connection: the others hear "worker:1
//     (10.0.0.2) was lost in step 12: connection closed" at once. A machine that
//     falls silent is noticed within `failure_timeout`.
//   - A task whose part is done calls leave(). An end without it counts as lost.
// In every remaining task `on_failure` is then called, once, from the watching
// thread. The default prints the message to stderr and ends the process with
// status 1, since the other threads may be anywhere. An on_failure that returns
// (it cleans up, or a test looks) makes the collectives throw Error(message).
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_GROUP_H
#define DRT_LAUNCH_GROUP_H

#include "collectives/communicator.h"
#include "core/error.h"
#include "launch/clock_alignment.h"
#include "launch/tasks.h"
#include "tls/tls.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drt {

struct GroupOptions {
  std::vector<Task> tasks;
  int rank = 0;
  std::string rendezvous;         // host:port; rank 0 listens there
  int listen_socket = -1;         // rank 0: a listening socket to use instead of opening one (spawn.h hands it over)
  bool network = false;           // --collectives=network: tasks of one host, too, speak over the network
  std::string host;               // tasks with the same are on one host; empty: see same_host.h
  std::string fingerprint;        // of the program and its flags: tasks that differ are refused. May be empty
  std::string secret;             // what proves that a task belongs (secret.h); the same in all. May be empty
  std::shared_ptr<const Tls> tls; // null: connections are not encrypted. The same authority in all
  double arrival_timeout = 60;    // seconds until every task must have come
  double failure_timeout = 10;    // --failure-timeout: seconds within which a silent task is given up
  double stall_warning = 60;      // --stall-warning: seconds in one collective before the log says who is late
  std::function<void(const std::string &message)> on_failure; // empty: print it and _exit(1)
  bool compares_clocks = false; // with task 0's, for clock() and what is handed over; the same in all
  // Before on_failure, or what is thrown: a task was lost, has not come, or is started again, as it failed.
  std::function<void()> on_lost;
  std::function<bool()> comes_again; // asked where this task fails: whether it is started again. Empty: it is not
  std::function<void(const std::string &message)> log;  // stall warnings; empty: stderr
  std::function<void(const std::string &message)> note; // who is awaited; empty: stderr
  // Of an elastic run: how many of the tasks a group can have, smallest first; empty: all of them. Where there are
  // enough for the smallest, others are awaited for `last_call` seconds; those that come later wait for the next group.
  std::vector<int> sizes = {};
  double last_call = 0;
  // This task has done its part in an earlier start, and the others may have ended since. Where task 0 has, whoever
  // comes within `failure_timeout` hears that the run is over, and join throws RunIsOver; another one waits for task 0
  // as always, but takes its absence for the end.
  bool finished = false;
};

/// The run that this task would have joined has ended.
class RunIsOver : public Error {
public:
  using Error::Error;
};

class Group {
public:
  /// Returns when every task has come and the collectives are connected. Throws
  /// Error that says who is missing and where it was awaited. A plan with one task
  /// uses no network, and no other option.
  static std::unique_ptr<Group> join(GroupOptions options);

  /// A group that was not left tells the others that this task was lost.
  virtual ~Group();

  /// Ranks of the tasks that are in the group, in order; the communicator's ranks are positions in it.
  virtual std::vector<int> members() const = 0;

  /// In task 0 of an elastic run: whether a larger group can be formed, as others wait. Any thread.
  virtual bool can_grow() const { return false; }

  /// Of an elastic run, before leave() in every task: the group ends to be formed again.
  virtual void form_again() {}

  /// In task 0 of an elastic run that has ended, after leave(): tasks that are on their way, as they were started
  /// again, hear of it for `last_call` seconds, or until all have.
  virtual void tell_late_tasks() {}

  /// Belongs to the group. See communicator.h for its threads.
  virtual Communicator &communicator() = 0;

  /// Tells the others why this task ends. Does not block, any thread; the first reason counts.
  virtual void fail(const std::string &reason) noexcept = 0;

  /// Why another task has ended, as soon as that is known; "" where it is not within so many seconds, or this task has
  /// said that it ends. Any thread.
  virtual std::string cause(double seconds) = 0;

  /// Where clocks are compared: how this task's stands to task 0's, by exchanges during the run and by some more now.
  virtual ClockAlignment clock() = 0;

  /// In task 0, by one thread: the next part of what task `rank` of the group hands over. Nothing where that task is
  /// gone, or the run has failed and it has not answered soon.
  virtual std::optional<std::string> fetch(int rank) = 0;

  /// In another task: gives task 0 the next part, less than a MiB, when it asks for it. False where it will not any
  /// more.
  virtual bool hand_over(const std::string &part) = 0;

  /// This task's part is done: waits until all others say so too, or one fails
  /// (then as above). To be called by the thread that joined, after the last
  /// collective.
  virtual void leave() = 0;
};

} // namespace drt

/// Makes the group of several tasks. Weak: who has one task, and does not ask the linker for it, does without gloo.
extern "C" __attribute__((weak)) drt::Group *drt_connect_tasks(drt::GroupOptions *options);

#endif // DRT_LAUNCH_GROUP_H
