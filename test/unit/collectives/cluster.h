//===- cluster.h - Several tasks as threads of one test -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_COLLECTIVES_CLUSTER_H
#define DISTC_TEST_UNIT_COLLECTIVES_CLUSTER_H

#include "certificates.h"

#include "core/error.h"
#include "launch/group.h"
#include "launch/socket.h"

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace drt::test {

inline std::vector<Task> local_tasks(int size) {
  std::vector<Task> tasks;
  for (int rank = 0; rank < size; ++rank)
    tasks.push_back({"worker", rank, "127.0.0.1", rank, 1});
  return tasks;
}

/// How tasks of a test reach each other: all over the network, encrypted or not, all through shared memory, as on
/// several hosts with two tasks each, or on two hosts with every other task.
enum class Hosts { Network, Encrypted, One, Several, Alternate };

/// Options of each task of a loopback cluster that meets at a port of its own.
/// Failures return to the test instead of ending the process.
inline std::vector<GroupOptions> local_cluster(int size, Hosts hosts = Hosts::One) {
  Socket listening = listen_at({"127.0.0.1", 0});
  GroupOptions options;
  options.tasks = local_tasks(size);
  options.rendezvous = "127.0.0.1:" + std::to_string(bound_port(listening));
  options.arrival_timeout = 30;
  options.failure_timeout = 10;
  options.network = hosts == Hosts::Network || hosts == Hosts::Encrypted;
  if (hosts == Hosts::Encrypted)
    options.tls = make_tls();
  options.on_failure = [](const std::string &) {};
  std::vector<GroupOptions> all(static_cast<size_t>(size), options);
  for (int rank = 0; rank < size; ++rank) {
    all[static_cast<size_t>(rank)].rank = rank;
    if (hosts == Hosts::Several || hosts == Hosts::Alternate)
      all[static_cast<size_t>(rank)].host = "host " + std::to_string(hosts == Hosts::Several ? rank / 2 : rank % 2);
  }
  all[0].listen_socket = std::exchange(listening, Socket()).release();
  return all;
}

/// Runs `body` as every task, a thread each. Returns what each threw, "" for nothing.
inline std::vector<std::string> run_tasks(const std::vector<GroupOptions> &cluster,
                                          const std::function<void(Group &, int rank)> &body) {
  std::vector<std::string> errors(cluster.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < cluster.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        auto group = Group::join(cluster[rank]);
        body(*group, static_cast<int>(rank));
      } catch (const std::exception &e) {
        errors[rank] = e.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

} // namespace drt::test

#endif // DISTC_TEST_UNIT_COLLECTIVES_CLUSTER_H
