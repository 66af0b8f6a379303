// Streams, events, memory: what is ordered, and what only seems to be.
#include "test/unit/cuda/emulator/kernels.h"

#include <set>

using namespace drt::cuda;
using namespace drt::cuda::test;

TEST_CASE("a stream keeps its order") {
  Device device;
  Kernels kernels;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    emulated::seed(seed);
    Array<float> x(device, {3}), y(device, {1});
    ok(kernels.launch("add", 1, 1, device.stream, {x.address, y.address}));
    ok(kernels.launch("twice", 1, 1, device.stream, {y.address}));
    REQUIRE(y.read() == std::vector<float>{9});
  }
}

TEST_CASE("streams without an event between them come in both orders, with one in one") {
  Device device;
  Kernels kernels;
  CUstream other = device.newStream();
  std::set<float> unordered, ordered;
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (bool event : {false, true}) {
      emulated::seed(seed);
      Array<float> x(device, {3}), y(device, {1});
      ok(kernels.launch("add", 1, 1, device.stream, {x.address, y.address}));
      if (event)
        device.order(device.stream, other);
      ok(kernels.launch("twice", 1, 1, other, {y.address}));
      ok(driver().cuStreamSynchronize(device.stream));
      ok(driver().cuStreamSynchronize(other));
      (event ? ordered : unordered).insert(y.read()[0]);
    }
  REQUIRE(unordered == std::set<float>{6, 9});
  REQUIRE(ordered == std::set<float>{9});
  ok(driver().cuStreamDestroy(other));
}

TEST_CASE("what is enqueued runs when somebody waits, and who polls gets on") {
  Device device;
  Kernels kernels;
  std::set<CUresult> first;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    emulated::seed(seed);
    Array<float> x(device, {1});
    CUevent event = device.newEvent();
    for (int i = 0; i < 20; ++i)
      ok(kernels.launch("twice", 1, 1, device.stream, {x.address}));
    ok(driver().cuEventRecord(event, device.stream));
    CUresult status = driver().cuEventQuery(event);
    first.insert(status);
    while (status == CUDA_ERROR_NOT_READY)
      status = driver().cuEventQuery(event);
    ok(status);
    REQUIRE(driver().cuStreamQuery(device.stream) == CUDA_SUCCESS);
    ok(driver().cuEventDestroy(event));
  }
  REQUIRE(first == std::set<CUresult>{CUDA_SUCCESS, CUDA_ERROR_NOT_READY});
}

TEST_CASE("pinned memory is read when the copy runs, pageable memory at once") {
  Device device;
  void *address;
  ok(driver().cuMemHostAlloc(&address, 4, 0));
  auto *pinned = static_cast<float *>(address);
  float pageable = 1;
  Array<float> x(device, {0}), y(device, {0});
  *pinned = 1;
  ok(driver().cuMemcpyHtoDAsync(x.address, pinned, 4, device.stream));
  ok(driver().cuMemcpyHtoDAsync(y.address, &pageable, 4, device.stream));
  *pinned = pageable = 2;
  REQUIRE(x.read()[0] == 2);
  REQUIRE(y.read()[0] == 1);
  ok(driver().cuMemFreeHost(pinned));
}

TEST_CASE("copies beyond an allocation are errors") {
  Device device;
  Array<float> x(device, {0, 0});
  std::vector<float> host(4);
  ok(driver().cuMemcpyHtoDAsync(x.address, host.data(), 12, device.stream));
  REQUIRE(driver().cuStreamSynchronize(device.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  REQUIRE(emulated::messageOf(CUDA_ERROR_ILLEGAL_ADDRESS).find("by 4") != std::string::npos);
}

TEST_CASE("memory of one device is not another's") {
  Device second(1);
  Array<float> theirs(second, {1});
  Device first(0);
  Array<float> ours(first, {1});
  ok(driver().cuMemcpyDtoDAsync(ours.address, theirs.address, 4, first.stream));
  REQUIRE(driver().cuStreamSynchronize(first.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  REQUIRE(driver().cuMemcpyDtoDAsync(ours.address, ours.address, 4, second.stream) != CUDA_SUCCESS);
  emulated::forgiveFailures();
}

TEST_CASE("device memory is aligned, bounded, and full of what nobody wants") {
  Device device;
  CUdeviceptr address;
  size_t free, total, less;
  ok(driver().cuMemGetInfo(&free, &total));
  ok(driver().cuMemAlloc(&address, 1000));
  ok(driver().cuMemGetInfo(&less, &total));
  REQUIRE(less == free - 1000);
  REQUIRE(address % 256 == 0);
  std::vector<float> host(250);
  ok(driver().cuMemcpyDtoHAsync(host.data(), address, 1000, device.stream));
  REQUIRE(std::isnan(host[249]));
  REQUIRE(driver().cuMemFree(address + 4) == CUDA_ERROR_INVALID_VALUE);
  ok(driver().cuMemFree(address));
  REQUIRE(driver().cuMemAlloc(&address, total + 1) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("calls without a context, or of handles that are gone, are errors") {
  Device device;
  CUstream gone = device.newStream();
  ok(driver().cuStreamDestroy(gone));
  REQUIRE(driver().cuStreamSynchronize(gone) == CUDA_ERROR_INVALID_HANDLE);
  CUdevice none;
  REQUIRE(driver().cuDeviceGet(&none, 1000) == CUDA_ERROR_INVALID_DEVICE);
  ok(driver().cuCtxSetCurrent(nullptr));
  CUdeviceptr address;
  REQUIRE(driver().cuMemAlloc(&address, 4) == CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context;
  ok(driver().cuDevicePrimaryCtxRetain(&context, 0));
  ok(driver().cuCtxSetCurrent(context));
  ok(driver().cuDevicePrimaryCtxRelease(0));
}

TEST_CASE("events measure time") {
  Device device;
  CUevent from = device.newEvent(CU_EVENT_DEFAULT), to = device.newEvent(CU_EVENT_DEFAULT);
  ok(driver().cuEventRecord(from, device.stream));
  ok(driver().cuEventRecord(to, device.stream));
  float milliseconds = -1;
  REQUIRE(driver().cuEventElapsedTime(&milliseconds, from, to) == CUDA_ERROR_NOT_READY);
  device.synchronize();
  ok(driver().cuEventElapsedTime(&milliseconds, from, to));
  REQUIRE(milliseconds >= 0);
  ok(driver().cuEventDestroy(from));
  ok(driver().cuEventDestroy(to));
}
