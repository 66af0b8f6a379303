//===- trainer.cpp - A program that launches like an executable of distc's -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Launching, collectives and the end of a failed run, without a compiled graph:
// each "step" sums a vector over the tasks. Flags beside the real ones say which
// task misbehaves, and when:
//   --hosts A,B      the plan: a worker on each
//   --die W:S        worker W kills itself in step S, in the first attempt
//   --fail W:S       worker W fails with a reason in step S
//   --wrong-input W  worker W ends with status 1 before it joins
//   --linger W:S     worker W prints "lingering" in step S and computes for ever
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "launch/group.h"
#include "launch/secret.h"
#include "launch/supervise.h"
#include "launch/tasks.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <unistd.h>

namespace {

using namespace drt;

struct Flags {
  std::map<std::string, std::string> values;
  std::string operator[](const std::string &name) const {
    auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  }
  int number(const std::string &name, int otherwise) const {
    return (*this)[name].empty() ? otherwise : std::atoi((*this)[name].c_str());
  }
  bool here(const std::string &name, int rank, int64_t step) const {
    return (*this)[name] == std::to_string(rank) + ":" + std::to_string(step);
  }
};

std::vector<Task> plan(const std::string &hosts) {
  std::vector<Task> tasks;
  std::stringstream list(hosts.empty() ? "localhost,localhost" : hosts);
  for (std::string host; std::getline(list, host, ',');) {
    auto index = static_cast<int32_t>(tasks.size());
    tasks.push_back({"worker", index, host, index, 1});
  }
  return tasks;
}

std::string latest_checkpoint(const std::string &folder) {
  std::string name;
  if (!folder.empty())
    std::ifstream(folder + "/checkpoint") >> name;
  return name.empty() ? name : folder + "/" + name;
}

/// Task 0 writes aside and renames, as a real checkpoint does.
void save(const std::string &folder, int64_t step, double weight) {
  std::string name = "ckpt-" + std::to_string(step);
  std::ofstream(folder + "/" + name) << step << " " << weight;
  std::ofstream(folder + "/checkpoint.new") << name;
  std::filesystem::rename(folder + "/checkpoint.new", folder + "/checkpoint");
}

void train(const Flags &flags, Group &group, int rank) {
  int64_t step = 0;
  double weight = 0;
  if (!flags["--resume"].empty())
    std::ifstream(flags["--resume"]) >> step >> weight;
  Communicator &tasks = group.communicator();
  tasks.broadcast(&step, sizeof step, 0);
  tasks.broadcast(&weight, sizeof weight, 0);
  const bool first_attempt = step == 0;
  report_training_started();
  for (; step < flags.number("--steps", 10); ++step) {
    tasks.describe(step, "group 0");
    tasks.barrier(); // all are in this step now, which the tests' messages name
    if (flags.here("--die", rank, step) && first_attempt)
      raise(SIGKILL);
    if (flags.here("--fail", rank, step))
      throw Error("the data file ends early");
    if (flags.here("--linger", rank, step)) {
      std::puts("lingering");
      std::fflush(stdout);
      for (;;)
        pause();
    }
    std::vector<double> gradient(30000, static_cast<double>(rank + 1) * static_cast<double>(step + 1));
    tasks.all_reduce_sum(gradient.data(), 30000, DRT_F64);
    weight += gradient[29999];
    if (rank == 0 && !flags["--checkpoint-dir"].empty())
      save(flags["--checkpoint-dir"], step + 1, weight);
  }
  group.leave();
  if (rank == 0)
    std::printf("done: %d steps, %d tasks, weight %g\n", flags.number("--steps", 10), tasks.size(), weight);
  std::fprintf(stderr, "task %d is done\n", rank);
}

int run(int argc, char **argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2)
    flags.values[argv[i]] = argv[i + 1];
  std::vector<std::string> command(argv, argv + argc);
  std::vector<Task> tasks = plan(flags["--hosts"]);
  Place place = find_place(tasks, flags["--task"], flags["--rendezvous"], process_environment(), command);
  const double failure_timeout = flags.number("--failure-timeout", 10);
  const int max_restarts = flags.number("--max-restarts", 0);
  if (needs_launch(place, max_restarts)) {
    LaunchOptions launching{tasks, place, command, max_restarts, failure_timeout};
    if (place.kind != PlaceKind::Member || place.rank == 0)
      launching.latest_checkpoint = [&] { return latest_checkpoint(flags["--checkpoint-dir"]); };
    return launch(launching);
  }
  if (flags["--wrong-input"] == std::to_string(place.rank))
    throw Error("no such file: data.npz");
  GroupOptions options;
  options.tasks = tasks;
  options.rank = place.rank;
  options.rendezvous = place.rendezvous;
  options.listen_socket = inherited_listen_socket();
  options.secret = find_secret("");
  options.arrival_timeout = flags.number("--arrival-timeout", 60);
  options.failure_timeout = failure_timeout;
  auto group = Group::join(options);
  try {
    train(flags, *group, place.rank);
  } catch (const Error &e) {
    group->fail(e.what());
    throw;
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const drt::Error &e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return e.exitStatus();
  }
}
