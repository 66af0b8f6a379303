//===- Decompositions.h - What composite operations are made of -----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A composite operation names one of these in its ODS declaration (`CompositeOps.td`).
// Each gives a value a result, made with `g`, or fails for a reason that `g` keeps.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_DECOMPOSITIONS_H
#define DISTC_DIALECTS_DFG_DECOMPOSITIONS_H

#include "dialects/dfg/GraphBuilder.h"
#include "mlir/IR/Operation.h"

namespace distc::dfg::decompositions {

using Result = llvm::FailureOr<llvm::SmallVector<mlir::Value>>;

/// Elements that a window may have where each of them is a step of its own.
constexpr int64_t kMostTaps = 1 << 13;
/// Fails, for a reason that `g` keeps, where strides, dilations and sizes of a node's window are not what TensorFlow
/// takes: a number for each of `rank` axes, which is 1 for images and channels.
llvm::LogicalResult checkWindowAttributes(mlir::Operation *op, GraphBuilder &g, int64_t rank);

#define DISTC_DECOMPOSITION(name) Result name(mlir::Operation *op, GraphBuilder &g);
// Normalization (Normalization.cpp).
DISTC_DECOMPOSITION(batchNorm)
DISTC_DECOMPOSITION(batchNormGrad)
DISTC_DECOMPOSITION(localResponse)
DISTC_DECOMPOSITION(localResponseGrad)
// Images in other colors (Colors.cpp).
DISTC_DECOMPOSITION(rgbToHsv)
DISTC_DECOMPOSITION(hsvToRgb)
DISTC_DECOMPOSITION(adjustHue)
DISTC_DECOMPOSITION(adjustSaturation)
DISTC_DECOMPOSITION(adjustContrast)
// Values rounded as if they were quantized (Quantization.cpp).
DISTC_DECOMPOSITION(fakeQuant)
DISTC_DECOMPOSITION(quantizeAndDequantize)
DISTC_DECOMPOSITION(quantizeAndDequantizeGrad)
DISTC_DECOMPOSITION(fakeQuantGrad)
// Products and sums (Einsum.cpp).
DISTC_DECOMPOSITION(einsum)
DISTC_DECOMPOSITION(sparseMatMul)
DISTC_DECOMPOSITION(accumulateN)
DISTC_DECOMPOSITION(cross)
DISTC_DECOMPOSITION(tridiagonalMatMul)
DISTC_DECOMPOSITION(parallelConcat)
DISTC_DECOMPOSITION(guaranteeConst)
// Layout (Layout.cpp).
DISTC_DECOMPOSITION(mirrorPad)
DISTC_DECOMPOSITION(mirrorPadGrad)
DISTC_DECOMPOSITION(spaceToDepth)
DISTC_DECOMPOSITION(depthToSpace)
DISTC_DECOMPOSITION(spaceToBatch)
DISTC_DECOMPOSITION(batchToSpace)
DISTC_DECOMPOSITION(roll)
DISTC_DECOMPOSITION(reverseSequence)
DISTC_DECOMPOSITION(extractImagePatches)
DISTC_DECOMPOSITION(linSpace)
DISTC_DECOMPOSITION(conjugateTranspose)
DISTC_DECOMPOSITION(broadcastArgs)
DISTC_DECOMPOSITION(inplaceRows)
DISTC_DECOMPOSITION(stridedSliceUpdate)
DISTC_DECOMPOSITION(dataFormatDimMap)
DISTC_DECOMPOSITION(dataFormatVecPermute)
// Diagonals, bands, counting (Matrices.cpp).
DISTC_DECOMPOSITION(matrixBandPart)
DISTC_DECOMPOSITION(diag)
DISTC_DECOMPOSITION(diagPart)
DISTC_DECOMPOSITION(matrixDiag)
DISTC_DECOMPOSITION(matrixDiagPart)
DISTC_DECOMPOSITION(matrixSetDiag)
DISTC_DECOMPOSITION(bandedTriangularSolve)
DISTC_DECOMPOSITION(bincount)
DISTC_DECOMPOSITION(bucketize)
DISTC_DECOMPOSITION(bound)
DISTC_DECOMPOSITION(histogram)
DISTC_DECOMPOSITION(inTopK)
DISTC_DECOMPOSITION(nthElement)
DISTC_DECOMPOSITION(unravelIndex)
// Images of another size (Resizing.cpp, Cropping.cpp), and as a projection shows them (Projection.cpp).
DISTC_DECOMPOSITION(cropAndResize)
DISTC_DECOMPOSITION(cropAndResizeGradImage)
DISTC_DECOMPOSITION(cropAndResizeGradBoxes)
DISTC_DECOMPOSITION(resizeArea)
DISTC_DECOMPOSITION(resizeBilinear)
DISTC_DECOMPOSITION(resizeBilinearGrad)
DISTC_DECOMPOSITION(resizeBicubic)
DISTC_DECOMPOSITION(resizeBicubicGrad)
DISTC_DECOMPOSITION(resizeNearest)
DISTC_DECOMPOSITION(resizeNearestGrad)
DISTC_DECOMPOSITION(scaleAndTranslate)
DISTC_DECOMPOSITION(scaleAndTranslateGrad)
DISTC_DECOMPOSITION(projectImages)
// Windows (Windows.cpp).
DISTC_DECOMPOSITION(conv3d)
DISTC_DECOMPOSITION(conv3dGradInput)
DISTC_DECOMPOSITION(conv3dGradFilter)
DISTC_DECOMPOSITION(maxPool3d)
DISTC_DECOMPOSITION(maxPool3dGrad)
DISTC_DECOMPOSITION(avgPool3d)
DISTC_DECOMPOSITION(avgPool3dGrad)
DISTC_DECOMPOSITION(maxPoolWithArgmax)
DISTC_DECOMPOSITION(maxPoolGradWithArgmax)
DISTC_DECOMPOSITION(maxPoolGradGrad)
DISTC_DECOMPOSITION(maxPoolV2)
DISTC_DECOMPOSITION(dilation2d)
DISTC_DECOMPOSITION(dilation2dGrad)
DISTC_DECOMPOSITION(fractionalPool)
DISTC_DECOMPOSITION(fractionalAvgPoolGrad)
// Rows by index, random numbers (Rows.cpp).
DISTC_DECOMPOSITION(invertPermutation)
DISTC_DECOMPOSITION(segments)
DISTC_DECOMPOSITION(sparseSegments)
DISTC_DECOMPOSITION(sparseSegmentsGrad)
DISTC_DECOMPOSITION(sparseSegmentsGradV2)
DISTC_DECOMPOSITION(sparseToDense)
DISTC_DECOMPOSITION(sparseTensorDenseMatMul)
DISTC_DECOMPOSITION(multinomial)
DISTC_DECOMPOSITION(randomShuffle)
DISTC_DECOMPOSITION(randomGamma)
DISTC_DECOMPOSITION(randomPoisson)
DISTC_DECOMPOSITION(randomBinomial)
DISTC_DECOMPOSITION(truncatedNormalBetween)
DISTC_DECOMPOSITION(keyCounterAlgorithm)
DISTC_DECOMPOSITION(statelessShuffle)
DISTC_DECOMPOSITION(allCandidates)
// Sparse tensors (Sparse.cpp).
DISTC_DECOMPOSITION(sparseReduce)
DISTC_DECOMPOSITION(sparseWithDense)
DISTC_DECOMPOSITION(sparseTensorDenseAdd)
DISTC_DECOMPOSITION(sparseSoftmax)
DISTC_DECOMPOSITION(sparseReorder)
DISTC_DECOMPOSITION(sparseConcat)
DISTC_DECOMPOSITION(sparseAdd)
DISTC_DECOMPOSITION(sparseAddGrad)
DISTC_DECOMPOSITION(sparseFillEmptyRowsGrad)
DISTC_DECOMPOSITION(sparseSlice)
DISTC_DECOMPOSITION(sparseSliceGrad)
DISTC_DECOMPOSITION(sparseSplit)
// Ragged tensors (Ragged.cpp).
DISTC_DECOMPOSITION(raggedToTensor)
DISTC_DECOMPOSITION(raggedToSparse)
DISTC_DECOMPOSITION(raggedRange)
DISTC_DECOMPOSITION(raggedGather)
// Recurrent layers (Recurrent.cpp).
DISTC_DECOMPOSITION(lstmBlockCell)
DISTC_DECOMPOSITION(lstmBlockCellGrad)
DISTC_DECOMPOSITION(blockLstm)
DISTC_DECOMPOSITION(blockLstmGrad)
DISTC_DECOMPOSITION(gruBlockCell)
DISTC_DECOMPOSITION(gruBlockCellGrad)
// Sequences (Sequences.cpp).
DISTC_DECOMPOSITION(ctcLoss)
#undef DISTC_DECOMPOSITION

/// What was made for an operation of one result.
inline Result one(GraphBuilder &g, mlir::Value value) {
  if (g.failed() || !value)
    return llvm::failure();
  return llvm::SmallVector<mlir::Value>{value};
}

/// A flag, a text and a number among the node's attributes.
inline bool getFlag(mlir::Operation *op, llvm::StringRef name) {
  auto attribute = op->getAttrOfType<mlir::BoolAttr>(name);
  return attribute && attribute.getValue();
}
inline llvm::StringRef getText(mlir::Operation *op, llvm::StringRef name) {
  auto attribute = op->getAttrOfType<mlir::StringAttr>(name);
  return attribute ? attribute.getValue() : llvm::StringRef();
}
inline int64_t getNumber(mlir::Operation *op, llvm::StringRef name) {
  return op->getAttrOfType<mlir::IntegerAttr>(name).getInt();
}
inline double getReal(mlir::Operation *op, llvm::StringRef name) {
  return op->getAttrOfType<mlir::FloatAttr>(name).getValueAsDouble();
}

} // namespace distc::dfg::decompositions

#endif // DISTC_DIALECTS_DFG_DECOMPOSITIONS_H
