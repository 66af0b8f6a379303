//===- Resources.cpp - The hosts and devices there are ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Resources.h"

namespace distc::strategies {

static void addDevices(const Host &host, const char *kind, const std::vector<int> &numbers,
                       std::vector<std::string> &devices) {
  for (int number : numbers)
    devices.push_back(host.address + ":" + kind + ":" + std::to_string(number));
}

Resources Resources::local(int replicas, int servers) {
  Resources resources;
  Host host;
  host.address = "localhost";
  host.chief = true;
  for (int i = 0; i < replicas; ++i)
    host.cpus.push_back(i);
  resources.hosts.push_back(std::move(host));
  resources.servers = servers;
  resources.replicasAskedFor = replicas;
  return resources;
}

std::vector<std::string> Resources::getReplicaDevices() const {
  std::vector<std::string> devices;
  for (const Host &host : hosts)
    if (host.gpus.empty())
      addDevices(host, "CPU", host.cpus, devices);
    else
      addDevices(host, "GPU", host.gpus, devices);
  return devices;
}

std::vector<std::string> Resources::getDevices() const {
  std::vector<std::string> devices;
  for (const Host &host : hosts) {
    addDevices(host, "CPU", host.cpus, devices);
    addDevices(host, "GPU", host.gpus, devices);
  }
  return devices;
}

std::vector<std::string> Resources::getReductionDevices() const {
  std::vector<std::string> devices;
  for (int server = 0; server < servers; ++server)
    devices.push_back("ps:" + std::to_string(server));
  if (servers == 0)
    for (const Host &host : hosts)
      devices.push_back(host.address + ":CPU:0");
  return devices;
}

} // namespace distc::strategies
