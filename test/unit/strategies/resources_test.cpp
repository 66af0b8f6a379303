//===- resources_test.cpp - AutoDist's resource file -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Destinations.h"
#include "strategies/Resources.h"
#include <catch2/catch.hpp>

using namespace distc::strategies;

static Resources parse(const std::string &yaml) { return std::get<Resources>(parseResources(yaml, "r.yml")); }
static std::string error(const std::string &yaml) { return std::get<std::string>(parseResources(yaml, "r.yml")); }

TEST_CASE("the chief comes first; a host's replicas are on its GPUs, or on its CPUs where it has none") {
  Resources resources = parse(R"(
nodes:
  - address: 11.0.0.2
    cpus: [0, 1]
  - address: 11.0.0.1
    chief: true
    gpus: [0, 1]
    network_bandwidth: 40
    ssh_config: conf
ssh:
  conf:
    username: root
    key_file: /root/.ssh/id_rsa
    port: 2222
    shared_envs:
      LD_LIBRARY_PATH: /usr/lib
)");
  REQUIRE(resources.hosts.size() == 2);
  CHECK(resources.hosts[0].address == "11.0.0.1");
  CHECK(resources.hosts[0].networkBandwidth == 40);
  CHECK(resources.ssh.at("conf").port == 2222);
  CHECK(resources.ssh.at("conf").sharedEnvs.at("LD_LIBRARY_PATH") == "/usr/lib");
  CHECK(resources.getReplicaDevices() ==
        std::vector<std::string>{"11.0.0.1:GPU:0", "11.0.0.1:GPU:1", "11.0.0.2:CPU:0", "11.0.0.2:CPU:1"});
}

TEST_CASE("a single host needs neither chief nor devices") {
  CHECK(parse("nodes: [{address: localhost}]").getReplicaDevices() == std::vector<std::string>{"localhost:CPU:0"});
}

TEST_CASE("local replicas are CPU devices of localhost") {
  CHECK(Resources::local(2).getReplicaDevices() == std::vector<std::string>{"localhost:CPU:0", "localhost:CPU:1"});
}

TEST_CASE("errors of the resource file say the line and what would be right") {
  CHECK(error("nodes:\n  - address: a\n    gpu: [0]\n") ==
        "r.yml:3: unknown key 'gpu' of a node; known: address chief cpus "
        "gpus network_bandwidth ssh_config");
  CHECK(error("nodes:\n  - address: a\n    gpus: 2\n") ==
        "r.yml:3: 'gpus' is not a list of device numbers such as [0, 1]");
  CHECK(error("nodes:\n  - address: a\n    cpus: [1, 1]\n") == "r.yml:3: 'cpus' names device 1 twice");
  CHECK(error("nodes:\n  - chief: true\n") == "r.yml:2: a node has no 'address'");
  CHECK(error("nodes:\n  - address: a\n  - address: b\n") == "r.yml:2: no node is 'chief: true'; one must be");
  CHECK(error("nodes:\n  - address: a\n    ssh_config: c\n") ==
        "r.yml:2: 'ssh_config' names 'c', which 'ssh' does not have");
  CHECK(error("ssh: {}\n") == "r.yml:1: no list 'nodes' with one entry a host");
  CHECK(error("nodes: [\n").rfind("r.yml:2: ", 0) == 0);
  CHECK(std::get<std::string>(readResources("/nowhere/r.yml")) == "cannot read resource file '/nowhere/r.yml'");
}

TEST_CASE("variables are put on the servers asked for, else on the hosts' CPUs") {
  CHECK(Resources::local(4, 2).getReductionDevices() == std::vector<std::string>{"ps:0", "ps:1"});
  CHECK(Resources::local(4).getReductionDevices() == std::vector<std::string>{"localhost:CPU:0"});
  Resources hosts = parse("nodes: [{address: a, chief: true, cpus: [0, 1]}, {address: b, gpus: [0]}]");
  CHECK(hosts.getReductionDevices() == std::vector<std::string>{"a:CPU:0", "b:CPU:0"});
}

TEST_CASE("a destination is a server or a device of a host") {
  Destinations local(Resources::local(4, 2));
  CHECK(local.find("ps:1") == Destination{Destination::Server, 1});
  CHECK(local.find("localhost:CPU:3") == Destination{Destination::Host, 0});
  for (const char *absent : {"ps:2", "ps:-1", "ps:", "ps", "", "localhost:CPU:4", "localhost"})
    CHECK(!local.find(absent));
  Destinations hosts(parse("nodes: [{address: a, chief: true, cpus: [0, 1]}, {address: b, gpus: [0]}]"));
  CHECK(hosts.find("b:GPU:0") == Destination{Destination::Host, 1});
  CHECK(hosts.find("b:CPU:0") == Destination{Destination::Host, 1});
  CHECK(!hosts.find("b:CPU:1"));
  CHECK(!hosts.find("ps:0"));
}
