//===- errors_test.cpp - What a machine lacks, and what fails on it -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/testing.h"
#include "cuda/kernels.h"
#include "cuda/task.h"
#include "cuda/worker.h"
#include "test/unit/cuda/training.h"
#include "test/unit/support/in_process_communicator.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

using namespace drt;
using namespace drt::cuda;
using Catch::Matchers::Contains;
namespace dp = device_program;

namespace {

TaskConfig configOf(int32_t replicas) {
  TaskConfig config;
  config.numReplicas = config.localReplicas = config.hostReplicas = replicas;
  return config;
}

void train(int32_t replicas, TaskConfig config) {
  const std::vector<float> x = dp::examples(dp::rows * replicas);
  const float rate = 0.5f;
  CudaTask task(dp::program(replicas, 1), nullptr, config);
  task.run(*task.findEntry("init"), 0);
  task.broadcastVariables();
  task.setFeed(0, x.data(), dp::rows * dp::columns * 4);
  task.setFeed(1, &rate, 0);
  for (int64_t k = 0; k < 3; ++k)
    task.run(*task.findEntry("step"), k);
}

std::string errorOf(const std::function<void()> &work) {
  try {
    work();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

std::string chosen(std::vector<const char *> archs, int major, int minor) {
  std::vector<drt_image> images;
  for (const char *arch : archs)
    images.push_back({arch, nullptr, 0});
  std::string text;
  for (const drt_image *image :
       imagesFor({static_cast<int32_t>(images.size()), images.data(), 0, nullptr, 0}, major, minor))
    text += (text.empty() ? "" : " ") + std::string(image->arch);
  return text;
}

} // namespace

TEST_CASE("images are tried from the newest that the device runs to PTX") {
  CHECK(chosen({"sm_80", "sm_90", "compute_90"}, 9, 0) == "sm_90 compute_90");
  CHECK(chosen({"sm_80", "sm_90", "compute_90"}, 8, 6) == "sm_80"); // a newer minor version runs it
  CHECK(chosen({"sm_80", "sm_86", "compute_86"}, 8, 9) == "sm_86 sm_80 compute_86");
  // A chip's own features are no other's.
  CHECK(chosen({"sm_90", "sm_90a", "compute_90"}, 9, 0) == "sm_90a sm_90 compute_90");
  CHECK(chosen({"sm_100a", "compute_90"}, 10, 3) == "compute_90");
  CHECK(chosen({"compute_90a", "compute_80"}, 10, 0) == "compute_80");
  CHECK(chosen({"sm_80", "sm_90", "compute_90"}, 10, 0) == "compute_90"); // another major version does not
  CHECK(chosen({"sm_86", "compute_80"}, 8, 0) == "compute_80");
  CHECK(chosen({"host"}, 9, 0) == "host");
  CHECK_THROWS_WITH(chosen({"sm_90", "compute_90"}, 8, 0),
                    Contains("compiled for sm_90, compute_90") && Contains("--target=cuda:sm_80"));
}

TEST_CASE("an image that the driver refuses is followed by the next one") {
  const drt_device_code &host = *dp::program(1, 1).device;
  const drt_image images[] = {host.images[0], host.images[0]};
  CUcontext context = nullptr;
  check(driver().cuInit(0), "cuInit");
  check(driver().cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  emulated::failCall("cuModuleLoadDataEx", CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(errorOf([&] { Kernels(host, {&images[0], &images[1]}); }) == "");
  emulated::failCall("cuModuleLoadDataEx", CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_THAT(errorOf([&] { Kernels(host, {&images[0]}); }),
             Contains("does not take the program's kernels for host") && Contains("CUDA_ERROR_NO_BINARY_FOR_GPU"));
  driver().cuDevicePrimaryCtxRelease(0);
}

TEST_CASE("a plan needs as many devices as it has replicas on a host") {
  emulated::setDevices(2);
  const std::string few = errorOf([] { train(3, configOf(3)); });
  emulated::setDevices(0);
  const std::string none = errorOf([] { train(1, configOf(1)); });
  emulated::setDevices(8);
  CHECK(few == "the plan places 3 replicas on this host, which has 2 CUDA devices; compile for as many replicas as "
               "there are devices");
  CHECK_THAT(none, Contains("this machine has no CUDA device"));
}

TEST_CASE("what the driver refuses is an error that names function, scope and why") {
  emulated::failCall("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE, 1); // the first is init's
  const std::string launch = errorOf([] { train(1, configOf(1)); });
  CHECK_THAT(launch,
             Contains("gradients/w: cuLaunchKernel: invalid argument (") && Contains("(CUDA_ERROR_INVALID_VALUE)"));
  emulated::failCall("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1);
  const std::string memory = errorOf([] { train(1, configOf(1)); });
  CHECK_THAT(memory, Contains("the device has no memory for the variables"));
  emulated::failKernel("descend", CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string kernel = errorOf([] { train(2, configOf(2)); });
  emulated::forgiveFailures();
  CHECK_THAT(kernel, Contains("failed in step 0 (step)") && Contains("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE("a step that does not end, and NCCL's own errors, end the task") {
  const std::vector<float> x = dp::examples(2 * dp::rows);
  const float rate = 0.5f;
  std::vector<std::string> warnings;
  TaskConfig config = configOf(2);
  config.failureTimeout = 0.5;
  config.stallWarning = 0.2;
  config.warn = [&](const std::string &warning) { warnings.push_back(warning); };
  const auto breaks = [&](ncclResult_t status) {
    CudaTask task(dp::program(2, 1), nullptr, config);
    task.run(*task.findEntry("init"), 0);
    task.setFeed(0, x.data(), dp::rows * dp::columns * 4);
    task.setFeed(1, &rate, 0);
    const drt_entry &step = *task.findEntry("step");
    for (int64_t k = 0; k < 2; ++k)
      task.run(step, k);
    emulated::failCommunicator(task.replica(1).nccl.handle(), status);
    const std::string error = errorOf([&] { task.run(step, 2); });
    CHECK(task.failed());
    return error;
  };
  CHECK_THAT(breaks(ncclInProgress), Contains("step 2 (step) on replica ") && Contains("has not ended after 0.5 s") &&
                                         Contains("--failure-timeout"));
  REQUIRE(!warnings.empty());
  CHECK_THAT(warnings[0], Contains("stalled for") && Contains("step 2 (step) on replica "));
  CHECK_THAT(breaks(ncclRemoteError), Contains("failed in step 2 (step): NCCL: remote process exited"));
}

TEST_CASE("a task that comes late to a step is waited for") {
  const std::vector<float> x = dp::examples(2 * dp::rows);
  const float rate = 0.5f;
  const drt_program &program = dp::program(2, 2);
  InProcessGroup group(2);
  std::string errors[2];
  std::atomic<int> warnings = 0;
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      errors[i] = errorOf([&] {
        TaskConfig config = dp::configOf(2, 2, i);
        config.failureTimeout = 3;
        config.stallWarning = 1;
        config.warn = [&](const std::string &) { ++warnings; };
        CudaTask task(program, &group.member(i), config);
        task.run(*task.findEntry("init"), 0);
        task.broadcastVariables();
        task.setFeed(0, x.data(), dp::rows * dp::columns * 4);
        task.setFeed(1, &rate, 0);
        task.run(*task.findEntry("step"), 0);
        if (i == 1) // as one that writes a checkpoint
          std::this_thread::sleep_for(std::chrono::milliseconds(4500));
        task.run(*task.findEntry("step"), 1);
      });
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(errors[0] == "");
  CHECK(errors[1] == "");
  CHECK(warnings > 0);
}

TEST_CASE("what NCCL refuses ends the task") {
  emulated::failCall("ncclCommInitRank", ncclInvalidUsage);
  CHECK_THAT(errorOf([] { train(2, configOf(2)); }), Contains("ncclCommInitRank: "));
  emulated::failCall("ncclAllReduce", ncclInvalidArgument);
  CHECK_THAT(errorOf([] { train(2, configOf(2)); }), Contains("ncclAllReduce: "));
  emulated::forgiveFailures();
}

TEST_CASE("a worker does what is behind a failure no more") {
  Worker worker;
  int done = 0;
  const uint64_t first = worker.post([&] { ++done; });
  const uint64_t second = worker.post([] { throw Error("no"); });
  const uint64_t third = worker.post([&] { ++done; });
  worker.wait(first);
  CHECK_THROWS_WITH(worker.wait(second), "no");
  CHECK_THROWS_WITH(worker.wait(third), "no");
  CHECK_THROWS_WITH(worker.wait(worker.post([&] { ++done; })), "no");
  CHECK(done == 1);
}
