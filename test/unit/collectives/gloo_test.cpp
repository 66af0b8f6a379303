//===- gloo_test.cpp - Connections of gloo that strangers take -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/gloo_communicator.h"
#include "launch/secret.h"
#include "launch/socket.h"

#include <catch2/catch.hpp>

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <sys/socket.h>
#include <thread>

using namespace drt;

namespace {

std::vector<int> listening_ports() {
  std::vector<int> ports;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    Socket looked(std::atoi(entry.path().filename().c_str()));
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(looked.fd(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens)
      ports.push_back(bound_port(looked));
    looked.release();
  }
  return ports;
}

/// Where tasks of a test leave their addresses. A stranger looks over their shoulders: before a task can tell another
/// where it listens, the stranger is there, as many times as it may.
class WatchedStore final : public KeyValueStore {
public:
  explicit WatchedStore(int times) : times(times) {}

  void set(const std::string &key, const std::string &value) override {
    std::lock_guard lock(mutex);
    const std::vector<int> ports = key.starts_with("gloo/") ? listening_ports() : std::vector<int>();
    if (!ports.empty() && times-- > 0)
      for (int port : ports) {
        std::string error;
        strangers.push_back(connect_to({"127.0.0.1", port}, Clock::now() + std::chrono::seconds(1), error));
      }
    values[key] = value;
    changed.notify_all();
  }
  std::string get(const std::string &key) override {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return values.count(key) > 0; });
    return values[key];
  }

  size_t taken() const { return strangers.size(); }

private:
  int times;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  std::vector<Socket> strangers;
};

/// What each task threw, "" for nothing; `body` is called by those that are connected.
std::vector<std::string> connect_tasks(int size, WatchedStore &store, const std::vector<std::string> &secrets,
                                       const std::function<void(Communicator &)> &body) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      Progress progress;
      GlooOptions options;
      options.rank = rank;
      options.size = size;
      options.group = "test";
      options.address = "127.0.0.1";
      options.connect_timeout = 0.3;
      options.prove = [&, rank](const std::vector<std::string> &statement) {
        return prove(secrets[static_cast<size_t>(rank)], statement);
      };
      try {
        body(*make_gloo_communicator(options, store, progress));
      } catch (const std::exception &e) {
        errors[static_cast<size_t>(rank)] = e.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

void add_up(Communicator &c) {
  int64_t x = c.rank() + 1;
  c.all_reduce_sum(&x, 1, DRT_I64);
  if (x != c.size() * (c.size() + 1) / 2)
    throw std::runtime_error("wrong sum");
}

} // namespace

TEST_CASE("a stranger that takes the connections of tasks is found out, and they connect again") {
  WatchedStore store(2);
  CHECK(connect_tasks(3, store, std::vector<std::string>(3, "a secret"), add_up) == std::vector<std::string>(3));
  CHECK(store.taken() > 0);
}

TEST_CASE("tasks that do not know the same secret do not compute together") {
  WatchedStore store(0);
  for (const std::string &error : connect_tasks(2, store, {"a secret", "another"}, add_up))
    CHECK_THAT(error, Catch::Contains("a stranger took the connection of task"));
}
