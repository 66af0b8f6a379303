//===- tasks_test.cpp - Finding one's place in the plan -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "launch/launchers.h"
#include "launch/socket.h"
#include "launch/supervise.h"
#include "launch/tasks.h"

#include <catch2/catch.hpp>

#include <map>

using namespace drt;
using Catch::Contains;

namespace {

const std::vector<Task> two = {{"worker", 0, "10.9.8.1", 0, 2}, {"worker", 1, "10.9.8.2", 2, 2}};
const std::vector<std::string> command = {"./train", "--data", "my data.npz"};

Environment environment(std::map<std::string, std::string> values) {
  return [values](const char *name) -> const char * {
    auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

Place place(const std::vector<Task> &tasks, std::map<std::string, std::string> values, const std::string &task = "",
            const std::string &rendezvous = "") {
  return find_place(tasks, task, rendezvous, environment(std::move(values)), command);
}

} // namespace

TEST_CASE("--task names the place, and wins over the environment") {
  Place p = place(two, {{"RANK", "0"}, {"WORLD_SIZE", "7"}}, "worker:1", "10.9.8.1:29500");
  CHECK(p.kind == PlaceKind::Member);
  CHECK(p.rank == 1);
  CHECK(p.rendezvous == "10.9.8.1:29500");
  CHECK_THROWS_WITH(place(two, {}, "worker:1"), Contains("--rendezvous HOST:PORT") && Contains("10.9.8.1:29500"));
  CHECK(place({{"worker", 0, "10.9.8.1", 0, 2}}, {}, "worker:0").kind == PlaceKind::Sole);
  CHECK(place(two, {}, "worker:0", "10.9.8.7:99").rendezvous == "10.9.8.7:99");
  CHECK_THROWS_WITH(place(two, {}, "worker:2"), Contains("no task 'worker:2'; it has worker:0, worker:1"));
}

TEST_CASE("TF_CONFIG") {
  const char *config = R"({"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},
                           "task": {"type": "worker", "index": 1}})";
  Place p = place(two, {{"TF_CONFIG", config}});
  CHECK(p.rank == 1);
  CHECK(p.rendezvous == "10.0.0.1:2222");
  CHECK(p.source == "TF_CONFIG");
  CHECK_THROWS_WITH(place(two, {{"TF_CONFIG", "{}"}}), Contains("TF_CONFIG is not of the form"));
  CHECK_THROWS_WITH(place(two, {{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker",
                                                  "index": 0}})"}}),
                    Contains("there are 1 processes (worker 1), but the plan has 2 tasks (worker:0, worker:1)"));
}

TEST_CASE("torchrun") {
  Place p = place(two, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.5"}, {"MASTER_PORT", "1234"}});
  CHECK(p.rank == 1);
  CHECK(p.rendezvous == "10.0.0.5:1234");
  // The agent's own store holds the port.
  p = place(two, {{"RANK", "0"},
                  {"WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "10.0.0.5"},
                  {"MASTER_PORT", "1234"},
                  {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  CHECK(p.rendezvous == "10.0.0.5:1235");
  CHECK_THROWS_WITH(place(two, {{"RANK", "0"}, {"WORLD_SIZE", "4"}}),
                    Contains("torchrun says that there are 4 processes (WORLD_SIZE=4), but the plan has 2 tasks") &&
                        Contains("compile for 4 hosts"));
  CHECK_THROWS_WITH(place(two, {{"RANK", "x"}, {"WORLD_SIZE", "2"}}), Contains("RANK is 'x', which is no number"));
  CHECK_THROWS_WITH(place(two, {{"RANK", "2"}, {"WORLD_SIZE", "2"}}), Contains("process 2 of 2"));
}

TEST_CASE("Open MPI") {
  Place p = place(two, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  CHECK(p.rank == 1);
  CHECK(p.rendezvous == "10.9.8.1:29500");
  p = place(two, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(p.rendezvous == "127.0.0.1:29500");
  CHECK_THROWS_WITH(place(two, {{"OMPI_COMM_WORLD_RANK", "1"}}), Contains("OMPI_COMM_WORLD_SIZE is not set"));
}

TEST_CASE("Slurm") {
  Place p = place(two, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_NODELIST", "gpu[07-09],login"}});
  CHECK(p.rank == 1);
  CHECK(p.rendezvous == "gpu07:29500");
  // A step's own number of tasks counts before the job's.
  p = place(two, {{"SLURM_PROCID", "0"},
                  {"SLURM_NTASKS", "8"},
                  {"SLURM_STEP_NUM_TASKS", "2"},
                  {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.3"}});
  CHECK(p.rendezvous == "10.0.0.3:29500");
  CHECK(first_slurm_host("a") == "a");
  CHECK(first_slurm_host("a,b") == "a");
  CHECK(first_slurm_host("rack[2,4]-n[01-03],x") == "rack2-n01");
}

TEST_CASE("a plain start") {
  CHECK(place({{"worker", 0, "10.9.8.1", 0, 2}}, {}).kind == PlaceKind::Sole);
  CHECK(place({{"worker", 0, "localhost", 0, 1}, {"worker", 1, "127.0.0.1", 1, 1}}, {}).kind == PlaceKind::StartAll);
  CHECK_THROWS_WITH(
      place(two, {}),
      Contains("on 10.9.8.2:  ./train --data 'my data.npz' --task worker:1 --rendezvous 10.9.8.1:29500") &&
          Contains("on 10.9.8.1:  ./train --data 'my data.npz' --task worker:0"));
}

TEST_CASE("one process a replica numbers the tasks anew") {
  const drt_task planned[] = {{"worker", 0, "a", 0, 2}, {"worker", 1, "b", 2, 1}};
  drt_program program{};
  program.num_tasks = 2;
  program.tasks = planned;
  auto whole = plan_tasks(program, false);
  REQUIRE(whole.size() == 2);
  CHECK(whole[0].num_replicas == 2);
  auto split = plan_tasks(program, true);
  REQUIRE(split.size() == 3);
  CHECK(split[1].name() == "worker:1");
  CHECK(split[1].host == "a");
  CHECK(split[2].name() == "worker:2");
  CHECK(split[2].host == "b");
  CHECK(split[2].first_replica == 2);
}

TEST_CASE("addresses of a rendezvous") {
  CHECK(parse_host_port("[::1]:80").host == "::1");
  CHECK(parse_host_port("a.b:80").port == 80);
  for (const char *wrong : {"", "a", "a:", ":80", "a:x", "a:70000"})
    CHECK_THROWS_WITH(parse_host_port(wrong), Contains("write host:port"));
}

TEST_CASE("messages survive any cutting of the stream") {
  Message message{MessageKind::Set, {std::string(3000, 'x'), ""}};
  std::string bytes = message.encode() + Message{MessageKind::Goodbye, {}}.encode();
  MessageReader reader;
  std::vector<Message> got;
  for (char byte : bytes) {
    reader.append(&byte, 1);
    while (auto next = reader.next())
      got.push_back(*next);
  }
  REQUIRE(got.size() == 2);
  CHECK(got[0].fields == message.fields);
  CHECK(got[1].kind == MessageKind::Goodbye);
  reader.append("GET / HTTP/1.1\r\n", 16);
  CHECK_THROWS_WITH(reader.next(), Contains("no task of this plan"));
}

TEST_CASE("a message with other fields than its kind has is none") {
  for (const Message &message :
       {Message{MessageKind::Refused, {}}, Message{MessageKind::Refused, {"1"}}, Message{MessageKind::Ready, {}},
        Message{MessageKind::Lost, {"x"}}, Message{MessageKind::Hello, {"1"}}, Message{MessageKind::Challenge, {}},
        Message{static_cast<MessageKind>(99), {}}}) {
    const std::string bytes = message.encode();
    MessageReader reader;
    reader.append(bytes.data(), bytes.size());
    CHECK_THROWS_WITH(reader.next(), Contains("no task of this plan"));
  }
}
