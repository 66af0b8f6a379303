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

/// By its name in Python's TensorFlow, as in ODS declarations and OpSignatures.inc: "bool", "float32", ...; DT_INVALID
/// where there is none.
DataType getDataTypeByName(llvm::StringRef name);
/// The inverse; of a reference type that of its values.
llvm::StringRef getDataTypeName(DataType type);

/// A reference's number is that of its values and 100.
inline constexpr int kFirstReference = 100;
inline bool isReference(DataType type) { return type >= kFirstReference; }
inline DataType getValueType(DataType type) {
  return static_cast<DataType>(isReference(type) ? type - kFirstReference : type);
}
inline DataType getReferenceType(DataType type) { return static_cast<DataType>(type + kFirstReference); }

/// The tensor of this shape; unranked where `shape` is null or of unknown rank.
mlir::TensorType getTensorType(const TensorShapeProto *shape, mlir::Type elementType);

/// The sizes of `type` as TensorFlow writes them.
void setShape(mlir::TensorType type, TensorShapeProto &shape);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_TYPES_H
