//===- KernelBuffers.cpp - Kernels work on buffers -------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/kernels/KernelBuffers.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace distc {

MemRefType getBufferType(Type tensor) {
  auto type = llvm::cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

Value getBuffer(OpBuilder &builder, Value tensor, IRMapping &mapping) {
  if (Value buffer = mapping.lookupOrNull(tensor))
    return buffer;
  Operation *reshape = tensor.getDefiningOp();
  Value source = getBuffer(builder, reshape->getOperand(0), mapping);
  MemRefType type = getBufferType(tensor.getType());
  Value buffer;
  if (auto expand = llvm::dyn_cast<tensor::ExpandShapeOp>(reshape))
    buffer = memref::ExpandShapeOp::create(builder, tensor.getLoc(), type, source, expand.getReassociationIndices());
  else
    buffer = memref::CollapseShapeOp::create(builder, tensor.getLoc(), type, source,
                                             llvm::cast<tensor::CollapseShapeOp>(reshape).getReassociationIndices());
  mapping.map(tensor, buffer);
  return buffer;
}

void writeOnBuffers(OpBuilder &builder, linalg::GenericOp generic, IRMapping &mapping) {
  // Other shapes of what there is.
  SetVector<Value> used(generic.getInputs().begin(), generic.getInputs().end());
  getUsedValuesDefinedAbove(generic.getRegion(), used);
  for (Value value : used)
    getBuffer(builder, value, mapping);
  SmallVector<Value> outputs =
      llvm::map_to_vector(generic.getResults(), [&](Value result) { return mapping.lookup(result); });
  // What the result starts from: a fill stands before a reduction.
  for (auto [init, output] : llvm::zip(generic.getOutputs(), outputs))
    if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
      Operation *value = builder.clone(*fill.getInputs()[0].getDefiningOp());
      linalg::FillOp::create(builder, fill.getLoc(), value->getResults(), ValueRange{output});
    }
  SmallVector<Value> inputs =
      llvm::map_to_vector(generic.getInputs(), [&](Value input) { return mapping.lookup(input); });
  auto moved = linalg::GenericOp::create(builder, generic.getLoc(), TypeRange(), inputs, outputs,
                                         generic.getIndexingMapsArray(), generic.getIteratorTypesArray());
  IRRewriter rewriter(builder);
  generic.getRegion().cloneInto(&moved.getRegion(), mapping);
  // Elements of tensors are elements of buffers. (What is cloned takes a buffer already, so it has no accessor of it.)
  moved.getRegion().walk([&](tensor::ExtractOp extract) {
    rewriter.setInsertionPoint(extract);
    rewriter.replaceOpWithNewOp<memref::LoadOp>(extract, extract->getOperand(0), extract.getIndices());
  });
  builder.setInsertionPointAfter(moved);
}

} // namespace distc
