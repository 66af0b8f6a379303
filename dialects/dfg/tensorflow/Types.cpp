//===- Types.cpp - TensorFlow's element types as MLIR's ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/Types.h"
#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace distc::tf {

Type getElementType(DataType type, MLIRContext *context) {
  auto integer = [&](unsigned width) { return IntegerType::get(context, width); };
  auto natural = [&](unsigned width) { return IntegerType::get(context, width, IntegerType::Unsigned); };
  switch (getValueType(type)) {
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

static constexpr std::pair<llvm::StringLiteral, DataType> kNames[] = {
    {"float32", DT_FLOAT},
    {"float64", DT_DOUBLE},
    {"int32", DT_INT32},
    {"uint8", DT_UINT8},
    {"int16", DT_INT16},
    {"int8", DT_INT8},
    {"string", DT_STRING},
    {"complex64", DT_COMPLEX64},
    {"int64", DT_INT64},
    {"bool", DT_BOOL},
    {"qint8", DT_QINT8},
    {"quint8", DT_QUINT8},
    {"qint32", DT_QINT32},
    {"bfloat16", DT_BFLOAT16},
    {"qint16", DT_QINT16},
    {"quint16", DT_QUINT16},
    {"uint16", DT_UINT16},
    {"complex128", DT_COMPLEX128},
    {"float16", DT_HALF},
    {"resource", DT_RESOURCE},
    {"variant", DT_VARIANT},
    {"uint32", DT_UINT32},
    {"uint64", DT_UINT64},
    {"float8_e5m2", DT_FLOAT8_E5M2},
    {"float8_e4m3fn", DT_FLOAT8_E4M3FN},
    {"float8_e4m3fnuz", DT_FLOAT8_E4M3FNUZ},
    {"float8_e4m3b11fnuz", DT_FLOAT8_E4M3B11FNUZ},
    {"float8_e5m2fnuz", DT_FLOAT8_E5M2FNUZ},
    {"int4", DT_INT4},
    {"uint4", DT_UINT4},
    {"int2", DT_INT2},
    {"uint2", DT_UINT2},
    {"float4_e2m1fn", DT_FLOAT4_E2M1FN},
};

DataType getDataTypeByName(llvm::StringRef name) {
  const auto *it = llvm::find_if(kNames, [&](const auto &entry) { return entry.first == name; });
  return it == std::end(kNames) ? DT_INVALID : it->second;
}

llvm::StringRef getDataTypeName(DataType type) {
  const auto *it = llvm::find_if(kNames, [&](const auto &entry) { return entry.second == getValueType(type); });
  return it == std::end(kNames) ? llvm::StringRef("no type") : llvm::StringRef(it->first);
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
