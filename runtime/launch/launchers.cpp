//===- launchers.cpp - What torchrun, Slurm, Open MPI and TF_CONFIG say -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/launchers.h"

#include "core/error.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace drt {

namespace {

std::string text(const Environment &environment, const char *name) {
  const char *value = environment(name);
  return value ? value : "";
}

int number(const Environment &environment, const char *name, const std::string &launcher) {
  std::string value = text(environment, name);
  int result = 0;
  const char *end = value.data() + value.size();
  auto [rest, error] = std::from_chars(value.data(), end, result);
  if (value.empty() || error != std::errc() || rest != end || result < 0)
    throw Error(launcher + "'s environment is incomplete: " + name + " is " +
                (value.empty() ? "not set" : "'" + value + "', which is no number") +
                ". Set it, or say which task this is with --task");
  return result;
}

std::string at_default_port(const std::string &host) { return host + ":" + std::to_string(default_rendezvous_port); }

/// {"cluster": {"worker": ["host:port", …], …}, "task": {"type": "worker", "index": 1}}
LauncherInfo from_tf_config(const std::string &config, const std::vector<Task> &tasks) {
  LauncherInfo info;
  info.launcher = "TF_CONFIG";
  try {
    auto json = nlohmann::json::parse(config);
    const auto &cluster = json.at("cluster");
    for (const auto &[job, addresses] : cluster.items()) {
      info.size += static_cast<int>(addresses.size());
      info.size_source += (info.size_source.empty() ? "" : ", ") + job + " " + std::to_string(addresses.size());
    }
    const auto &task = json.at("task");
    const auto &index = task.at("index"); // some writers quote it
    info.task = task.at("type").get<std::string>() + ":" +
                (index.is_string() ? index.get<std::string>() : std::to_string(index.get<int>()));
    auto job = cluster.find(tasks[0].job);
    if (job != cluster.end() && static_cast<size_t>(tasks[0].index) < job->size())
      info.rendezvous = job->at(static_cast<size_t>(tasks[0].index)).get<std::string>();
  } catch (const nlohmann::json::exception &e) {
    throw Error(R"(TF_CONFIG is not of the form {"cluster": {"worker": ["host:port", ...]}, "task": {"type": )"
                R"("worker", "index": 0}}: )" +
                std::string(e.what()));
  }
  return info;
}

LauncherInfo from_torchrun(const Environment &environment) {
  LauncherInfo info;
  info.launcher = "torchrun";
  info.rank = number(environment, "RANK", info.launcher);
  info.size = number(environment, "WORLD_SIZE", info.launcher);
  info.size_source = "WORLD_SIZE=" + std::to_string(info.size);
  std::string host = text(environment, "MASTER_ADDR");
  if (!host.empty()) {
    int port = environment("MASTER_PORT") ? number(environment, "MASTER_PORT", info.launcher) : default_rendezvous_port;
    // torchrun's agent may hold the port itself, for its own store.
    if (text(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True")
      port = port < 65535 ? port + 1 : port - 1;
    info.rendezvous = host + ":" + std::to_string(port);
  }
  return info;
}

LauncherInfo from_open_mpi(const Environment &environment) {
  LauncherInfo info;
  info.launcher = "Open MPI";
  info.rank = number(environment, "OMPI_COMM_WORLD_RANK", info.launcher);
  info.size = number(environment, "OMPI_COMM_WORLD_SIZE", info.launcher);
  info.size_source = "OMPI_COMM_WORLD_SIZE=" + std::to_string(info.size);
  if (text(environment, "OMPI_COMM_WORLD_LOCAL_SIZE") == std::to_string(info.size))
    info.rendezvous = at_default_port("127.0.0.1");
  return info;
}

LauncherInfo from_slurm(const Environment &environment, const char *size) {
  LauncherInfo info;
  info.launcher = "Slurm";
  info.rank = number(environment, "SLURM_PROCID", info.launcher);
  info.size = number(environment, size, info.launcher);
  info.size_source = std::string(size) + "=" + std::to_string(info.size);
  for (const char *name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    if (info.rendezvous.empty() && environment(name))
      info.rendezvous = at_default_port(first_slurm_host(environment(name)));
  if (info.rendezvous.empty() && environment("SLURM_LAUNCH_NODE_IPADDR"))
    info.rendezvous = at_default_port(environment("SLURM_LAUNCH_NODE_IPADDR"));
  return info;
}

} // namespace

std::string first_slurm_host(const std::string &node_list) {
  size_t end = node_list.find_first_of("[,");
  if (end == std::string::npos || node_list[end] == ',')
    return node_list.substr(0, end);
  size_t close = node_list.find(']', end);
  std::string range = node_list.substr(end + 1, close == std::string::npos ? close : close - end - 1);
  std::string rest = close == std::string::npos ? "" : node_list.substr(close + 1);
  // What stands behind a bracket belongs to the same host up to the next comma.
  return first_slurm_host(node_list.substr(0, end) + range.substr(0, range.find_first_of("-,")) + rest);
}

std::optional<LauncherInfo> find_launcher(const Environment &environment, const std::vector<Task> &tasks) {
  if (environment("TF_CONFIG") && !text(environment, "TF_CONFIG").empty())
    return from_tf_config(text(environment, "TF_CONFIG"), tasks);
  if (environment("RANK") && environment("WORLD_SIZE"))
    return from_torchrun(environment);
  if (environment("OMPI_COMM_WORLD_RANK"))
    return from_open_mpi(environment);
  // A batch script has SLURM_NTASKS of the job; the step's own number is 1 there.
  if (environment("SLURM_PROCID"))
    return from_slurm(environment, environment("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
  return std::nullopt;
}

} // namespace drt
