//===- Descriptors.cpp - Descriptors of library calls -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/Descriptors.h"

#include "dialects/dist/Dist.h"
#include "passes/lower/ProgramTables.h"

#include <cmath>

using namespace mlir;

namespace distc {
namespace {

// A descriptor: 32-bit fields, then 64-bit ones.
FlatSymbolRefAttr describe(ConstantTables &tables, ArrayRef<int64_t> small, ArrayRef<int64_t> large) {
  SmallVector<Type> types(small.size(), tables.int32);
  types.append(large.size(), tables.int64);
  SmallVector<Attribute> fields;
  for (int64_t value : small)
    fields.push_back(tables.i32(value));
  for (int64_t value : large)
    fields.push_back(tables.i64(value));
  return tables.descriptor(tables.structType(types), tables.structure(fields));
}

// A descriptor of fields of 32 and 64 bits in any order, each aligned to its size.
FlatSymbolRefAttr describeFields(ConstantTables &tables, ArrayRef<Attribute> fields) {
  SmallVector<Type> types;
  for (Attribute field : fields)
    types.push_back(cast<IntegerAttr>(field).getType());
  return tables.descriptor(tables.structType(types), tables.structure(fields));
}

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

// Elements from one matrix of a batch to the next; 0 where one serves all.
FailureOr<int64_t> getBatchStride(drt::MatmulOp op, RankedTensorType type, ArrayRef<int64_t> batch) {
  ArrayRef<int64_t> own = type.getShape().drop_back(2);
  if (product(own) == 1)
    return int64_t(0);
  if (product(own) != product(batch))
    return op.emitOpError("broadcasts some axes of its batch and not others: ") << type;
  return product(type.getShape().take_back(2));
}

int32_t dtypeOf(Operation *op) {
  Type type = op->getNumResults() ? op->getResult(0).getType() : op->getOperand(0).getType();
  return getDtype(cast<RankedTensorType>(type).getElementType());
}

// drt_rows_desc: indices of `depth` numbers into a tensor of `shape`.
void appendRows(ConstantTables &tables, SmallVectorImpl<Attribute> &fields, Value indices, int64_t depth, ArrayRef<int64_t> shape) {
  constexpr int64_t maxDepth = 8; // DRT_MAX_INDEX_DEPTH
  RankedTensorType type = typeOf(indices);
  fields.append({tables.i32(getDtype(type.getElementType())), tables.i32(depth), tables.i64(type.getNumElements() / std::max<int64_t>(depth, 1)),
                 tables.i64(product(shape.drop_front(depth)))});
  for (int64_t axis = 0; axis < maxDepth; ++axis)
    fields.push_back(tables.i64(axis < depth ? shape[axis] : 1));
}

} // namespace

FailureOr<FlatSymbolRefAttr> describeMatmul(ConstantTables &tables, drt::MatmulOp op) {
  RankedTensorType a = typeOf(op.getA()), b = typeOf(op.getB()), c = typeOf(op.getResult());
  if (a.getRank() < 2 || b.getRank() < 2 || c.getRank() < 2)
    return op.emitOpError("needs matrices");
  ArrayRef<int64_t> batch = c.getShape().drop_back(2);
  FailureOr<int64_t> strideA = getBatchStride(op, a, batch), strideB = getBatchStride(op, b, batch);
  if (failed(strideA) || failed(strideB))
    return failure();
  ArrayRef<int64_t> shapeA = a.getShape().take_back(2), shapeC = c.getShape().take_back(2);
  return describe(tables,
                  {dtypeOf(op), op.getTransposeA(), op.getTransposeB(), op.getBias() != nullptr,
                   static_cast<int32_t>(op.getEpilogue()), /*accumulate=*/0},
                  {product(batch), shapeC[0], shapeC[1], shapeA[op.getTransposeA() ? 0 : 1], *strideA, *strideB});
}

FailureOr<FlatSymbolRefAttr> describeMatmulUpdate(ConstantTables &tables, drt::MatmulUpdateOp op) {
  RankedTensorType a = typeOf(op.getA()), b = typeOf(op.getB());
  if (a.getRank() != 2 || b.getRank() != 2)
    return op.emitOpError("needs matrices");
  return describe(tables, {dtypeOf(op), op.getTransposeA(), op.getTransposeB(), 0, 0, 0},
                  {1, a.getShape()[op.getTransposeA() ? 1 : 0], b.getShape()[op.getTransposeB() ? 0 : 1],
                   a.getShape()[op.getTransposeA() ? 0 : 1], 0, 0});
}

FailureOr<FlatSymbolRefAttr> describeConv2D(ConstantTables &tables, Operation *op, ArrayRef<int64_t> descriptor,
                                            bool hasBias, int32_t epilogue) {
  if (descriptor.size() != 18)
    return op->emitOpError("needs a descriptor of 18 numbers, not ") << descriptor.size();
  return describe(tables, {dtypeOf(op), hasBias, epilogue}, descriptor);
}

FailureOr<FlatSymbolRefAttr> describePool(ConstantTables &tables, Operation *op, int32_t kind,
                                          ArrayRef<int64_t> descriptor) {
  if (descriptor.size() != 14)
    return op->emitOpError("needs a descriptor of 14 numbers, not ") << descriptor.size();
  return describe(tables, {dtypeOf(op), kind}, descriptor);
}

FlatSymbolRefAttr describeRandom(ConstantTables &tables, RankedTensorType type, int32_t distribution, int64_t seed,
                                 int64_t seed2, bool perReplica) {
  return describe(tables, {getDtype(type.getElementType()), distribution},
                  {seed, seed2, type.getNumElements(), perReplica});
}

FailureOr<Attribute> describeExchange(ConstantTables &tables, Type type, drt::AllReduceStartOp op) {
  auto compression = dyn_cast_or_null<dist::CompressionAttr>(op.getCompressionAttr());
  auto aggregator = dyn_cast_or_null<dist::AggregatorAttr>(op.getAggregatorAttr());
  auto kind = compression ? compression.getKind() : dist::Compressor::None;
  if (kind == dist::Compressor::None && !aggregator)
    return tables.null();
  if (kind == dist::Compressor::PowerSGD && aggregator)
    return op.emitOpError("has gradients compressed by PowerSGD, which sends sums of all replicas' gradients; an aggregator needs each one's: "
                          "take another compressor");
  if (op.getScatter())
    return op.emitOpError("scatters gradients that are compressed or chosen from; shard the updates in stage 1 instead of 2");
  int64_t rank = kind == dist::Compressor::PowerSGD ? compression.getMatrixRank() : 0;
  return Attribute(tables.descriptor(
      type, tables.structure({tables.i32(static_cast<int32_t>(kind)), tables.i32(rank),
                              tables.i32(aggregator ? static_cast<int32_t>(aggregator.getKind()) : 0),
                              tables.i32(aggregator ? aggregator.getF() : 0), tables.i32(aggregator ? aggregator.getM() : 0)})));
}

Attribute describeMember(ConstantTables &tables, drt::AllReduceStartOp op, unsigned member, int64_t offset) {
  auto compression = dyn_cast_or_null<dist::CompressionAttr>(op.getCompressionAttr());
  RankedTensorType type = typeOf(op.getGradients()[member]);
  int64_t count = type.getNumElements();
  return tables.structure({tables.string(cast<StringAttr>(op.getNames()[member]).getValue()), tables.i64(offset),
                           tables.i64(count), tables.i64(type.getRank() < 2 ? 1 : type.getShape().back()),
                           tables.i64(compression ? compression.getKept(count) : 0),
                           tables.i64(op.getOwners() ? (*op.getOwners())[member] + 1 : 0)});
}

FlatSymbolRefAttr describeAccumulate(ConstantTables &tables, RankedTensorType type, bool concat) {
  return describe(tables, {getDtype(type.getElementType()), concat}, {type.getNumElements()});
}

FlatSymbolRefAttr describeUnique(ConstantTables &tables, drt::UniqueOp op) {
  RankedTensorType x = typeOf(op.getX());
  return describeFields(tables, {tables.i32(getDtype(x.getElementType())), tables.i32(getDtype(typeOf(op.getIdx()).getElementType())),
                                 tables.i64(x.getNumElements())});
}

FlatSymbolRefAttr describeScatter(ConstantTables &tables, drt::ScatterOp op) {
  RankedTensorType result = typeOf(op.getResult());
  SmallVector<Attribute> fields = {tables.i32(getDtype(result.getElementType())), tables.i32(op.getKind()), tables.i64(result.getNumElements())};
  appendRows(tables, fields, op.getIndices(), op.getDepth(), result.getShape());
  return describeFields(tables, fields);
}

FlatSymbolRefAttr describeNumbers(ConstantTables &tables, ArrayRef<int64_t> numbers) {
  return describeFields(tables, llvm::map_to_vector(numbers, [&](int64_t number) -> Attribute { return tables.i64(number); }));
}

FlatSymbolRefAttr describeIndices(ConstantTables &tables, drt::CheckIndicesOp op) {
  SmallVector<Attribute> fields = {tables.i32(op.getPadded()), tables.i32(0), tables.i64(op.getPerRow())};
  appendRows(tables, fields, op.getIndices(), op.getSizes().size(), op.getSizes());
  return describeFields(tables, fields);
}

FlatSymbolRefAttr describeSparseUpdate(ConstantTables &tables, drt::SparseUpdateOp op, ArrayRef<int64_t> shape) {
  SmallVector<Attribute> fields = {tables.i32(getDtype(typeOf(op.getValues()).getElementType())), tables.i32(0)};
  appendRows(tables, fields, op.getIndices(), op.getDepth(), shape);
  return describeFields(tables, fields);
}

} // namespace distc
