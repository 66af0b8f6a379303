//===- Types.cpp - TensorFlow's element types as MLIR's ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/Types.h"
#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace distc::tf {

Type getElementType(DataType type, MLIRContext *context) {
  constexpr int kFirstReference = 100;
  auto integer = [&](unsigned width) { return IntegerType::get(context, width); };
  auto natural = [&](unsigned width) { return IntegerType::get(context, width, IntegerType::Unsigned); };
  switch (type > kFirstReference ? type - kFirstReference : type) {
  case DT_FLOAT:
    return Float32Type::get(context);
  case DT_DOUBLE:
    return Float64Type::get(context);
  case DT_HALF:
    return Float16Type::get(context);
  case DT_BFLOAT16:
    return BFloat16Type::get(context);
  case DT_FLOAT8_E5M2:
    return Float8E5M2Type::get(context);
  case DT_FLOAT8_E4M3FN:
    return Float8E4M3FNType::get(context);
  case DT_BOOL:
    return integer(1);
  case DT_INT4:
    return integer(4);
  case DT_INT8:
    return integer(8);
  case DT_INT16:
    return integer(16);
  case DT_INT32:
    return integer(32);
  case DT_INT64:
    return integer(64);
  case DT_UINT4:
    return natural(4);
  case DT_UINT8:
    return natural(8);
  case DT_UINT16:
    return natural(16);
  case DT_UINT32:
    return natural(32);
  case DT_UINT64:
    return natural(64);
  case DT_COMPLEX64:
    return ComplexType::get(Float32Type::get(context));
  case DT_COMPLEX128:
    return ComplexType::get(Float64Type::get(context));
  case DT_STRING:
    return dfg::StringType::get(context);
  case DT_RESOURCE:
    return dfg::ResourceType::get(context);
  case DT_VARIANT:
    return dfg::VariantType::get(context);
  default:
    return {};
  }
}

DataType getDataType(Type type) {
  if (auto integer = llvm::dyn_cast<IntegerType>(type)) {
    bool natural = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return DT_BOOL;
    case 4:
      return natural ? DT_UINT4 : DT_INT4;
    case 8:
      return natural ? DT_UINT8 : DT_INT8;
    case 16:
      return natural ? DT_UINT16 : DT_INT16;
    case 32:
      return natural ? DT_UINT32 : DT_INT32;
    case 64:
      return natural ? DT_UINT64 : DT_INT64;
    default:
      return DT_INVALID;
    }
  }
  if (auto complex = llvm::dyn_cast<ComplexType>(type))
    return complex.getElementType().isF32() ? DT_COMPLEX64 : DT_COMPLEX128;
  if (type.isF32())
    return DT_FLOAT;
  if (type.isF64())
    return DT_DOUBLE;
  if (type.isF16())
    return DT_HALF;
  if (type.isBF16())
    return DT_BFLOAT16;
  if (llvm::isa<Float8E5M2Type>(type))
    return DT_FLOAT8_E5M2;
  if (llvm::isa<Float8E4M3FNType>(type))
    return DT_FLOAT8_E4M3FN;
  if (llvm::isa<dfg::StringType>(type))
    return DT_STRING;
  if (llvm::isa<dfg::ResourceType>(type))
    return DT_RESOURCE;
  if (llvm::isa<dfg::VariantType>(type))
    return DT_VARIANT;
  return DT_INVALID;
}

DataType getDataTypeOf(Type type) {
  if (llvm::isa<dfg::RefType>(type))
    return DT_RESOURCE;
  if (auto tensor = llvm::dyn_cast<TensorType>(type))
    return getDataType(tensor.getElementType());
  return getDataType(type);
}

DataType getDataTypeByName(llvm::StringRef name) {
  return llvm::StringSwitch<DataType>(name)
      .Case("bool", DT_BOOL)
      .Case("int32", DT_INT32)
      .Case("int64", DT_INT64)
      .Case("uint8", DT_UINT8)
      .Case("uint64", DT_UINT64)
      .Case("float", DT_FLOAT)
      .Case("double", DT_DOUBLE)
      .Case("string", DT_STRING)
      .Case("variant", DT_VARIANT)
      .Case("resource", DT_RESOURCE)
      .Default(DT_INVALID);
}

TensorType getTensorType(const TensorShapeProto *shape, Type elementType) {
  if (!shape || shape->unknown_rank())
    return UnrankedTensorType::get(elementType);
  SmallVector<int64_t> sizes;
  sizes.reserve(shape->dim_size());
  for (const TensorShapeProto::Dim &dim : shape->dim())
    sizes.push_back(dim.size() < 0 ? ShapedType::kDynamic : dim.size());
  return RankedTensorType::get(sizes, elementType);
}

void setShape(TensorType type, TensorShapeProto &shape) {
  shape.Clear();
  if (!type.hasRank()) {
    shape.set_unknown_rank(true);
    return;
  }
  for (int64_t size : type.getShape())
    shape.add_dim()->set_size(ShapedType::isDynamic(size) ? -1 : size);
}

} // namespace distc::tf
