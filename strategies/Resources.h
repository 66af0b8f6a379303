//===- Resources.h - The hosts and devices there are --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_RESOURCES_H
#define DISTC_STRATEGIES_RESOURCES_H

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace distc::strategies {

struct Host {
  std::string address; // "11.0.0.1", or "localhost"
  bool chief = false;
  std::vector<int> cpus; // numbers of its devices of each kind
  std::vector<int> gpus;
  double networkBandwidth = 1; // Gbit/s
  std::string sshConfig;       // a key of Resources::ssh, or empty
};

struct SshConfig {
  std::string username, keyFile, pythonVenv;
  int port = 22;
  std::map<std::string, std::string> sharedEnvs;
};

struct Resources {
  std::vector<Host> hosts; // the chief first
  std::map<std::string, SshConfig> ssh;
  /// Parameter servers asked for on the command line.
  int servers = 0;
  /// A process for each replica, instead of one for all replicas of a host.
  bool oneProcessPerReplica = false;
  /// The number of replicas was asked for; a strategy with another one is an error. 0: it was not.
  int replicasAskedFor = 0;

  /// `replicas` CPU replicas on localhost.
  static Resources local(int replicas, int servers = 0);

  /// Devices that replicas run on, the chief's first: a host's GPUs, or its CPUs where it has none.
  std::vector<std::string> getReplicaDevices() const;
  /// Every device, "11.0.0.1:GPU:0".
  std::vector<std::string> getDevices() const;
  /// Where builders put variables (Destinations.h): the servers asked for, "ps:0", else CPU 0 of each host.
  std::vector<std::string> getReductionDevices() const;
};

/// Reads AutoDist's resource file (YAML). Where it is wrong: a message with file and line.
std::variant<Resources, std::string> readResources(const std::string &path);
std::variant<Resources, std::string> parseResources(const std::string &yaml, const std::string &name);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_RESOURCES_H
