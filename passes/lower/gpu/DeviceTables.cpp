//===- DeviceTables.cpp - A program's kernels and images for devices ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/DeviceTables.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace distc {

SmallVector<FunctionOpInterface> getDeviceKernels(ModuleOp module) {
  SmallVector<FunctionOpInterface> kernels;
  if (auto code = module.lookupSymbol<gpu::GPUModuleOp>(drt::kKernelModule))
    for (auto function : code.getOps<FunctionOpInterface>())
      if (function->hasAttr(drt::kGridAttr))
        kernels.push_back(function);
  return kernels;
}

static FailureOr<Attribute> describeKernel(FunctionOpInterface kernel, ConstantTables &tables) {
  SmallVector<Attribute> fields = {tables.string(kernel.getName())};
  for (StringRef name : {drt::kGridAttr, drt::kBlockAttr}) {
    auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(name);
    if (!sizes || sizes.size() != 3)
      return kernel.emitOpError("needs three numbers in '") << name << "', in the order x, y, z";
    for (int64_t size : sizes.asArrayRef())
      fields.push_back(tables.i32(size));
  }
  fields.push_back(tables.i32(kernel.getNumArguments()));
  return tables.structure(fields);
}

FailureOr<Attribute> describeDevice(ModuleOp module, drt::ProgramOp program, ConstantTables &tables) {
  if (!program.isForDevices())
    return tables.null();
  SmallVector<Attribute> kernels, images;
  for (FunctionOpInterface kernel : getDeviceKernels(module)) {
    FailureOr<Attribute> row = describeKernel(kernel, tables);
    if (failed(row))
      return failure();
    kernels.push_back(*row);
  }
  for (auto image : module.getOps<drt::ImageOp>())
    images.push_back(tables.structure({tables.string(image.getArch()),
                                       tables.bytes("drt_image_" + std::to_string(images.size()), image.getData()),
                                       tables.i64(image.getData().size())}));
  if (images.empty() && !kernels.empty())
    return module.emitError("has kernels for devices and no images of them; run drt-make-images");
  return Attribute(describe<drt_device_code>(
      tables, {tables.i32(images.size()), tables.array("drt_images", getRuntimeType<drt_image>(tables), images),
               tables.i32(kernels.size()), tables.array("drt_kernels", getRuntimeType<drt_kernel>(tables), kernels),
               tables.i64(static_cast<int64_t>(*program.getVariableBytes()))}));
}

} // namespace distc
