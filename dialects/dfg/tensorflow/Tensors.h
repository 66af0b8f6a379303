//===- Tensors.h - TensorProto as elements and back -------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_TENSORS_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_TENSORS_H

#include "dialects/dfg/tensorflow/tensor.pb.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace distc::tf {

/// The tensor's elements. Null where MLIR has no form for them (resources, variants, quantized types). Where the
/// message contradicts itself (bytes that do not fill the shape), `problem` says how and the result is null.
mlir::ElementsAttr importTensor(const TensorProto &tensor, mlir::MLIRContext *context, std::string &problem);

/// Scalars and splats as one typed value, all else as raw bytes, as TensorFlow writes them.
void exportTensor(mlir::ElementsAttr elements, TensorProto &tensor);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_TENSORS_H
