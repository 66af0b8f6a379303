//===- manager_test.cpp - The checkpoints of a run ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "drt/drt.h"
#include "test/unit/checkpoint/support.h"
#include "test/unit/support/mutants.h"

#include <catch2/catch.hpp>

using namespace drt;
using namespace distc_test;

namespace {

void writeStep(CheckpointWriter &writer) {
  std::vector<float> values(3000, 1);
  writer.add("v", DRT_F32, {3000}, values.data());
}

std::set<std::string> indexes(const Folder &folder) {
  std::set<std::string> found;
  for (const std::string &name : folder.names())
    if (name.ends_with(".index"))
      found.insert(name);
  return found;
}

} // namespace

TEST_CASE("a run keeps its newest checkpoints, and the state file names them") {
  Folder folder;
  CheckpointManager manager(folder.path + "/", 2);
  CHECK(manager.latest().empty());
  for (int64_t step : {5, 10, 15})
    CHECK(manager.save(step, writeStep) == folder / ("ckpt-" + std::to_string(step)));
  CHECK(indexes(folder) == std::set<std::string>{"ckpt-10.index", "ckpt-15.index"});
  CHECK(folder.names().size() == 5);
  CHECK(manager.latest() == folder / "ckpt-15");
  CHECK(readFile(folder / "checkpoint") == "model_checkpoint_path: \"ckpt-15\"\n"
                                           "all_model_checkpoint_paths: \"ckpt-10\"\n"
                                           "all_model_checkpoint_paths: \"ckpt-15\"\n");

  // A run that starts again goes on with the list; saving a step again moves it to the end.
  CheckpointManager(folder.path, 2).save(10, writeStep);
  CHECK(indexes(folder) == std::set<std::string>{"ckpt-10.index", "ckpt-15.index"});
  CheckpointManager(folder.path, 2).save(20, writeStep);
  CHECK(indexes(folder) == std::set<std::string>{"ckpt-10.index", "ckpt-20.index"});
}

TEST_CASE("only the folder's own ckpt-N are ever removed, whatever the state file names") {
  Folder folder, old;
  CheckpointManager before(old.path, 0);
  before.save(3, writeStep);
  before.save(4, writeStep);
  const auto oldNames = old.names();
  for (const char *name : {"model-1.index", "model-1.data-00000-of-00001", "ckpt-05.index", "ckpt-x.index", "notes"})
    writeFile(folder / name, "not this run's");
  const std::string up = "../" + std::filesystem::path(old.path).filename().string() + "/ckpt-4";
  std::string state = "model_checkpoint_path: \"" + (old / "ckpt-4") + "\"\n";
  for (const std::string &path : {old / "ckpt-3", old / "ckpt-4", up, std::string("model-1"), std::string("ckpt-05"),
                                  std::string("ckpt-x"), std::string(""), std::string("."), folder / "notes"})
    state += "all_model_checkpoint_paths: \"" + path + "\"\n";
  writeFile(folder / "checkpoint", state);

  for (int64_t step : {10, 11, 12})
    CheckpointManager(folder.path, 1).save(step, writeStep);
  CHECK(old.names() == oldNames);
  CHECK(indexes(folder) == std::set<std::string>{"ckpt-05.index", "ckpt-12.index", "ckpt-x.index", "model-1.index"});
  CHECK(folder.names().count("model-1.data-00000-of-00001") == 1);
  CHECK(folder.names().count("notes") == 1);
  CHECK(CheckpointManager(folder.path).latest() == folder / "ckpt-12");
}

TEST_CASE("what a run that was killed left of its oldest checkpoints goes with the next one") {
  Folder folder;
  for (int64_t step : {1, 2, 3})
    CheckpointManager(folder.path, 0).save(step, writeStep); // as if those of `keep` 2 were not removed yet
  std::filesystem::remove(folder / "ckpt-1.index");          // one is begun
  REQUIRE(folder.names().count("ckpt-1.data-00000-of-00001") == 1);
  CheckpointManager(folder.path, 2).save(4, writeStep);
  CHECK(indexes(folder) == std::set<std::string>{"ckpt-3.index", "ckpt-4.index"});
  CHECK(folder.names().size() == 5);
  CHECK(readFile(folder / "checkpoint") == "model_checkpoint_path: \"ckpt-4\"\n"
                                           "all_model_checkpoint_paths: \"ckpt-3\"\n"
                                           "all_model_checkpoint_paths: \"ckpt-4\"\n");
}

TEST_CASE("more checkpoints than are kept go before the next one is written, which may need their room") {
  Folder folder;
  for (int64_t step : {1, 2, 3, 4, 5})
    CheckpointManager(folder.path, 0).save(step, writeStep);
  const auto fail = [](CheckpointWriter &) { throw Error("no space left on device"); };
  // What cannot be read is none of those that are kept.
  writeFile(folder / "ckpt-5.index", "torn");
  CHECK_THROWS(CheckpointManager(folder.path, 2).save(6, fail));
  CHECK(indexes(folder) == std::set<std::string>{"ckpt-3.index", "ckpt-4.index", "ckpt-5.index"});
  CHECK(CheckpointManager(folder.path, 2).latest() == folder / "ckpt-4");
  CheckpointManager(folder.path, 2).save(6, writeStep);
  CHECK(indexes(folder) == std::set<std::string>{"ckpt-5.index", "ckpt-6.index"});
}

TEST_CASE("keep 0 keeps all") {
  Folder folder;
  CheckpointManager manager(folder.path, 0);
  for (int64_t step = 1; step < 8; ++step)
    manager.save(step, writeStep);
  CHECK(indexes(folder).size() == 7);
}

TEST_CASE("the newest complete checkpoint is found past torn ones") {
  Folder folder;
  CheckpointManager manager(folder.path);
  for (int64_t step : {1, 2, 3})
    manager.save(step, writeStep);
  std::filesystem::resize_file(folder / "ckpt-3.data-00000-of-00001", 100);
  CHECK(manager.latest() == folder / "ckpt-2");
  writeFile(folder / "ckpt-2.index", "torn");
  CHECK(manager.latest() == folder / "ckpt-1");
  manager.save(9, writeStep);
  std::filesystem::remove(folder / "checkpoint");
  CHECK(manager.latest() == folder / "ckpt-9"); // by its step, where no state file is
}

TEST_CASE("a state file that TensorFlow wrote is read") {
  Folder folder, other;
  CheckpointManager(other.path).save(7, writeStep);
  writeFile(folder / "checkpoint", "model_checkpoint_path: \"" + (other / "ckpt-7") +
                                       "\"\n"
                                       "all_model_checkpoint_paths: \"" +
                                       (other / "ckpt-7") +
                                       "\"\n"
                                       "all_model_checkpoint_timestamps: 1.5\n");
  CHECK(CheckpointManager(folder.path).latest() == other / "ckpt-7");
}

TEST_CASE("a save that fails changes nothing") {
  Folder folder;
  CheckpointManager manager(folder.path, 1);
  manager.save(1, writeStep);
  auto before = folder.names();
  std::string state = readFile(folder / "checkpoint");
  {
    FileSizeLimit limit(4096);
    CHECK(errorOf([&] { manager.save(2, writeStep); }).find("cannot write") != std::string::npos);
  }
  CHECK(folder.names() == before);
  CHECK(readFile(folder / "checkpoint") == state);
  CHECK(manager.latest() == folder / "ckpt-1");
}

TEST_CASE("what a killed run left half-written goes with the next save") {
  Folder folder;
  writeFile(folder / "ckpt-4.tempstate99.data", "half");
  writeFile(folder / "checkpoint.tempstate99", "half");
  writeFile(folder / "mine.txt", "not ours");
  writeFile(folder / "ckpt-notes.tempstate.txt", "not ours");
  CheckpointManager(folder.path).save(5, writeStep);
  CHECK(folder.names() == std::set<std::string>{"checkpoint", "ckpt-5.data-00000-of-00001", "ckpt-5.index",
                                                "ckpt-notes.tempstate.txt", "mine.txt"});
}

TEST_CASE("a damaged state file removes nothing but ckpt-N") {
  Folder folder;
  for (int64_t step : {1, 2, 3})
    CheckpointManager(folder.path).save(step, writeStep);
  const std::string whole = readFile(folder / "checkpoint") + "all_model_checkpoint_paths: \"/etc/ckpt-9\"\n";
  writeFile(folder / "mine", "not ours");
  for (int seed = 0; seed < std::min(mutantCount(), 300); ++seed) {
    writeFile(folder / "checkpoint", mutant(whole, uint32_t(seed)));
    CAPTURE(seed);
    CheckpointManager(folder.path, 2).save(100 + seed, writeStep);
    REQUIRE(CheckpointManager(folder.path).latest() == folder / ("ckpt-" + std::to_string(100 + seed)));
  }
  CHECK(readFile(folder / "mine") == "not ours");
}

TEST_CASE("a prefix tells its step") {
  CHECK(checkpointStep("/a/b-c/ckpt-120") == 120);
  CHECK(checkpointStep("/a/b-3/model") == -1);
  CHECK(checkpointStep("ckpt-") == -1);
  CHECK(checkpointStep("ckpt-4x") == -1);
}
