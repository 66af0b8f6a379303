//===- object_graph_test.cpp - Checkpoints of objects ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/bundle.pb.h"
#include "checkpoint/object_graph.h"
#include "core/error.h"
#include "drt/drt.h"
#include "test/unit/checkpoint/support.h"

#include <catch2/catch.hpp>

using namespace drt;
using namespace distc_test;

namespace {

// The object that is saved has one child of each name, a variable.
struct Child {
  std::string local, name, key;
};

std::string graphOf(const std::vector<Child> &children) {
  distc::checkpoint::TrackableObjectGraph graph;
  graph.add_nodes();
  for (const Child &child : children) {
    auto *reference = graph.mutable_nodes(0)->add_children();
    reference->set_local_name(child.local);
    reference->set_node_id(graph.nodes_size());
    auto *value = graph.add_nodes()->add_attributes();
    value->set_name("VARIABLE_VALUE");
    value->set_full_name(child.name);
    value->set_checkpoint_key(child.key);
  }
  return graph.SerializeAsString();
}

std::string write(Folder &folder, const std::vector<Child> &children) {
  const std::string prefix = folder / "ckpt";
  CheckpointWriter writer(prefix);
  const float value = 1;
  for (const Child &child : children)
    writer.add(child.key, DRT_F32, {}, &value);
  writer.addString(std::string(kObjectGraphKey), graphOf(children));
  writer.finish();
  return prefix;
}

} // namespace

TEST_CASE("a checkpoint's graph names what is in it") {
  const std::string objects = graphOf({{"w", "w", "model/w"}, {"unused", "unused", "model/unused"}});
  distc::checkpoint::TrackableObjectGraph graph;
  REQUIRE(graph.ParseFromString(keepSaved(objects, {"model/w"})));
  REQUIRE(graph.nodes_size() == 3);
  CHECK(graph.nodes(1).attributes_size() == 1);
  CHECK(graph.nodes(2).attributes_size() == 0);
  CHECK(graph.nodes(0).children(1).local_name() == "unused");
}

TEST_CASE("variables that the program's objects and a checkpoint have are found by the way to them") {
  Folder folder;
  const std::string prefix =
      write(folder, {{"w", "w", "theirs/w"}, {"other", "other", "theirs/other"}, {"more", "more", "theirs/more"}});
  const CheckpointReader reader(prefix);
  const ObjectKeys keys(
      reader, graphOf({{"w", "w", "ours/w"}, {"other", "o", "ours/other"}, {"missing", "m", "ours/missing"}}));
  CHECK(keys.common() == std::map<std::string, std::string>{{"ours/other", "theirs/other"}, {"ours/w", "theirs/w"}});
}

TEST_CASE("without objects nothing is common") {
  Folder folder;
  const CheckpointReader reader(write(folder, {{"w", "w", "w"}}));
  CHECK(ObjectKeys(reader, "").common().empty());
}

TEST_CASE("a string is read as it was written, whatever its length") {
  Folder folder;
  for (size_t length : {0, 1, 127, 128, 300000}) {
    std::string text(length, 'x');
    if (length)
      text[length / 2] = '\0';
    CheckpointWriter writer(folder / "ckpt");
    writer.addString("text", text);
    writer.finish();
    const CheckpointReader reader(folder / "ckpt");
    CHECK(reader.readString("text") == text);
    CHECK_NOTHROW(reader.verify("text"));
  }
}

TEST_CASE("what is no string is not read as one") {
  Folder folder;
  CheckpointWriter writer(folder / "ckpt");
  const float value = 1;
  writer.add("w", DRT_F32, {}, &value);
  writer.finish();
  CHECK_THROWS_AS(CheckpointReader(folder / "ckpt").readString("w"), Error);
}

TEST_CASE("a variable is found in a checkpoint of other objects") {
  Folder folder;
  const CheckpointReader reader(
      write(folder, {{"w", "w", "model/w"}, {"b", "same", "model/b"}, {"c", "same", "model/c"}}));
  // By the names on the way to it, though they are other keys; by its name; by the key.
  const ObjectKeys own(reader, graphOf({{"b", "x", "own/b"}, {"w", "y", "own/w"}}));
  CHECK(own.find("anything", "own/b") == "model/b");
  const ObjectKeys none(reader, "");
  CHECK(none.find("w", "w") == "model/w");
  CHECK(none.find("anything", "model/c") == "model/c");
  // The error of what is not there names the key.
  CHECK(none.find("anything", "else") == "else");
  CHECK_THROWS_AS(none.find("same", "same"), Error);
}

TEST_CASE("a checkpoint of variables has their names") {
  Folder folder;
  CheckpointWriter writer(folder / "ckpt");
  const float value = 1;
  writer.add("w", DRT_F32, {}, &value);
  writer.finish();
  const CheckpointReader reader(folder / "ckpt");
  CHECK(ObjectKeys(reader, graphOf({{"w", "w", "model/w"}})).find("w", "model/w") == "w");
}
