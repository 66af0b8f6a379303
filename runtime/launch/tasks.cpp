//===- tasks.cpp - Which task of the plan this process is -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/tasks.h"

#include "core/error.h"
#include "launch/launchers.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <ifaddrs.h>
#include <map>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace drt {

std::vector<Task> plan_tasks(const drt_program &program, bool one_process_per_replica) {
  std::vector<Task> tasks;
  std::map<std::string, int32_t> numbered; // tasks of each job so far
  for (int32_t i = 0; i < program.num_tasks; ++i) {
    const drt_task &planned = program.tasks[i];
    if (!one_process_per_replica || planned.num_replicas <= 1) {
      int32_t index = one_process_per_replica ? numbered[planned.job]++ : planned.index;
      tasks.push_back({planned.job, index, planned.host, planned.first_replica, planned.num_replicas});
      continue;
    }
    for (int32_t replica = 0; replica < planned.num_replicas; ++replica)
      tasks.push_back({planned.job, numbered[planned.job]++, planned.host, planned.first_replica + replica, 1});
  }
  return tasks;
}

Environment process_environment() {
  return [](const char *name) -> const char * { return std::getenv(name); };
}

namespace {

std::string list_names(const std::vector<Task> &tasks) {
  std::string names;
  for (size_t i = 0; i < tasks.size() && i < 8; ++i)
    names += (i ? ", " : "") + tasks[i].name();
  return tasks.size() > 8 ? names + ", ..." : names;
}

int rank_of(const std::string &name, const std::vector<Task> &tasks, const std::string &source) {
  auto found = std::find_if(tasks.begin(), tasks.end(), [&](const Task &task) { return task.name() == name; });
  if (found == tasks.end())
    throw Error(source + ": the plan has no task '" + name + "'; it has " + list_names(tasks), 2);
  return static_cast<int>(found - tasks.begin());
}

std::string default_rendezvous(const std::vector<Task> &tasks) {
  bool v6 = tasks[0].host.find(':') != std::string::npos;
  return (v6 ? "[" + tasks[0].host + "]" : tasks[0].host) + ":" + std::to_string(default_rendezvous_port);
}

std::string quoted(const std::string &word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`*?&|;<>()#~[]{}!") == std::string::npos)
    return word;
  std::string result = "'";
  for (char c : word)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

[[noreturn]] void refuse_plain_start(const std::vector<Task> &tasks, const std::string &rendezvous,
                                     const std::vector<std::string> &command) {
  std::string line;
  for (const std::string &word : command)
    line += quoted(word) + " ";
  std::string message = "the plan's tasks lie on several hosts, so each is started on its own:";
  for (const Task &task : tasks)
    message +=
        "\n  on " + task.host + ":  " + line + "--task " + task.name() +
        (command.end() != std::find(command.begin(), command.end(), "--rendezvous") ? std::string()
                                                                                    : " --rendezvous " + rendezvous);
  throw Error(message + "\nor start one process a task with torchrun, srun or mpirun", 2);
}

/// The launcher's view against the plan's.
Place place_from(const LauncherInfo &info, const std::vector<Task> &tasks) {
  Place place;
  place.source = info.launcher;
  if (info.size != static_cast<int>(tasks.size()))
    throw Error(info.launcher + " says that there are " + std::to_string(info.size) + " processes (" +
                info.size_source + "), but the plan has " + std::to_string(tasks.size()) +
                (tasks.size() == 1 ? " task (" : " tasks (") + list_names(tasks) + "): start " +
                std::to_string(tasks.size()) + ", compile for " + std::to_string(info.size) +
                " hosts, or give --task to overrule " + info.launcher);
  place.rank = info.task.empty() ? info.rank : rank_of(info.task, tasks, info.launcher);
  if (place.rank < 0 || place.rank >= info.size)
    throw Error(info.launcher + " says that this is process " + std::to_string(place.rank) + " of " +
                std::to_string(info.size) + ", counted from 0");
  place.rendezvous = info.rendezvous;
  return place;
}

bool same_address(const sockaddr *a, const sockaddr *b) {
  if (!a || !b || a->sa_family != b->sa_family)
    return false;
  if (a->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in *>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in *>(b)->sin_addr.s_addr;
  return a->sa_family == AF_INET6 && std::memcmp(&reinterpret_cast<const sockaddr_in6 *>(a)->sin6_addr,
                                                 &reinterpret_cast<const sockaddr_in6 *>(b)->sin6_addr, 16) == 0;
}

bool is_loopback(const sockaddr *a) {
  if (a->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in *>(a)->sin_addr.s_addr) >> 24) == 127;
  return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 *>(a)->sin6_addr);
}

} // namespace

bool is_this_machine(const std::string &host) {
  char own_name[256] = "";
  gethostname(own_name, sizeof own_name - 1);
  if (host.empty() || host == "localhost" || host == own_name)
    return true;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *addresses = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &addresses) != 0)
    return false;
  ifaddrs *interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0)
    interfaces = nullptr;
  bool ours = false;
  for (addrinfo *a = addresses; a && !ours; a = a->ai_next) {
    ours = is_loopback(a->ai_addr);
    for (ifaddrs *i = interfaces; i && !ours; i = i->ifa_next)
      ours = same_address(a->ai_addr, i->ifa_addr);
  }
  freeifaddrs(interfaces);
  freeaddrinfo(addresses);
  return ours;
}

Place find_place(const std::vector<Task> &tasks, const std::string &task_flag, const std::string &rendezvous_flag,
                 const Environment &environment, const std::vector<std::string> &command) {
  Place place;
  if (!task_flag.empty()) {
    place.source = "--task";
    place.rank = rank_of(task_flag, tasks, "--task");
    if (tasks.size() > 1 && rendezvous_flag.empty())
      throw Error("--task " + task_flag + " is one of " + std::to_string(tasks.size()) + " tasks (" +
                      list_names(tasks) + "): say where they meet, the same for each, with --rendezvous HOST:PORT, " +
                      "for example --rendezvous " + default_rendezvous(tasks) + "; " + tasks[0].name() +
                      " listens there",
                  2);
  } else if (auto info = find_launcher(environment, tasks)) {
    place = place_from(*info, tasks);
  } else if (tasks.size() > 1) {
    place.kind = PlaceKind::StartAll;
    place.rendezvous = rendezvous_flag;
    bool all_here =
        std::all_of(tasks.begin(), tasks.end(), [](const Task &task) { return is_this_machine(task.host); });
    if (!all_here)
      refuse_plain_start(tasks, rendezvous_flag.empty() ? default_rendezvous(tasks) : rendezvous_flag, command);
    return place;
  }
  if (tasks.size() == 1) {
    place.kind = PlaceKind::Sole;
    return place;
  }
  place.kind = PlaceKind::Member;
  if (!rendezvous_flag.empty())
    place.rendezvous = rendezvous_flag;
  else if (place.rendezvous.empty())
    place.rendezvous = default_rendezvous(tasks);
  return place;
}

} // namespace drt
