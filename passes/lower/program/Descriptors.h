//===- Descriptors.h - Descriptors of library calls -------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_DESCRIPTORS_H
#define DISTC_PASSES_LOWER_PROGRAM_DESCRIPTORS_H

#include "dialects/drt/Drt.h"
#include "passes/lower/program/ConstantTables.h"

namespace distc {

/// The address of the constant descriptor (drt_matmul_desc, ...) of a library call. Fails with a diagnostic at the
/// operation.
mlir::FlatSymbolRefAttr describeMatmul(ConstantTables &tables, drt::MatmulOp op);
mlir::FlatSymbolRefAttr describeMatmulPacked(ConstantTables &tables, drt::MatmulPackedOp op);
mlir::FlatSymbolRefAttr describePack(ConstantTables &tables, drt::PackOp op);
mlir::FlatSymbolRefAttr describeMatmulAdd(ConstantTables &tables, drt::MatmulAddOp op);
mlir::FlatSymbolRefAttr describeMatmulBiasGrad(ConstantTables &tables, drt::MatmulBiasGradOp op);
mlir::FlatSymbolRefAttr describeAttention(ConstantTables &tables, drt::AttentionOp op);
mlir::FlatSymbolRefAttr describeAttention(ConstantTables &tables, drt::AttentionGradientOp op);
mlir::FlatSymbolRefAttr describeMatmulStacked(ConstantTables &tables, drt::MatmulStackedOp op);
mlir::FlatSymbolRefAttr describeMatmulSum(ConstantTables &tables, drt::MatmulSumOp op);
mlir::FlatSymbolRefAttr describeMatmulUpdate(ConstantTables &tables, drt::MatmulUpdateOp op);
/// `descriptor`: the numbers behind has_bias and epilogue, in the order of drt_conv2d_desc.
mlir::FlatSymbolRefAttr describeConv2D(ConstantTables &tables, mlir::Operation *op, llvm::ArrayRef<int64_t> descriptor,
                                       bool hasBias, int32_t epilogue);
/// `descriptor`: the numbers behind kind, in the order of drt_pool_desc.
mlir::FlatSymbolRefAttr describePool(ConstantTables &tables, mlir::Operation *op, int32_t kind,
                                     llvm::ArrayRef<int64_t> descriptor);
/// Of `op` what part of a tensor it draws counts.
mlir::FlatSymbolRefAttr describeRandom(ConstantTables &tables, mlir::Operation *op, int32_t distribution, int64_t seed,
                                       int64_t seed2, bool perReplica, int64_t reserved);
/// How a bucket's gradients are compressed and become one (drt_exchange); null where they are just summed. Fails with a
/// diagnostic where the runtime has no such exchange.
llvm::FailureOr<mlir::Attribute> describeExchange(ConstantTables &tables, drt::AllReduceStartOp op);
/// The same of a compressor with its rank and an aggregator; null for none.
mlir::FlatSymbolRefAttr describeExchange(ConstantTables &tables, dist::Compressor kind, int64_t rank,
                                         dist::AggregatorAttr aggregator);
/// A member of a bucket (drt_member); `offset` in elements, `variable` as in drt_member.
mlir::Attribute describeMember(ConstantTables &tables, drt::AllReduceStartOp op, unsigned member, int64_t offset,
                               int64_t variable);
/// drt_accumulate_desc.
mlir::FlatSymbolRefAttr describeAccumulate(ConstantTables &tables, mlir::RankedTensorType type, bool concat);
/// drt_unique_desc, drt_scatter_desc and drt_sparse_update_desc.
mlir::FlatSymbolRefAttr describeUnique(ConstantTables &tables, drt::UniqueOp op);
mlir::FlatSymbolRefAttr describeScatter(ConstantTables &tables, drt::ScatterOp op);
/// Numbers, one behind the other.
mlir::FlatSymbolRefAttr describeNumbers(ConstantTables &tables, llvm::ArrayRef<int64_t> numbers);
/// drt_indices_desc.
mlir::FlatSymbolRefAttr describeIndices(ConstantTables &tables, drt::CheckIndicesOp op);
/// `shape`: of the variables whose rows are updated.
mlir::FlatSymbolRefAttr describeSparseUpdate(ConstantTables &tables, drt::SparseUpdateOp op,
                                             llvm::ArrayRef<int64_t> shape);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_DESCRIPTORS_H
