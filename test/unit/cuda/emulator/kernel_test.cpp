// Kernels: threads of a block that wait for each other, launches of all shapes, and what is refused.
#include "test/unit/cuda/emulator/kernels.h"

#include <bit>
#include <numeric>

using namespace drt::cuda;
using namespace drt::cuda::test;

namespace {
template <class T> std::vector<T> counted(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T(0));
  return values;
}
} // namespace

TEST_CASE("a kernel without barriers runs for every thread") {
  Device device;
  Kernels kernels;
  Array<float> x(device, counted<float>(256)), y(device, std::vector<float>(256, 1));
  ok(kernels.launch("add", 4, 64, device.stream, {x.address, y.address}));
  std::vector<float> result = y.read();
  for (size_t i = 0; i < result.size(); ++i)
    REQUIRE(result[i] == static_cast<float>(i) + 1);
}

TEST_CASE("threads meet at barriers, in any order of threads") {
  Device device;
  Kernels kernels;
  for (uint64_t seed : {1, 2, 3}) {
    emulated::seed(seed);
    for (unsigned threads : {1u, 31u, 100u, 1024u}) {
      Array<float> x(device, counted<float>(3 * threads)), y(device, std::vector<float>(3 * threads, -1));
      ok(kernels.launch("reverse", 3, threads, device.stream, {x.address, y.address}));
      std::vector<float> result = y.read();
      for (unsigned i = 0; i < 3 * threads; ++i)
        REQUIRE(result[i] == static_cast<float>(i / threads * threads + threads - 1 - i % threads));
    }
  }
}

TEST_CASE("lanes of a warp exchange values") {
  Device device;
  Kernels kernels;
  Array<uint32_t> sums(device, counted<uint32_t>(128)), shifted(device, counted<uint32_t>(128));
  ok(kernels.launch("warp_sum", 2, 64, device.stream, {sums.address}));
  ok(kernels.launch("shift", 2, 64, device.stream, {shifted.address}));
  std::vector<uint32_t> sum = sums.read(), shift = shifted.read();
  for (uint32_t i = 0; i < 128; ++i) {
    REQUIRE(sum[i] == i / 32 * 32 * 32 + 31 * 16);
    REQUIRE(shift[i] == (i % 8 == 7 ? i : i + 1)); // the own value beyond the segment
  }
}

TEST_CASE("a warp multiplies matrices of bfloat16") {
  Device device;
  Kernels kernels;
  const auto toBf16 = [](int value) {
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
  };
  std::vector<uint16_t> left(16 * 16), right(16 * 8);
  std::vector<float> sums(16 * 8), want(16 * 8);
  for (int i = 0; i < 16 * 16; ++i)
    left[static_cast<size_t>(i)] = toBf16(i % 13 - 6);
  for (int i = 0; i < 16 * 8; ++i) {
    right[static_cast<size_t>(i)] = toBf16(i % 11 - 5);
    const int row = i / 8, column = i % 8;
    sums[static_cast<size_t>(i)] = want[static_cast<size_t>(i)] = static_cast<float>(i);
    for (int k = 0; k < 16; ++k)
      want[static_cast<size_t>(i)] += static_cast<float>(((row * 16 + k) % 13 - 6) * ((k * 8 + column) % 11 - 5));
  }
  Array<uint16_t> a(device, left), b(device, right);
  Array<float> c(device, sums);
  ok(kernels.launch("multiply", 1, 32, device.stream, {a.address, b.address, c.address}));
  REQUIRE(c.read() == want);
}

TEST_CASE("half a warp multiplies nothing") {
  Device device;
  Kernels kernels;
  Array<uint16_t> a(device, std::vector<uint16_t>(16 * 16)), b(device, std::vector<uint16_t>(16 * 8));
  Array<float> c(device, std::vector<float>(16 * 8));
  ok(kernels.launch("multiply", 1, 16, device.stream, {a.address, b.address, c.address}));
  REQUIRE(driver().cuStreamSynchronize(device.stream) == CUDA_ERROR_LAUNCH_FAILED);
}

TEST_CASE("a launch has three dimensions") {
  Device device;
  Kernels kernels;
  Array<uint32_t> places(device, std::vector<uint32_t>(6 * 4 * 4));
  CUdeviceptr address = places.address;
  void *parameters[] = {&address};
  ok(driver().cuLaunchKernel(kernels.find("coordinates"), 2, 1, 2, 3, 4, 2, 0, device.stream, parameters, nullptr));
  std::vector<uint32_t> result = places.read();
  for (uint32_t z = 0; z < 4; ++z)
    for (uint32_t y = 0; y < 4; ++y)
      for (uint32_t x = 0; x < 6; ++x)
        REQUIRE(result[(z * 4 + y) * 6 + x] == x + 100 * y + 10000 * z);
}

TEST_CASE("threads that wait for what never comes end the launch") {
  Device device;
  Kernels kernels;
  Array<float> x(device, {0});
  ok(kernels.launch("deadlock", 1, 64, device.stream, {x.address}));
  REQUIRE(driver().cuStreamSynchronize(device.stream) == CUDA_ERROR_LAUNCH_FAILED);
  REQUIRE(emulated::messageOf(CUDA_ERROR_LAUNCH_FAILED).find("32 at a barrier") != std::string::npos);
  // The device is lost.
  CUdeviceptr more;
  REQUIRE(driver().cuMemAlloc(&more, 4) == CUDA_ERROR_LAUNCH_FAILED);
}

TEST_CASE("an argument that is no memory of the device ends the launch") {
  Device device;
  Kernels kernels;
  Array<float> x(device, {0});
  float host = 0;
  ok(kernels.launch("add", 1, 1, device.stream, {x.address, reinterpret_cast<CUdeviceptr>(&host)}));
  REQUIRE(driver().cuStreamSynchronize(device.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  REQUIRE(emulated::messageOf(CUDA_ERROR_ILLEGAL_ADDRESS).starts_with("add: argument 1"));
}

TEST_CASE("launches that no GPU takes are refused") {
  Device device;
  Kernels kernels;
  Array<float> x(device, {0});
  REQUIRE(kernels.launch("twice", 1, 1025, device.stream, {x.address}) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(kernels.launch("twice", 0, 1, device.stream, {x.address}) == CUDA_ERROR_INVALID_VALUE);
  CUfunction function;
  REQUIRE(driver().cuModuleGetFunction(&function, kernels.module, "nothing") == CUDA_ERROR_NOT_FOUND);
  CUmodule module;
  REQUIRE(driver().cuModuleLoadDataEx(&module, ".version 8.0", 0, nullptr, nullptr) == CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_CASE("a test makes calls and kernels fail") {
  Device device;
  Kernels kernels;
  Array<float> x(device, {1});
  emulated::failCall("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 1);
  ok(kernels.launch("twice", 1, 1, device.stream, {x.address}));
  REQUIRE(kernels.launch("twice", 1, 1, device.stream, {x.address}) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  ok(kernels.launch("twice", 1, 1, device.stream, {x.address}));
  REQUIRE(x.read() == std::vector<float>{7});
  emulated::failKernel("twice", CUDA_ERROR_ILLEGAL_INSTRUCTION);
  ok(kernels.launch("twice", 1, 1, device.stream, {x.address}));
  REQUIRE(driver().cuStreamSynchronize(device.stream) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
}
