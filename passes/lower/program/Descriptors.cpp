//===- Descriptors.cpp - Descriptors of library calls -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/program/Descriptors.h"

#include "dialects/dist/Dist.h"
#include "passes/lower/TensorType.h"
#include "passes/lower/entries/SplitDraws.h"
#include "passes/lower/plan/MatmulType.h"
#include "passes/lower/program/ProgramTables.h"

#include <cmath>

using namespace mlir;

namespace distc {

// The dialect's numbers are those of drt.h.
static_assert(static_cast<int>(dist::Reduction::Sum) == DRT_REDUCE_SUM &&
              static_cast<int>(dist::Reduction::Mean) == DRT_REDUCE_MEAN);
static_assert(static_cast<int>(dist::Compressor::None) == DRT_COMPRESS_NONE &&
              static_cast<int>(dist::Compressor::FP16) == DRT_COMPRESS_F16 &&
              static_cast<int>(dist::Compressor::FP16EF) == DRT_COMPRESS_F16_EF &&
              static_cast<int>(dist::Compressor::PowerSGD) == DRT_COMPRESS_POWER_SGD &&
              static_cast<int>(dist::Compressor::BF16) == DRT_COMPRESS_BF16 &&
              static_cast<int>(dist::Compressor::BF16EF) == DRT_COMPRESS_BF16_EF &&
              static_cast<int>(dist::Compressor::TopK) == DRT_COMPRESS_TOP_K);
static_assert(static_cast<int>(dist::AggregatorKind::Median) == DRT_AGGREGATE_MEDIAN &&
              static_cast<int>(dist::AggregatorKind::TrimmedMean) == DRT_AGGREGATE_TRIMMED_MEAN &&
              static_cast<int>(dist::AggregatorKind::Krum) == DRT_AGGREGATE_KRUM &&
              static_cast<int>(dist::AggregatorKind::MultiKrum) == DRT_AGGREGATE_MULTI_KRUM &&
              static_cast<int>(dist::AggregatorKind::GeometricMedian) == DRT_AGGREGATE_GEOMETRIC_MEDIAN);

namespace {

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

// Elements from one matrix of a batch to the next; 0 where one serves all.
int64_t getBatchStride(RankedTensorType type) {
  return product(type.getShape().drop_back(2)) == 1 ? 0 : product(type.getShape().take_back(2));
}

int32_t dtypeOf(Operation *op) {
  Type type = op->getNumResults() ? op->getResult(0).getType() : op->getOperand(0).getType();
  return getDtype(cast<RankedTensorType>(type).getElementType());
}

int32_t getPrecision(Operation *op) {
  return getMatmulType(op) == MatmulType::TF32 ? DRT_PRECISION_TF32 : DRT_PRECISION_OWN;
}

// drt_rows_desc: indices of `depth` numbers into a tensor of `shape`.
Attribute describeRows(ConstantTables &tables, Value indices, int64_t depth, ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(indices);
  SmallVector<Attribute> fields = {tables.i32(getDtype(type.getElementType())), tables.i32(depth),
                                   tables.i64(type.getNumElements() / std::max<int64_t>(depth, 1)),
                                   tables.i64(product(shape.drop_front(depth)))};
  for (int64_t axis = 0; axis < DRT_MAX_INDEX_DEPTH; ++axis)
    fields.push_back(tables.i64(axis < depth ? shape[axis] : 1));
  return tables.structure(fields);
}

// Of drt.matmul, drt.matmul_packed and drt.matmul_add.
template <class Matmul>
FlatSymbolRefAttr describeMatmul(ConstantTables &tables, Matmul op, uint32_t epilogue, int32_t accumulate) {
  RankedTensorType a = typeOf(op.getA()), b = typeOf(op.getB()), c = typeOf(op.getResult());
  ArrayRef<int64_t> shapeA = a.getShape().take_back(2), shapeC = c.getShape().take_back(2);
  return describe<drt_matmul_desc>(tables, {getDtype(a.getElementType()), op.getTransposeA(), op.getTransposeB(),
                                            op.getBias() != nullptr, static_cast<int32_t>(epilogue), accumulate,
                                            product(c.getShape().drop_back(2)), shapeC[0], shapeC[1],
                                            shapeA[op.getTransposeA() ? 0 : 1], getBatchStride(a), getBatchStride(b),
                                            getPrecision(op), a.getElementType() != c.getElementType()});
}

template <class Attention> FlatSymbolRefAttr describeAttentionLike(ConstantTables &tables, Attention op) {
  ArrayRef<int64_t> query = typeOf(op.getQuery()).getShape();
  SmallVector<int64_t> bias(4, 0);
  if (op.getBias())
    bias = llvm::to_vector(typeOf(op.getBias()).getShape());
  return describe<drt_attention_desc>(tables, {query[0], query[2], query[1], typeOf(op.getKey()).getDimSize(1),
                                               query[3], bias[0], bias[1], bias[2], bias[3],
                                               llvm::bit_cast<int64_t>(op.getScale().convertToDouble())});
}

} // namespace

FlatSymbolRefAttr describeAttention(ConstantTables &tables, drt::AttentionOp op) {
  return describeAttentionLike(tables, op);
}
FlatSymbolRefAttr describeAttention(ConstantTables &tables, drt::AttentionGradientOp op) {
  return describeAttentionLike(tables, op);
}

FlatSymbolRefAttr describeMatmul(ConstantTables &tables, drt::MatmulOp op) {
  return describeMatmul(tables, op, op.getEpilogue(), /*accumulate=*/0);
}

FlatSymbolRefAttr describeMatmulPacked(ConstantTables &tables, drt::MatmulPackedOp op) {
  return describeMatmul(tables, op, op.getEpilogue(), /*accumulate=*/0);
}

FlatSymbolRefAttr describePack(ConstantTables &tables, drt::PackOp op) {
  ArrayRef<int64_t> b = typeOf(op.getB()).getShape();
  const bool transposed = op.getTransposeB();
  return describe<drt_pack_desc>(tables, {transposed, op.getJoined(), b[transposed ? 0 : 1], b[transposed ? 1 : 0],
                                          typeOf(op.getPacked()).getNumElements()});
}

FlatSymbolRefAttr describeMatmulAdd(ConstantTables &tables, drt::MatmulAddOp op) {
  return describeMatmul(tables, op, DRT_EPILOGUE_NONE, /*accumulate=*/1);
}

FlatSymbolRefAttr describeMatmulBiasGrad(ConstantTables &tables, drt::MatmulBiasGradOp op) {
  ArrayRef<int64_t> a = typeOf(op.getA()).getShape(), b = typeOf(op.getB()).getShape();
  return describe<drt_matmul_desc>(tables, {getDtype(typeOf(op.getA()).getElementType()), /*transpose_a=*/1,
                                            /*transpose_b=*/0, /*has_bias=*/0, DRT_EPILOGUE_NONE, /*accumulate=*/0,
                                            /*batch=*/1, a[1], b[1], a[0], 0, 0, DRT_PRECISION_OWN, /*widens=*/1});
}

FlatSymbolRefAttr describeMatmulStacked(ConstantTables &tables, drt::MatmulStackedOp op) {
  ArrayRef<int64_t> a = typeOf(op.getA().front()).getShape(), c = typeOf(op.getResults().front()).getShape();
  return describe<drt_matmul_desc>(tables,
                                   {getDtype(typeOf(op.getB()).getElementType()), /*transpose_a=*/0, op.getTransposeB(),
                                    op.getBias() != nullptr, static_cast<int32_t>(op.getEpilogue()), /*accumulate=*/0,
                                    /*batch=*/1, c[0], c[1], a[1], 0, 0, DRT_PRECISION_OWN, /*widens=*/0});
}

FlatSymbolRefAttr describeMatmulSum(ConstantTables &tables, drt::MatmulSumOp op) {
  ArrayRef<int64_t> a = typeOf(op.getA().front()).getShape(), b = typeOf(op.getB().front()).getShape();
  return describe<drt_matmul_desc>(tables, {dtypeOf(op), /*transpose_a=*/1, /*transpose_b=*/0, /*has_bias=*/0,
                                            DRT_EPILOGUE_NONE,
                                            /*accumulate=*/0, /*batch=*/1, a[1], b[1], a[0], 0, 0, DRT_PRECISION_OWN,
                                            /*widens=*/0});
}

FlatSymbolRefAttr describeMatmulUpdate(ConstantTables &tables, drt::MatmulUpdateOp op) {
  RankedTensorType a = typeOf(op.getA()), b = typeOf(op.getB());
  return describe<drt_matmul_desc>(tables, {dtypeOf(op), op.getTransposeA(), op.getTransposeB(), /*has_bias=*/0,
                                            DRT_EPILOGUE_NONE,
                                            /*accumulate=*/0, /*batch=*/1, a.getShape()[op.getTransposeA() ? 1 : 0],
                                            b.getShape()[op.getTransposeB() ? 0 : 1],
                                            a.getShape()[op.getTransposeA() ? 0 : 1], 0, 0, DRT_PRECISION_OWN,
                                            /*widens=*/0});
}

FlatSymbolRefAttr describeConv2D(ConstantTables &tables, Operation *op, ArrayRef<int64_t> descriptor, bool hasBias,
                                 int32_t epilogue) {
  const int32_t images = getDtype(typeOf(op->getOperand(0)).getElementType());
  SmallVector<int64_t> numbers = {images, hasBias, epilogue};
  numbers.append(descriptor.begin(), descriptor.end());
  numbers.push_back(getPrecision(op));
  numbers.push_back(*drt::getFilterLayout(op));
  numbers.push_back(/*widens=*/images != dtypeOf(op));
  return describe<drt_conv2d_desc>(tables, numbers);
}

FlatSymbolRefAttr describePool(ConstantTables &tables, Operation *op, int32_t kind, ArrayRef<int64_t> descriptor) {
  SmallVector<int64_t> numbers = {dtypeOf(op), kind};
  numbers.append(descriptor.begin(), descriptor.end());
  return describe<drt_pool_desc>(tables, numbers);
}

FlatSymbolRefAttr describeRandom(ConstantTables &tables, Operation *op, int32_t distribution, int64_t seed,
                                 int64_t seed2, bool perReplica, int64_t reserved) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto number = [&](StringRef name) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  return describe<drt_random_desc>(tables, {getDtype(type.getElementType()), distribution, seed, seed2,
                                            type.getNumElements(), perReplica, reserved, number(lower::kDrawnWholeAttr),
                                            number(lower::kDrawnFirstAttr)});
}

FlatSymbolRefAttr describeExchange(ConstantTables &tables, dist::Compressor kind, int64_t rank,
                                   dist::AggregatorAttr aggregator) {
  return describe<drt_exchange>(tables, {static_cast<int64_t>(kind), rank,
                                         aggregator ? static_cast<int64_t>(aggregator.getKind()) : DRT_AGGREGATE_NONE,
                                         aggregator ? aggregator.getF() : 0, aggregator ? aggregator.getM() : 0});
}

FailureOr<Attribute> describeExchange(ConstantTables &tables, drt::AllReduceStartOp op) {
  auto compression = dyn_cast_or_null<dist::CompressionAttr>(op.getCompressionAttr());
  auto aggregator = dyn_cast_or_null<dist::AggregatorAttr>(op.getAggregatorAttr());
  auto kind = compression ? compression.getKind() : dist::Compressor::None;
  if (kind == dist::Compressor::None && !aggregator)
    return tables.null();
  if (kind == dist::Compressor::PowerSGD && aggregator)
    return op.emitOpError("has gradients compressed by PowerSGD, which sends sums of all replicas' gradients; an "
                          "aggregator needs each one's: "
                          "take another compressor");
  if (op.getScatter())
    return op.emitOpError(
        "scatters gradients that are compressed or chosen from; shard the updates in stage 1 instead of 2");
  int64_t rank = kind == dist::Compressor::PowerSGD ? compression.getMatrixRank() : 0;
  return Attribute(describeExchange(tables, kind, rank, aggregator));
}

Attribute describeMember(ConstantTables &tables, drt::AllReduceStartOp op, unsigned member, int64_t offset,
                         int64_t variable) {
  auto compression = dyn_cast_or_null<dist::CompressionAttr>(op.getCompressionAttr());
  RankedTensorType type = typeOf(op.getGradients()[member]);
  int64_t count = type.getNumElements();
  return tables.structure({tables.string(cast<StringAttr>(op.getNames()[member]).getValue()), tables.i64(offset),
                           tables.i64(count), tables.i64(type.getRank() < 2 ? 1 : type.getShape().back()),
                           tables.i64(compression ? compression.getKept(count) : 0),
                           tables.i64(op.getOwners() ? (*op.getOwners())[member] + 1 : 0),
                           tables.i64(op.getRoom() ? (*op.getRoom())[member] : 0), tables.i64(variable)});
}

FlatSymbolRefAttr describeAccumulate(ConstantTables &tables, RankedTensorType type, bool concat) {
  return describe<drt_accumulate_desc>(tables, {getDtype(type.getElementType()), concat, type.getNumElements()});
}

FlatSymbolRefAttr describeUnique(ConstantTables &tables, drt::UniqueOp op) {
  RankedTensorType x = typeOf(op.getX());
  return describe<drt_unique_desc>(
      tables, {getDtype(x.getElementType()), getDtype(typeOf(op.getIdx()).getElementType()), x.getNumElements()});
}

FlatSymbolRefAttr describeScatter(ConstantTables &tables, drt::ScatterOp op) {
  RankedTensorType result = typeOf(op.getResult());
  return describe<drt_scatter_desc>(
      tables, ArrayRef<Attribute>{tables.i32(getDtype(result.getElementType())), tables.i32(op.getKind()),
                                  tables.i64(result.getNumElements()),
                                  describeRows(tables, op.getIndices(), op.getDepth(), result.getShape())});
}

FlatSymbolRefAttr describeNumbers(ConstantTables &tables, ArrayRef<int64_t> numbers) {
  SmallVector<Type> types(numbers.size(), tables.int64);
  auto fields = llvm::map_to_vector(numbers, [&](int64_t number) { return tables.i64(number); });
  return tables.descriptor(tables.structType(types), tables.structure(fields));
}

FlatSymbolRefAttr describeIndices(ConstantTables &tables, drt::CheckIndicesOp op) {
  return describe<drt_indices_desc>(
      tables, ArrayRef<Attribute>{tables.i32(op.getPadded()), tables.i32(0), tables.i64(op.getPerRow()),
                                  describeRows(tables, op.getIndices(), op.getSizes().size(), op.getSizes())});
}

FlatSymbolRefAttr describeSparseUpdate(ConstantTables &tables, drt::SparseUpdateOp op, ArrayRef<int64_t> shape) {
  return describe<drt_sparse_update_desc>(
      tables, ArrayRef<Attribute>{tables.i32(getDtype(typeOf(op.getValues()).getElementType())),
                                  tables.i32(op.getVariables().size()),
                                  describeRows(tables, op.getIndices(), op.getDepth(), shape),
                                  tables.i64(op.getOwner() ? *op.getOwner() + 1 : 0)});
}

} // namespace distc
