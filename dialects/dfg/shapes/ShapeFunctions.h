//===- ShapeFunctions.h - How results' shapes follow, by kind of node -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// An operation names one of these in its ODS declaration (`let shape = "..."`).
// The rules are those of TensorFlow's shape functions (array_ops.cc, math_ops.cc,
// nn_ops.cc and common_shape_fns.cc). Each file beside this one has those of one
// kind of operations.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_SHAPES_SHAPEFUNCTIONS_H
#define DISTC_DIALECTS_DFG_SHAPES_SHAPEFUNCTIONS_H

#include "dialects/dfg/ShapeContext.h"
#include "mlir/IR/Operation.h"

namespace distc::dfg {

/// As many axes as a tensor can have in TensorFlow; as many elements as any memory can hold (2^46, 256 TiB of float32).
inline constexpr size_t kMaxRank = 254;
inline constexpr int64_t kMaxTensorElements = int64_t(1) << 46;

/// Fails with a diagnostic where no tensor can be of these sizes, as far as they are known.
llvm::LogicalResult checkSizes(mlir::Operation *op, llvm::ArrayRef<Dim> sizes);

/// What both the type and the analysis know of a shape.
mlir::TensorType refine(mlir::TensorType type, llvm::ArrayRef<Dim> sizes);

namespace shapes {

#define DISTC_SHAPE_FUNCTION(name) llvm::LogicalResult name(mlir::Operation *op, ShapeContext &context);
// Says nothing.
DISTC_SHAPE_FUNCTION(unknown)
// That of operand 0; a scalar; that of the type; the assigned variable's.
DISTC_SHAPE_FUNCTION(same)
// That of operand 0, too: along an axis (operand 1), along axes, of at least one axis.
DISTC_SHAPE_FUNCTION(sameShape)
DISTC_SHAPE_FUNCTION(scan)
DISTC_SHAPE_FUNCTION(reverse)
DISTC_SHAPE_FUNCTION(rows)
DISTC_SHAPE_FUNCTION(scalar)
DISTC_SHAPE_FUNCTION(read)
DISTC_SHAPE_FUNCTION(update)
DISTC_SHAPE_FUNCTION(constant)
DISTC_SHAPE_FUNCTION(placeholder)
// That of operand 0, whose elements may be others.
DISTC_SHAPE_FUNCTION(withDefault)
// Element-wise, with numpy's broadcasting. Integer results are evaluated.
DISTC_SHAPE_FUNCTION(broadcast)
DISTC_SHAPE_FUNCTION(predicate)
// Element-wise, without: operands have one shape.
DISTC_SHAPE_FUNCTION(alike)
DISTC_SHAPE_FUNCTION(cast)
DISTC_SHAPE_FUNCTION(bitcast)
DISTC_SHAPE_FUNCTION(select)
DISTC_SHAPE_FUNCTION(selectRows)
// Shapes as values.
DISTC_SHAPE_FUNCTION(shapeOf)
DISTC_SHAPE_FUNCTION(sizeOf)
DISTC_SHAPE_FUNCTION(rankOf)
DISTC_SHAPE_FUNCTION(broadcastGradientArgs)
DISTC_SHAPE_FUNCTION(invertPermutation)
DISTC_SHAPE_FUNCTION(concatOffset)
DISTC_SHAPE_FUNCTION(dynamicStitch)
DISTC_SHAPE_FUNCTION(listDiff)
DISTC_SHAPE_FUNCTION(range)
// Layout.
DISTC_SHAPE_FUNCTION(reshape)
DISTC_SHAPE_FUNCTION(transpose)
DISTC_SHAPE_FUNCTION(expandDims)
DISTC_SHAPE_FUNCTION(squeeze)
DISTC_SHAPE_FUNCTION(tile)
DISTC_SHAPE_FUNCTION(broadcastTo)
DISTC_SHAPE_FUNCTION(fill)
DISTC_SHAPE_FUNCTION(concat)
DISTC_SHAPE_FUNCTION(split)
DISTC_SHAPE_FUNCTION(splitV)
DISTC_SHAPE_FUNCTION(pack)
DISTC_SHAPE_FUNCTION(unpack)
DISTC_SHAPE_FUNCTION(slice)
DISTC_SHAPE_FUNCTION(stridedSlice)
DISTC_SHAPE_FUNCTION(stridedSliceGrad)
DISTC_SHAPE_FUNCTION(pad)
DISTC_SHAPE_FUNCTION(ensureShape)
// Rows by index. Operand 0 may be a variable's handle.
DISTC_SHAPE_FUNCTION(gather)
DISTC_SHAPE_FUNCTION(gatherNd)
DISTC_SHAPE_FUNCTION(unique)
DISTC_SHAPE_FUNCTION(unsortedSegment)
DISTC_SHAPE_FUNCTION(scatterNd)
DISTC_SHAPE_FUNCTION(tensorScatter)
DISTC_SHAPE_FUNCTION(dynamicPartition)
DISTC_SHAPE_FUNCTION(oneHot)
// Reductions.
DISTC_SHAPE_FUNCTION(reduction)
DISTC_SHAPE_FUNCTION(prod)
DISTC_SHAPE_FUNCTION(extremum)
DISTC_SHAPE_FUNCTION(argReduction)
// Products, convolutions, losses.
DISTC_SHAPE_FUNCTION(matMul)
DISTC_SHAPE_FUNCTION(batchMatMul)
DISTC_SHAPE_FUNCTION(conv2d)
DISTC_SHAPE_FUNCTION(depthwiseConv2d)
DISTC_SHAPE_FUNCTION(conv2dGradInput)
DISTC_SHAPE_FUNCTION(conv2dGradFilter)
DISTC_SHAPE_FUNCTION(depthwiseConv2dGradInput)
DISTC_SHAPE_FUNCTION(depthwiseConv2dGradFilter)
DISTC_SHAPE_FUNCTION(pool)
DISTC_SHAPE_FUNCTION(maxPoolGrad)
DISTC_SHAPE_FUNCTION(avgPoolGrad)
DISTC_SHAPE_FUNCTION(biasAdd)
DISTC_SHAPE_FUNCTION(biasAddGrad)
DISTC_SHAPE_FUNCTION(batchNorm)
DISTC_SHAPE_FUNCTION(batchNormGrad)
DISTC_SHAPE_FUNCTION(crossEntropy)
DISTC_SHAPE_FUNCTION(keyCounter)
// That of what the operation is made of (GraphBuilder.cpp).
DISTC_SHAPE_FUNCTION(composite)
// Of the variables of a loop, and of the nodes inside.
DISTC_SHAPE_FUNCTION(loop)
// Sorting and linear algebra.
DISTC_SHAPE_FUNCTION(topK)
DISTC_SHAPE_FUNCTION(squareMatrices)
DISTC_SHAPE_FUNCTION(determinant)
DISTC_SHAPE_FUNCTION(solve)
DISTC_SHAPE_FUNCTION(solveLs)
DISTC_SHAPE_FUNCTION(tridiagonalSolve)
DISTC_SHAPE_FUNCTION(nonMaxSuppression)
DISTC_SHAPE_FUNCTION(combinedNonMaxSuppression)
DISTC_SHAPE_FUNCTION(ctcGreedyDecoder)
DISTC_SHAPE_FUNCTION(editDistance)
DISTC_SHAPE_FUNCTION(isotonicRegression)
DISTC_SHAPE_FUNCTION(sparseBlock)
DISTC_SHAPE_FUNCTION(sparseBlockRows)
DISTC_SHAPE_FUNCTION(fractionalSequences)
DISTC_SHAPE_FUNCTION(fractionalWindows)
DISTC_SHAPE_FUNCTION(fractionalMaxPoolGrad)
DISTC_SHAPE_FUNCTION(qr)
DISTC_SHAPE_FUNCTION(selfAdjointEig)
DISTC_SHAPE_FUNCTION(svd)
DISTC_SHAPE_FUNCTION(lu)
DISTC_SHAPE_FUNCTION(householderFactors)
DISTC_SHAPE_FUNCTION(householderProduct)
DISTC_SHAPE_FUNCTION(candidates)
DISTC_SHAPE_FUNCTION(permutation)
DISTC_SHAPE_FUNCTION(accidentalHits)
DISTC_SHAPE_FUNCTION(ctcLossRows)
// No results.
DISTC_SHAPE_FUNCTION(nothing)
// Operand 0 is the shape.
DISTC_SHAPE_FUNCTION(fromSizes)
#undef DISTC_SHAPE_FUNCTION

/// Fails with a diagnostic where `axis` is outside [-rank, rank); else it counted from the front.
llvm::FailureOr<int64_t> normalizeAxis(mlir::Operation *op, int64_t axis, int64_t rank);
/// Whether two sizes, or all of two shapes, may be equal.
bool fits(Dim x, Dim y);
bool fits(llvm::ArrayRef<Dim> x, llvm::ArrayRef<Dim> y);
/// "[3, 2b+0, ?]".
std::string print(llvm::ArrayRef<Dim> sizes);

/// A strided slice with its masks resolved against the input's sizes: for each axis of the input where it begins, how
/// far it steps, how many elements it takes, and which axes of the result it makes. None where that is not known.
struct ResolvedSlice {
  Dims begin;
  llvm::SmallVector<int64_t> stride;
  Dims size;
  /// For each axis of the result: the input's axis, or -1 for a new one.
  llvm::SmallVector<int64_t> resultAxes;
};
std::optional<ResolvedSlice> resolveStridedSlice(mlir::Operation *op, llvm::ArrayRef<Dim> input,
                                                 llvm::ArrayRef<Dim> begin, llvm::ArrayRef<Dim> end,
                                                 llvm::ArrayRef<int64_t> strides);

/// An element of an array attribute of integers (strides, paddings); `otherwise` where the array has none at `index`,
/// or is not there.
int64_t getArrayEntry(mlir::Operation *op, llvm::StringRef name, int64_t index, int64_t otherwise);

/// Sizes of a window's result along one axis, with the padding before and after it.
struct ResolvedWindow {
  Dim size;
  int64_t before = 0, after = 0;
};
ResolvedWindow resolveWindow(Dim input, int64_t window, int64_t stride, int64_t dilation, llvm::StringRef padding);

} // namespace shapes
} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_SHAPES_SHAPEFUNCTIONS_H
