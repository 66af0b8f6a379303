//===- Types.h - TensorFlow's element types as MLIR's -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_TYPES_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_TYPES_H

#include "dialects/dfg/tensorflow/tensor.pb.h"
#include "mlir/IR/BuiltinTypes.h"

namespace distc::tf {

/// The element type; a `_REF` type gives that of its values; null where MLIR has none (quantized types).
mlir::Type getElementType(DataType type, mlir::MLIRContext *context);

/// The element type's number, DT_INVALID where it has none (`!dfg.unknown`).
DataType getDataType(mlir::Type elementType);

/// The number of `type`'s element type: of a tensor, of a variable's handle (DT_RESOURCE), or of itself.
DataType getDataTypeOf(mlir::Type type);

/// By its name in an ODS declaration: "bool", "int32", "uint64", ...; DT_INVALID where there is none.
DataType getDataTypeByName(llvm::StringRef name);

/// The tensor of this shape; unranked where `shape` is null or of unknown rank.
mlir::TensorType getTensorType(const TensorShapeProto *shape, mlir::Type elementType);

/// The sizes of `type` as TensorFlow writes them.
void setShape(mlir::TensorType type, TensorShapeProto &shape);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_TYPES_H
