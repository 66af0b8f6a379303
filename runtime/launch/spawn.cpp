//===- spawn.cpp - Run tasks as child processes, once -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/spawn.h"

#include "core/error.h"
#include "launch/socket.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drt {

namespace {

/// While it lives, INT, TERM, CHLD, and HUP unless it is ignored (nohup), arrive at a descriptor.
class SignalBox {
public:
  SignalBox() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (int number : {SIGINT, SIGTERM, SIGCHLD})
      sigaddset(&wanted, number);
    struct sigaction hangup = {};
    if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
      sigaddset(&wanted, SIGHUP);
    sigprocmask(SIG_BLOCK, &wanted, &before);
    box = Socket(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!box)
      throw Error(std::string("cannot receive signals: ") + std::strerror(errno));
  }
  ~SignalBox() { sigprocmask(SIG_SETMASK, &before, nullptr); }
  SignalBox(const SignalBox &) = delete;
  SignalBox &operator=(const SignalBox &) = delete;

  int fd() const { return box.fd(); }
  int next() const {
    signalfd_siginfo info;
    return read(box.fd(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }
  const sigset_t &mask_before() const { return before; }

private:
  sigset_t before;
  Socket box;
};

struct Pipe {
  Socket read_end, write_end;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
    read_end = Socket(ends[0]);
    write_end = Socket(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
};

/// One child that runs.
struct Running {
  const Child *child;
  pid_t id = -1;
  Socket errors; // its stderr where lines are prefixed
  std::string line;
  bool ended = false, failed = false;
  int status = 0;                           // waitpid's
  std::optional<Clock::time_point> stopped; // since when
};

std::vector<char *> pointers(std::vector<std::string> &words) {
  std::vector<char *> result;
  for (std::string &word : words)
    result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

void write_all(const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR)
      return;
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

/// Whole lines of the child's stderr, each with its name before it.
void forward(Running &of, bool at_end) {
  char buffer[8192];
  ssize_t n = -1;
  while (of.errors && (n = read(of.errors.fd(), buffer, sizeof buffer)) != 0) {
    if (n < 0) {
      if (errno == EINTR)
        continue;
      break;
    }
    of.line.append(buffer, static_cast<size_t>(n));
  }
  if (of.errors && n == 0)
    of.errors.close();
  std::string out;
  size_t from = 0;
  for (size_t end; (end = of.line.find('\n', from)) != std::string::npos; from = end + 1)
    out += of.child->name + "| " + of.line.substr(from, end + 1 - from);
  of.line.erase(0, from);
  if ((at_end || !of.errors) && !of.line.empty())
    out += of.child->name + "| " + std::exchange(of.line, {}) + "\n";
  write_all(out);
}

Running start(const Child &child, const SignalBox &signals, int report_fd) {
  Running running;
  running.child = &child;
  std::vector<std::string> arguments = child.command;
  std::vector<std::string> environment;
  auto mine = child.environment;
  mine.emplace_back(report_variable, std::to_string(report_fd));
  for (char **e = environ; *e; ++e) {
    std::string_view entry = *e;
    if (std::none_of(mine.begin(), mine.end(), [&](const auto &m) { return entry.starts_with(m.first + "="); }))
      environment.emplace_back(entry);
  }
  for (const auto &[name, value] : mine)
    environment.push_back(name + "=" + value);
  std::vector<char *> argv = pointers(arguments), envp = pointers(environment);
  std::unique_ptr<Pipe> errors;
  if (child.prefix_stderr)
    errors = std::make_unique<Pipe>();

  const pid_t parent = getpid();
  running.id = fork();
  if (running.id < 0)
    throw Error("cannot start " + child.name + ": " + std::strerror(errno));
  if (running.id == 0) {
    // Out of the terminal's foreground group, so that ^C comes once, from the parent.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(128 + SIGKILL);
    if (errors)
      dup2(errors->write_end.fd(), STDERR_FILENO);
    fcntl(report_fd, F_SETFD, 0);
    if (child.inherited >= 0)
      fcntl(child.inherited, F_SETFD, 0);
    sigprocmask(SIG_SETMASK, &signals.mask_before(), nullptr);
    execve("/proc/self/exe", argv.data(), envp.data());
    // Where /proc is not mounted.
    execve(reinterpret_cast<const char *>(getauxval(AT_EXECFN)), argv.data(), envp.data());
    dprintf(STDERR_FILENO, "error: cannot start %s: %s\n", child.name.c_str(), std::strerror(errno));
    _exit(126);
  }
  if (errors)
    running.errors = std::move(errors->read_end);
  return running;
}

std::string join_names(const std::vector<const Running *> &children) {
  std::string names;
  for (const Running *r : children)
    names.append(names.empty() ? "" : ", ").append(r->child->name);
  return names;
}

/// Collects who has ended. `on_its_own`: no child has been told to end.
void collect(std::vector<Running> &children, bool on_its_own) {
  for (Running &r : children)
    while (!r.ended && waitpid(r.id, &r.status, WNOHANG | WUNTRACED | WCONTINUED) == r.id) {
      if (WIFSTOPPED(r.status))
        r.stopped = Clock::now();
      else
        r.stopped.reset();
      r.ended = WIFEXITED(r.status) || WIFSIGNALED(r.status);
      r.failed = r.ended && r.status != 0 && on_its_own;
    }
}

/// Why the run failed. A task that a signal killed explains those that failed
/// because they lost it, whoever was collected first.
void explain(const std::vector<Running> &children, Outcome &outcome) {
  std::vector<const Running *> killed, ended;
  for (const Running &r : children)
    if (r.failed)
      (WIFSIGNALED(r.status) ? killed : ended).push_back(&r);
  if (!killed.empty()) {
    int number = WTERMSIG(killed[0]->status);
    outcome.status = 128 + number;
    outcome.failed =
        killed[0]->child->name + " was killed by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
  } else if (!ended.empty()) {
    outcome.status = WEXITSTATUS(ended[0]->status);
    outcome.failed = join_names(ended) + " ended with status " + std::to_string(outcome.status);
  }
}

/// Kills those that have been stopped for too long. Whether there are some that may not be.
bool end_stopped(const std::vector<Running> &children) {
  bool any = false;
  for (const Running &r : children) {
    if (r.ended || !r.stopped || r.child->stopped_timeout <= 0)
      continue;
    any = true;
    if (Clock::now() - *r.stopped > seconds(r.child->stopped_timeout))
      kill(r.id, SIGKILL);
  }
  return any;
}

void signal_all(const std::vector<Running> &children, int number) {
  for (const Running &r : children)
    if (!r.ended)
      kill(r.id, number);
}

void collect_reports(Socket &from, Outcome &outcome) {
  char bytes[64];
  ssize_t n = -1;
  while (from && (n = read(from.fd(), bytes, sizeof bytes)) > 0)
    outcome.reports.append(bytes, static_cast<size_t>(n));
  if (n == 0) // no child has the other end any more
    from.close();
}

} // namespace

Outcome run_children(const std::vector<Child> &children, double failure_timeout) {
  Outcome outcome;
  SignalBox signals;
  Pipe reports;
  std::vector<Running> running;
  for (const Child &child : children)
    running.push_back(start(child, signals, reports.write_end.fd()));
  reports.write_end.close();

  Clock::time_point failed_at{}, hurry_at{};
  int sent = 0; // the last signal that was sent because of a failure
  for (;;) {
    collect(running, sent == 0);
    if (std::all_of(running.begin(), running.end(), [](const Running &r) { return r.ended; }))
      break;
    const bool failing = std::any_of(running.begin(), running.end(), [](const Running &r) { return r.failed; });
    if (failing && !outcome.signal) {
      if (failed_at == Clock::time_point{})
        failed_at = Clock::now();
      double since = seconds(Clock::now() - failed_at);
      int due = since > failure_timeout * 0.6 ? SIGKILL : since > failure_timeout * 0.2 ? SIGTERM : 0;
      if (due != sent)
        signal_all(running, sent = due);
    }
    // After a signal the tasks end together; one alone has lost the others, or been lost.
    const bool some_ended = std::any_of(running.begin(), running.end(), [](const Running &r) { return r.ended; });
    if (outcome.signal && some_ended && hurry_at == Clock::time_point{})
      hurry_at = Clock::now() + std::max(seconds(failure_timeout * 0.6), Clock::duration(std::chrono::seconds(2)));
    if (hurry_at != Clock::time_point{} && Clock::now() > hurry_at)
      signal_all(running, SIGKILL);
    const bool stopped = end_stopped(running);
    std::vector<pollfd> events{{signals.fd(), POLLIN, 0}, {reports.read_end.fd(), POLLIN, 0}};
    for (const Running &r : running)
      events.push_back({r.errors.fd(), POLLIN, 0}); // poll ignores -1
    poll(events.data(), events.size(), failing || stopped || hurry_at != Clock::time_point{} ? 50 : -1);
    while (int number = signals.next()) {
      if (number == SIGCHLD)
        continue;
      // The terminal is gone: as much a wish to end as TERM, which alone the children know.
      if (number == SIGHUP)
        number = SIGTERM;
      if (outcome.signal) // the second one: whoever can end at once does
        hurry_at = Clock::now() + std::chrono::seconds(1);
      outcome.signal = number;
      signal_all(running, number);
      signal_all(running, SIGCONT); // one that is stopped could not end
    }
    collect_reports(reports.read_end, outcome);
    for (Running &r : running)
      forward(r, false);
  }
  for (Running &r : running)
    forward(r, true);
  explain(running, outcome);
  collect_reports(reports.read_end, outcome);
  return outcome;
}

} // namespace drt
