//===- connected_group.cpp - The tasks of a plan, connected -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/group.h"

#include "collectives/gloo_communicator.h"
#include "collectives/shared_memory_communicator.h"
#include "collectives/two_level_communicator.h"
#include "core/error.h"
#include "launch/same_host.h"
#include "launch/secret.h"
#include "launch/tls_mesh.h"
#include "launch/watch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
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
    if (options.rank == 0 && options.finished) {
      server->tell_late_tasks(options.failure_timeout);
      throw RunIsOver("the run had ended: nothing is left to do");
    }
    watch = std::make_unique<Watch>(options, progress);
    ranks = watch->members();
    rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), options.rank) - ranks.begin());
    watch->on_failure([this](const std::string &message) { end(message); });
    if (options.compares_clocks)
      begin_comparing_clocks();
    auto connected = connect();
    std::lock_guard lock(connecting);
    if (!failure.empty())
      throw Error(failure);
    collectives = std::move(connected);
  }

  Communicator &communicator() override { return *collectives; }

  void fail(const std::string &reason) noexcept override {
    if (!failing.exchange(true))
      watch->fail(reason);
  }

  std::string cause(double patience) override {
    return failing ? std::string() : watch->wait_for_failure(seconds(patience));
  }

  ClockAlignment clock() override {
    if (rank == 0)
      return ClockAlignment::shared();
    watch->compare_clocks();
    return watch->clock(shares_clock);
  }

  std::optional<std::string> fetch(int of) override {
    const int asked = ranks[static_cast<size_t>(of)];
    std::unique_lock lock(handing);
    handed_by = -1;
    lock.unlock();
    watch->fetch(asked);
    lock.lock();
    constexpr auto look = std::chrono::milliseconds(20);
    while (!changed.wait_for(lock, look, [&] { return handed_by == asked; }))
      if (watch->failed_before(seconds(options.failure_timeout * fetching)))
        return std::nullopt;
    return std::exchange(handed, std::nullopt);
  }

  bool hand_over(const std::string &part) override {
    return watch->hand_over(part, seconds(options.failure_timeout * handing_over));
  }

  void leave() override { watch->leave(); }

  std::vector<int> members() const override { return ranks; }

  bool can_grow() const override { return server && server->can_grow(); }

  void form_again() override {
    if (server)
      server->form_again();
  }

  void tell_late_tasks() override {
    if (server)
      server->tell_late_tasks(options.last_call);
  }

private:
  // Parts of the failure timeout after a failure, in which who is left can say what it has: less than what tasks have
  // to end, and task 0 goes last (train.cpp).
  static constexpr double fetching = 0.15, handing_over = 0.2;

  void begin_comparing_clocks() {
    const std::string own = clock_identity();
    if (rank == 0)
      return watch->set("clock", own);
    const std::string first = watch->get("clock");
    shares_clock = !own.empty() && first == own;
    watch->compare_clocks();
  }

  std::unique_ptr<Communicator> connect() {
    if (ranks.size() == 1)
      return make_sole_communicator();
    const std::vector<std::vector<int>> hosts = find_hosts(*watch, rank, size(),
                                                           options.network        ? std::string()
                                                           : options.host.empty() ? host_identity()
                                                                                  : options.host);
    const auto own = std::find_if(hosts.begin(), hosts.end(), [&](const std::vector<int> &host) {
      return std::find(host.begin(), host.end(), rank) != host.end();
    });
    if (own == hosts.end())
      throw Error("task " + std::to_string(rank) + " is on no host", 70);
    if (hosts.size() == 1)
      return connect_host(*own, progress);
    if (hosts.size() == ranks.size())
      return connect_network("tasks", rank, size(), progress);
    TwoLevelOptions two;
    two.uncounted = std::make_unique<Progress>();
    two.hosts = hosts;
    two.tasks = connect_network("tasks", rank, size(), *two.uncounted);
    if (own->size() > 1)
      two.host = connect_host(*own, *two.uncounted);
    if (own->front() == rank)
      two.hosts_between = connect_network("hosts", static_cast<int>(own - hosts.begin()),
                                          static_cast<int>(hosts.size()), *two.uncounted);
    return make_two_level_communicator(std::move(two), progress);
  }

  std::unique_ptr<Communicator> connect_network(const char *group, int rank, int tasks, Progress &counted) {
    if (options.tls)
      return connect_encrypted(group, rank, tasks, counted);
    GlooOptions gloo;
    gloo.rank = rank;
    gloo.size = tasks;
    gloo.group = group;
    gloo.address = watch->address();
    gloo.connect_timeout = options.failure_timeout / 5; // gloo waits five times as long
    gloo.explain = [this](const std::string &error) { return explain(error); };
    gloo.prove = [this](const std::vector<std::string> &statement) { return prove(options.secret, statement); };
    return make_gloo_communicator(gloo, *watch, counted);
  }

  std::unique_ptr<Communicator> connect_encrypted(const char *group, int rank, int tasks, Progress &counted) {
    TlsMeshOptions mesh;
    mesh.rank = rank;
    mesh.size = tasks;
    mesh.group = group;
    mesh.address = watch->address();
    mesh.timeout = options.failure_timeout;
    mesh.tls = options.tls.get();
    StreamOptions streams;
    streams.rank = rank;
    streams.size = tasks;
    streams.mesh = make_tls_mesh(std::move(mesh), *watch);
    streams.explain = [this](const std::string &error) { return explain(error); };
    return make_stream_communicator(std::move(streams), counted);
  }

  std::unique_ptr<Communicator> connect_host(const std::vector<int> &own, Progress &counted) {
    std::string why;
    const Socket file = share_file(*watch, own, rank, seconds(options.failure_timeout), why);
    if (!file)
      throw Error("the tasks of this host cannot share memory (" + why +
                  "): let them use the network, with --collectives=network");
    SharedMemoryOptions memory;
    memory.rank = static_cast<int>(std::find(own.begin(), own.end(), rank) - own.begin());
    memory.size = static_cast<int>(own.size());
    memory.file = file.fd();
    memory.explain = [this](const std::string &error) { return explain(error); };
    return make_shared_memory_communicator(std::move(memory), counted);
  }

  int size() const { return static_cast<int>(ranks.size()); }

  void open_rendezvous() {
    Socket listening =
        options.listen_socket >= 0 ? Socket(options.listen_socket) : listen_at(parse_host_port(options.rendezvous));
    // Port 0 asks for a free one, which only this process can then know.
    HostPort where = parse_host_port(options.rendezvous);
    options.rendezvous = where.host + ":" + std::to_string(bound_port(listening));
    RendezvousOptions server_options{options.tasks,
                                     options.rendezvous,
                                     options.fingerprint,
                                     options.secret,
                                     options.arrival_timeout,
                                     options.failure_timeout,
                                     options.stall_warning,
                                     options.log,
                                     options.note,
                                     options.tls,
                                     options.sizes,
                                     options.last_call,
                                     options.finished,
                                     [this](int of, std::optional<std::string> part) {
                                       const std::lock_guard lock(handing);
                                       handed_by = of;
                                       handed = std::move(part);
                                       changed.notify_all();
                                     }};
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

  /// Collectives only know that a connection broke, or that another task ended them. Who is gone, and why, comes over
  /// the control connection, at once or when its silence has been noticed.
  std::string explain(const std::string &error) {
    std::string cause = watch->wait_for_failure(seconds(options.failure_timeout));
    if (!cause.empty())
      return cause;
    return "a connection between tasks broke though all of them are alive: " + error;
  }

  GroupOptions options;
  std::vector<int> ranks; // of the group's tasks among all
  int rank = 0;           // this task's position in it
  Progress progress;
  bool shares_clock = false; // with task 0
  std::mutex handing;        // guards what follows
  std::condition_variable changed;
  int handed_by = -1; // whose part that is, among all tasks
  std::optional<std::string> handed;
  std::unique_ptr<RendezvousServer> server;
  std::mutex connecting; // guards failure, and collectives until join returns
  std::string failure;
  std::unique_ptr<Communicator> collectives;
  std::atomic<bool> failing = false;
  std::unique_ptr<Watch> watch; // last: its thread, which uses all of the above, ends first
};

} // namespace

} // namespace drt

drt::Group *drt_connect_tasks(drt::GroupOptions *options) { return new drt::ConnectedGroup(std::move(*options)); }
