//===- ConstantTables.cpp - Constant data of the generated object ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/program/ConstantTables.h"

#include <cstddef>

using namespace mlir;

namespace distc {

ConstantTables::ConstantTables(ModuleOp module)
    : builder(OpBuilder::atBlockEnd(module.getBody())), loc(module.getLoc()) {
  ptr = LLVM::LLVMPointerType::get(module.getContext());
  int32 = builder.getI32Type();
  int64 = builder.getI64Type();
}

Type ConstantTables::structType(ArrayRef<Type> fields) {
  return LLVM::LLVMStructType::getLiteral(builder.getContext(), fields);
}

FlatSymbolRefAttr ConstantTables::string(StringRef text) {
  auto [it, inserted] = strings.try_emplace(text, "drt_string_" + std::to_string(strings.size()));
  if (inserted) {
    std::string bytes = text.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
    LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, it->second,
                           builder.getStringAttr(bytes));
  }
  return FlatSymbolRefAttr::get(builder.getContext(), it->second);
}

FlatSymbolRefAttr ConstantTables::bytes(StringRef name, StringRef data) {
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), data.size());
  LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                         builder.getStringAttr(data),
                         /*alignment=*/alignof(std::max_align_t));
  return FlatSymbolRefAttr::get(builder.getContext(), name);
}

Attribute ConstantTables::numbers(ArrayRef<int64_t> numbers) {
  if (numbers.empty())
    return null();
  Attribute value = builder.getI64TensorAttr(numbers);
  auto [it, inserted] = arrays.try_emplace(value, "drt_numbers_" + std::to_string(arrays.size()));
  if (inserted)
    LLVM::GlobalOp::create(builder, loc, LLVM::LLVMArrayType::get(int64, numbers.size()), /*isConstant=*/true,
                           LLVM::Linkage::Internal, it->second, value);
  return FlatSymbolRefAttr::get(builder.getContext(), it->second);
}

// Numbers only, so that the global needs no initializer of operations.
static bool isPlain(Attribute value) {
  auto fields = dyn_cast<ArrayAttr>(value);
  return fields ? llvm::all_of(fields, isPlain) : isa<IntegerAttr>(value);
}

void ConstantTables::global(StringRef name, LLVM::Linkage linkage, Type type, Attribute value) {
  if (isPlain(value)) {
    LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, linkage, name, value);
    return;
  }
  auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, linkage, name, Attribute());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&global.getInitializerRegion());
  LLVM::ReturnOp::create(builder, loc, emit(type, value));
}

FlatSymbolRefAttr ConstantTables::descriptor(Type type, Attribute value) {
  auto [it, inserted] = descriptors.try_emplace({type, value}, "drt_descriptor_" + std::to_string(descriptors.size()));
  if (inserted)
    global(it->second, LLVM::Linkage::Internal, type, value);
  return FlatSymbolRefAttr::get(builder.getContext(), it->second);
}

// Rows in a structure of structures of arrays, which lies in memory as one array does: every insertion makes a new
// constant, so that many into one array would take quadratic time and memory.
static constexpr size_t kRowsAPart = 32;

static size_t getPartSize(size_t rows) {
  size_t part = 1;
  while (part * kRowsAPart < rows)
    part *= kRowsAPart;
  return part;
}

static Type getRowsType(Type row, size_t rows) {
  if (rows <= kRowsAPart)
    return LLVM::LLVMArrayType::get(row, rows);
  SmallVector<Type> parts;
  const size_t part = getPartSize(rows);
  for (size_t first = 0; first < rows; first += part)
    parts.push_back(getRowsType(row, std::min(part, rows - first)));
  return LLVM::LLVMStructType::getLiteral(row.getContext(), parts);
}

Attribute ConstantTables::array(StringRef name, Type row, ArrayRef<Attribute> rows) {
  if (rows.empty())
    return null();
  auto global = LLVM::GlobalOp::create(builder, loc, getRowsType(row, rows.size()), /*isConstant=*/true,
                                       LLVM::Linkage::Internal, name, Attribute());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&global.getInitializerRegion());
  LLVM::ReturnOp::create(builder, loc, emitRows(row, rows));
  return FlatSymbolRefAttr::get(builder.getContext(), name);
}

Value ConstantTables::emitRows(Type row, ArrayRef<Attribute> rows) {
  SmallVector<Value> values;
  if (rows.size() <= kRowsAPart) {
    for (Attribute value : rows)
      values.push_back(emit(row, value));
  } else {
    const size_t part = getPartSize(rows.size());
    for (size_t first = 0; first < rows.size(); first += part)
      values.push_back(emitRows(row, rows.slice(first, std::min(part, rows.size() - first))));
  }
  return insertAll(getRowsType(row, rows.size()), values);
}

Value ConstantTables::insertAll(Type type, ArrayRef<Value> parts) {
  Value whole = LLVM::UndefOp::create(builder, loc, type);
  for (auto [i, part] : llvm::enumerate(parts))
    whole = LLVM::InsertValueOp::create(builder, loc, whole, part, static_cast<int64_t>(i));
  return whole;
}

Value ConstantTables::emit(Type type, Attribute value) {
  if (isa<UnitAttr>(value))
    return LLVM::ZeroOp::create(builder, loc, type);
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(value))
    return LLVM::AddressOfOp::create(builder, loc, type, symbol);
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return LLVM::ConstantOp::create(builder, loc, type, integer);
  SmallVector<Value> fields;
  for (auto [field, fieldType] : llvm::zip_equal(cast<ArrayAttr>(value), cast<LLVM::LLVMStructType>(type).getBody()))
    fields.push_back(emit(fieldType, field));
  return insertAll(type, fields);
}

} // namespace distc
