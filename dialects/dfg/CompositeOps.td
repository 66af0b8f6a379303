//===- CompositeOps.td - Operations that are made of others -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Each names its function of Decompositions.h. What an element is computed from,
// and in which order, is that of TensorFlow's CPU kernels.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_COMPOSITE_OPS
#define DFG_COMPOSITE_OPS

include "dialects/dfg/DfgOpBase.td"

defvar oneResult = (outs DFG_Tensor:$result);

// ---- Products and sums ------------------------------------------------------------------------
def DFG_EinsumOp : DFG_Composite<"einsum", "\"Einsum\"", "einsum"> {
  let arguments = (ins Variadic<DFG_Tensor>:$inputs, StrAttr:$equation);
  let results = oneResult;
  let types = "T:0 N:#0";
  let linearity = "Each";
}
def DFG_SparseMatMulOp : DFG_Composite<"sparse_mat_mul", "\"SparseMatMul\"", "sparseMatMul"> {
  let summary = "A product of dense matrices that the author says are sparse";
  let arguments = (ins DFG_Tensor:$a, DFG_Tensor:$b, DefaultValuedAttr<BoolAttr, "false">:$transpose_a,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_b, DefaultValuedAttr<BoolAttr, "false">:$a_is_sparse,
                       DefaultValuedAttr<BoolAttr, "false">:$b_is_sparse);
  let results = oneResult;
  let types = "Ta:0 Tb:1 =float32:r0";
}
def DFG_AccumulateNV2Op : DFG_Composite<"accumulate_n_v2", "\"AccumulateNV2\"", "accumulateN"> {
  let arguments = (ins Variadic<DFG_Tensor>:$inputs, OptionalAttr<DFG_ShapeAttr>:$shape);
  let results = oneResult;
  let types = "T:0 N:#0";
}
def DFG_CrossOp : DFG_Composite<"cross", "\"Cross\"", "cross"> {
  let arguments = (ins DFG_Tensor:$a, DFG_Tensor:$b);
  let results = oneResult;
  let types = "T:0";
}
def DFG_TridiagonalMatMulOp : DFG_Composite<"tridiagonal_mat_mul", "\"TridiagonalMatMul\"", "tridiagonalMatMul"> {
  let arguments = (ins DFG_Tensor:$superdiag, DFG_Tensor:$maindiag, DFG_Tensor:$subdiag, DFG_Tensor:$rhs);
  let results = oneResult;
  let types = "T:0";
}
def DFG_ParallelConcatOp : DFG_Composite<"parallel_concat", "\"ParallelConcat\"", "parallelConcat", [Pure, DFG_Joins]> {
  let arguments = (ins Variadic<DFG_Tensor>:$values, OptionalAttr<DFG_ShapeAttr>:$shape);
  let results = oneResult;
  let types = "T:0 N:#0";
  let linearity = "Joint";
}
def DFG_GuaranteeConstOp : DFG_Composite<"guarantee_const", "\"GuaranteeConst\"", "guaranteeConst"> {
  let arguments = (ins DFG_Tensor:$input);
  let results = oneResult;
  let types = "T:0";
  let linearity = "Joint";
}

// ---- Normalization ------------------------------------------------------------------------------
class DFG_LocalResponse<string mnemonic, string tensorflow, string decomposition, dag operands> : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins DefaultValuedAttr<I64Attr, "5">:$depth_radius, DefaultValuedAttr<F32Attr, "1.0f">:$bias,
                                      DefaultValuedAttr<F32Attr, "1.0f">:$alpha, DefaultValuedAttr<F32Attr, "0.5f">:$beta));
  let results = oneResult;
  let types = "T:0";
}
def DFG_LRNOp : DFG_LocalResponse<"lrn", "\"LRN\"", "localResponse", (ins DFG_Tensor:$input)>;
def DFG_LRNGradOp : DFG_LocalResponse<"lrn_grad", "\"LRNGrad\"", "localResponseGrad",
                                      (ins DFG_Tensor:$input_grads, DFG_Tensor:$input_image, DFG_Tensor:$output_image)>;

// ---- Colors ---------------------------------------------------------------------------------------------
class DFG_Recolor<string mnemonic, string tensorflow, string decomposition, dag operands> : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = operands;
  let results = oneResult;
  let types = "T:0";
}
def DFG_RGBToHSVOp : DFG_Recolor<"rgb_to_hsv", "\"RGBToHSV\"", "rgbToHsv", (ins DFG_Tensor:$images)>;
def DFG_HSVToRGBOp : DFG_Recolor<"hsv_to_rgb", "\"HSVToRGB\"", "hsvToRgb", (ins DFG_Tensor:$images)>;
def DFG_AdjustHueOp : DFG_Recolor<"adjust_hue", "\"AdjustHue\"", "adjustHue", (ins DFG_Tensor:$images, DFG_Tensor:$delta)>;
def DFG_AdjustSaturationOp : DFG_Recolor<"adjust_saturation", "\"AdjustSaturation\"", "adjustSaturation", (ins DFG_Tensor:$images, DFG_Tensor:$scale)>;
def DFG_AdjustContrastOp : DFG_Recolor<"adjust_contrast_v2", "\"AdjustContrastv2\"", "adjustContrast",
                                       (ins DFG_Tensor:$images, DFG_Tensor:$contrast_factor)>;

// ---- Quantization, as training sees it ---------------------------------------------------------------
class DFG_FakeQuant<string mnemonic, string tensorflow, string decomposition, dag operands, dag outputs, string attributes>
    : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins DefaultValuedAttr<I64Attr, "8">:$num_bits, DefaultValuedAttr<BoolAttr, "false">:$narrow_range));
  let results = outputs;
  let types = attributes;
}
defvar range = (ins DefaultValuedAttr<F32Attr, "-6.0f">:$min, DefaultValuedAttr<F32Attr, "6.0f">:$max);
defvar rounded = (ins DFG_Tensor:$inputs, DFG_Tensor:$min, DFG_Tensor:$max);
defvar roundedGradient = (ins DFG_Tensor:$gradients, DFG_Tensor:$inputs, DFG_Tensor:$min, DFG_Tensor:$max);
defvar threeGradients = (outs DFG_Tensor:$backprops_wrt_input, DFG_Tensor:$backprop_wrt_min, DFG_Tensor:$backprop_wrt_max);
def DFG_FakeQuantWithMinMaxArgsOp : DFG_FakeQuant<"fake_quant_with_min_max_args", "\"FakeQuantWithMinMaxArgs\"", "fakeQuant",
    !con((ins DFG_Tensor:$inputs), range), oneResult, "=float32:r0">;
def DFG_FakeQuantWithMinMaxVarsOp : DFG_FakeQuant<"fake_quant_with_min_max_vars", "\"FakeQuantWithMinMaxVars\"", "fakeQuant",
    rounded, oneResult, "=float32:r0">;
def DFG_FakeQuantWithMinMaxVarsPerChannelOp : DFG_FakeQuant<"fake_quant_with_min_max_vars_per_channel",
    "\"FakeQuantWithMinMaxVarsPerChannel\"", "fakeQuant", rounded, oneResult, "=float32:r0">;
let linearity = "First" in {
def DFG_FakeQuantWithMinMaxArgsGradientOp : DFG_FakeQuant<"fake_quant_with_min_max_args_gradient",
    "\"FakeQuantWithMinMaxArgsGradient\"", "fakeQuantGrad", !con((ins DFG_Tensor:$gradients, DFG_Tensor:$inputs), range), oneResult, "=float32:r0">;
def DFG_FakeQuantWithMinMaxVarsGradientOp : DFG_FakeQuant<"fake_quant_with_min_max_vars_gradient",
    "\"FakeQuantWithMinMaxVarsGradient\"", "fakeQuantGrad", roundedGradient, threeGradients, "=float32:r0 =float32:r1 =float32:r2">;
def DFG_FakeQuantWithMinMaxVarsPerChannelGradientOp : DFG_FakeQuant<"fake_quant_with_min_max_vars_per_channel_gradient",
    "\"FakeQuantWithMinMaxVarsPerChannelGradient\"", "fakeQuantGrad", roundedGradient, threeGradients, "=float32:r0 =float32:r1 =float32:r2">;
}
class DFG_QuantizeAndDequantize<string mnemonic, string tensorflow, dag operands, dag attributes, string rangeGiven = "false">
    : DFG_Composite<mnemonic, tensorflow, "quantizeAndDequantize"> {
  let arguments = !con((ins DFG_Tensor:$input, DFG_Tensor:$input_min, DFG_Tensor:$input_max), operands,
                       (ins DefaultValuedAttr<BoolAttr, "true">:$signed_input), attributes,
                       (ins DefaultValuedAttr<BoolAttr, rangeGiven>:$range_given, DefaultValuedAttr<BoolAttr, "false">:$narrow_range,
                            DefaultValuedAttr<I64Attr, "-1">:$axis));
  let results = oneResult;
}
defvar bitsAndRounding = (ins DefaultValuedAttr<I64Attr, "8">:$num_bits, DefaultValuedAttr<StrAttr, "\"HALF_TO_EVEN\"">:$round_mode);
def DFG_QuantizeAndDequantizeV2Op : DFG_QuantizeAndDequantize<"quantize_and_dequantize_v2", "\"QuantizeAndDequantizeV2\"", (ins), bitsAndRounding> {
  let types = "T:0";
}
def DFG_QuantizeAndDequantizeV3Op : DFG_QuantizeAndDequantize<"quantize_and_dequantize_v3", "\"QuantizeAndDequantizeV3\"",
                                                              (ins DFG_Tensor:$num_bits), (ins), "true"> {
  let types = "T:0";
}
def DFG_QuantizeAndDequantizeV4Op : DFG_QuantizeAndDequantize<"quantize_and_dequantize_v4", "\"QuantizeAndDequantizeV4\"", (ins), bitsAndRounding> {
  let types = "T:0";
}
def DFG_QuantizeAndDequantizeV4GradOp : DFG_Composite<"quantize_and_dequantize_v4_grad", "\"QuantizeAndDequantizeV4Grad\"", "quantizeAndDequantizeGrad"> {
  let arguments = (ins DFG_Tensor:$gradients, DFG_Tensor:$input, DFG_Tensor:$input_min, DFG_Tensor:$input_max,
                       DefaultValuedAttr<I64Attr, "-1">:$axis);
  let results = (outs DFG_Tensor:$input_backprop, DFG_Tensor:$input_min_backprop, DFG_Tensor:$input_max_backprop);
  let types = "T:0";
  let linearity = "First";
}

// ---- Layout -----------------------------------------------------------------------------------------
class DFG_MirrorPadding<string mnemonic, string tensorflow, string decomposition, list<Trait> traits = []>
    : DFG_Composite<mnemonic, tensorflow, decomposition, [Pure] # traits> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$paddings, StrAttr:$mode);
  let results = oneResult;
  let types = "T:0 Tpaddings:1";
  let linearity = "Joint";
}
def DFG_MirrorPadOp : DFG_MirrorPadding<"mirror_pad", "\"MirrorPad\"", "mirrorPad", [DFG_Moves]>;
def DFG_MirrorPadGradOp : DFG_MirrorPadding<"mirror_pad_grad", "\"MirrorPadGrad\"", "mirrorPadGrad">;
class DFG_DepthBlocks<string mnemonic, string tensorflow, string decomposition> : DFG_Composite<mnemonic, tensorflow, decomposition, [Pure, DFG_Permutes]> {
  let arguments = (ins DFG_Tensor:$input, I64Attr:$block_size, DefaultValuedAttr<StrAttr, "\"NHWC\"">:$data_format);
  let results = oneResult;
  let types = "T:0";
  let linearity = "Joint";
}
def DFG_SpaceToDepthOp : DFG_DepthBlocks<"space_to_depth", "\"SpaceToDepth\"", "spaceToDepth">;
def DFG_DepthToSpaceOp : DFG_DepthBlocks<"depth_to_space", "\"DepthToSpace\"", "depthToSpace">;
let linearity = "Joint" in {
def DFG_SpaceToBatchNDOp : DFG_Composite<"space_to_batch_nd", "\"SpaceToBatchND\"", "spaceToBatch", [Pure, DFG_Moves]> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$block_shape, DFG_Tensor:$paddings);
  let results = oneResult;
  let types = "T:0 Tblock_shape:1 Tpaddings:2";
}
def DFG_BatchToSpaceNDOp : DFG_Composite<"batch_to_space_nd", "\"BatchToSpaceND\"", "batchToSpace", [Pure, DFG_Moves]> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$block_shape, DFG_Tensor:$crops);
  let results = oneResult;
  let types = "T:0 Tblock_shape:1 Tcrops:2";
}
def DFG_SpaceToBatchOp : DFG_Composite<"space_to_batch", "\"SpaceToBatch\"", "spaceToBatch", [Pure, DFG_Moves]> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$paddings, I64Attr:$block_size);
  let results = oneResult;
  let types = "T:0 Tpaddings:1";
}
def DFG_BatchToSpaceOp : DFG_Composite<"batch_to_space", "\"BatchToSpace\"", "batchToSpace", [Pure, DFG_Moves]> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$crops, I64Attr:$block_size);
  let results = oneResult;
  let types = "T:0 Tidx:1";
}
def DFG_RollOp : DFG_Composite<"roll", "\"Roll\"", "roll", [Pure, DFG_Permutes]> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$shift, DFG_Tensor:$axis);
  let results = oneResult;
  let types = "T:0 Tshift:1 Taxis:2";
  let shape = "sameShape"; // also along the batch, where it is not made of others yet
}
def DFG_ReverseSequenceOp : DFG_Composite<"reverse_sequence", "\"ReverseSequence\"", "reverseSequence", [Pure, DFG_Permutes]> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$seq_lengths, I64Attr:$seq_dim, DefaultValuedAttr<I64Attr, "0">:$batch_dim);
  let results = oneResult;
  let types = "T:0 Tlen:1";
}
def DFG_ExtractImagePatchesOp : DFG_Composite<"extract_image_patches", "\"ExtractImagePatches\"", "extractImagePatches", [Pure, DFG_Moves]> {
  let arguments = (ins DFG_Tensor:$images, I64ArrayAttr:$ksizes, I64ArrayAttr:$strides, I64ArrayAttr:$rates, StrAttr:$padding);
  let results = oneResult;
  let types = "T:0";
}
}
def DFG_ExtractVolumePatchesOp : DFG_Composite<"extract_volume_patches", "\"ExtractVolumePatches\"", "extractImagePatches", [Pure, DFG_Moves]> {
  let arguments = (ins DFG_Tensor:$input, I64ArrayAttr:$ksizes, I64ArrayAttr:$strides, StrAttr:$padding);
  let results = oneResult;
  let types = "T:0";
  let linearity = "Joint";
}
// Rows of the first axis, by a vector of places.
class DFG_InplaceRows<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "inplaceRows"> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$i, DFG_Tensor:$v);
  let results = oneResult;
  let types = "T:0";
  let linearity = "Joint";
}
def DFG_InplaceUpdateOp : DFG_InplaceRows<"inplace_update", "\"InplaceUpdate\"">;
def DFG_InplaceAddOp : DFG_InplaceRows<"inplace_add", "\"InplaceAdd\"">;
def DFG_InplaceSubOp : DFG_InplaceRows<"inplace_sub", "\"InplaceSub\"">;
def DFG_TensorStridedSliceUpdateOp : DFG_Composite<"tensor_strided_slice_update", "\"TensorStridedSliceUpdate\"", "stridedSliceUpdate"> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$begin, DFG_Tensor:$end, DFG_Tensor:$strides, DFG_Tensor:$value,
                       DefaultValuedAttr<I64Attr, "0">:$begin_mask, DefaultValuedAttr<I64Attr, "0">:$end_mask,
                       DefaultValuedAttr<I64Attr, "0">:$ellipsis_mask, DefaultValuedAttr<I64Attr, "0">:$new_axis_mask,
                       DefaultValuedAttr<I64Attr, "0">:$shrink_axis_mask);
  let results = oneResult;
  let types = "T:0 Index:1";
  let linearity = "Joint";
}
// Axes, and what there is one of for each axis, in the order of another format.
class DFG_DataFormat<string mnemonic, string tensorflow, string decomposition> : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = (ins DFG_Tensor:$x, DefaultValuedAttr<StrAttr, "\"NHWC\"">:$src_format, DefaultValuedAttr<StrAttr, "\"NCHW\"">:$dst_format);
  let results = oneResult;
  let types = "T:0";
}
def DFG_DataFormatDimMapOp : DFG_DataFormat<"data_format_dim_map", "\"DataFormatDimMap\"", "dataFormatDimMap">;
def DFG_DataFormatVecPermuteOp : DFG_DataFormat<"data_format_vec_permute", "\"DataFormatVecPermute\"", "dataFormatVecPermute">;
def DFG_LinSpaceOp : DFG_Composite<"lin_space", "\"LinSpace\"", "linSpace"> {
  let arguments = (ins DFG_Tensor:$start, DFG_Tensor:$stop, DFG_Tensor:$num);
  let results = oneResult;
  let types = "T:0 Tidx:2";
}
def DFG_ConjugateTransposeOp : DFG_Composite<"conjugate_transpose", "\"ConjugateTranspose\"", "conjugateTranspose"> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$perm);
  let results = oneResult;
  let types = "T:0 Tperm:1";
  let linearity = "Joint";
}
def DFG_BroadcastArgsOp : DFG_Composite<"broadcast_args", "\"BroadcastArgs\"", "broadcastArgs"> {
  let arguments = (ins DFG_Tensor:$s0, DFG_Tensor:$s1);
  let results = oneResult;
  let types = "T:0";
}

// ---- Diagonals and bands of matrices -------------------------------------------------------------------
defvar diagonalAlign = (ins DefaultValuedAttr<StrAttr, "\"RIGHT_LEFT\"">:$align);
defvar diagOperands = (ins DFG_Tensor:$diagonal, DFG_Tensor:$k, DFG_Tensor:$num_rows, DFG_Tensor:$num_cols, DFG_Tensor:$padding_value);
defvar setDiagOperands = (ins DFG_Tensor:$input, DFG_Tensor:$diagonal);
let linearity = "First" in {
def DFG_MatrixBandPartOp : DFG_Composite<"matrix_band_part", "\"MatrixBandPart\"", "matrixBandPart", [Pure, DFG_Moves]> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$num_lower, DFG_Tensor:$num_upper);
  let results = oneResult;
  let types = "T:0 Tindex:1";
}
class DFG_DiagonalOf<string mnemonic, string tensorflow, string decomposition, dag operands>
    : DFG_Composite<mnemonic, tensorflow, decomposition, [Pure, DFG_Moves]> {
  let arguments = operands;
  let results = oneResult;
  let types = "T:0";
}
def DFG_DiagOp : DFG_DiagonalOf<"diag", "\"Diag\"", "diag", (ins DFG_Tensor:$diagonal)>;
def DFG_DiagPartOp : DFG_DiagonalOf<"diag_part", "\"DiagPart\"", "diagPart", (ins DFG_Tensor:$input)>;
def DFG_MatrixDiagOp : DFG_DiagonalOf<"matrix_diag", "\"MatrixDiag\"", "matrixDiag", (ins DFG_Tensor:$diagonal)>;
def DFG_MatrixDiagPartOp : DFG_DiagonalOf<"matrix_diag_part", "\"MatrixDiagPart\"", "matrixDiagPart", (ins DFG_Tensor:$input)>;
}
def DFG_MatrixDiagV2Op : DFG_DiagonalOf<"matrix_diag_v2", "\"MatrixDiagV2\"", "matrixDiag", diagOperands>;
def DFG_MatrixDiagV3Op : DFG_DiagonalOf<"matrix_diag_v3", "\"MatrixDiagV3\"", "matrixDiag", !con(diagOperands, diagonalAlign)>;
defvar diagPartOperands = (ins DFG_Tensor:$input, DFG_Tensor:$k, DFG_Tensor:$padding_value);
def DFG_MatrixDiagPartV2Op : DFG_DiagonalOf<"matrix_diag_part_v2", "\"MatrixDiagPartV2\"", "matrixDiagPart", diagPartOperands>;
def DFG_MatrixDiagPartV3Op : DFG_DiagonalOf<"matrix_diag_part_v3", "\"MatrixDiagPartV3\"", "matrixDiagPart", !con(diagPartOperands, diagonalAlign)>;
def DFG_BandedTriangularSolveOp : DFG_Composite<"banded_triangular_solve", "\"BandedTriangularSolve\"", "bandedTriangularSolve"> {
  let arguments = (ins DFG_Tensor:$matrix, DFG_Tensor:$rhs, DefaultValuedAttr<BoolAttr, "true">:$lower, DefaultValuedAttr<BoolAttr, "false">:$adjoint);
  let results = oneResult;
  let types = "T:0";
}
let linearity = "Joint" in {
def DFG_MatrixSetDiagOp : DFG_DiagonalOf<"matrix_set_diag", "\"MatrixSetDiag\"", "matrixSetDiag", setDiagOperands>;
def DFG_MatrixSetDiagV2Op : DFG_DiagonalOf<"matrix_set_diag_v2", "\"MatrixSetDiagV2\"", "matrixSetDiag", !con(setDiagOperands, (ins DFG_Tensor:$k))>;
def DFG_MatrixSetDiagV3Op : DFG_DiagonalOf<"matrix_set_diag_v3", "\"MatrixSetDiagV3\"", "matrixSetDiag",
                                           !con(setDiagOperands, (ins DFG_Tensor:$k), diagonalAlign)>;
}

// ---- Counting ---------------------------------------------------------------------------------------------
def DFG_BincountOp : DFG_Composite<"bincount", "\"Bincount\"", "bincount"> {
  let arguments = (ins DFG_Tensor:$arr, DFG_Tensor:$size, DFG_Tensor:$weights);
  let results = oneResult;
  let types = "T:2";
}
def DFG_DenseBincountOp : DFG_Composite<"dense_bincount", "\"DenseBincount\"", "bincount"> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$size, DFG_Tensor:$weights, DefaultValuedAttr<BoolAttr, "false">:$binary_output);
  let results = oneResult;
  let types = "T:2 Tidx:0";
}
def DFG_BucketizeOp : DFG_Composite<"bucketize", "\"Bucketize\"", "bucketize"> {
  let arguments = (ins DFG_Tensor:$input, ArrayAttr:$boundaries);
  let results = oneResult;
  let types = "T:0 =int32:r0";
}
// How many of a row's numbers, in order, lie below (or not above) each value.
class DFG_Bound<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "bound"> {
  let arguments = (ins DFG_Tensor:$sorted_inputs, DFG_Tensor:$values);
  let results = oneResult;
  let types = "T:0 out_type:r0";
}
def DFG_LowerBoundOp : DFG_Bound<"lower_bound", "\"LowerBound\"">;
def DFG_UpperBoundOp : DFG_Bound<"upper_bound", "\"UpperBound\"">;
def DFG_HistogramFixedWidthOp : DFG_Composite<"histogram_fixed_width", "\"HistogramFixedWidth\"", "histogram"> {
  let arguments = (ins DFG_Tensor:$values, DFG_Tensor:$value_range, DFG_Tensor:$nbins);
  let results = oneResult;
  let types = "T:0 dtype:r0";
}
def DFG_InTopKOp : DFG_Composite<"in_top_k", "\"InTopK\"", "inTopK"> {
  let arguments = (ins DFG_Tensor:$predictions, DFG_Tensor:$targets, I64Attr:$k);
  let results = oneResult;
  let types = "T:1 =bool:r0";
}
def DFG_InTopKV2Op : DFG_Composite<"in_top_k_v2", "\"InTopKV2\"", "inTopK"> {
  let arguments = (ins DFG_Tensor:$predictions, DFG_Tensor:$targets, DFG_Tensor:$k);
  let results = oneResult;
  let types = "T:1 =bool:r0";
}
def DFG_NthElementOp : DFG_Composite<"nth_element", "\"NthElement\"", "nthElement"> {
  let summary = "The n-th smallest (or largest) element of each row, counted from 0";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$n, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = oneResult;
  let types = "T:0";
}
def DFG_UnravelIndexOp : DFG_Composite<"unravel_index", "\"UnravelIndex\"", "unravelIndex"> {
  let summary = "The coordinates of places in a row-major tensor, an axis a row";
  let arguments = (ins DFG_Tensor:$indices, DFG_Tensor:$dims);
  let results = oneResult;
  let types = "Tidx:0";
}

// ---- Images of another size -----------------------------------------------------------------------------------
class DFG_Resize<string mnemonic, string tensorflow, string decomposition, dag operands, string attributes, list<Trait> traits = []>
    : DFG_Composite<mnemonic, tensorflow, decomposition, [Pure] # traits> {
  let arguments = !con(operands, (ins DefaultValuedAttr<BoolAttr, "false">:$align_corners, DefaultValuedAttr<BoolAttr, "false">:$half_pixel_centers));
  let results = oneResult;
  let types = attributes;
  let linearity = "First";
}
defvar imagesAndSize = (ins DFG_Tensor:$images, DFG_Tensor:$size);
def DFG_ResizeAreaOp : DFG_Composite<"resize_area", "\"ResizeArea\"", "resizeArea"> {
  let arguments = !con(imagesAndSize, (ins DefaultValuedAttr<BoolAttr, "false">:$align_corners));
  let results = oneResult;
  let types = "T:0 =float32:r0";
  let linearity = "First";
}
def DFG_ResizeBilinearOp : DFG_Resize<"resize_bilinear", "\"ResizeBilinear\"", "resizeBilinear", imagesAndSize, "T:0 =float32:r0">;
def DFG_ResizeBicubicOp : DFG_Resize<"resize_bicubic", "\"ResizeBicubic\"", "resizeBicubic", imagesAndSize, "T:0 =float32:r0">;
def DFG_ResizeNearestNeighborOp : DFG_Resize<"resize_nearest_neighbor", "\"ResizeNearestNeighbor\"", "resizeNearest", imagesAndSize, "T:0", [DFG_Moves]>;
defvar gradsAndImage = (ins DFG_Tensor:$grads, DFG_Tensor:$original_image);
def DFG_ResizeBilinearGradOp : DFG_Resize<"resize_bilinear_grad", "\"ResizeBilinearGrad\"", "resizeBilinearGrad", gradsAndImage, "T:1">;
def DFG_ResizeBicubicGradOp : DFG_Resize<"resize_bicubic_grad", "\"ResizeBicubicGrad\"", "resizeBicubicGrad", gradsAndImage, "T:1">;
def DFG_ResizeNearestNeighborGradOp : DFG_Resize<"resize_nearest_neighbor_grad", "\"ResizeNearestNeighborGrad\"", "resizeNearestGrad",
                                                 (ins DFG_Tensor:$grads, DFG_Tensor:$size), "T:0">;

class DFG_ScaleAndTranslate<string mnemonic, string tensorflow, string decomposition, dag operands, string attributes>
    : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins DFG_Tensor:$scale, DFG_Tensor:$translation, DefaultValuedAttr<StrAttr, "\"lanczos3\"">:$kernel_type,
                                      DefaultValuedAttr<BoolAttr, "true">:$antialias));
  let results = oneResult;
  let types = attributes;
  let linearity = "First";
}
def DFG_ScaleAndTranslateOp : DFG_ScaleAndTranslate<"scale_and_translate", "\"ScaleAndTranslate\"", "scaleAndTranslate", imagesAndSize,
                                                    "T:0 =float32:r0">;
def DFG_ScaleAndTranslateGradOp : DFG_ScaleAndTranslate<"scale_and_translate_grad", "\"ScaleAndTranslateGrad\"", "scaleAndTranslateGrad",
                                                        gradsAndImage, "T:1">;

// Each image as seen through a projection of its own, or all through one.
class DFG_ImageProjectiveTransform<string mnemonic, string tensorflow, dag operands>
    : DFG_Composite<mnemonic, tensorflow, "projectImages"> {
  let arguments = !con((ins DFG_Tensor:$images, DFG_Tensor:$transforms, DFG_Tensor:$output_shape), operands,
                       (ins StrAttr:$interpolation, DefaultValuedAttr<StrAttr, "\"CONSTANT\"">:$fill_mode));
  let results = oneResult;
  let types = "dtype:0";
}
def DFG_ImageProjectiveTransformV2Op : DFG_ImageProjectiveTransform<"image_projective_transform_v2", "\"ImageProjectiveTransformV2\"", (ins)>;
def DFG_ImageProjectiveTransformV3Op : DFG_ImageProjectiveTransform<"image_projective_transform_v3", "\"ImageProjectiveTransformV3\"",
                                                                    (ins DFG_Tensor:$fill_value)>;

class DFG_Crop<string mnemonic, string tensorflow, string decomposition, dag operands, string attributes>
    : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins DefaultValuedAttr<StrAttr, "\"bilinear\"">:$method));
  let results = oneResult;
  let types = attributes;
}
def DFG_CropAndResizeOp : DFG_Crop<"crop_and_resize", "\"CropAndResize\"", "cropAndResize",
    (ins DFG_Tensor:$image, DFG_Tensor:$boxes, DFG_Tensor:$box_ind, DFG_Tensor:$crop_size,
         DefaultValuedAttr<F32Attr, "0.0f">:$extrapolation_value), "T:0 =float32:r0">;
def DFG_CropAndResizeGradImageOp : DFG_Crop<"crop_and_resize_grad_image", "\"CropAndResizeGradImage\"", "cropAndResizeGradImage",
    (ins DFG_Tensor:$grads, DFG_Tensor:$boxes, DFG_Tensor:$box_ind, DFG_Tensor:$image_size), "T:r0">;
def DFG_CropAndResizeGradBoxesOp : DFG_Crop<"crop_and_resize_grad_boxes", "\"CropAndResizeGradBoxes\"", "cropAndResizeGradBoxes",
    (ins DFG_Tensor:$grads, DFG_Tensor:$image, DFG_Tensor:$boxes, DFG_Tensor:$box_ind), "T:1 =float32:r0">;

// ---- Windows ----------------------------------------------------------------------------------------------------
class DFG_Convolution3D<string mnemonic, string tensorflow, string decomposition, dag operands, string attributes = "T:r0">
    : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins I64ArrayAttr:$strides, StrAttr:$padding, DefaultValuedAttr<StrAttr, "\"NDHWC\"">:$data_format,
                                      DefaultValuedAttr<I64ArrayAttr, "{1, 1, 1, 1, 1}">:$dilations));
  let results = oneResult;
  let types = attributes;
  let linearity = "Each";
}
def DFG_Conv3DOp : DFG_Convolution3D<"conv_3d", "\"Conv3D\"", "conv3d", (ins DFG_Tensor:$input, DFG_Tensor:$filter)>;
def DFG_Conv3DBackpropInputV2Op : DFG_Convolution3D<"conv_3d_backprop_input_v2", "\"Conv3DBackpropInputV2\"", "conv3dGradInput",
    (ins DFG_Tensor:$input_sizes, DFG_Tensor:$filter, DFG_Tensor:$out_backprop), "T:1 Tshape:0">;
def DFG_Conv3DBackpropFilterV2Op : DFG_Convolution3D<"conv_3d_backprop_filter_v2", "\"Conv3DBackpropFilterV2\"", "conv3dGradFilter",
    (ins DFG_Tensor:$input, DFG_Tensor:$filter_sizes, DFG_Tensor:$out_backprop)>;
class DFG_Pooling3D<string mnemonic, string tensorflow, string decomposition, dag operands, string attributes>
    : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins I64ArrayAttr:$ksize, I64ArrayAttr:$strides, StrAttr:$padding,
                                      DefaultValuedAttr<StrAttr, "\"NDHWC\"">:$data_format));
  let results = oneResult;
  let types = attributes;
}
def DFG_MaxPool3DOp : DFG_Pooling3D<"max_pool_3d", "\"MaxPool3D\"", "maxPool3d", (ins DFG_Tensor:$input), "T:0">;
def DFG_AvgPool3DOp : DFG_Pooling3D<"avg_pool_3d", "\"AvgPool3D\"", "avgPool3d", (ins DFG_Tensor:$input), "T:0"> { let linearity = "Joint"; }
def DFG_MaxPool3DGradOp : DFG_Pooling3D<"max_pool_3d_grad", "\"MaxPool3DGrad\"", "maxPool3dGrad",
    (ins DFG_Tensor:$orig_input, DFG_Tensor:$orig_output, DFG_Tensor:$grad), "T:2 TInput:0"> { let linearity = "Last"; }
def DFG_AvgPool3DGradOp : DFG_Pooling3D<"avg_pool_3d_grad", "\"AvgPool3DGrad\"", "avgPool3dGrad",
    (ins DFG_Tensor:$orig_input_shape, DFG_Tensor:$grad), "T:1"> { let linearity = "Joint"; }

class DFG_ArgmaxPooling<string mnemonic, string tensorflow, string decomposition, dag operands, dag outputs, string attributes>
    : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins I64ArrayAttr:$ksize, I64ArrayAttr:$strides, StrAttr:$padding,
                                      DefaultValuedAttr<BoolAttr, "false">:$include_batch_in_index));
  let results = outputs;
  let types = attributes;
}
def DFG_MaxPoolWithArgmaxOp : DFG_ArgmaxPooling<"max_pool_with_argmax", "\"MaxPoolWithArgmax\"", "maxPoolWithArgmax", (ins DFG_Tensor:$input),
    (outs DFG_Tensor:$output, DFG_Tensor:$argmax), "T:0 Targmax:r1">;
def DFG_MaxPoolGradWithArgmaxOp : DFG_ArgmaxPooling<"max_pool_grad_with_argmax", "\"MaxPoolGradWithArgmax\"", "maxPoolGradWithArgmax",
    (ins DFG_Tensor:$input, DFG_Tensor:$grad, DFG_Tensor:$argmax), oneResult, "T:0 Targmax:2">;

class DFG_Dilation<string mnemonic, string tensorflow, string decomposition, dag operands> : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins I64ArrayAttr:$strides, I64ArrayAttr:$rates, StrAttr:$padding));
  let results = oneResult;
  let types = "T:0";
}
def DFG_Dilation2DOp : DFG_Dilation<"dilation_2d", "\"Dilation2D\"", "dilation2d", (ins DFG_Tensor:$input, DFG_Tensor:$filter)>;
def DFG_Dilation2DBackpropInputOp : DFG_Dilation<"dilation_2d_backprop_input", "\"Dilation2DBackpropInput\"", "dilation2dGrad",
    (ins DFG_Tensor:$input, DFG_Tensor:$filter, DFG_Tensor:$out_backprop)> { let linearity = "Last"; }
def DFG_Dilation2DBackpropFilterOp : DFG_Dilation<"dilation_2d_backprop_filter", "\"Dilation2DBackpropFilter\"", "dilation2dGrad",
    (ins DFG_Tensor:$input, DFG_Tensor:$filter, DFG_Tensor:$out_backprop)> { let linearity = "Last"; }

// The gradient at the places of the windows' largest elements.
class DFG_PoolingGradGrad<string mnemonic, string tensorflow, string format> : DFG_Composite<mnemonic, tensorflow, "maxPoolGradGrad"> {
  let arguments = (ins DFG_Tensor:$orig_input, DFG_Tensor:$orig_output, DFG_Tensor:$grad, I64ArrayAttr:$ksize, I64ArrayAttr:$strides,
                       StrAttr:$padding, DefaultValuedAttr<StrAttr, format>:$data_format);
  let results = oneResult;
  let types = "T:0";
  let linearity = "Last";
}
def DFG_MaxPoolGradGradOp : DFG_PoolingGradGrad<"max_pool_grad_grad", "\"MaxPoolGradGrad\"", "\"NHWC\"">;
def DFG_MaxPool3DGradGradOp : DFG_PoolingGradGrad<"max_pool_3d_grad_grad", "\"MaxPool3DGradGrad\"", "\"NDHWC\"">;
// Windows that are operands.
class DFG_PoolingV2<string mnemonic, string tensorflow, string decomposition, dag operands> : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, (ins DFG_Tensor:$ksize, DFG_Tensor:$strides, StrAttr:$padding,
                                      DefaultValuedAttr<StrAttr, "\"NHWC\"">:$data_format));
  let results = oneResult;
  let types = "T:0";
}
def DFG_MaxPoolV2Op : DFG_PoolingV2<"max_pool_v2", "\"MaxPoolV2\"", "maxPoolV2", (ins DFG_Tensor:$input)>;
def DFG_MaxPoolGradV2Op : DFG_PoolingV2<"max_pool_grad_v2", "\"MaxPoolGradV2\"", "maxPoolV2",
    (ins DFG_Tensor:$orig_input, DFG_Tensor:$orig_output, DFG_Tensor:$grad)>;

// Windows whose sizes are drawn (Graham, Fractional max-pooling, 2014): dfg.fractional_sequences.
class DFG_FractionalPool<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "fractionalPool", [MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins DFG_Tensor:$value, ArrayAttr:$pooling_ratio, DefaultValuedAttr<BoolAttr, "false">:$pseudo_random,
                       DefaultValuedAttr<BoolAttr, "false">:$overlapping, DefaultValuedAttr<BoolAttr, "false">:$deterministic,
                       DefaultValuedAttr<I64Attr, "0">:$seed, DefaultValuedAttr<I64Attr, "0">:$seed2);
  let results = (outs DFG_Tensor:$output, DFG_Tensor:$row_pooling_sequence, DFG_Tensor:$col_pooling_sequence);
  let types = "T:0 =int64:r1 =int64:r2";
}
def DFG_FractionalMaxPoolOp : DFG_FractionalPool<"fractional_max_pool", "\"FractionalMaxPool\"">;
def DFG_FractionalAvgPoolOp : DFG_FractionalPool<"fractional_avg_pool", "\"FractionalAvgPool\""> { let linearity = "Joint"; }
def DFG_FractionalAvgPoolGradOp : DFG_Composite<"fractional_avg_pool_grad", "\"FractionalAvgPoolGrad\"", "fractionalAvgPoolGrad"> {
  let arguments = (ins DFG_Tensor:$orig_input_tensor_shape, DFG_Tensor:$out_backprop, DFG_Tensor:$row_pooling_sequence,
                       DFG_Tensor:$col_pooling_sequence, DefaultValuedAttr<BoolAttr, "false">:$overlapping);
  let results = oneResult;
  let types = "T:1";
  let linearity = "Joint";
}

// ---- Segments of rows ---------------------------------------------------------------------------------------------
class DFG_Segments<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "segments"> {
  let arguments = (ins DFG_Tensor:$data, DFG_Tensor:$segment_ids);
  let results = oneResult;
  let types = "T:0 Tindices:1";
}
def DFG_SegmentSumOp : DFG_Segments<"segment_sum", "\"SegmentSum\""> { let linearity = "First"; }
def DFG_SegmentMeanOp : DFG_Segments<"segment_mean", "\"SegmentMean\""> { let linearity = "First"; }
def DFG_SegmentProdOp : DFG_Segments<"segment_prod", "\"SegmentProd\"">;
def DFG_SegmentMaxOp : DFG_Segments<"segment_max", "\"SegmentMax\"">;
def DFG_SegmentMinOp : DFG_Segments<"segment_min", "\"SegmentMin\"">;
class DFG_SegmentsV2<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "segments"> {
  let arguments = (ins DFG_Tensor:$data, DFG_Tensor:$segment_ids, DFG_Tensor:$num_segments);
  let results = oneResult;
  let types = "T:0 Tindices:1 Tnumsegments:2";
}
def DFG_SegmentSumV2Op : DFG_SegmentsV2<"segment_sum_v2", "\"SegmentSumV2\""> { let linearity = "First"; }
def DFG_SegmentProdV2Op : DFG_SegmentsV2<"segment_prod_v2", "\"SegmentProdV2\"">;
def DFG_SegmentMaxV2Op : DFG_SegmentsV2<"segment_max_v2", "\"SegmentMaxV2\"">;
def DFG_SegmentMinV2Op : DFG_SegmentsV2<"segment_min_v2", "\"SegmentMinV2\"">;
defvar sparseGradient = (ins DefaultValuedAttr<BoolAttr, "false">:$sparse_gradient);
let linearity = "First" in {
class DFG_SparseSegments<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "sparseSegments"> {
  let arguments = !con((ins DFG_Tensor:$data, DFG_Tensor:$indices, DFG_Tensor:$segment_ids), sparseGradient);
  let results = oneResult;
  let types = "T:0 Tidx:1 Tsegmentids:2";
}
def DFG_SparseSegmentSumOp : DFG_SparseSegments<"sparse_segment_sum", "\"SparseSegmentSum\"">;
def DFG_SparseSegmentMeanOp : DFG_SparseSegments<"sparse_segment_mean", "\"SparseSegmentMean\"">;
def DFG_SparseSegmentSqrtNOp : DFG_SparseSegments<"sparse_segment_sqrt_n", "\"SparseSegmentSqrtN\"">;
class DFG_SparseSegmentsWithNum<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "sparseSegments"> {
  let arguments = !con((ins DFG_Tensor:$data, DFG_Tensor:$indices, DFG_Tensor:$segment_ids, DFG_Tensor:$num_segments), sparseGradient);
  let results = oneResult;
  let types = "T:0 Tidx:1 Tsegmentids:2 Tnumsegments:3";
}
def DFG_SparseSegmentSumWithNumSegmentsOp : DFG_SparseSegmentsWithNum<"sparse_segment_sum_with_num_segments", "\"SparseSegmentSumWithNumSegments\"">;
def DFG_SparseSegmentMeanWithNumSegmentsOp : DFG_SparseSegmentsWithNum<"sparse_segment_mean_with_num_segments", "\"SparseSegmentMeanWithNumSegments\"">;
def DFG_SparseSegmentSqrtNWithNumSegmentsOp : DFG_SparseSegmentsWithNum<"sparse_segment_sqrt_n_with_num_segments", "\"SparseSegmentSqrtNWithNumSegments\"">;
class DFG_SparseSegmentsGrad<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "sparseSegmentsGrad"> {
  let arguments = (ins DFG_Tensor:$grad, DFG_Tensor:$indices, DFG_Tensor:$segment_ids, DFG_Tensor:$output_dim0);
  let results = oneResult;
  let types = "T:0 Tidx:1 Tsegmentids:2";
}
def DFG_SparseSegmentSumGradOp : DFG_SparseSegmentsGrad<"sparse_segment_sum_grad", "\"SparseSegmentSumGrad\"">;
def DFG_SparseSegmentMeanGradOp : DFG_SparseSegmentsGrad<"sparse_segment_mean_grad", "\"SparseSegmentMeanGrad\"">;
def DFG_SparseSegmentSqrtNGradOp : DFG_SparseSegmentsGrad<"sparse_segment_sqrt_n_grad", "\"SparseSegmentSqrtNGrad\"">;
class DFG_SparseSegmentsGradV2<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "sparseSegmentsGradV2"> {
  let summary = "The gradient of the rows that were taken, each once, and which they are, in order";
  let arguments = (ins DFG_Tensor:$grad, DFG_Tensor:$indices, DFG_Tensor:$segment_ids, DFG_Tensor:$dense_output_dim0);
  let results = (outs DFG_Tensor:$rows, DFG_Tensor:$sorted_unique_indices);
  let types = "T:0 Tidx:r1 Tsegmentids:2";
}
def DFG_SparseSegmentSumGradV2Op : DFG_SparseSegmentsGradV2<"sparse_segment_sum_grad_v2", "\"SparseSegmentSumGradV2\"">;
def DFG_SparseSegmentMeanGradV2Op : DFG_SparseSegmentsGradV2<"sparse_segment_mean_grad_v2", "\"SparseSegmentMeanGradV2\"">;
def DFG_SparseSegmentSqrtNGradV2Op : DFG_SparseSegmentsGradV2<"sparse_segment_sqrt_n_grad_v2", "\"SparseSegmentSqrtNGradV2\"">;
}

// ---- Recurrent layers ------------------------------------------------------------------------------------------------
defvar lstmWeights = (ins DFG_Tensor:$w, DFG_Tensor:$wci, DFG_Tensor:$wcf, DFG_Tensor:$wco, DFG_Tensor:$b);
defvar lstmStates = (ins DFG_Tensor:$cs_prev, DFG_Tensor:$h_prev);
defvar lstmParts = (ins DFG_Tensor:$i, DFG_Tensor:$cs, DFG_Tensor:$f, DFG_Tensor:$o, DFG_Tensor:$ci, DFG_Tensor:$co);
class DFG_Lstm<string mnemonic, string tensorflow, string decomposition, dag operands, dag attributes, string rules>
    : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con(operands, attributes, (ins DefaultValuedAttr<BoolAttr, "false">:$use_peephole));
  let results = (outs DFG_Tensor:$i_out, DFG_Tensor:$cs_out, DFG_Tensor:$f_out, DFG_Tensor:$o_out, DFG_Tensor:$ci_out, DFG_Tensor:$co_out, DFG_Tensor:$h_out);
  let types = rules;
}
defvar biasAndClip = (ins DefaultValuedAttr<F32Attr, "1.0f">:$forget_bias, DefaultValuedAttr<F32Attr, "3.0f">:$cell_clip);
defvar lstmLayer = !con((ins DFG_Tensor:$seq_len_max, DFG_Tensor:$x), lstmStates, lstmWeights);
def DFG_LSTMBlockCellOp : DFG_Lstm<"lstm_block_cell", "\"LSTMBlockCell\"", "lstmBlockCell", !con((ins DFG_Tensor:$x), lstmStates, lstmWeights),
                                   biasAndClip, "T:0">;
def DFG_BlockLSTMOp : DFG_Lstm<"block_lstm", "\"BlockLSTM\"", "blockLstm", lstmLayer, biasAndClip, "T:1">;
def DFG_BlockLSTMV2Op : DFG_Lstm<"block_lstm_v2", "\"BlockLSTMV2\"", "blockLstm", lstmLayer, (ins DefaultValuedAttr<F32Attr, "0.0f">:$cell_clip), "T:1">;
def DFG_LSTMBlockCellGradOp : DFG_Composite<"lstm_block_cell_grad", "\"LSTMBlockCellGrad\"", "lstmBlockCellGrad"> {
  let arguments = !con((ins DFG_Tensor:$x), lstmStates, lstmWeights, lstmParts, (ins DFG_Tensor:$cs_grad, DFG_Tensor:$h_grad, BoolAttr:$use_peephole));
  let results = (outs DFG_Tensor:$cs_prev_grad, DFG_Tensor:$dicfo, DFG_Tensor:$wci_grad, DFG_Tensor:$wcf_grad, DFG_Tensor:$wco_grad);
  let types = "T:0";
}
class DFG_BlockLstmGrad<string mnemonic, string tensorflow> : DFG_Composite<mnemonic, tensorflow, "blockLstmGrad"> {
  let arguments = !con(lstmLayer, lstmParts, (ins DFG_Tensor:$h, DFG_Tensor:$cs_grad, DFG_Tensor:$h_grad, BoolAttr:$use_peephole));
  let results = (outs DFG_Tensor:$x_grad, DFG_Tensor:$cs_prev_grad, DFG_Tensor:$h_prev_grad, DFG_Tensor:$w_grad, DFG_Tensor:$wci_grad,
                      DFG_Tensor:$wcf_grad, DFG_Tensor:$wco_grad, DFG_Tensor:$b_grad);
  let types = "T:1";
}
def DFG_BlockLSTMGradOp : DFG_BlockLstmGrad<"block_lstm_grad", "\"BlockLSTMGrad\"">;
def DFG_BlockLSTMGradV2Op : DFG_BlockLstmGrad<"block_lstm_grad_v2", "\"BlockLSTMGradV2\"">;
defvar gruOperands = (ins DFG_Tensor:$x, DFG_Tensor:$h_prev, DFG_Tensor:$w_ru, DFG_Tensor:$w_c, DFG_Tensor:$b_ru, DFG_Tensor:$b_c);
def DFG_GRUBlockCellOp : DFG_Composite<"gru_block_cell", "\"GRUBlockCell\"", "gruBlockCell"> {
  let arguments = gruOperands;
  let results = (outs DFG_Tensor:$r, DFG_Tensor:$u, DFG_Tensor:$c, DFG_Tensor:$h);
  let types = "T:0";
}
def DFG_GRUBlockCellGradOp : DFG_Composite<"gru_block_cell_grad", "\"GRUBlockCellGrad\"", "gruBlockCellGrad"> {
  let arguments = !con(gruOperands, (ins DFG_Tensor:$r, DFG_Tensor:$u, DFG_Tensor:$c, DFG_Tensor:$d_h));
  let results = (outs DFG_Tensor:$d_x, DFG_Tensor:$d_h_prev, DFG_Tensor:$d_c_bar, DFG_Tensor:$d_r_bar_u_bar);
  let types = "T:0";
}

// ---- Losses of sequences ------------------------------------------------------------------------------------------
def DFG_CTCLossOp : DFG_Composite<"ctc_loss", "\"CTCLoss\"", "ctcLoss"> {
  let summary = "Connectionist temporal classification: a row of labels an example, dfg.ctc_loss_rows";
  let arguments = (ins DFG_Tensor:$inputs, DFG_Tensor:$labels_indices, DFG_Tensor:$labels_values, DFG_Tensor:$sequence_length,
                       DefaultValuedAttr<BoolAttr, "false">:$preprocess_collapse_repeated,
                       DefaultValuedAttr<BoolAttr, "true">:$ctc_merge_repeated,
                       DefaultValuedAttr<BoolAttr, "false">:$ignore_longer_outputs_than_inputs);
  let results = (outs DFG_Tensor:$loss, DFG_Tensor:$gradient);
  let types = "T:0";
}

// ---- Ragged tensors: values, and where each row of them begins ------------------------------------------------------
def DFG_RaggedTensorToTensorOp : DFG_Composite<"ragged_tensor_to_tensor", "\"RaggedTensorToTensor\"", "raggedToTensor"> {
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$values, DFG_Tensor:$default_value, Variadic<DFG_Tensor>:$row_partition_tensors,
                       ArrayAttr:$row_partition_types);
  let results = oneResult;
  let types = "T:1 Tindex:3 Tshape:0 num_row_partition_tensors:#-3";
}
def DFG_RaggedTensorToSparseOp : DFG_Composite<"ragged_tensor_to_sparse", "\"RaggedTensorToSparse\"", "raggedToSparse"> {
  let arguments = (ins Variadic<DFG_Tensor>:$splits_and_values);
  let results = (outs DFG_Tensor:$places, DFG_Tensor:$values, DFG_Tensor:$sizes);
  let types = "T:-1 Tsplits:0 RAGGED_RANK:#-1 =int64:r0 =int64:r2";
}
def DFG_RaggedRangeOp : DFG_Composite<"ragged_range", "\"RaggedRange\"", "raggedRange"> {
  let arguments = (ins DFG_Tensor:$starts, DFG_Tensor:$limits, DFG_Tensor:$deltas);
  let results = (outs DFG_Tensor:$splits, DFG_Tensor:$values);
  let types = "T:0 Tsplits:r0";
}
def DFG_RaggedGatherOp : DFG_Composite<"ragged_gather", "\"RaggedGather\"", "raggedGather"> {
  let arguments = (ins Variadic<DFG_Tensor>:$splits_values_and_indices, I64Attr:$OUTPUT_RAGGED_RANK);
  let results = (outs Variadic<DFG_Tensor>:$splits_and_values);
  let types = "Tvalues:-2 Tindices:-1 Tsplits:0 PARAMS_RAGGED_RANK:#-2 =any:r*";
}

// ---- Sparse tensors: indices and values --------------------------------------------------------------------------
def DFG_SparseToDenseOp : DFG_Composite<"sparse_to_dense", "\"SparseToDense\"", "sparseToDense"> {
  let arguments = (ins DFG_Tensor:$sparse_indices, DFG_Tensor:$output_shape, DFG_Tensor:$sparse_values, DFG_Tensor:$default_value,
                       DefaultValuedAttr<BoolAttr, "true">:$validate_indices);
  let results = oneResult;
  let types = "T:2 Tindices:0";
}
def DFG_SparseTensorDenseMatMulOp : DFG_Composite<"sparse_tensor_dense_mat_mul", "\"SparseTensorDenseMatMul\"", "sparseTensorDenseMatMul"> {
  let arguments = (ins DFG_Tensor:$a_indices, DFG_Tensor:$a_values, DFG_Tensor:$a_shape, DFG_Tensor:$b,
                       DefaultValuedAttr<BoolAttr, "false">:$adjoint_a, DefaultValuedAttr<BoolAttr, "false">:$adjoint_b);
  let results = oneResult;
  let types = "T:1 Tindices:0";
}

class DFG_OfSparse<string mnemonic, string tensorflow, string decomposition, dag operands, dag outputs, string attributes>
    : DFG_Composite<mnemonic, tensorflow, decomposition> {
  let arguments = !con((ins DFG_Tensor:$sp_indices, DFG_Tensor:$sp_values, DFG_Tensor:$sp_shape), operands);
  let results = outputs;
  let types = attributes;
}
let linearity = "First" in {
def DFG_SparseReduceSumOp : DFG_OfSparse<"sparse_reduce_sum", "\"SparseReduceSum\"", "sparseReduce",
    (ins DFG_Tensor:$axes, DefaultValuedAttr<BoolAttr, "false">:$keep_dims), oneResult, "T:1">;
def DFG_SparseReorderOp : DFG_OfSparse<"sparse_reorder", "\"SparseReorder\"", "sparseReorder", (ins),
    (outs DFG_Tensor:$places, DFG_Tensor:$values), "T:1 =int64:r0"> {
  let summary = "Places and values in row-major order";
}
def DFG_SparseDenseCwiseDivOp : DFG_OfSparse<"sparse_dense_cwise_div", "\"SparseDenseCwiseDiv\"", "sparseWithDense", (ins DFG_Tensor:$dense), oneResult, "T:1">;
}
def DFG_SparseReduceMaxOp : DFG_OfSparse<"sparse_reduce_max", "\"SparseReduceMax\"", "sparseReduce",
    (ins DFG_Tensor:$axes, DefaultValuedAttr<BoolAttr, "false">:$keep_dims), oneResult, "T:1">;
def DFG_SparseDenseCwiseAddOp : DFG_OfSparse<"sparse_dense_cwise_add", "\"SparseDenseCwiseAdd\"", "sparseWithDense", (ins DFG_Tensor:$dense), oneResult, "T:1"> {
  let linearity = "Joint";
}
def DFG_SparseDenseCwiseMulOp : DFG_OfSparse<"sparse_dense_cwise_mul", "\"SparseDenseCwiseMul\"", "sparseWithDense", (ins DFG_Tensor:$dense), oneResult, "T:1"> {
  let linearity = "Each";
}
def DFG_SparseTensorDenseAddOp : DFG_OfSparse<"sparse_tensor_dense_add", "\"SparseTensorDenseAdd\"", "sparseTensorDenseAdd", (ins DFG_Tensor:$dense),
                                              oneResult, "T:1 Tindices:0"> {
  let linearity = "Joint";
}
def DFG_SparseSoftmaxOp : DFG_OfSparse<"sparse_softmax", "\"SparseSoftmax\"", "sparseSoftmax", (ins), oneResult, "T:1">;
def DFG_SparseAddOp : DFG_Composite<"sparse_add", "\"SparseAdd\"", "sparseAdd"> {
  let arguments = (ins DFG_Tensor:$a_indices, DFG_Tensor:$a_values, DFG_Tensor:$a_shape, DFG_Tensor:$b_indices, DFG_Tensor:$b_values,
                       DFG_Tensor:$b_shape, DFG_Tensor:$thresh);
  let results = (outs DFG_Tensor:$places, DFG_Tensor:$values, DFG_Tensor:$sizes);
  let types = "T:1 Treal:6 =int64:r0 =int64:r2";
}
def DFG_SparseAddGradOp : DFG_Composite<"sparse_add_grad", "\"SparseAddGrad\"", "sparseAddGrad"> {
  let arguments = (ins DFG_Tensor:$backprop_val_grad, DFG_Tensor:$a_indices, DFG_Tensor:$b_indices, DFG_Tensor:$sum_indices);
  let results = (outs DFG_Tensor:$a_val_grad, DFG_Tensor:$b_val_grad);
  let types = "T:0";
  let linearity = "First";
}
def DFG_SparseConcatOp : DFG_Composite<"sparse_concat", "\"SparseConcat\"", "sparseConcat"> {
  let arguments = (ins Variadic<DFG_Tensor>:$indices_values_and_shapes, I64Attr:$concat_dim);
  let results = (outs DFG_Tensor:$places, DFG_Tensor:$values, DFG_Tensor:$sizes);
  let types = "T:r1 N:#/3 =int64:r0 =int64:r2";
}
// Those of a block of places, which are counted from its first then.
def DFG_SparseSliceOp : DFG_Composite<"sparse_slice", "\"SparseSlice\"", "sparseSlice"> {
  let arguments = (ins DFG_Tensor:$places, DFG_Tensor:$values, DFG_Tensor:$dimensions, DFG_Tensor:$start, DFG_Tensor:$size);
  let results = (outs DFG_Tensor:$places_out, DFG_Tensor:$values_out, DFG_Tensor:$dimensions_out);
  let types = "T:1 =int64:r0 =int64:r2";
}
def DFG_SparseSliceGradOp : DFG_Composite<"sparse_slice_grad", "\"SparseSliceGrad\"", "sparseSliceGrad"> {
  let arguments = (ins DFG_Tensor:$backprop_val_grad, DFG_Tensor:$input_indices, DFG_Tensor:$input_start, DFG_Tensor:$output_indices);
  let results = oneResult;
  let types = "T:0";
  let linearity = "First";
}
def DFG_SparseSplitOp : DFG_Composite<"sparse_split", "\"SparseSplit\"", "sparseSplit"> {
  let arguments = (ins DFG_Tensor:$split_dim, DFG_Tensor:$places, DFG_Tensor:$values, DFG_Tensor:$dimensions, I64Attr:$num_split);
  let results = (outs Variadic<DFG_Tensor>:$parts);
  let types = "T:2 =any:r*";
}
def DFG_SparseFillEmptyRowsGradOp : DFG_Composite<"sparse_fill_empty_rows_grad", "\"SparseFillEmptyRowsGrad\"", "sparseFillEmptyRowsGrad"> {
  let arguments = (ins DFG_Tensor:$reverse_index_map, DFG_Tensor:$grad_values);
  let results = (outs DFG_Tensor:$d_values, DFG_Tensor:$d_default_value);
  let types = "T:1";
  let linearity = "Joint";
}

// ---- Random numbers, of those that generators draw -------------------------------------------------------------------
defvar drawing = [MemoryEffects<[MemRead, MemWrite]>];
defvar twoSeeds = (ins DefaultValuedAttr<I64Attr, "0">:$seed, DefaultValuedAttr<I64Attr, "0">:$seed2);
def DFG_MultinomialOp : DFG_Composite<"multinomial", "\"Multinomial\"", "multinomial", drawing> {
  let summary = "Classes by their log-probabilities, as TensorFlow's CPU kernel draws them on one thread";
  let arguments = !con((ins DFG_Tensor:$logits, DFG_Tensor:$num_samples), twoSeeds);
  let results = oneResult;
  let types = "T:0 output_dtype:r0";
}
def DFG_StatelessMultinomialOp : DFG_Composite<"stateless_multinomial", "\"StatelessMultinomial\"", "multinomial"> {
  let arguments = (ins DFG_Tensor:$logits, DFG_Tensor:$num_samples, DFG_Tensor:$seed);
  let results = oneResult;
  let types = "T:0 Tseed:2 output_dtype:r0";
}
def DFG_RandomShuffleOp : DFG_Composite<"random_shuffle", "\"RandomShuffle\"", "randomShuffle", drawing> {
  let arguments = !con((ins DFG_Tensor:$value), twoSeeds);
  let results = oneResult;
  let types = "T:0";
}
def DFG_RandomGammaOp : DFG_Composite<"random_gamma", "\"RandomGamma\"", "randomGamma", drawing> {
  let arguments = !con((ins DFG_Tensor:$dimensions, DFG_Tensor:$alpha), twoSeeds);
  let results = oneResult;
  let types = "T:1 S:0";
}
def DFG_RandomPoissonV2Op : DFG_Composite<"random_poisson_v2", "\"RandomPoissonV2\"", "randomPoisson", drawing> {
  let arguments = !con((ins DFG_Tensor:$dimensions, DFG_Tensor:$rate), twoSeeds);
  let results = oneResult;
  let types = "S:0 R:1 dtype:r0";
}
def DFG_StatelessRandomGammaV2Op : DFG_Composite<"stateless_random_gamma_v2", "\"StatelessRandomGammaV2\"", "randomGamma"> {
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$seed, DFG_Tensor:$alpha);
  let results = oneResult;
  let types = "dtype:2 T:0 Tseed:1";
}
def DFG_StatelessRandomGammaV3Op : DFG_Composite<"stateless_random_gamma_v3", "\"StatelessRandomGammaV3\"", "randomGamma"> {
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$key, DFG_Tensor:$counter, DFG_Tensor:$alg, DFG_Tensor:$alpha);
  let results = oneResult;
  let types = "dtype:4 shape_dtype:0";
}
def DFG_StatelessRandomPoissonOp : DFG_Composite<"stateless_random_poisson", "\"StatelessRandomPoisson\"", "randomPoisson"> {
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$seed, DFG_Tensor:$lam);
  let results = oneResult;
  let types = "T:0 Tseed:1 Rtype:2 dtype:r0";
}
def DFG_StatelessRandomBinomialOp : DFG_Composite<"stateless_random_binomial", "\"StatelessRandomBinomial\"", "randomBinomial"> {
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$seed, DFG_Tensor:$counts, DFG_Tensor:$probs);
  let results = oneResult;
  let types = "S:0 Tseed:1 T:2 dtype:r0";
}
// Normal numbers that lie between two bounds.
defvar normalBetween = (ins DFG_Tensor:$means, DFG_Tensor:$stddevs, DFG_Tensor:$minvals, DFG_Tensor:$maxvals);
def DFG_StatelessParameterizedTruncatedNormalOp : DFG_Composite<"stateless_parameterized_truncated_normal",
    "\"StatelessParameterizedTruncatedNormal\"", "truncatedNormalBetween"> {
  let arguments = !con((ins DFG_Tensor:$dimensions, DFG_Tensor:$seed), normalBetween);
  let results = oneResult;
  let types = "dtype:2 S:0 Tseed:1";
}
def DFG_ParameterizedTruncatedNormalOp : DFG_Composite<"parameterized_truncated_normal", "\"ParameterizedTruncatedNormal\"",
                                                       "truncatedNormalBetween", drawing> {
  let arguments = !con((ins DFG_Tensor:$dimensions), normalBetween, twoSeeds);
  let results = oneResult;
  let types = "dtype:1 T:0";
}
def DFG_StatelessRandomGetKeyCounterAlgOp : DFG_Composite<"stateless_random_get_key_counter_alg", "\"StatelessRandomGetKeyCounterAlg\"",
                                                          "keyCounterAlgorithm"> {
  let arguments = (ins DFG_Tensor:$seed);
  let results = (outs DFG_Tensor:$key, DFG_Tensor:$counter, DFG_Tensor:$alg);
  let types = "Tseed:0 =uint64:r0 =uint64:r1 =int32:r2";
}
def DFG_StatelessRandomGetAlgOp : DFG_Composite<"stateless_random_get_alg", "\"StatelessRandomGetAlg\"", "keyCounterAlgorithm"> {
  let arguments = (ins);
  let results = (outs DFG_Tensor:$alg);
  let types = "=int32:r0";
}
def DFG_StatelessShuffleOp : DFG_Composite<"stateless_shuffle", "\"StatelessShuffle\"", "statelessShuffle"> {
  let arguments = (ins DFG_Tensor:$value, DFG_Tensor:$key, DFG_Tensor:$counter, DFG_Tensor:$alg);
  let results = oneResult;
  let types = "T:0";
}
def DFG_AllCandidateSamplerOp : DFG_Composite<"all_candidate_sampler", "\"AllCandidateSampler\"", "allCandidates"> {
  let summary = "All classes, each of which is expected once";
  let arguments = !con((ins DFG_Tensor:$true_classes, I64Attr:$num_true, I64Attr:$num_sampled, BoolAttr:$unique), twoSeeds);
  let results = (outs DFG_Tensor:$sampled_candidates, DFG_Tensor:$true_expected_count, DFG_Tensor:$sampled_expected_count);
  let types = "=int64:r0 =float32:r1 =float32:r2";
}
// What draws from another distribution by a number from [0, 1), whose bits are the seed of the further ones that it needs. No
// operations of TensorFlow.
def DFG_DrawGammaOp : DFG_Binary<"draw_gamma", "\"\"", "return s.special(\"draw_gamma\", {x, y});">;
def DFG_DrawPoissonOp : DFG_Binary<"draw_poisson", "\"\"", "return s.special(\"draw_poisson\", {x, y});">;
def DFG_DrawBinomialOp : DFG_Ternary<"draw_binomial", "\"\"", "return s.special(\"draw_binomial\", {x, y, z});">;
#endif // DFG_COMPOSITE_OPS
