// A module's kernels, compiled for the CPU and, scheduled, for the emulated driver.
#ifndef TEST_UNIT_PASSES_LOWER_GPU_BOTH_WAYS_H
#define TEST_UNIT_PASSES_LOWER_GPU_BOTH_WAYS_H

#include "mlir/IR/BuiltinOps.h"
#include "test/unit/cuda/emulator/device.h"

#include <map>
#include <string>
#include <vector>

namespace distc::test {

/// Bytes of an argument, with what must stay as it is in front of and behind them.
struct Buffer {
  static constexpr size_t kGuard = 256;
  size_t bytes;
  size_t elementBytes;
  bool isFloat;
};

struct KernelShape {
  std::vector<Buffer> arguments;
  std::string schedule;
  unsigned blocks, threads;
};

class BothWays {
public:
  /// `module` holds kernels (drt.kernel) and the globals that they read, or gpu.funcs, which have no form for the CPU.
  explicit BothWays(mlir::ModuleOp module);
  ~BothWays();
  BothWays(const BothWays &) = delete;
  BothWays &operator=(const BothWays &) = delete;

  const std::map<std::string, KernelShape> &kernels() const { return kernels_; }
  /// Contents of all arguments behind the kernel, on the CPU.
  std::vector<std::vector<char>> runOnHost(const std::string &name, std::vector<std::vector<char>> arguments) const;
  /// The same on the emulated device; fails where the kernel wrote beside its buffers.
  std::vector<std::vector<char>> runOnDevice(const std::string &name,
                                             const std::vector<std::vector<char>> &arguments) const;
  /// What the emulated device says of a kernel that fails; empty where it does not.
  std::string failOnDevice(const std::string &name, const std::vector<std::vector<char>> &arguments) const;

private:
  void launch(const std::string &name, std::vector<CUdeviceptr> places) const;
  void compileForHost(mlir::ModuleOp module);
  void compileForDevice(mlir::ModuleOp module);
  void readShapes(mlir::ModuleOp scheduled);

  ::drt::cuda::test::Device device_;
  std::map<std::string, KernelShape> kernels_;
  void *host_ = nullptr;
  CUmodule image_ = nullptr;
};

} // namespace distc::test

#endif // TEST_UNIT_PASSES_LOWER_GPU_BOTH_WAYS_H
