//===- connected_group.cpp - The tasks of a plan, connected -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/group.h"

#include "core/error.h"
#include "launch/watch.h"

#include <atomic>
#include <mutex>
#include <unistd.h>

namespace drt {

namespace {

void write_line(const std::string &line) {
  // One call, so that the lines of several threads and processes do not mix.
  std::string text = line + "\n";
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, text.data(), text.size());
}

class ConnectedGroup final : public Group {
public:
  explicit ConnectedGroup(GroupOptions what) : options(std::move(what)) {
    if (!options.log)
      options.log = [](const std::string &message) { write_line("warning: " + message); };
    if (!options.note)
      options.note = [](const std::string &message) { write_line("note: " + message); };
    if (options.rank == 0)
      open_rendezvous();
    watch = std::make_unique<Watch>(options, progress);
    GlooOptions gloo;
    gloo.rank = options.rank;
    gloo.size = static_cast<int>(options.tasks.size());
    gloo.address = watch->address();
    gloo.connect_timeout = options.failure_timeout / 5; // gloo waits five times as long
    gloo.explain = [this](const std::string &gloo_error) { return explain(gloo_error); };
    watch->on_failure([this](const std::string &message) { end(message); });
    auto connected = make_gloo_communicator(gloo, *watch, progress);
    std::lock_guard lock(connecting);
    if (!failure.empty())
      throw Error(failure);
    collectives = std::move(connected);
  }

  Communicator &communicator() override { return *collectives; }

  void fail(const std::string &reason) noexcept override {
    failing = true;
    watch->fail(reason);
  }

  void leave() override { watch->leave(); }

private:
  void open_rendezvous() {
    Socket listening =
        options.listen_socket >= 0 ? Socket(options.listen_socket) : listen_at(parse_host_port(options.rendezvous));
    // Port 0 asks for a free one, which only this process can then know.
    HostPort where = parse_host_port(options.rendezvous);
    options.rendezvous = where.host + ":" + std::to_string(bound_port(listening));
    RendezvousOptions server_options{
        options.tasks,           options.rendezvous,    options.fingerprint, options.arrival_timeout,
        options.failure_timeout, options.stall_warning, options.log,         options.note};
    server = std::make_unique<RendezvousServer>(std::move(server_options), std::move(listening));
  }

  /// In the watching thread.
  void end(const std::string &message) {
    if (failing) // this task's own failure, back from the server
      return;
    if (options.on_failure) {
      options.on_failure(message);
    } else {
      write_line("error: " + message);
      _exit(1);
    }
    std::lock_guard lock(connecting);
    failure = message;
    if (collectives)
      collectives->abort(message);
  }

  /// gloo only knows that a connection broke. Who is gone, and why, comes over the
  /// control connection, at once or when its silence has been noticed.
  std::string explain(const std::string &gloo_error) {
    std::string cause = watch->wait_for_failure(seconds(options.failure_timeout));
    if (!cause.empty())
      return cause;
    return "a connection between tasks broke though all of them are alive: " + gloo_error;
  }

  GroupOptions options;
  Progress progress;
  std::unique_ptr<RendezvousServer> server;
  std::mutex connecting; // guards failure, and collectives until join returns
  std::string failure;
  std::unique_ptr<Communicator> collectives;
  std::atomic<bool> failing = false;
  std::unique_ptr<Watch> watch; // last: its thread, which uses all of the above, ends first
};

/// A plan with one task: nobody to meet, nobody to lose.
} // namespace

} // namespace drt

drt::Group *drt_connect_tasks(drt::GroupOptions *options) { return new drt::ConnectedGroup(std::move(*options)); }
