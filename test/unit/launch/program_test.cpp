//===- program_test.cpp - The executable, but for its compiled part -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/checkpoint.h"
#include "data/npz.h"
#include "launch/program.h"
#include "test/unit/support/fake_program.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <unistd.h>

using namespace drt;
namespace fs = std::filesystem;

namespace {

// A folder with data.npz, and runs of the program in it.
class Run {
public:
  Run() : folder(fs::temp_directory_path() / ("program" + std::to_string(getpid()))), x(rows * fake::columns) {
    fs::create_directories(folder);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(static_cast<int>(i * 7919 % 1009) - 500) * 0.01f;
    writeData();
  }
  void writeData() const {
    NpzWriter writer(path("data.npz"));
    writer.add("x", DRT_F32, {rows, fake::columns}, x.data());
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
    return runProgram(fake::program(replicas, 1, batch), static_cast<int>(argv.size()), argv.data());
  }

  double distance(const std::string &npz, int64_t steps) const {
    const std::vector<float> expected = fake::expected(x, batch, steps, rate);
    const NpyArray w = NpzReader(path(npz)).read("w");
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      worst = std::max<double>(worst, std::abs(static_cast<const float *>(w.data)[i] - expected[i]) /
                                          (1 + std::abs(expected[i])));
    return worst;
  }

  std::vector<nlohmann::json> log(const std::string &name) const {
    std::ifstream in(path(name));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  static constexpr int64_t rows = 10, batch = 4;
  fs::path folder;
  std::vector<float> x;
  float rate = 0.25f;
};

} // namespace

TEST_CASE("a run writes a log, a checkpoint, an export and a timeline") {
  const Run run;
  const int32_t replicas = GENERATE(1, 2, 4);
  REQUIRE(run(replicas, {"--steps", "6", "--log-json", run.path("log"), "--checkpoint-dir", run.path("ckpt"),
                         "--export-npz", run.path("final.npz"), "--timeline", run.path("timeline"), "--summary-dir",
                         run.path("summaries")}) == 0);
  CHECK(run.distance("final.npz", 6) < 1e-6);
  const std::vector<nlohmann::json> log = run.log("log");
  REQUIRE(log.size() == 8);
  CHECK(log[0]["strategy"] == "AllReduce");
  CHECK(log[0]["replicas"] == replicas);
  for (int k = 0; k < 6; ++k)
    CHECK(log[k + 1]["step"] == k);
  CHECK(log[6]["loss"] < log[1]["loss"]);
  CHECK(log[7]["done"] == true);
  std::vector<float> w(fake::columns);
  CheckpointReader(run.path("ckpt/ckpt-6")).read("w", DRT_F32, {fake::columns}, w.data());
  CHECK(std::isfinite(w[0]));
  std::ifstream timeline(run.path("timeline"));
  const nlohmann::json trace = nlohmann::json::parse(timeline);
  CHECK(std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                      [](const nlohmann::json &event) { return event["name"] == "gradients/w"; }) == 6 * replicas);
  CHECK_FALSE(fs::is_empty(run.path("summaries")));
}

TEST_CASE("a run goes on from a checkpoint") {
  const Run run;
  REQUIRE(run(2, {"--steps", "5", "--checkpoint-dir", run.path("ckpt"), "--save-every", "2"}) == 0);
  CHECK(fs::exists(run.path("ckpt/ckpt-4.index")));
  CHECK(fs::exists(run.path("ckpt/ckpt-5.index")));
  REQUIRE(run(2, {"--steps", "0", "--restore", run.path("ckpt/ckpt-4"), "--export-npz", run.path("four.npz")}) == 0);
  CHECK(run.distance("four.npz", 4) < 1e-6);
  // As a restart after the fourth step does: the data go on, too, and the log.
  REQUIRE(run(1, {"--steps", "7", "--resume", run.path("ckpt/ckpt-4"), "--export-npz", run.path("seven.npz")}) == 0);
  CHECK(run.distance("seven.npz", 7) < 1e-6);
}

TEST_CASE("a restart continues the log") {
  const Run run;
  REQUIRE(run(1, {"--steps", "4", "--checkpoint-dir", run.path("ckpt"), "--save-every", "2", "--log-json",
                  run.path("log")}) == 0);
  // What is torn, and what another start wrote behind it, goes.
  std::ofstream(run.path("log"), std::ios::app) << R"({"step":4,"lo)";
  REQUIRE(run(1, {"--steps", "4", "--resume", run.path("ckpt/ckpt-2"), "--log-json", run.path("log")}) == 0);
  const std::vector<nlohmann::json> log = run.log("log");
  REQUIRE(log.size() == 6);
  CHECK(log[0]["strategy"] == "AllReduce");
  for (int k = 0; k < 4; ++k)
    CHECK(log[k + 1]["step"] == k);
  CHECK(log[5]["done"] == true);
}

TEST_CASE("steps are counted on from the checkpoint: in the log, the data and the checkpoints' names") {
  const Run run;
  REQUIRE(run(2, {"--steps", "3", "--checkpoint-dir", run.path("ckpt")}) == 0);
  REQUIRE(run(2, {"--steps", "4", "--restore", run.path("ckpt/ckpt-3"), "--checkpoint-dir", run.path("ckpt"),
                  "--log-json", run.path("log"), "--export-npz", run.path("seven.npz")}) == 0);
  CHECK(run.distance("seven.npz", 7) < 1e-6);
  CHECK(fs::exists(run.path("ckpt/ckpt-7.index")));
  const std::vector<nlohmann::json> log = run.log("log");
  REQUIRE(log.size() == 6);
  for (int k = 0; k < 4; ++k)
    CHECK(log[k + 1]["step"] == 3 + k);
}

TEST_CASE("a loss that is no number is JSON that says so") {
  Run run;
  run.x[0] = std::numeric_limits<float>::quiet_NaN();
  run.writeData();
  REQUIRE(run(1, {"--steps", "1", "--log-json", run.path("log")}) == 0);
  const std::vector<nlohmann::json> log = run.log("log");
  CHECK(log[1]["loss"].is_null());
  CHECK(log[1]["loss_is"] == "nan");
}

TEST_CASE("epochs go through all examples") {
  const Run run;
  REQUIRE(run(2, {"--epochs", "2", "--shuffle", "--seed", "1", "--log-json", run.path("log")}) == 0);
  CHECK(run.log("log").size() == 2 + 2 * Run::rows / Run::batch);
}

TEST_CASE("evaluation joins what the replicas fetch") {
  const Run run;
  const int32_t replicas = GENERATE(1, 2);
  REQUIRE(run(replicas, {"--eval", "--export-npz", run.path("eval.npz")}) == 0);
  const NpzReader reader(run.path("eval.npz"));
  const NpyArray means = reader.read("row_mean:0");
  REQUIRE(means.shape == std::vector<int64_t>{Run::rows});
  double all = 0;
  for (int64_t i = 0; i < Run::rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < fake::columns; ++j)
      sum += run.x[i * fake::columns + j];
    CHECK(static_cast<const float *>(means.data)[i] == Approx(sum / fake::columns).margin(1e-6));
    all += sum / fake::columns / Run::rows; // two full batches of four, and two rows more
  }
  CHECK(static_cast<const double *>(reader.read("mean:0").data)[0] == Approx(all).margin(1e-6));
}

TEST_CASE("what is wrong has the promised exit status") {
  const Run run;
  CHECK(run(2, {"--steps", "3", "--no-such-flag"}) == 2);
  for (const char *wrong : {"three", "-1", "99999999999999999999", "1e3", "0x10", "", "1000000000000001"})
    CHECK(run(2, {"--steps", wrong}) == 2);
  CHECK(run(2, {"--epochs", "9223372036854775807"}) == 2);
  CHECK(run(2, {"--steps", "3", "--seed", "-1"}) == 2);
  for (const char *wrong : {"nan", "1e300", "inf", "0", "-4"})
    CHECK(run(2, {"--steps", "3", "--failure-timeout", wrong}) == 2);
  CHECK(run(2, {"--steps", "3", "--task", "worker:1"}) == 2);
  CHECK(run(2, {}) == 2);
  CHECK(run(2, {"--steps", "3", "--batch", "8"}) == 2);
  CHECK(run(2, {"--steps", "3", "--data", run.path("absent.npz")}) == 1);
  CHECK(run(2, {"--steps", "3", "--restore", run.path("absent")}) == 1);
  CHECK(run(2, {"--eval", "--fetch", "absent:0"}) == 1);
  CHECK(run(2, {"--steps", "3", "--log-json", "/dev/full"}) == 1);
  fake::failing_replica = 1;
  CHECK(run(2, {"--steps", "9"}) == 1);
  fake::failing_replica = -1;
}

TEST_CASE("the plan is readable") {
  const std::string text = planText(fake::program(4, 2, 8), true);
  for (const char *part : {"worker:1", "2-3", "(5000,)", "20.0 kB", "group 0", "mean", "arenas", "gradients/w, group 0",
                           "Between tasks: memory that they share"})
    CHECK_THAT(text, Catch::Matchers::Contains(part));
}
