//===- bench_servers.cpp - What a server carries, without a model ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
//   bench-servers [--workers 64] [--steps 50] [--mib 64] [--network]
//   bench-servers --hosts F,G --address A …
//
// A server and workers that pull and push, each a process of this machine, as the
// executables of asynchronous strategies are (runtime/servers), with nothing to
// compute. With --hosts the server is in the network namespace of file F, at address
// A, and the workers are in that of file G (tools/bench_network --servers).
//
//
//   dense    one worker and one variable: bytes a second, beside memcpy's
//   small    one worker and a thousand variables of 64 bytes: variables a second
//   many     as many workers as --workers says, a MiB each way: how long pulls and
//            pushes take, by percentiles, and the memory that the server needs
//
// Exit status 1 where a gradient is lost.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "core/timeline.h"
#include "launch/group.h"
#include "launch/socket.h"
#include "servers/remote_parameter_server.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <getopt.h>
#include <iostream>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace drt;

namespace {

/// How processes reach each other: over memory, or over the network of one host or two.
struct Way {
  bool network = false;
  std::string hostOfServer, hostOfWorkers; // files of network namespaces; none: this process's
  std::string address = "127.0.0.1";       // the server's
};

struct Setting {
  int workers = 1;
  int64_t variables = 1, bytes = 0; // of each
  int steps = 0;
  Way way;
};

/// In memory of all processes.
struct Result {
  int64_t accepted, dropped;
  int64_t serverBytes; // the most that the server's process had in memory
};

/// Anonymous memory that children have in common; ends with the process.
template <class T> T *sharedArray(size_t count) {
  void *memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error("no memory for what processes have in common");
  return static_cast<T *>(memory);
}

int64_t peakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0)
      return std::stoll(line.substr(6)) << 10;
  return 0;
}

/// What every process knows: variables of one kind, each a gradient of as many elements.
struct Served {
  explicit Served(const Setting &setting) : gradients(static_cast<size_t>(setting.variables)) {
    for (int64_t i = 0; i < setting.variables; ++i) {
      gradients[static_cast<size_t>(i)] = {"v", DRT_F32, DRT_REDUCE_SUM, setting.bytes / 4};
      pulled.push_back(i);
    }
    servers = {DRT_SERVE_ASYNC,
               1,
               0,
               static_cast<int32_t>(setting.variables),
               gradients.data(),
               static_cast<int32_t>(setting.variables),
               pulled.data()};
    sizes.servers = &servers;
    sizes.variables.assign(static_cast<size_t>(setting.variables), setting.bytes);
  }
  std::vector<drt_gradient> gradients;
  std::vector<int64_t> pulled;
  drt_servers servers;
  ServedSizes sizes;
};

/// Memory for all variables, where the other tasks read it without a copy if there is such.
std::vector<void *> place(Communicator &communicator, std::vector<char> &own, const Setting &setting) {
  const int64_t all = setting.variables * setting.bytes;
  char *memory = communicator.shared_memory(all);
  if (!memory) {
    own.resize(static_cast<size_t>(all));
    memory = own.data();
  }
  std::memset(memory, 0, static_cast<size_t>(all));
  std::vector<void *> places;
  for (int64_t i = 0; i < setting.variables; ++i)
    places.push_back(memory + i * setting.bytes);
  return places;
}

void serve(Group &group, const Setting &setting, Result &result) {
  const Served served(setting);
  Communicator &communicator = group.communicator();
  std::vector<char> own;
  const std::vector<void *> variables = place(communicator, own, setting);
  LocalServerConfig config;
  config.servers = &served.servers;
  config.replicas = setting.workers;
  for (void *variable : variables)
    config.variables.push_back({variable, setting.bytes});
  config.update = [] { return true; };
  LocalParameterServer server(config);
  std::vector<int> counts(static_cast<size_t>(setting.workers + 1), 1);
  counts[0] = 0;
  const std::vector<std::unique_ptr<Channel>> channels = communicator.open_channels(0, counts);
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Channel> &channel : channels)
    threads.emplace_back([&] { answer(server, *channel, served.sizes, 0); });
  communicator.barrier();
  std::vector<std::vector<char>> reports;
  for (int64_t i = 0; i < static_cast<int64_t>(setting.workers) * setting.steps; ++i) {
    server.allowUpdate();
    server.waitForUpdate(reports);
  }
  for (std::thread &thread : threads)
    thread.join();
  result = {server.counts().accepted, server.counts().dropped, peakBytes()};
  communicator.barrier();
}

/// First all pulls, then all pushes, so that neither waits for the other's work; of many workers in turns.
void work(Group &group, const Setting &setting, int64_t *pullNs, int64_t *pushNs) {
  const Served served(setting);
  Communicator &communicator = group.communicator();
  std::vector<char> own;
  const std::vector<void *> values = place(communicator, own, setting);
  std::vector<int> counts(static_cast<size_t>(setting.workers + 1), 1);
  counts[0] = 0;
  const int32_t replica = communicator.rank() - 1;
  RemoteParameterServer server(served.sizes, replica, communicator.open_channels(0, counts));
  communicator.barrier();
  int64_t version = 0;
  const auto timed = [](int64_t &ns, auto call) {
    const int64_t begin = nowNs();
    call();
    ns = nowNs() - begin;
  };
  const auto pull = [&](int i) {
    timed(pullNs[i], [&] { version = server.pull(replica, values.data(), nullptr).value_or(0); });
  };
  const auto push = [&](int i) { timed(pushNs[i], [&] { server.push(replica, version, values.data(), nullptr); }); };
  if (setting.workers == 1) {
    for (int i = 0; i < setting.steps; ++i)
      pull(i);
    for (int i = 0; i < setting.steps; ++i)
      push(i);
  }
  for (int i = 0; setting.workers > 1 && i < setting.steps; ++i) {
    pull(i);
    push(i);
  }
  server.leave(replica);
  communicator.barrier();
}

struct Measured {
  std::vector<int64_t> pullNs, pushNs; // of all workers
  Result result;
};

/// The calling process goes there.
void enter(const std::string &host) {
  if (host.empty())
    return;
  const int file = open(host.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0)
    throw Error("cannot enter '" + host + "': " + std::strerror(errno));
  close(file);
}

/// A socket of that host that listens at a free port: a process has one, whichever host it is on later.
Socket listenOn(const std::string &host, const std::string &address) {
  Socket listening;
  std::string failure;
  std::thread([&] { // which alone goes there
    try {
      enter(host);
      listening = listen_at({address, 0});
    } catch (const std::exception &error) {
      failure = error.what();
    }
  })
      .join();
  if (!failure.empty())
    throw Error(failure);
  return listening;
}

Measured run(const Setting &setting) {
  const size_t calls = static_cast<size_t>(setting.workers) * static_cast<size_t>(setting.steps);
  auto *ns = sharedArray<int64_t>(2 * calls);
  auto *result = sharedArray<Result>(1);
  const Way &way = setting.way;
  Socket listening = listenOn(way.hostOfServer, way.address);
  GroupOptions options;
  for (int rank = 0; rank <= setting.workers; ++rank)
    options.tasks.push_back({"worker", rank, way.address, rank, 1});
  options.rendezvous = way.address + ":" + std::to_string(bound_port(listening));
  options.network = way.network;
  options.note = [](const std::string &) {};
  std::vector<pid_t> processes;
  for (int rank = 0; rank <= setting.workers; ++rank) {
    const pid_t process = fork();
    if (process < 0)
      throw Error("no process for worker " + std::to_string(rank));
    if (process > 0) {
      processes.push_back(process);
      continue;
    }
    int status = 0;
    try {
      options.rank = rank;
      enter(rank == 0 ? way.hostOfServer : way.hostOfWorkers);
      if (rank == 0)
        options.listen_socket = listening.release();
      auto group = Group::join(options);
      const size_t first = static_cast<size_t>(rank - 1) * static_cast<size_t>(setting.steps);
      rank == 0 ? serve(*group, setting, *result) : work(*group, setting, ns + first, ns + calls + first);
      group->leave();
    } catch (const std::exception &error) {
      std::cerr << "worker " << rank << ": " << error.what() << "\n";
      status = 1;
    }
    _exit(status);
  }
  bool failed = false;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    failed |= status != 0;
  }
  if (failed)
    throw Error("a process failed");
  if (result->accepted != static_cast<int64_t>(calls))
    throw Error("of " + std::to_string(calls) + " gradients the server accepted " + std::to_string(result->accepted) +
                " and dropped " + std::to_string(result->dropped));
  return {{ns, ns + calls}, {ns + calls, ns + 2 * calls}, *result};
}

double median(std::vector<int64_t> ns, double part = 0.5) {
  const auto at = ns.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(ns.size() - 1));
  std::nth_element(ns.begin(), at, ns.end());
  return static_cast<double>(*at);
}

/// Nanoseconds of a copy of `bytes` bytes, from memory to memory.
double copyNs(int64_t bytes) {
  std::vector<char> from(static_cast<size_t>(bytes), 1), to(static_cast<size_t>(bytes), 2);
  std::vector<int64_t> ns;
  for (int i = 0; i < 20; ++i) {
    const int64_t begin = nowNs();
    std::memcpy(to.data(), from.data(), from.size());
    ns.push_back(nowNs() - begin);
    from[static_cast<size_t>(i)] = to[static_cast<size_t>(i) + 1];
  }
  return median(ns);
}

void measureDense(int64_t mib, int steps, const Way &way) {
  const int64_t bytes = mib << 20;
  const double copied = copyNs(bytes);
  const Measured found = run({1, 1, bytes, steps, way});
  const auto rate = [&](double ns) { return static_cast<double>(bytes) / ns; }; // bytes a nanosecond are GB a second
  std::printf("dense  %lld MiB: memcpy %.2f GB/s, pull %.2f GB/s (%.2f), push %.2f GB/s (%.2f)\n",
              static_cast<long long>(mib), rate(copied), rate(median(found.pullNs)), copied / median(found.pullNs),
              rate(median(found.pushNs)), copied / median(found.pushNs));
}

void measureSmall(int steps, const Way &way) {
  constexpr int64_t variables = 1000;
  const Measured found = run({1, variables, 64, steps, way});
  const auto rate = [&](double ns) { return static_cast<double>(variables) / ns * 1e9; };
  std::printf("small  %lld of 64 bytes: pulled %.0f a second, pushed %.0f a second\n",
              static_cast<long long>(variables), rate(median(found.pullNs)), rate(median(found.pushNs)));
}

void measureMany(int workers, int steps, const Way &way) {
  const Measured found = run({workers, 16, 64 << 10, steps, way});
  std::printf("many   %d workers, %d steps: %lld gradients, none lost; the server had %lld MiB in memory at most\n",
              workers, steps, static_cast<long long>(found.result.accepted),
              static_cast<long long>(found.result.serverBytes >> 20));
  for (const auto &[name, ns] : {std::pair("pull", &found.pullNs), std::pair("push", &found.pushNs)})
    std::printf("       %s, ms: median %.2f, 90 %% %.2f, 99 %% %.2f, most %.2f\n", name, median(*ns) * 1e-6,
                median(*ns, 0.9) * 1e-6, median(*ns, 0.99) * 1e-6, median(*ns, 1) * 1e-6);
}

bool readNumber(std::string_view text, int &number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

} // namespace

int main(int argc, char **argv) {
  int workers = 64, steps = 50, mib = 64;
  Way way;
  const option options[] = {{"workers", required_argument, nullptr, 'w'},
                            {"steps", required_argument, nullptr, 's'},
                            {"mib", required_argument, nullptr, 'm'},
                            {"network", no_argument, nullptr, 'n'},
                            {"hosts", required_argument, nullptr, 'h'},
                            {"address", required_argument, nullptr, 'a'},
                            {}};
  for (int flag; (flag = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    int *number = flag == 'w' ? &workers : flag == 's' ? &steps : flag == 'm' ? &mib : nullptr;
    way.network |= flag == 'n' || flag == 'h';
    if (flag == '?')
      return 2; // getopt has said why
    if (flag == 'a')
      way.address = optarg;
    if (flag == 'h') {
      const std::string_view both = optarg;
      const size_t comma = both.find(',');
      if (comma == std::string_view::npos) {
        std::cerr << "error: --hosts is of two files with a comma between them\n";
        return 2;
      }
      way.hostOfServer = both.substr(0, comma);
      way.hostOfWorkers = both.substr(comma + 1);
    }
    if (number && (!readNumber(optarg, *number) || *number < 1)) {
      std::cerr << "error: '" << optarg << "' is no number from 1 on\n";
      return 2;
    }
  }
  if (workers < 2) {
    std::cerr << "error: --workers is of several\n";
    return 2;
  }
  try {
    measureDense(mib, steps, way);
    std::fflush(stdout);
    measureSmall(steps, way);
    std::fflush(stdout);
    measureMany(workers, steps, way);
  } catch (const std::exception &error) {
    std::fflush(stdout);
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
