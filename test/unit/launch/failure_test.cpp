//===- failure_test.cpp - Tasks that are missing, fail, die, or are late -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "../collectives/cluster.h"
#include "launch/rendezvous.h"
#include "launch/secret.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <fcntl.h>
#include <future>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace drt;
using namespace drt::test;

namespace {
/// Until the other end of a pipe is closed.
void wait_for_close(int pipe_end) {
  char c;
  while (read(pipe_end, &c, 1) > 0) {
  }
}
} // namespace

TEST_CASE("a task that never comes is named, with the place where it was awaited") {
  auto cluster = local_cluster(3);
  for (GroupOptions &options : cluster)
    options.arrival_timeout = 0.5;
  cluster.pop_back();
  auto errors = run_tasks(cluster, [](Group &, int) {});
  for (const std::string &error : errors)
    CHECK_THAT(error,
               Catch::Contains("worker:2 (127.0.0.1) has not arrived within 0.5 s at " + cluster[0].rendezvous) &&
                   Catch::Contains("is it started") && Catch::Contains("2 of 3"));
}

TEST_CASE("an elastic group is of those that have come, and task 0 is one of them") {
  for (const int missing : {1, 2}) {
    auto cluster = local_cluster(3);
    for (GroupOptions &options : cluster) {
      options.sizes = {1, 2, 3};
      options.last_call = 1;
    }
    cluster.erase(cluster.begin() + missing);
    std::mutex checking; // Catch counts without one
    auto errors = run_tasks(cluster, [&](Group &group, int) {
      float sum = static_cast<float>(group.communicator().rank() + 1);
      group.communicator().all_reduce_sum(&sum, 1, DRT_F32);
      {
        std::lock_guard lock(checking);
        CHECK(group.members() == std::vector<int>{0, 3 - missing});
        CHECK(group.communicator().size() == 2);
        CHECK(sum == 3);
        CHECK_FALSE(group.can_grow());
      }
      group.leave();
    });
    CHECK(errors == std::vector<std::string>(2));
  }
}

TEST_CASE("an elastic group has no more tasks than its sizes allow; who is left over hears of the end") {
  auto cluster = local_cluster(3);
  for (GroupOptions &options : cluster) {
    options.sizes = {1};
    options.arrival_timeout = 0.5; // it waits for as long as the run goes on
  }
  auto errors = run_tasks(cluster, [&](Group &group, int) {
    CHECK(group.members() == std::vector<int>{0});
    CHECK_FALSE(group.can_grow());
    std::this_thread::sleep_for(std::chrono::seconds(2));
    group.leave();
  });
  CHECK(errors[0].empty());
  for (int rank : {1, 2})
    CHECK_THAT(errors[static_cast<size_t>(rank)], Catch::Contains("has ended without worker:" + std::to_string(rank)));
}

TEST_CASE("who comes when an elastic run has ended hears of it, where it comes within the last call") {
  auto cluster = local_cluster(2);
  for (GroupOptions &options : cluster) {
    options.sizes = {1, 2};
    options.last_call = 0.2;
  }
  cluster[0].last_call = 30; // ends as soon as all have heard
  cluster[0].sizes = {1};
  std::promise<void> over;
  std::string late;
  std::thread other([&] {
    over.get_future().wait();
    try {
      Group::join(cluster[1]);
    } catch (const RunIsOver &error) {
      late = error.what();
    }
  });
  auto group = Group::join(cluster[0]);
  group->leave();
  over.set_value();
  group->tell_late_tasks();
  other.join();
  CHECK_THAT(late, Catch::Contains("has ended without worker:1"));
}

TEST_CASE("a task that is started again when all are done hears that the run is over, whoever is gone by then") {
  auto cluster = local_cluster(3);
  for (GroupOptions &options : cluster)
    options.arrival_timeout = 0.5;
  // Task 0 was killed when it had told some of the others; none of them is waited for.
  cluster[0].finished = true;
  cluster[0].failure_timeout = 30; // ends as soon as all have heard
  auto errors = run_tasks(cluster, [](Group &, int) { FAIL("a group that nobody needs"); });
  CHECK(errors[0] == "the run had ended: nothing is left to do");
  for (int rank : {1, 2})
    CHECK_THAT(errors[static_cast<size_t>(rank)], Catch::Contains("has ended: nothing is left to do"));

  // Or another one, when task 0 had told it.
  cluster = local_cluster(2);
  cluster[1].finished = true;
  cluster[1].arrival_timeout = 0.3;
  {
    Socket closed(cluster[0].listen_socket);
  }
  CHECK_THROWS_AS(Group::join(cluster[1]), RunIsOver);
  cluster[0].listen_socket = -1;
  cluster[0].finished = true;
  cluster[0].failure_timeout = 0.3;
  cluster[0].rendezvous = "127.0.0.1:0";
  CHECK_THROWS_AS(Group::join(cluster[0]), RunIsOver);
}

TEST_CASE("a rendezvous that nobody opened is named") {
  GroupOptions options = local_cluster(2)[1];
  {
    Socket closed(options.listen_socket);
  }
  int unused = bound_port(listen_at({"127.0.0.1", 0}));
  options.rendezvous = "127.0.0.1:" + std::to_string(unused);
  options.arrival_timeout = 0.3;
  CHECK_THROWS_WITH(Group::join(options), Catch::Contains("worker:0 (127.0.0.1) has not opened the rendezvous at " +
                                                          options.rendezvous + " within 0.3 s"));
}

TEST_CASE("a task of another program is refused") {
  auto cluster = local_cluster(2);
  cluster[0].arrival_timeout = 1;
  cluster[1].fingerprint = "another";
  auto errors = run_tasks(cluster, [](Group &, int) {});
  CHECK_THAT(errors[1], Catch::Contains("Start the same executable with the same flags everywhere"));
  CHECK_THAT(errors[0], Catch::Contains("worker:1"));
}

TEST_CASE("a task that fails tells the others why") {
  auto errors = run_tasks(local_cluster(3), [](Group &group, int rank) {
    if (rank == 1) {
      group.fail("the data file ends early");
      return;
    }
    float x = 1;
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    group.leave();
  });
  CHECK(errors[0] == "worker:1 (127.0.0.1) failed before the first step: the data file ends early");
  CHECK(errors[2] == errors[0]);
}

TEST_CASE("a task that ends without goodbye is lost") {
  auto errors = run_tasks(local_cluster(3), [](Group &group, int rank) {
    if (rank == 2)
      return; // the group is destroyed
    std::vector<float> data(100000);
    group.communicator().all_reduce_sum(data.data(), 100000, DRT_F32);
  });
  CHECK_THAT(errors[0], Catch::Contains("worker:2 (127.0.0.1) was lost") && Catch::Contains("connection closed"));
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("when task 0 is lost, every task names it") {
  auto errors = run_tasks(local_cluster(3), [](Group &group, int rank) {
    if (rank == 0)
      return;
    float x = 1;
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
  });
  CHECK_THAT(errors[1], Catch::Contains("worker:0 (127.0.0.1) was lost"));
  CHECK_THAT(errors[2], Catch::Contains("worker:0 (127.0.0.1) was lost"));
}

TEST_CASE("on_failure hears of it once, in a task that waits for nothing") {
  auto cluster = local_cluster(2);
  std::mutex mutex;
  std::vector<std::string> heard;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  cluster[0].on_failure = [&](const std::string &message) {
    std::lock_guard lock(mutex);
    heard.push_back(message);
    close(ends[1]);
  };
  auto errors = run_tasks(cluster, [&](Group &group, int rank) {
    group.communicator().describe(12, "group 3");
    float x = 1;
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    if (rank == 1)
      return;
    wait_for_close(ends[0]); // until on_failure was called
  });
  close(ends[0]);
  REQUIRE(heard.size() == 1);
  CHECK(heard[0] == "worker:1 (127.0.0.1) was lost in step 12: connection closed");
}

namespace {

/// Tasks as processes, with the default on_failure. Each child runs `body` and ends
/// with its status. What they write to stderr is kept.
struct Processes {
  std::vector<pid_t> ids;
  int output = -1;

  Processes(std::vector<GroupOptions> cluster, const std::function<int(Group &, int rank)> &body) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    output = ends[0];
    for (size_t rank = 0; rank < cluster.size(); ++rank) {
      pid_t id = fork();
      if (id == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        if (rank != 0)
          close(cluster[0].listen_socket);
        try {
          cluster[rank].on_failure = nullptr;
          auto group = Group::join(cluster[rank]);
          _exit(body(*group, static_cast<int>(rank)));
        } catch (const std::exception &e) {
          dprintf(STDERR_FILENO, "thrown: %s\n", e.what());
          _exit(3);
        }
      }
      ids.push_back(id);
    }
    close(ends[1]);
    close(cluster[0].listen_socket);
  }

  std::string all_output() {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(output, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    close(output);
    return text;
  }

  int status(size_t rank) {
    int status = 0;
    waitpid(ids[rank], &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
};

int train_for_ever(Group &group, int rank) {
  std::vector<float> data(50000, 1.0f);
  for (int64_t step = 0;; ++step) {
    group.communicator().describe(step, "group 0");
    group.communicator().barrier(); // all are in this step
    if (rank == 1 && step == 20)
      raise(SIGKILL);
    group.communicator().all_reduce_sum(data.data(), 50000, DRT_F32);
  }
}

} // namespace

TEST_CASE("kill -9 of one process ends the others with status 1 and its name") {
  Processes processes(local_cluster(3, GENERATE(Hosts::Network, Hosts::Encrypted, Hosts::One, Hosts::Several)),
                      train_for_ever);
  CHECK(processes.status(1) == 128 + SIGKILL);
  CHECK(processes.status(0) == 1);
  CHECK(processes.status(2) == 1);
  std::string output = processes.all_output();
  CHECK_THAT(output,
             Catch::Contains("error: worker:1 (127.0.0.1) was lost in step 20: ") && !Catch::Contains("thrown"));
  CHECK(std::count(output.begin(), output.end(), '\n') == 2); // one line a survivor
}

TEST_CASE("a task that is killed behind its goodbye, and started again, waits for the others' end") {
  auto cluster = local_cluster(3);
  static std::promise<void> cameAgain; // of task 0's process, whose thread of the rendezvous alone calls `note`
  cluster[0].note = [](const std::string &note) {
    if (note == "worker:1 (127.0.0.1) had done its part, was started again, and waits for the others' end")
      cameAgain.set_value();
  };
  Processes processes(cluster, [](Group &group, int rank) {
    if (rank == 1)
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500)); // leave() says at once that it is done
        raise(SIGKILL);
      }).detach();
    if (rank == 0)
      cameAgain.get_future().wait(); // it has much to write
    group.leave();
    return 0;
  });
  CHECK(processes.status(1) == 128 + SIGKILL);
  CHECK_THROWS_AS(Group::join(cluster[1]), RunIsOver);
  CHECK(processes.status(0) == 0);
  CHECK(processes.status(2) == 0);
  CHECK(processes.all_output().empty());
}

TEST_CASE("a task that is stopped, not closed, is noticed by its silence") {
  auto cluster = local_cluster(2, GENERATE(Hosts::Network, Hosts::Encrypted, Hosts::One));
  for (GroupOptions &options : cluster)
    options.failure_timeout = 2;
  Processes processes(cluster, [](Group &group, int rank) {
    float x = 1;
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    if (rank == 1)
      raise(SIGSTOP);
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    return 0;
  });
  CHECK(processes.status(0) == 1);
  kill(processes.ids[1], SIGKILL);
  CHECK(processes.status(1) == 128 + SIGKILL);
  CHECK_THAT(processes.all_output(),
             Catch::Contains("worker:1 (127.0.0.1) was lost") && Catch::Contains("no sign of life for 1.2 s"));
}

TEST_CASE("a stall warning says who arrived and who is late") {
  auto cluster = local_cluster(3);
  std::mutex mutex;
  bool warned = false;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  for (GroupOptions &options : cluster)
    options.failure_timeout = 4; // a heartbeat every half second
  cluster[0].stall_warning = 0.3;
  cluster[0].log = [&](const std::string &message) {
    std::lock_guard lock(mutex);
    // On a busy machine the first warning may know too little; another one follows.
    bool right =
        message.find("'group 3' in step 5 has waited for") != std::string::npos &&
        message.find("worker:1 (127.0.0.1) is late (last seen in step 4, at 'group 2')") != std::string::npos &&
        message.find("worker:0 (127.0.0.1) is late") == std::string::npos;
    if (right && !std::exchange(warned, true))
      close(ends[1]);
  };
  auto errors = run_tasks(cluster, [&](Group &group, int rank) {
    float x = 1;
    group.communicator().describe(4, "group 2");
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    if (rank == 1)
      wait_for_close(ends[0]); // until somebody complained
    group.communicator().describe(5, "group 3");
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    group.leave();
  });
  close(ends[0]);
  CHECK(errors == std::vector<std::string>(3));
  CHECK(warned);
}

namespace {

Socket connected(const std::string &rendezvous) {
  std::string error;
  return connect_to(parse_host_port(rendezvous), Clock::now() + std::chrono::seconds(5), error);
}

void put(const Socket &socket, const std::string &bytes) {
  [[maybe_unused]] ssize_t n = send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace

TEST_CASE("strangers at the rendezvous end no run") {
  auto cluster = local_cluster(2);
  for (GroupOptions &options : cluster)
    options.failure_timeout = 3;
  std::vector<std::string> notes;
  cluster[0].note = [&](const std::string &note) { notes.push_back(note); }; // the server's thread alone calls it
  const auto hello = [](const char *rank) {
    return Message{MessageKind::Hello, {rank, "2", "", "", "challenge", "proof"}}.encode();
  };
  const std::string refusedHello = hello("1");
  const std::vector<std::string> said = {"GET / HTTP/1.0\r\n\r\n",
                                         std::string(4, '\xff'),
                                         std::string(4, '\0'),
                                         Message{MessageKind::Lost, {"worker:1", "1", ": forged"}}.encode(),
                                         hello("4294967297"),
                                         hello("-1"),
                                         refusedHello};
  std::vector<Socket> strangers;
  auto errors = run_tasks(cluster, [&](Group &group, int rank) {
    float x = 1;
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    if (rank == 1) {
      for (const std::string &bytes : said) {
        strangers.push_back(connected(cluster[0].rendezvous));
        put(strangers.back(), bytes);
      }
      // One that goes on when it was refused and never reads, and many that say a little and then nothing.
      Socket flood = connected(cluster[0].rendezvous);
      for (int i = 0; i < 150; ++i)
        strangers.push_back(connected(cluster[0].rendezvous)), put(strangers.back(), std::string("\0\1", 2));
      for (auto until = Clock::now() + seconds(4); Clock::now() < until;
           std::this_thread::sleep_for(std::chrono::milliseconds(1)))
        for (int i = 0; i < 100; ++i)
          put(flood, refusedHello);
    }
    group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    group.leave();
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(std::count_if(notes.begin(), notes.end(), [](const std::string &note) {
          return note.find("was closed, as it says no Hello of this run") != note.npos;
        }) == 1);
}

TEST_CASE("a task that does not know the secret is turned away, and the run goes on") {
  auto cluster = local_cluster(2);
  for (GroupOptions &options : cluster)
    options.secret = "the secret of this run";
  const std::string other = GENERATE("the secret of another run", "");
  std::string refusal;
  const auto errors = run_tasks(cluster, [&](Group &group, int rank) {
    if (rank == 1) {
      GroupOptions wrong = cluster[1];
      wrong.secret = other;
      try {
        Group::join(wrong);
      } catch (const Error &error) {
        refusal = error.what();
      }
    }
    group.communicator().barrier();
    group.leave();
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK_THAT(refusal, Catch::Contains("worker:1 was refused") && Catch::Contains("does not know the secret") &&
                          Catch::Contains("--secret-file"));
}

TEST_CASE("a rendezvous that does not know the secret is not trusted, nor a Hello that was heard elsewhere") {
  // Between a task and the rendezvous, a stranger that passes on what it hears, until it knows a whole Hello.
  Socket listening = listen_at({"127.0.0.1", 0});
  auto cluster = local_cluster(2);
  for (GroupOptions &options : cluster)
    options.secret = "the secret of this run", options.failure_timeout = 2, options.arrival_timeout = 3;
  std::string heard;
  GroupOptions deceived = cluster[1];
  deceived.rendezvous = "127.0.0.1:" + std::to_string(bound_port(listening));
  std::thread stranger([&] {
    Socket connection(accept(listening.fd(), nullptr, nullptr));
    put(connection, Message{MessageKind::Challenge, {std::string(32, 'x')}}.encode());
    char buffer[1000];
    const ssize_t n = recv(connection.fd(), buffer, sizeof buffer, 0);
    heard.assign(buffer, n > 0 ? static_cast<size_t>(n) : 0);
    put(connection, Message{MessageKind::Welcome, {std::string(32, 'y')}}.encode() +
                        Message{MessageKind::Ready, {"127.0.0.1"}}.encode());
    while (recv(connection.fd(), buffer, sizeof buffer, 0) > 0) {
    }
  });
  CHECK_THROWS_WITH(Group::join(deceived), Catch::Contains("is not the rendezvous of worker:0"));
  stranger.join();
  REQUIRE(!heard.empty());

  const auto errors = run_tasks({cluster[0], cluster[1]}, [&](Group &group, int rank) {
    if (rank == 0) {
      Socket again = connected(cluster[0].rendezvous);
      char buffer[1000];
      [[maybe_unused]] ssize_t n = recv(again.fd(), buffer, sizeof buffer, 0); // the challenge
      put(again, heard);
      std::string answer;
      for (ssize_t m; (m = recv(again.fd(), buffer, sizeof buffer, 0)) > 0;)
        answer.append(buffer, static_cast<size_t>(m));
      if (answer.find("does not know the secret") == answer.npos)
        throw Error("the rendezvous took a Hello that it had not asked for");
    }
    group.communicator().barrier();
    group.leave();
  });
  CHECK(errors == std::vector<std::string>(2));
}

namespace {

RendezvousOptions rendezvous_of(const GroupOptions &first) {
  RendezvousOptions options;
  options.tasks = first.tasks;
  options.address = first.rendezvous;
  options.failure_timeout = 30;
  return options;
}

/// The next message that is no heartbeat.
Message answer(const Socket &socket, MessageReader &reader) {
  for (char buffer[1000];;) {
    if (auto message = reader.next()) {
      if (message->kind != MessageKind::Heartbeat)
        return *message;
      continue;
    }
    const ssize_t n = recv(socket.fd(), buffer, sizeof buffer, 0);
    if (n <= 0)
      throw Error("the rendezvous closed the connection");
    reader.append(buffer, static_cast<size_t>(n));
  }
}

/// Says that it is worker:1 of two; what comes behind the welcome, if it is a refusal.
std::string comes_again(const Socket &socket, bool refused) {
  MessageReader reader;
  const std::string challenge = answer(socket, reader).fields[0];
  Message hello{MessageKind::Hello, {"1", "3", "", "127.0.0.1", "challenge"}};
  std::vector<std::string> statement = {"task", challenge};
  statement.insert(statement.end(), hello.fields.begin(), hello.fields.end());
  hello.fields.push_back(prove("", statement));
  put(socket, hello.encode());
  CHECK((answer(socket, reader).kind == MessageKind::Welcome));
  if (!refused)
    return "";
  const Message refusal = answer(socket, reader);
  CHECK((refusal.kind == MessageKind::Refused));
  return refusal.fields[0] + " " + refusal.fields[1];
}

} // namespace

TEST_CASE("who comes again is to try again, until its old connection has shown that it lives") {
  const GroupOptions first = local_cluster(3)[0];
  const RendezvousOptions options = rendezvous_of(first);
  RendezvousServer server(options, Socket(first.listen_socket));
  const Socket old = connected(options.address);
  comes_again(old, false);
  CHECK_THAT(comes_again(connected(options.address), true), Catch::StartsWith("1 "));
  put(old, Message{MessageKind::Heartbeat, {"-1", "0", "0", "", "0"}}.encode());
  std::string refusal = "1 ";
  for (const auto until = Clock::now() + seconds(10); refusal.starts_with("1 ") && Clock::now() < until;)
    refusal = comes_again(connected(options.address), true);
  CHECK_THAT(refusal, Catch::StartsWith("0 worker:1 (127.0.0.1) is there already"));
}

TEST_CASE("who has not said Hello when a run ends is to try again") {
  const GroupOptions first = local_cluster(3)[0];
  const RendezvousOptions options = rendezvous_of(first);
  RendezvousServer server(options, Socket(first.listen_socket));
  // It is there, and has been sent a challenge, before another one is lost.
  const Socket slow = connected(options.address);
  pollfd challenged{slow.fd(), POLLIN, 0};
  REQUIRE(poll(&challenged, 1, 10000) == 1);
  {
    const Socket lost = connected(options.address);
    comes_again(lost, false);
  }
  // Until the server knows.
  std::string refusal;
  for (const auto until = Clock::now() + seconds(10);
       refusal.find("is ending") == refusal.npos && Clock::now() < until;)
    refusal = comes_again(connected(options.address), true);
  CHECK_THAT(comes_again(slow, true), Catch::StartsWith("1 ") && Catch::Contains("is ending"));
}

TEST_CASE("a rendezvous that is none is an error that says so") {
  const std::vector<std::string> answers = {Message{MessageKind::Refused, {}}.encode(),
                                            Message{MessageKind::Refused, {"1"}}.encode(),
                                            Message{MessageKind::Lost, {}}.encode(),
                                            Message{MessageKind::Ready, {}}.encode(),
                                            Message{MessageKind::Get, {"key"}}.encode(),
                                            "HTTP/1.0 400 Bad Request\r\n\r\n",
                                            ""}; // says nothing
  for (const std::string &answer : answers) {
    Socket listening = listen_at({"127.0.0.1", 0});
    GroupOptions options = local_cluster(2)[1];
    options.rendezvous = "127.0.0.1:" + std::to_string(bound_port(listening));
    options.failure_timeout = 1;
    options.arrival_timeout = 5;
    std::thread rogue([&] {
      Socket connection(accept(listening.fd(), nullptr, nullptr));
      put(connection, answer);
      char byte;
      while (recv(connection.fd(), &byte, 1, 0) > 0) {
      }
    });
    CHECK_THROWS_WITH(Group::join(options), Catch::Contains(options.rendezvous) && Catch::Contains("that port"));
    rogue.join();
  }
}
