// A replica whose library calls are prepared, captured and replayed, as a task does it.
#ifndef TEST_UNIT_CUDA_LIBRARIES_CALLS_H
#define TEST_UNIT_CUDA_LIBRARIES_CALLS_H

#include "core/values.h"
#include "cuda/libraries.h"
#include "test/unit/cpu/kernels/random_tensor.h"
#include "test/unit/cuda/emulator/device.h"

#include <functional>
#include <limits>
#include <string>

namespace drt::cuda::test {

/// What a result holds before the call: nobody may read it.
template <class T = float> std::vector<T> unwritten(int64_t count) {
  return std::vector<T>(static_cast<size_t>(count), std::numeric_limits<T>::quiet_NaN());
}

/// Values that a narrow type holds, and that type's elements. Sums of few products are exact in float32.
struct Narrow {
  int32_t dtype; // DRT_F16 or DRT_BF16
  std::vector<uint16_t> elements;

  Narrow(int32_t dtype, const std::vector<float> &values) : dtype(dtype), elements(values.size()) {
    for (size_t i = 0; i < values.size(); ++i)
      setFloatAt(dtype, elements.data(), static_cast<int64_t>(i), values[i]);
  }
  std::vector<float> wide() const { return wide(elements); }
  std::vector<float> wide(const std::vector<uint16_t> &narrow) const {
    std::vector<float> values(narrow.size());
    for (size_t i = 0; i < narrow.size(); ++i)
      values[i] = static_cast<float>(valueAt(dtype, narrow.data(), static_cast<int64_t>(i)));
    return values;
  }
  std::vector<float> round(const std::vector<float> &values) const { return Narrow(dtype, values).wide(); }
};

class Calls {
public:
  Calls() : replica(8) { replica.stream = device.stream; }
  ~Calls() {
    replica.callSites = CallSites(0);
    replica.libraries.reset();
    driver().cuMemFree(reinterpret_cast<CUdeviceptr>(replica.workspace));
  }

  /// How often run makes the calls: in the rehearsal, and at each launch.
  static constexpr int runs = 3;

  /// Prepares the calls of `entry`, rehearses and captures them, and launches the graph twice. Returns why it failed;
  /// empty: it did not.
  std::string run(const std::function<void(drt_replica *)> &entry) {
    replica.preparing = true;
    if (leaves(entry))
      return replica.failure;
    replica.preparing = false;
    CUdeviceptr workspace = 0;
    if (replica.workspaceBytes > 0)
      ok(driver().cuMemAlloc(&workspace, static_cast<size_t>(replica.workspaceBytes)));
    replica.workspace = reinterpret_cast<void *>(workspace);
    // The rehearsal: libraries load their kernels.
    if (leaves(entry))
      return replica.failure;
    ok(driver().cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    bool left = leaves(entry);
    CUgraph graph;
    ok(driver().cuStreamEndCapture(device.stream, &graph));
    if (left)
      return replica.failure;
    CUgraphExec exec;
    ok(driver().cuGraphInstantiate(&exec, graph, 0));
    ok(driver().cuGraphLaunch(exec, device.stream));
    ok(driver().cuGraphLaunch(exec, device.stream));
    device.synchronize();
    ok(driver().cuGraphExecDestroy(exec));
    ok(driver().cuGraphDestroy(graph));
    return "";
  }

  template <class T> Array<T> array(const std::vector<T> &values) { return Array<T>(device, values); }

  Device device;
  Replica replica;

private:
  bool leaves(const std::function<void(drt_replica *)> &entry) {
    if (setjmp(replica.wayOut) != 0)
      return true;
    entry(&replica);
    return false;
  }
};

/// With float32's precision over sums of moderate length, or another.
template <class T>
void requireSame(const std::vector<T> &actual, const std::vector<T> &expected, double tolerance = 1e-4) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    INFO("element " << i);
    REQUIRE(actual[i] == Approx(expected[i]).epsilon(tolerance).margin(tolerance));
  }
}

} // namespace drt::cuda::test

#endif // TEST_UNIT_CUDA_LIBRARIES_CALLS_H
