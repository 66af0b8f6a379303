//===- KernelBuffers.h - Kernels work on buffers ------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_KERNELBUFFERS_H
#define DISTC_PASSES_LOWER_KERNELS_KERNELBUFFERS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace distc {

/// What a kernel takes for a tensor.
mlir::MemRefType getBufferType(mlir::Type tensor);

/// Writes an operation on tensors as one on buffers, at `builder`. `mapping` has a buffer for each tensor that it
/// takes, or that what it takes is another shape of, and for each result, and every scalar from outside. What results
/// start from is a fill, or nothing.
void writeOnBuffers(mlir::OpBuilder &builder, mlir::linalg::GenericOp generic, mlir::IRMapping &mapping);

/// The buffer of a tensor, which may be another shape of one that has a buffer.
mlir::Value getBuffer(mlir::OpBuilder &builder, mlir::Value tensor, mlir::IRMapping &mapping);

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_KERNELBUFFERS_H
