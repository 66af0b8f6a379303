//===- DeviceLaunches.cpp - Launches of kernels that a pass writes ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/DeviceLaunches.h"

#include "dialects/drt/Drt.h"
#include "passes/lower/gpu/DeviceKernel.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

SmallVector<Value> DeviceLaunches::launch(ImplicitLocOpBuilder &builder, StringRef name, ArrayRef<int64_t> parameters,
                                          ArrayRef<RankedTensorType> results, ValueRange operands, int64_t count,
                                          int64_t threads, WriteFn write) {
  SmallVector<Type> buffers, resultTypes(results.begin(), results.end());
  auto addBuffer = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    buffers.push_back(MemRefType::get({tensor.getNumElements()}, tensor.getElementType()));
  };
  llvm::for_each(operands.getTypes(), addBuffer);
  llvm::for_each(resultTypes, addBuffer);

  std::string key;
  llvm::raw_string_ostream text(key);
  text << name << ' ' << count << ' ' << threads << ' ' << operands.size() << ' ';
  llvm::interleaveComma(parameters, text);
  text << ' ';
  llvm::interleaveComma(buffers, text);
  auto [kernel, isNew] = kernels.try_emplace(key);
  if (isNew) {
    kernel->second = prefix + "_" + name.str() + "_" + std::to_string(kernels.size() - 1);
    ImplicitLocOpBuilder b(builder.getLoc(), builder.getContext());
    const int64_t blocks = std::max<int64_t>(llvm::divideCeil(count, threads), 1);
    gpu::GPUFuncOp function = createKernel(b, module, kernel->second, buffers, blocks, threads);
    ThreadWriter writer(b, function, threads);
    // Shared memory is added to the function's arguments.
    SmallVector<Value> arguments(function.getArguments().begin(), function.getArguments().end());
    write(writer, ValueRange(arguments).take_front(operands.size()), ValueRange(arguments).drop_front(operands.size()));
  }
  auto launch = drt::LaunchOp::create(builder, resultTypes, kernel->second, operands, DenseI64ArrayAttr());
  return llvm::to_vector(ValueRange(launch.getResults()));
}

} // namespace distc
