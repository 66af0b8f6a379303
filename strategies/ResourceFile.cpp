//===- ResourceFile.cpp - AutoDist's resource file, by yaml-cpp -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// yaml-cpp reports by exceptions: they end in this file.
//
//===----------------------------------------------------------------------===//

#include "strategies/Resources.h"
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <yaml-cpp/yaml.h>

namespace distc::strategies {
namespace {

[[noreturn]] void fail(const YAML::Node &at, const std::string &message) {
  throw YAML::ParserException(at.Mark(), message);
}

void expectKeys(const YAML::Node &map, const std::string &what, std::initializer_list<const char *> keys) {
  if (!map.IsMap())
    fail(map, what + " is not a map");
  for (const auto &entry : map) {
    std::string key = entry.first.as<std::string>();
    if (std::any_of(keys.begin(), keys.end(), [&](const char *known) { return key == known; }))
      continue;
    std::string message = "unknown key '" + key + "' of " + what + "; known:";
    for (const char *known : keys)
      message += std::string(" ") + known;
    fail(entry.first, message);
  }
}

template <typename T> T scalar(const YAML::Node &map, const char *key, const T &otherwise, const char *kind) {
  YAML::Node node = map[key];
  if (!node)
    return otherwise;
  T value;
  if (!node.IsScalar() || !YAML::convert<T>::decode(node, value))
    fail(node, std::string("'") + key + "' is not " + kind);
  return value;
}

std::vector<int> deviceNumbers(const YAML::Node &host, const char *key) {
  std::vector<int> numbers;
  YAML::Node list = host[key];
  if (!list)
    return numbers;
  std::string message = std::string("'") + key + "' is not a list of device numbers such as [0, 1]";
  if (!list.IsSequence())
    fail(list, message);
  for (const YAML::Node &item : list) {
    int number = -1;
    if (!YAML::convert<int>::decode(item, number) || number < 0)
      fail(item, message);
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end())
      fail(item, std::string("'") + key + "' names device " + std::to_string(number) + " twice");
    numbers.push_back(number);
  }
  return numbers;
}

Host readHost(const YAML::Node &node) {
  expectKeys(node, "a node", {"address", "chief", "cpus", "gpus", "network_bandwidth", "ssh_config"});
  Host host;
  host.address = scalar<std::string>(node, "address", "", "a text");
  if (host.address.empty())
    fail(node, "a node has no 'address'");
  host.chief = scalar(node, "chief", false, "true or false");
  host.cpus = deviceNumbers(node, "cpus");
  host.gpus = deviceNumbers(node, "gpus");
  // As in AutoDist, a host always has CPU 0.
  if (host.cpus.empty())
    host.cpus.push_back(0);
  host.networkBandwidth = scalar(node, "network_bandwidth", 1.0, "a number (Gbit/s)");
  host.sshConfig = scalar<std::string>(node, "ssh_config", "", "a text");
  return host;
}

SshConfig readSsh(const YAML::Node &node, const std::string &name) {
  expectKeys(node, "ssh configuration '" + name + "'", {"username", "key_file", "python_venv", "port", "shared_envs"});
  SshConfig ssh;
  ssh.username = scalar<std::string>(node, "username", "", "a text");
  ssh.keyFile = scalar<std::string>(node, "key_file", "", "a text");
  ssh.pythonVenv = scalar<std::string>(node, "python_venv", "", "a text");
  ssh.port = scalar(node, "port", 22, "a number");
  if (YAML::Node envs = node["shared_envs"]) {
    if (!envs.IsMap())
      fail(envs, "'shared_envs' is not a map");
    for (const auto &entry : envs)
      ssh.sharedEnvs[entry.first.as<std::string>()] = entry.second.as<std::string>();
  }
  return ssh;
}

Resources readAll(const YAML::Node &root) {
  expectKeys(root, "the resource file", {"nodes", "ssh"});
  Resources resources;
  if (YAML::Node ssh = root["ssh"]) {
    if (!ssh.IsMap())
      fail(ssh, "'ssh' is not a map from names to configurations");
    for (const auto &entry : ssh) {
      std::string name = entry.first.as<std::string>();
      resources.ssh[name] = readSsh(entry.second, name);
    }
  }
  YAML::Node nodes = root["nodes"];
  if (!nodes || !nodes.IsSequence() || nodes.size() == 0)
    fail(nodes ? nodes : root, "no list 'nodes' with one entry a host");
  std::set<std::string> addresses;
  int chiefs = 0;
  for (const YAML::Node &node : nodes) {
    Host host = readHost(node);
    if (!addresses.insert(host.address).second)
      fail(node, "address '" + host.address + "' occurs twice");
    if (!host.sshConfig.empty() && !resources.ssh.count(host.sshConfig))
      fail(node, "'ssh_config' names '" + host.sshConfig + "', which 'ssh' does not have");
    if (host.chief && ++chiefs > 1)
      fail(node, "a second node is 'chief'; one is");
    resources.hosts.push_back(std::move(host));
  }
  // Of several hosts one must say so; a single one need not.
  if (chiefs == 0) {
    if (resources.hosts.size() > 1)
      fail(nodes, "no node is 'chief: true'; one must be");
    resources.hosts.front().chief = true;
  }
  std::stable_partition(resources.hosts.begin(), resources.hosts.end(), [](const Host &host) { return host.chief; });
  return resources;
}

} // namespace

std::variant<Resources, std::string> parseResources(const std::string &yaml, const std::string &name) {
  try {
    return readAll(YAML::Load(yaml));
  } catch (const YAML::Exception &error) {
    return name + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg;
  }
}

std::variant<Resources, std::string> readResources(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return "cannot read resource file '" + path + "'";
  std::stringstream text;
  text << file.rdbuf();
  return parseResources(text.str(), path);
}

} // namespace distc::strategies
