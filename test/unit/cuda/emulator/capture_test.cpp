// Captures and graphs: as the manual of CUDA has them, errors included.
#include "test/unit/cuda/emulator/kernels.h"

#include <set>
#include <thread>

using namespace drt::cuda;
using namespace drt::cuda::test;

namespace {
void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  ok(driver().cuStreamBeginCapture(stream, mode));
}
CUresult end(CUstream stream) {
  CUgraph graph;
  CUresult status = driver().cuStreamEndCapture(stream, &graph);
  if (status == CUDA_SUCCESS)
    ok(driver().cuGraphDestroy(graph));
  return status;
}
CUgraphExec endAndInstantiate(CUstream stream, size_t nodes) {
  CUgraph graph;
  CUgraphExec exec;
  size_t count;
  ok(driver().cuStreamEndCapture(stream, &graph));
  ok(driver().cuGraphGetNodes(graph, nullptr, &count));
  REQUIRE(count == nodes);
  ok(driver().cuGraphInstantiate(&exec, graph, 0));
  ok(driver().cuGraphDestroy(graph));
  return exec;
}
} // namespace

TEST_CASE("a captured stream becomes a graph that is launched again and again") {
  Device device;
  Kernels kernels;
  Array<float> x(device, {3}), y(device, {1});
  begin(device.stream);
  ok(kernels.launch("add", 1, 1, device.stream, {x.address, y.address}));
  ok(kernels.launch("twice", 1, 1, device.stream, {y.address}));
  CUgraphExec exec = endAndInstantiate(device.stream, 2);
  REQUIRE(y.read()[0] == 1); // nothing has run
  ok(driver().cuGraphLaunch(exec, device.stream));
  ok(driver().cuGraphLaunch(exec, device.stream));
  REQUIRE(y.read()[0] == 25);
  ok(driver().cuGraphExecDestroy(exec));
}

TEST_CASE("events fork a capture into other streams and join it") {
  Device device;
  Kernels kernels;
  CUstream other = device.newStream();
  std::set<float> results;
  for (bool joined : {true, false}) {
    Array<float> x(device, {3}), y(device, {1}), z(device, {1});
    begin(device.stream);
    ok(kernels.launch("add", 1, 1, device.stream, {x.address, y.address})); // y = 4
    device.order(device.stream, other);
    ok(kernels.launch("twice", 1, 1, other, {y.address}));         // y = 9
    ok(kernels.launch("twice", 1, 1, device.stream, {z.address})); // z = 3
    if (!joined) {
      REQUIRE(end(device.stream) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
      continue;
    }
    device.order(other, device.stream);
    ok(kernels.launch("add", 1, 1, device.stream, {y.address, z.address})); // z = 12
    CUgraphExec exec = endAndInstantiate(device.stream, 4);
    for (uint64_t seed = 0; seed < 10; ++seed) {
      emulated::seed(seed);
      ok(driver().cuMemcpyHtoDAsync(y.address, std::vector<float>{1}.data(), 4, device.stream));
      ok(driver().cuMemcpyHtoDAsync(z.address, std::vector<float>{1}.data(), 4, device.stream));
      ok(driver().cuGraphLaunch(exec, device.stream));
      results.insert(z.read()[0]);
    }
    ok(driver().cuGraphExecDestroy(exec));
  }
  REQUIRE(results == std::set<float>{12});
  ok(driver().cuStreamDestroy(other));
}

TEST_CASE("branches of a graph run in any order") {
  Device device;
  Kernels kernels;
  CUstream other = device.newStream();
  Array<float> x(device, {3}), y(device, {1});
  begin(device.stream);
  device.order(device.stream, other);
  ok(kernels.launch("twice", 1, 1, other, {y.address}));
  ok(kernels.launch("add", 1, 1, device.stream, {x.address, y.address}));
  device.order(other, device.stream);
  CUgraphExec exec = endAndInstantiate(device.stream, 2);
  std::set<float> results;
  for (int i = 0; i < 20; ++i) {
    ok(driver().cuMemcpyHtoDAsync(y.address, std::vector<float>{1}.data(), 4, device.stream));
    ok(driver().cuGraphLaunch(exec, device.stream));
    results.insert(y.read()[0]);
  }
  REQUIRE(results == std::set<float>{6, 9});
  ok(driver().cuGraphExecDestroy(exec));
  ok(driver().cuStreamDestroy(other));
}

TEST_CASE("calls that are not enqueued end a capture, unless it is relaxed") {
  Device device;
  CUdeviceptr address = 0;
  begin(device.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  REQUIRE(driver().cuMemAlloc(&address, 4) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(end(device.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  REQUIRE(driver().cuMemAlloc(&address, 4) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(end(device.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(device.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  ok(driver().cuMemAlloc(&address, 4));
  ok(end(device.stream));
  begin(device.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  REQUIRE(driver().cuStreamSynchronize(device.stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(end(device.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ok(driver().cuMemFree(address));
}

TEST_CASE("another thread's calls end a global capture, and not a thread's own") {
  Device device;
  for (auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    begin(device.stream, mode);
    CUresult status = CUDA_SUCCESS;
    std::thread([&] {
      Device theirs(1);
      CUdeviceptr address = 0;
      status = driver().cuMemAlloc(&address, 4);
      if (status == CUDA_SUCCESS)
        driver().cuMemFree(address);
    }).join();
    bool global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    REQUIRE(status == (global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS));
    REQUIRE(end(device.stream) == (global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS));
  }
}

TEST_CASE("captures are kept apart from what is not captured, and from each other") {
  Device device;
  CUstream other = device.newStream();
  CUevent event = device.newEvent();
  ok(driver().cuEventRecord(event, other));
  begin(device.stream);
  REQUIRE(driver().cuStreamWaitEvent(device.stream, event, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  REQUIRE(end(device.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  begin(device.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  begin(other, CU_STREAM_CAPTURE_MODE_RELAXED);
  ok(driver().cuEventRecord(event, device.stream));
  REQUIRE(driver().cuEventQuery(event) == CUDA_ERROR_CAPTURED_EVENT);
  REQUIRE(driver().cuStreamWaitEvent(other, event, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
  REQUIRE(end(device.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  REQUIRE(end(other) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ok(driver().cuEventDestroy(event));
  ok(driver().cuStreamDestroy(other));
}

TEST_CASE("pageable memory is no part of a graph") {
  Device device;
  Array<float> x(device, {1});
  float host = 0;
  begin(device.stream);
  REQUIRE(driver().cuMemcpyDtoHAsync(&host, x.address, 4, device.stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(end(device.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("an event recorded as external tells of each launch") {
  Device device;
  Kernels kernels;
  Array<float> x(device, {1});
  CUevent event = device.newEvent();
  begin(device.stream);
  ok(kernels.launch("twice", 1, 1, device.stream, {x.address}));
  ok(driver().cuEventRecordWithFlags(event, device.stream, CU_EVENT_RECORD_EXTERNAL));
  CUgraphExec exec = endAndInstantiate(device.stream, 2);
  ok(driver().cuEventSynchronize(event)); // never recorded
  ok(driver().cuGraphLaunch(exec, device.stream));
  ok(driver().cuEventSynchronize(event));
  REQUIRE(x.read()[0] == 3);
  ok(driver().cuGraphExecDestroy(exec));
  ok(driver().cuEventDestroy(event));
}
