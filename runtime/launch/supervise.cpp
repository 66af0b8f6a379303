//===- supervise.cpp - Start tasks as child processes, again where they fail -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/supervise.h"

#include "core/error.h"
#include "launch/secret.h"
#include "launch/socket.h"
#include "launch/spawn.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace drt {

namespace {

constexpr const char *launched_variable = "DRT_LAUNCHED"; // the parent supervises
constexpr const char *listen_variable = "DRT_LISTEN_FD";
constexpr const char *finished_variable = "DRT_FINISHED"; // an earlier start's part is done
constexpr const char *started_variable = "DRT_STARTED";   // training had begun in an earlier start

/// The command with one flag set to a value, whatever it said of it before.
bool has_flag(const std::vector<std::string> &command, const std::string &flag) {
  return std::any_of(command.begin(), command.end(),
                     [&](const std::string &word) { return word == flag || word.starts_with(flag + "="); });
}

int descriptor_from(const char *variable) {
  const char *text = std::getenv(variable);
  if (!text || !*text)
    return -1;
  int fd = std::atoi(text);
  return fd > STDERR_FILENO && fcntl(fd, F_GETFD) >= 0 ? fd : -1;
}

enum Report : char { Started = 's', LostAnother = 'l', Finished = 'e', AllDone = 'd', FormAgain = 'f' };

std::atomic<bool> is_worth_restart = false;

void report(Report what) {
  if (what == Started || what == LostAnother)
    is_worth_restart = true;
  const int fd = descriptor_from(report_variable);
  if (fd < 0)
    return;
  // Not for what this process may start.
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  const char byte = what;
  [[maybe_unused]] ssize_t n = write(fd, &byte, 1);
}

/// How long a failure of its own is left alone before it is tried again: what it came from (a full disk) may pass.
class Pause {
public:
  void after(const Outcome &outcome) {
    const bool own = outcome.status < 128 && !outcome.reported(LostAnother);
    next_ = own ? std::clamp(2 * next_, shortest, longest) : std::chrono::milliseconds(0);
    std::this_thread::sleep_for(next_);
  }

private:
  static constexpr std::chrono::milliseconds shortest{100}, longest{10000};
  std::chrono::milliseconds next_{0};
};

/// One start of all that this process has to run.
Outcome attempt(const LaunchOptions &options, const std::vector<std::string> &command, bool started, bool finished) {
  if (options.place.kind != PlaceKind::StartAll) {
    Child child;
    child.name = options.tasks[static_cast<size_t>(options.place.rank)].name();
    child.command = command;
    child.environment = {
        {launched_variable, "1"}, {started_variable, started ? "1" : ""}, {finished_variable, finished ? "1" : ""}};
    if (options.place.kind == PlaceKind::Member)
      child.stopped_timeout = options.failure_timeout;
    return run_children({child}, options.failure_timeout);
  }
  // Opened here, so that the port is known before task 0 runs and nobody takes it.
  Socket listening = listen_at(options.place.rendezvous.empty() ? HostPort{"127.0.0.1", 0}
                                                                : parse_host_port(options.place.rendezvous));
  std::string rendezvous = options.place.rendezvous;
  if (rendezvous.empty())
    rendezvous = "127.0.0.1:" + std::to_string(bound_port(listening));
  // Nobody else has a part in this run.
  const bool has_secret = has_flag(command, "--secret-file") || !find_secret("").empty();
  const std::string secret = has_secret ? "" : make_secret();
  std::vector<Child> children;
  for (const Task &task : options.tasks) {
    Child child;
    child.name = task.name();
    child.command = withFlag(withFlag(command, "--task", task.name()), "--rendezvous", rendezvous);
    // All are started now, so that one which does not come is as silent as one that falls silent.
    if (!has_flag(command, "--arrival-timeout"))
      child.command = withFlag(child.command, "--arrival-timeout", std::to_string(options.failure_timeout));
    child.environment = {{launched_variable, "1"}, {started_variable, started ? "1" : ""}};
    if (!has_secret)
      child.environment.emplace_back(secret_variable, secret);
    if (children.empty()) {
      child.environment.emplace_back(listen_variable, std::to_string(listening.fd()));
      child.inherited = listening.fd();
    }
    child.prefix_stderr = !children.empty();
    children.push_back(std::move(child));
  }
  return run_children(children, options.failure_timeout);
}

} // namespace

std::vector<std::string> withoutFlag(const std::vector<std::string> &command, const std::string &flag) {
  std::vector<std::string> result;
  for (size_t i = 0; i < command.size(); ++i) {
    const bool hasValue = i + 1 < command.size() && !command[i + 1].starts_with("--");
    if (command[i] == flag)
      i += hasValue ? 1 : 0;
    else if (!command[i].starts_with(flag + "="))
      result.push_back(command[i]);
  }
  return result;
}

std::vector<std::string> withFlag(const std::vector<std::string> &command, const std::string &flag,
                                  const std::string &value) {
  std::vector<std::string> result = withoutFlag(command, flag);
  result.push_back(flag);
  result.push_back(value);
  return result;
}

bool isLaunched() { return std::getenv(launched_variable) != nullptr; }

bool isStartedAgain() {
  const char *started = std::getenv(started_variable);
  return isLaunched() && (is_worth_restart || (started && *started));
}

bool needs_launch(const Place &place, int max_restarts) {
  return place.kind == PlaceKind::StartAll || (max_restarts > 0 && !isLaunched());
}

int launch(const LaunchOptions &options) {
  std::vector<std::string> command = options.command;
  bool started = false;  // once the input was right it is right
  bool finished = false; // the task, in the last start that trained
  Pause pause;
  for (int restarts = 0;;) {
    Outcome outcome = attempt(options, command, started, finished);
    started = started || outcome.reported(Started);
    finished = outcome.reported(Finished) || (finished && !outcome.reported(Started));
    if (!outcome.failed.empty() && options.remove_unfinished)
      options.remove_unfinished();
    if (outcome.signal)
      return 128 + outcome.signal;
    // By a signal that some task of the run was sent.
    const bool stopped = outcome.status == 128 + SIGINT || outcome.status == 128 + SIGTERM;
    const bool killed = outcome.status > 128 && !stopped;
    // A plain start's tasks can all do their end again; one alone would wait for others that are gone.
    const bool done = killed && outcome.reported(AllDone) && options.place.kind == PlaceKind::Member;
    const bool again = outcome.reported(FormAgain) && !stopped;
    if ((outcome.failed.empty() && !again) || done)
      return 0;
    const bool worth = started || killed || outcome.reported(LostAnother);
    // What comes and goes is no failure of this task, where it had begun.
    const bool uncounted = again || (options.elastic && outcome.reported(LostAnother) && outcome.reported(Started));
    if (options.max_restarts == 0 || !worth || stopped || outcome.status == 2) {
      std::fprintf(stderr, "error: %s\n", outcome.failed.c_str());
      return outcome.status;
    }
    if (!uncounted && restarts == options.max_restarts) {
      std::fprintf(stderr, "error: %s; given up after %d restart%s (--max-restarts)\n", outcome.failed.c_str(),
                   restarts, restarts == 1 ? "" : "s");
      return outcome.status;
    }
    // Before the first step the folder may hold what another run left.
    std::string checkpoint = started && options.latest_checkpoint ? options.latest_checkpoint() : "";
    command = checkpoint.empty() ? options.command : withFlag(options.command, "--resume", checkpoint);
    std::string from = "from " + checkpoint;
    if (finished)
      from = "to end with the others, since its part is done";
    else if (options.place.kind == PlaceKind::Member && options.place.rank > 0)
      from = "from where " + options.tasks[0].name() + " goes on";
    else if (checkpoint.empty())
      from = has_flag(command, "--resume") ? "as it was started, since there is no newer checkpoint"
                                           : "from the beginning, since there is no complete checkpoint";
    if (uncounted) {
      std::fprintf(stderr, "note: the group of workers is formed again%s%s; it goes on %s\n",
                   outcome.failed.empty() ? "" : ", since ", outcome.failed.c_str(), from.c_str());
      continue;
    }
    std::fprintf(stderr, "warning: %s; restart %d of %d %s\n", outcome.failed.c_str(), ++restarts, options.max_restarts,
                 from.c_str());
    pause.after(outcome);
  }
}

void report_training_started() { report(Started); }
void report_lost_another() { report(LostAnother); }
void report_form_again() { report(FormAgain); }
void report_finished() { report(Finished); }
void report_all_done() { report(AllDone); }

bool has_finished() {
  const char *text = std::getenv(finished_variable);
  return text && *text;
}

int inherited_listen_socket() { return descriptor_from(listen_variable); }

} // namespace drt
