//===- run_timeline_test.cpp ----------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "../collectives/cluster.h"
#include "launch/run_timeline.h"
#include "launch/timeline_parts.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace drt;
using namespace drt::test;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("timeline" + std::to_string(getpid()))) { fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file() const { return path / "timeline.json"; }
  nlohmann::json read() const {
    std::ifstream in(file());
    return nlohmann::json::parse(in);
  }
  fs::path path;
};

/// So many events of a row, a microsecond each.
std::unique_ptr<TimelineRow> rowOf(int64_t events, int32_t number, int64_t beginNs) {
  auto row = std::make_unique<TimelineRow>("replica " + std::to_string(number), number, events);
  for (int64_t i = 0; i < events; ++i)
    row->add({i % 2 ? "even" : "odd", "kernel", beginNs + i * 1000, beginNs + (i + 1) * 1000, i});
  return row;
}

int64_t count(const nlohmann::json &trace, int pid) {
  return std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                       [&](const nlohmann::json &event) { return event["ph"] == "X" && event["pid"] == pid; });
}

std::vector<std::string> partsOf(const TimelineRow &row, const ClockAlignment &clock) {
  TimelinePacker packer({&row}, clock, "a machine");
  std::vector<std::string> parts;
  for (std::string part = packer.next(); !part.empty(); part = packer.next())
    parts.push_back(part);
  return parts;
}

std::vector<GroupOptions> clusterWithClocks(int size, Hosts hosts = Hosts::One) {
  auto cluster = local_cluster(size, hosts);
  for (GroupOptions &options : cluster)
    options.compares_clocks = true;
  return cluster;
}

} // namespace

TEST_CASE("parts have a task's events, on task 0's clock") {
  const Folder folder;
  constexpr int64_t ahead = 77'000'000, begin = 1'000'000'000;
  ClockComparison comparison;
  comparison.exchanged(begin + ahead, begin + 2000, begin + 2000, begin + ahead + 4000);
  const std::unique_ptr<TimelineRow> row = rowOf(10000, 3, begin + ahead);
  const std::vector<std::string> parts = partsOf(*row, comparison.alignment(false));
  CHECK(parts.size() > 1); // each in a message of its own
  TimelineWriter writer(folder.file(), begin);
  TimelineUnpacker unpacker(writer, 5);
  for (const std::string &part : parts) {
    REQUIRE(part.size() < MessageReader::most / 2);
    REQUIRE(!unpacker.summary());
    unpacker.take(part);
  }
  REQUIRE(unpacker.summary());
  CHECK(unpacker.summary()->machine == "a machine");
  CHECK(unpacker.summary()->aheadNs == ahead);
  CHECK(unpacker.summary()->uncertaintyNs >= 2000);
  CHECK_THROWS_AS(unpacker.take(parts[0]), MalformedPart); // nothing comes behind the end
  writer.publish("{}");
  const nlohmann::json trace = folder.read();
  REQUIRE(count(trace, 5) == 10000);
  const nlohmann::json &last = trace["traceEvents"].back();
  CHECK(last["name"] == "even");
  CHECK(last["tid"] == 3);
  CHECK(last["ts"] == 9999);
  CHECK(last["dur"] == 1);
}

TEST_CASE("what is no part is refused, wherever it is cut off") {
  const Folder folder;
  const std::unique_ptr<TimelineRow> row = rowOf(2, 0, 0);
  const std::string part = partsOf(*row, ClockAlignment::shared()).at(0);
  for (size_t size = 0; size < part.size(); ++size) {
    TimelineWriter writer(folder.file(), 0);
    TimelineUnpacker unpacker(writer, 0);
    try {
      unpacker.take(std::string_view(part).substr(0, size));
    } catch (const MalformedPart &) {
    }
    CHECK_FALSE(unpacker.summary());
  }
  TimelineWriter writer(folder.file(), 0);
  TimelineUnpacker unpacker(writer, 0);
  CHECK_THROWS_AS(unpacker.take("X"), MalformedPart);
  CHECK_THROWS_AS(unpacker.take(std::string("E") + std::string(32, '\0')), MalformedPart); // of no name
  CHECK_THROWS_AS(unpacker.take(std::string("N\xff\xff\xff\xff", 5)), MalformedPart);      // a longer name than all
}

TEST_CASE("task 0 writes the events of all tasks") {
  const Hosts hosts = GENERATE(Hosts::One, Hosts::Network, Hosts::Encrypted, Hosts::Alternate);
  const Folder folder;
  auto errors = run_tasks(clusterWithClocks(3, hosts), [&](Group &group, int rank) {
    RunTimeline timeline(folder.file(), "a run", local_tasks(3), rank, &group);
    const std::unique_ptr<TimelineRow> row = rowOf(5000 * rank + 1, rank, nowNs());
    timeline.write({row.get()});
    group.leave();
  });
  CHECK(errors == std::vector<std::string>(3));
  const nlohmann::json trace = folder.read();
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(count(trace, rank) == 5000 * rank + 1);
    const nlohmann::json &task = trace["otherData"]["tasks"][rank];
    CHECK(task["task"] == "worker:" + std::to_string(rank));
    CHECK(task["complete"] == true);
    // Threads of one process have one clock.
    CHECK(task["clock"] == "shared");
    CHECK(task["uncertainty_us"] == 0);
  }
}

TEST_CASE("a task that is gone leaves the others' events, and what it has sent") {
  const bool sendsSome = GENERATE(false, true);
  const Folder folder;
  auto cluster = clusterWithClocks(3);
  auto errors = run_tasks(cluster, [&](Group &group, int rank) {
    RunTimeline timeline(folder.file(), "a run", local_tasks(3), rank, &group);
    const std::unique_ptr<TimelineRow> row = rowOf(5000, rank, nowNs());
    group.communicator().barrier(); // all have come
    if (rank == 1) {
      if (sendsSome)
        CHECK(group.hand_over(partsOf(*row, group.clock()).at(0)));
      return; // its group ends without a goodbye
    }
    timeline.write({row.get()});
    group.leave();
  });
  CHECK_THAT(errors[0], Catch::Contains("worker:1 (127.0.0.1) was lost"));
  CHECK_THAT(errors[2], Catch::Contains("worker:1 (127.0.0.1) was lost"));
  const nlohmann::json trace = folder.read();
  CHECK(count(trace, 0) == 5000);
  CHECK((count(trace, 1) > 0) == sendsSome);
  CHECK(trace["otherData"]["tasks"][1]["complete"] == false);
  CHECK(count(trace, 2) == 5000);
  CHECK(trace["otherData"]["tasks"][2]["complete"] == true);
}

TEST_CASE("a run that has failed leaves the events of those that are left") {
  const Folder folder;
  const int failing = GENERATE(0, 2);
  auto errors = run_tasks(clusterWithClocks(3), [&](Group &group, int rank) {
    RunTimeline timeline(folder.file(), "a run", local_tasks(3), rank, &group);
    const std::unique_ptr<TimelineRow> row = rowOf(100, rank, nowNs());
    try {
      float x = 1;
      group.communicator().all_reduce_sum(&x, 1, DRT_F32);
      if (rank == failing)
        throw Error("the disk is full");
      group.communicator().all_reduce_sum(&x, 1, DRT_F32);
    } catch (const Error &error) {
      group.fail(error.what());
      timeline.writeAfterFailure({row.get()});
      throw;
    }
  });
  const nlohmann::json trace = folder.read();
  for (int rank = 0; rank < 3; ++rank) {
    CHECK_THAT(errors[static_cast<size_t>(rank)], Catch::Contains("the disk is full"));
    CHECK(count(trace, rank) == 100);
  }
}

TEST_CASE("a task that says nothing after a failure is not waited for") {
  const Folder folder;
  auto cluster = clusterWithClocks(2);
  for (GroupOptions &options : cluster)
    options.failure_timeout = 2;
  std::promise<void> written;
  run_tasks(cluster, [&](Group &group, int rank) {
    RunTimeline timeline(folder.file(), "a run", local_tasks(2), rank, &group);
    const std::unique_ptr<TimelineRow> row = rowOf(100, rank, nowNs());
    if (rank == 1)
      return written.get_future().wait(); // a replica that computes on and on
    group.fail("the disk is full");
    timeline.writeAfterFailure({row.get()});
    written.set_value();
  });
  const nlohmann::json trace = folder.read();
  CHECK(count(trace, 0) == 100);
  CHECK(trace["otherData"]["tasks"][1]["complete"] == false);
}

TEST_CASE("a run that has failed before any step leaves no timeline") {
  const Folder folder;
  RunTimeline timeline(folder.file(), "a run", local_tasks(1), 0, nullptr);
  const TimelineRow row("replica 0", 0);
  timeline.writeAfterFailure({&row});
  CHECK_FALSE(fs::exists(folder.file()));
}

TEST_CASE("a run that is started again goes on with its timeline") {
  const Folder folder;
  // Of groups of three and of one; the second one does the last step of the first again.
  auto errors = run_tasks(clusterWithClocks(3), [&](Group &group, int rank) {
    RunTimeline timeline(folder.file(), "a run", local_tasks(3), rank, &group);
    TimelineRow own("replica " + std::to_string(rank), rank), moves("communication", 3);
    for (int64_t step = 0; step < 4; ++step) {
      own.add({"\"pid\":7,\"tid\":0,\"ts\":1", "kernel", nowNs(), nowNs(), step});
      moves.add({"bucket 0", "all_reduce", nowNs(), nowNs(), step});
    }
    timeline.write({&own, &moves});
    group.leave();
  });
  CHECK(errors == std::vector<std::string>(3));
  RunTimeline timeline(folder.file(), "a run", local_tasks(1), 0, nullptr);
  TimelineRow own("replica 0", 0), moves("communication", 1);
  own.add({"work", "kernel", nowNs(), nowNs(), 3});
  moves.add({"bucket 0", "all_reduce", nowNs(), nowNs(), 3});
  timeline.write({&own, &moves}, 3);
  const nlohmann::json trace = folder.read();
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::pair<int, std::string>, std::vector<int>> steps;
  for (const nlohmann::json &event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      CHECK(names.try_emplace({event["pid"], event["tid"]}, event["args"]["name"]).second);
  double last = 0;
  for (const nlohmann::json &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      steps[{event["pid"], names.at({event["pid"], event["tid"]})}].push_back(event["args"]["step"]);
      if (event["args"]["step"] == 3)
        last = event["ts"];
    }
  for (const nlohmann::json &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["args"]["step"] != 3)
      CHECK(event["ts"] < last);
  CHECK(steps[{0, "replica 0"}] == std::vector<int>{3, 0, 1, 2});
  CHECK(steps[{0, "communication"}] == std::vector<int>{3, 0, 1, 2});
  for (const int pid : {1, 2}) {
    CHECK(steps[{pid, "replica " + std::to_string(pid)}] == std::vector<int>{0, 1, 2});
    CHECK(steps[{pid, "communication"}] == std::vector<int>{0, 1, 2});
  }
  CHECK(trace["otherData"]["tasks"].size() == 1);
  CHECK(trace["otherData"]["earlier"].size() == 3);
}

TEST_CASE("a timeline that grows over many starts keeps the newest events of each row") {
  const Folder folder;
  for (int64_t start = 0; start < 3; ++start) {
    RunTimeline timeline(folder.file(), "a run", local_tasks(1), 0, nullptr);
    const std::unique_ptr<TimelineRow> row = rowOf(30000, 0, nowNs());
    timeline.write({row.get()}, start ? std::optional<int64_t>(INT64_MAX) : std::nullopt);
  }
  const nlohmann::json trace = folder.read();
  CHECK(count(trace, 0) == TimelineRow::most);
}

TEST_CASE("what is no timeline of this run and clock is written over") {
  const Folder folder;
  const int other = GENERATE(0, 1, 2);
  if (other == 0) {
    TimelineWriter writer(folder.file(), 0, "a run, another clock");
    writer.event(0, 0, "work", "kernel", 0, 1, 0);
    writer.publish("{}");
  } else if (other == 1) {
    RunTimeline timeline(folder.file(), "another run", local_tasks(1), 0, nullptr);
    const std::unique_ptr<TimelineRow> row = rowOf(3, 0, nowNs());
    timeline.write({row.get()});
  } else {
    std::ofstream(folder.file()) << "notes\n";
  }
  RunTimeline timeline(folder.file(), "a run", local_tasks(1), 0, nullptr);
  const std::unique_ptr<TimelineRow> row = rowOf(1, 0, nowNs());
  timeline.write({row.get()}, 10);
  CHECK(count(folder.read(), 0) == 1);
}
