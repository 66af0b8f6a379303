// A device of the emulated machine, current in the test's thread, with a stream; what tests do with it.
#ifndef TEST_UNIT_CUDA_EMULATOR_DEVICE_H
#define TEST_UNIT_CUDA_EMULATOR_DEVICE_H

#include "cuda/api/tables.h"
#include "cuda/emulator/testing.h"

#include <catch2/catch.hpp>

#include <vector>

namespace drt::cuda::test {

/// In any thread: Catch2 hears of failures only, which end the test.
inline void ok(CUresult status) {
  if (status == CUDA_SUCCESS)
    return;
  const char *name = "?", *text = "?";
  driver().cuGetErrorName(status, &name);
  driver().cuGetErrorString(status, &text);
  FAIL(name << ": " << text);
}

class Device {
public:
  explicit Device(int ordinal = 0) : ordinal_(ordinal) {
    ok(driver().cuInit(0));
    CUcontext context;
    ok(driver().cuDevicePrimaryCtxRetain(&context, ordinal));
    ok(driver().cuCtxSetCurrent(context));
    stream = newStream();
  }
  ~Device() {
    emulated::forgiveFailures();
    driver().cuStreamDestroy(stream);
    driver().cuDevicePrimaryCtxRelease(ordinal_);
  }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  CUstream stream;

  static CUstream newStream() {
    CUstream made;
    ok(driver().cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, 0));
    return made;
  }
  static CUevent newEvent(unsigned flags = CU_EVENT_DISABLE_TIMING) {
    CUevent made;
    ok(driver().cuEventCreate(&made, flags));
    return made;
  }
  void synchronize() const { ok(driver().cuStreamSynchronize(stream)); }

  /// `after` waits for what is on `before` by now.
  static void order(CUstream before, CUstream after) {
    CUevent event = newEvent();
    ok(driver().cuEventRecord(event, before));
    ok(driver().cuStreamWaitEvent(after, event, CU_EVENT_WAIT_DEFAULT));
    ok(driver().cuEventDestroy(event));
  }

private:
  int ordinal_;
};

/// Device memory with `values`, and back.
template <class T> class Array {
public:
  Array(const Device &device, const std::vector<T> &values) : device_(device), count_(values.size()) {
    ok(driver().cuMemAlloc(&address, bytes()));
    ok(driver().cuMemcpyHtoDAsync(address, values.data(), bytes(), device.stream));
    device.synchronize();
  }
  ~Array() { driver().cuMemFree(address); }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;

  std::vector<T> read() const {
    std::vector<T> values(count_);
    ok(driver().cuMemcpyDtoHAsync(values.data(), address, bytes(), device_.stream));
    return values;
  }
  size_t bytes() const { return count_ * sizeof(T); }
  void *data() const { return reinterpret_cast<void *>(address); }

  CUdeviceptr address = 0;

private:
  const Device &device_;
  size_t count_;
};

} // namespace drt::cuda::test

#endif // TEST_UNIT_CUDA_EMULATOR_DEVICE_H
