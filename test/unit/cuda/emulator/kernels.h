// The image of kernels/kernels.cpp on a device.
#ifndef TEST_UNIT_CUDA_EMULATOR_KERNELS_H
#define TEST_UNIT_CUDA_EMULATOR_KERNELS_H

#include "test/unit/cuda/emulator/device.h"

#include <fstream>
#include <iterator>

namespace drt::cuda::test {

/// The kernels of kernels/kernels.cpp.
class Kernels {
public:
  Kernels() {
    std::ifstream file(TEST_IMAGE, std::ios::binary);
    std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    REQUIRE(!image.empty());
    ok(driver().cuModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr));
  }
  ~Kernels() { driver().cuModuleUnload(module); }
  Kernels(const Kernels &) = delete;
  Kernels &operator=(const Kernels &) = delete;

  CUfunction find(const char *name) const {
    CUfunction function;
    ok(driver().cuModuleGetFunction(&function, module, name));
    return function;
  }
  CUresult launch(const char *name, unsigned blocks, unsigned threads, CUstream stream,
                  std::vector<CUdeviceptr> arguments) const {
    std::vector<void *> pointers;
    for (CUdeviceptr &argument : arguments)
      pointers.push_back(&argument);
    return driver().cuLaunchKernel(find(name), blocks, 1, 1, threads, 1, 1, 0, stream, pointers.data(), nullptr);
  }

  CUmodule module = nullptr;
};

} // namespace drt::cuda::test

#endif // TEST_UNIT_CUDA_EMULATOR_KERNELS_H
