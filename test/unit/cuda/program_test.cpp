//===- program_test.cpp - An executable for devices, but for its compiled part -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/checkpoint.h"
#include "cuda/emulator/testing.h"
#include "data/npz.h"
#include "launch/program.h"
#include "test/unit/cuda/program/device_program.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

using namespace drt;
namespace dp = device_program;
namespace fs = std::filesystem;

namespace {

// A folder with data.npz, and runs of the program in it.
class Run {
public:
  Run() : folder(fs::temp_directory_path() / ("device-program" + std::to_string(getpid()))), x(dp::examples(rows)) {
    fs::create_directories(folder);
    NpzWriter writer(path("data.npz"));
    writer.add("x", DRT_F32, {rows, dp::columns}, x.data());
    writer.add("rate", DRT_F32, {}, &rate);
    writer.finish();
  }
  ~Run() { fs::remove_all(folder); }

  std::string path(const std::string &name) const { return (folder / name).string(); }

  int operator()(int32_t replicas, std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"train", "--data", path("data.npz"), "--quiet"});
    std::vector<char *> argv;
    for (std::string &flag : flags)
      argv.push_back(flag.data());
    return runProgram(dp::program(replicas, 1), static_cast<int>(argv.size()), argv.data());
  }

  // As processes. Returns the exit status.
  int processes(const std::string &plan, const std::string &environment, const std::string &flags) const {
    const int status =
        std::system(("DEVICE_PLAN='" + plan + "' " + environment + " " DISTC_DEVICE_TRAIN " --quiet --data " +
                     path("data.npz") + " " + flags + " > " + path("out") + " 2>&1")
                        .c_str());
    return WEXITSTATUS(status);
  }
  std::string out() const {
    std::ifstream in(path("out"));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::vector<nlohmann::json> log() const {
    std::ifstream in(path("log"));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  void checkVariables(const std::string &npz, const std::vector<float> &expected) const {
    const NpyArray w = NpzReader(path(npz)).read("w");
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(static_cast<const float *>(w.data)[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-5));
  }

  static constexpr int64_t rows = 14;
  fs::path folder;
  std::vector<float> x;
  float rate = 0.25f;
};

} // namespace

TEST_CASE("a run on devices writes what a run on a processor does") {
  const Run run;
  const int32_t replicas = GENERATE(1, 2);
  const dp::Expected expected = dp::expected(run.x, replicas, 6, run.rate);
  REQUIRE(run(replicas,
              {"--steps", "6", "--log-json", run.path("log"), "--checkpoint-dir", run.path("ckpt"), "--save-every", "4",
               "--export-npz", run.path("final.npz"), "--timeline", run.path("timeline")}) == 0);
  run.checkVariables("final.npz", expected.w);
  const std::vector<nlohmann::json> log = run.log();
  REQUIRE(log.size() == 8);
  for (size_t k = 0; k < 6; ++k) {
    CHECK(log[k + 1]["step"] == k);
    CHECK(log[k + 1]["loss"].get<double>() == Approx(expected.losses[k]).epsilon(1e-5));
  }
  std::ifstream timeline(run.path("timeline"));
  const nlohmann::json trace = nlohmann::json::parse(timeline);
  const auto events = [&](const char *name) {
    return std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                         [&](const nlohmann::json &event) { return event["name"] == name; });
  };
  CHECK(events("gradients/w") == 6 * replicas);
  CHECK(events("group 0") == (replicas > 1 ? 6 * replicas : 0));
  // A checkpoint in the middle has what the steps before it made, and the run goes on from there.
  REQUIRE(run(replicas, {"--steps", "0", "--restore", run.path("ckpt/ckpt-4"), "--export-npz", run.path("four.npz")}) ==
          0);
  run.checkVariables("four.npz", dp::expected(run.x, replicas, 4, run.rate).w);
  REQUIRE(run(replicas, {"--steps", "6", "--resume", run.path("ckpt/ckpt-4"), "--export-npz", run.path("six.npz")}) ==
          0);
  run.checkVariables("six.npz", expected.w);
}

TEST_CASE("tasks that are processes meet over the rendezvous, and train as one") {
  const Run run;
  const dp::Expected expected = dp::expected(run.x, 4, 6, run.rate);
  REQUIRE(run.processes("4 2", "",
                        "--steps 6 --log-json " + run.path("log") + " --export-npz " + run.path("final.npz")) == 0);
  run.checkVariables("final.npz", expected.w);
  const std::vector<nlohmann::json> log = run.log();
  REQUIRE(log.size() == 8);
  for (size_t k = 0; k < 6; ++k)
    CHECK(log[k + 1]["loss"].get<double>() == Approx(expected.losses[k]).epsilon(1e-5));
}

TEST_CASE("a task whose device fails ends the others") {
  const Run run;
  CHECK(run.processes("4 2", "DRT_EMULATED_FAIL=cuGraphLaunch:719:9", "--steps 20") == 1);
  CHECK_THAT(run.out(),
             Catch::Matchers::Contains("CUDA_ERROR_LAUNCH_FAILED") && Catch::Matchers::Contains("cuGraphLaunch"));
}

TEST_CASE("evaluation on devices begins with the checkpoint's variables in all of them") {
  const Run run;
  const std::vector<float> ones(dp::columns, 1.0f);
  {
    CheckpointWriter writer(run.path("ones"));
    writer.add("w", DRT_F32, {dp::columns}, ones.data());
    writer.finish();
  }
  REQUIRE(run(2, {"--eval", "--restore", run.path("ones"), "--export-npz", run.path("eval.npz")}) == 0);
  double loss = 0;
  for (float x : run.x) // of every row, also of those behind the last whole batch
    loss += (1 - static_cast<double>(x)) * (1 - static_cast<double>(x)) / 2;
  CHECK(static_cast<const double *>(NpzReader(run.path("eval.npz")).read("loss:0").data)[0] ==
        Approx(loss / static_cast<double>(run.x.size())).epsilon(1e-5));
}

TEST_CASE("a machine without devices ends a run with status 1") {
  const Run run;
  cuda::emulated::setDevices(0);
  CHECK(run(1, {"--steps", "1"}) == 1);
  cuda::emulated::setDevices(1);
  CHECK(run(2, {"--steps", "1"}) == 1);
  CHECK(run(2, {"--steps", "1", "--share-devices"}) == 0);
  cuda::emulated::setDevices(8);
}

TEST_CASE("the plan says what of a device's memory is used") {
  const std::string text = planText(dp::program(2, 1), false);
  for (const char *part : {"Memory of a device", "variables  768 B", "arena      2.0 kB", "feeds      2.6 kB, 2 sets"})
    CHECK_THAT(text, Catch::Matchers::Contains(part));
}
