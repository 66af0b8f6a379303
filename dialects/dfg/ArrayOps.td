//===- ArrayOps.td - Constants, shapes, layout, reductions -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_ARRAY_OPS
#define DFG_ARRAY_OPS

include "dialects/dfg/DfgOpBase.td"

// ---- Constants and feeds ------------------------------------------------------------------
def DFG_ConstOp : DFG_Pure<"const", "\"Const\"", [ConstantLike]> {
  let created = 1;
  let arguments = (ins ElementsAttr:$value);
  let results = (outs DFG_Tensor:$result);
  let assemblyFormat = "$value attr-dict `` custom<ConstantType>(type($result), ref($value))";
  let types = "dtype:r0";
  let shape = "constant";
  let hasFolder = 1;
}
def DFG_PlaceholderOp : DFG_Node<"placeholder", "\"Placeholder\", \"PlaceholderV2\"", [MemoryEffects<[MemRead]>]> {
  let created = 1;
  let summary = "A value that is fed";
  let arguments = (ins OptionalAttr<DFG_ShapeAttr>:$shape);
  let results = (outs DFG_Tensor:$result);
  let types = "dtype:r0";
  let shape = "placeholder";
}
def DFG_PlaceholderWithDefaultOp : DFG_Node<"placeholder_with_default", "\"PlaceholderWithDefault\"", [MemoryEffects<[MemRead]>]> {
  let summary = "A value that may be fed; else the input";
  let arguments = (ins DFG_Tensor:$input, OptionalAttr<DFG_ShapeAttr>:$shape);
  let results = (outs DFG_Tensor:$result);
  let types = "dtype:0";
  let shape = "withDefault";
}

def DFG_EnsureShapeOp : DFG_Pure<"ensure_shape", "\"EnsureShape\"", [DFG_Moves]> {
  let summary = "The value, whose shape must be the one that is named";
  let arguments = (ins DFG_Tensor:$input, DFG_ShapeAttr:$shape);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "ensureShape";
  let linearity = "Joint";
}
def DFG_CheckNumericsOp : DFG_Pure<"check_numerics", "\"CheckNumerics\", \"CheckNumericsV2\""> {
  let summary = "The value; ends the program with `message` where an element is infinite or NaN";
  let arguments = (ins DFG_Tensor:$tensor, StrAttr:$message);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "same";
  let linearity = "Joint";
}

// ---- What is known of a shape ----------------------------------------------------------------
def DFG_ShapeOp : DFG_Pure<"shape", "\"Shape\"", [DFG_AsksShapes]> {
  let created = 1;
  let arguments = (ins DFG_Tensor:$input);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 out_type:r0";
  let shape = "shapeOf";
}
def DFG_ShapeNOp : DFG_Pure<"shape_n", "\"ShapeN\"", [DFG_AsksShapes]> {
  let arguments = (ins Variadic<DFG_Tensor>:$inputs);
  let results = (outs Variadic<DFG_Tensor>:$shapes);
  let types = "T:0 out_type:r* N:#0";
  let shape = "shapeOf";
}
def DFG_VariableShapeOp : DFG_Pure<"variable_shape", "\"\", \"VariableShape\""> {
  let arguments = (ins DFG_Handle:$handle);
  let results = (outs DFG_Tensor:$result);
  let types = "out_type:r0";
  let shape = "shapeOf";
}
def DFG_SizeOp : DFG_Pure<"size", "\"Size\"", [DFG_AsksShapes]> {
  let arguments = (ins DFG_Tensor:$input);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 out_type:r0";
  let shape = "sizeOf";
}
def DFG_RankOp : DFG_Pure<"rank", "\"Rank\"", [DFG_AsksShapes]> {
  let arguments = (ins DFG_Tensor:$input);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 =int32:r0";
  let shape = "rankOf";
}
def DFG_BroadcastGradientArgsOp : DFG_Pure<"broadcast_gradient_args", "\"BroadcastGradientArgs\""> {
  let arguments = (ins DFG_Tensor:$s0, DFG_Tensor:$s1);
  let results = (outs DFG_Tensor:$r0, DFG_Tensor:$r1);
  let types = "T:0";
  let shape = "broadcastGradientArgs";
}
def DFG_InvertPermutationOp : DFG_Composite<"invert_permutation", "\"InvertPermutation\"", "invertPermutation"> {
  let arguments = (ins DFG_Tensor:$x);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "invertPermutation";
}
def DFG_ConcatOffsetOp : DFG_Pure<"concat_offset", "\"ConcatOffset\""> {
  let arguments = (ins DFG_Tensor:$axis, Variadic<DFG_Tensor>:$shapes);
  let results = (outs Variadic<DFG_Tensor>:$offsets);
  let types = "shape_type:1 N:#r";
  let shape = "concatOffset";
}
def DFG_RangeOp : DFG_Pure<"range", "\"Range\""> {
  let created = 1;
  let arguments = (ins DFG_Tensor:$start, DFG_Tensor:$limit, DFG_Tensor:$delta);
  let results = (outs DFG_Tensor:$result);
  let types = "Tidx:0";
  let shape = "range";
}

def DFG_ListDiffOp : DFG_Pure<"list_diff", "\"ListDiff\""> {
  let summary = "The elements of x that are not in y, and where they stand";
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$y);
  let results = (outs DFG_Tensor:$result, DFG_Tensor:$positions);
  let types = "T:0 out_idx:r1";
  let shape = "listDiff";
}
def DFG_DynamicStitchOp : DFG_Pure<"dynamic_stitch", "\"DynamicStitch\", \"ParallelDynamicStitch\"", [DFG_Moves]> {
  let summary = "Rows of several tensors, each to the place its index names";
  let description = "Operands: N tensors of indices, then N tensors of rows. Gradients of reductions compute shapes by it.";
  let arguments = (ins Variadic<DFG_Tensor>:$indices_and_data);
  let results = (outs DFG_Tensor:$result);
  let types = "T:-1 N:#/2";
  let shape = "dynamicStitch";
}

// ---- Layout: the same elements elsewhere --------------------------------------------------------
let linearity = "Joint" in {
def DFG_ReshapeOp : DFG_Pure<"reshape", "\"Reshape\"", [DFG_Reshapes, DFG_SizedByParameter]> {
  let parameters = "operand == 1";
  let created = 1;
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$dimensions);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tshape:1";
  let shape = "reshape";
}
def DFG_TransposeOp : DFG_Pure<"transpose", "\"Transpose\"", [DFG_Permutes]> {
  let parameters = "operand == 1";
  let created = 1;
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$permutation);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tperm:1";
  let shape = "transpose";
}
def DFG_ExpandDimsOp : DFG_Pure<"expand_dims", "\"ExpandDims\"", [DFG_Reshapes]> {
  let parameters = "operand == 1";
  let created = 1;
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$axis);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tdim:1";
  let shape = "expandDims";
}
def DFG_SqueezeOp : DFG_Pure<"squeeze", "\"Squeeze\"", [DFG_Reshapes]> {
  let arguments = (ins DFG_Tensor:$input, DefaultValuedAttr<I64ArrayAttr, "{}">:$squeeze_dims);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "squeeze";
}
def DFG_TileOp : DFG_Pure<"tile", "\"Tile\"", [DFG_Repeats, DFG_SizedByParameter]> {
  let parameters = "operand == 1";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$multiples);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tmultiples:1";
  let shape = "tile";
}
def DFG_BroadcastToOp : DFG_Pure<"broadcast_to", "\"BroadcastTo\"", [DFG_Repeats, DFG_SizedByParameter]> {
  let parameters = "operand == 1";
  let created = 1;
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$dimensions);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tidx:1";
  let shape = "broadcastTo";
}
def DFG_FillOp : DFG_Pure<"fill", "\"Fill\"", [DFG_Fills, DFG_SizedByParameter]> {
  let parameters = "operand == 0";
  let created = 1;
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$value);
  let results = (outs DFG_Tensor:$result);
  let types = "T:1 index_type:0";
  let shape = "fill";
}
def DFG_ConcatV2Op : DFG_Pure<"concat_v2", "\"ConcatV2\"", [DFG_Joins]> {
  let parameters = "operand == last";
  let created = 1;
  let arguments = (ins Variadic<DFG_Tensor>:$values, DFG_Tensor:$axis);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tidx:-1 N:#-1";
  let shape = "concat";
}
def DFG_ConcatOp : DFG_Pure<"concat", "\"Concat\"", [DFG_Joins]> {
  let parameters = "operand == 0";
  let arguments = (ins DFG_Tensor:$axis, Variadic<DFG_Tensor>:$values);
  let results = (outs DFG_Tensor:$result);
  let types = "T:-1 N:#-1";
  let shape = "concat";
}
def DFG_SplitOp : DFG_Pure<"split", "\"Split\"", [DFG_TakesPart]> {
  let parameters = "operand == 0";
  let created = 1;
  let arguments = (ins DFG_Tensor:$axis, DFG_Tensor:$value);
  let results = (outs Variadic<DFG_Tensor>:$parts);
  let types = "T:1 num_split:#r";
  let shape = "split";
}
def DFG_SplitVOp : DFG_Pure<"split_v", "\"SplitV\"", [DFG_TakesPart]> {
  let parameters = "operand > 0";
  let created = 1;
  let arguments = (ins DFG_Tensor:$value, DFG_Tensor:$sizes, DFG_Tensor:$axis);
  let results = (outs Variadic<DFG_Tensor>:$parts);
  let types = "T:0 Tlen:1 num_split:#r";
  let shape = "splitV";
}
def DFG_PackOp : DFG_Pure<"pack", "\"Pack\"", [DFG_Joins]> {
  let created = 1;
  let arguments = (ins Variadic<DFG_Tensor>:$values, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 N:#0";
  let shape = "pack";
}
def DFG_UnpackOp : DFG_Pure<"unpack", "\"Unpack\"", [DFG_TakesPart]> {
  let created = 1;
  let arguments = (ins DFG_Tensor:$value, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs Variadic<DFG_Tensor>:$parts);
  let types = "T:0 num:#r";
  let shape = "unpack";
}
def DFG_SliceOp : DFG_Pure<"slice", "\"Slice\"", [DFG_TakesPart]> {
  let parameters = "operand > 0";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$begin, DFG_Tensor:$size);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Index:1";
  let shape = "slice";
}
class DFG_Strided<string mnemonic, string tensorflow, list<Trait> traits> : DFG_Pure<mnemonic, tensorflow, traits> {
  dag masks = (ins DefaultValuedAttr<I64Attr, "0">:$begin_mask, DefaultValuedAttr<I64Attr, "0">:$end_mask,
                   DefaultValuedAttr<I64Attr, "0">:$ellipsis_mask, DefaultValuedAttr<I64Attr, "0">:$new_axis_mask,
                   DefaultValuedAttr<I64Attr, "0">:$shrink_axis_mask);
  let results = (outs DFG_Tensor:$result);
}
def DFG_StridedSliceOp : DFG_Strided<"strided_slice", "\"StridedSlice\"", [DFG_TakesPart]> {
  let parameters = "operand > 0";
  let arguments = !con((ins DFG_Tensor:$input, DFG_Tensor:$begin, DFG_Tensor:$end, DFG_Tensor:$strides), masks);
  let types = "T:0 Index:1";
  let shape = "stridedSlice";
}
def DFG_StridedSliceGradOp : DFG_Strided<"strided_slice_grad", "\"StridedSliceGrad\"", [DFG_Moves, DFG_SizedByParameter]> {
  let parameters = "operand < last";
  let arguments = !con((ins DFG_Tensor:$dimensions, DFG_Tensor:$begin, DFG_Tensor:$end, DFG_Tensor:$strides, DFG_Tensor:$dy), masks);
  let types = "T:-1 Index:0";
  let shape = "stridedSliceGrad";
}
def DFG_PadOp : DFG_Pure<"pad", "\"Pad\"", [DFG_Moves]> {
  let parameters = "operand == 1";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$paddings);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tpaddings:1";
  let shape = "pad";
}
def DFG_ReverseV2Op : DFG_Pure<"reverse_v2", "\"ReverseV2\"", [DFG_Permutes]> {
  let parameters = "operand == 1";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$axis);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tidx:1";
  let shape = "reverse";
}
}
def DFG_PadV2Op : DFG_Pure<"pad_v2", "\"PadV2\"", [DFG_Moves]> {
  let parameters = "operand == 1";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$paddings, DFG_Tensor:$value);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tpaddings:1";
  let shape = "pad";
}
def DFG_OneHotOp : DFG_Pure<"one_hot", "\"OneHot\""> {
  let parameters = "operand == 1";
  let arguments = (ins DFG_Tensor:$indices, DFG_Tensor:$depth, DFG_Tensor:$on_value, DFG_Tensor:$off_value,
                       DefaultValuedAttr<I64Attr, "-1">:$axis);
  let results = (outs DFG_Tensor:$result);
  let types = "T:r0 TI:0";
  let shape = "oneHot";
}

// ---- Reductions -----------------------------------------------------------------------------------
let linearity = "Joint" in {
def DFG_SumOp : DFG_Reduction<"sum", "\"Sum\"", "return s.constant(type, 0.0);", "return s.add(accumulator, element);",
  "return accumulator;", [DFG_SumsRows]>;
def DFG_MeanOp : DFG_Reduction<"mean", "\"Mean\"", "return s.constant(type, 0.0);", "return s.add(accumulator, element);",
  "return s.div(accumulator, s.constant(accumulator.getType(), static_cast<double>(count)));", [DFG_SumsRows]>;
}
def DFG_ProdOp : DFG_Reduction<"prod", "\"Prod\"", "return s.constant(type, 1.0);", "return s.mul(accumulator, element);"> {
  let shape = "prod";
}
def DFG_MaxOp : DFG_Reduction<"max", "\"Max\"", "return s.lowest(type);", "return s.maximum(accumulator, element);"> { let shape = "extremum"; let degree = "1"; }
def DFG_MinOp : DFG_Reduction<"min", "\"Min\"", "return s.highest(type);", "return s.minimum(accumulator, element);"> { let shape = "extremum"; let degree = "1"; }
def DFG_AllOp : DFG_Reduction<"all", "\"All\"", "return s.constant(type, 1.0);", "return s.bitAnd(accumulator, element);"> { let shape = "extremum"; let types = "Tidx:1 =bool:r0"; }
def DFG_AnyOp : DFG_Reduction<"any", "\"Any\"", "return s.constant(type, 0.0);", "return s.bitOr(accumulator, element);"> { let shape = "extremum"; let types = "Tidx:1 =bool:r0"; }
def DFG_EuclideanNormOp : DFG_Reduction<"euclidean_norm", "\"EuclideanNorm\"", "return s.constant(type, 0.0);",
  "return s.add(accumulator, s.mul(element, element));", "return s.math<::mlir::math::SqrtOp>(accumulator);"> { let degree = "1"; }
def DFG_L2LossOp : DFG_Node<"l2_loss", "\"L2Loss\"", [Pure, DeclareOpInterfaceMethods<DFG_ReductionInterface>, DFG_SumsRows]> {
  let degree = "2";
  let arguments = (ins DFG_Tensor:$input);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "scalar";
  let definitions = [{
    ::mlir::Value $cppClass::emitInitial(::distc::dfg::ScalarBuilder &s, ::mlir::Type type) { return s.constant(type, 0.0); }
    ::mlir::Value $cppClass::emitCombine(::distc::dfg::ScalarBuilder &s, ::mlir::Value a, ::mlir::Value e) { return s.add(a, s.mul(e, e)); }
    ::mlir::Value $cppClass::emitFinal(::distc::dfg::ScalarBuilder &s, ::mlir::Value a, int64_t) {
      return s.mul(a, s.constant(a.getType(), 0.5));
    }
  }];
}
class DFG_Scan<string mnemonic, string tensorflow> : DFG_Pure<mnemonic, tensorflow> {
  let parameters = "operand == 1";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tidx:1";
  let shape = "scan";
}
def DFG_CumsumOp : DFG_Scan<"cumsum", "\"Cumsum\""> { let linearity = "Joint"; }
def DFG_CumprodOp : DFG_Scan<"cumprod", "\"Cumprod\"">;
def DFG_CumulativeLogsumexpOp : DFG_Scan<"cumulative_logsumexp", "\"CumulativeLogsumexp\"">;
class DFG_ArgReduction<string mnemonic, string tensorflow> : DFG_Pure<mnemonic, tensorflow> {
  let parameters = "operand == 1";
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$dimension);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tidx:1 output_type:r0";
  let shape = "argReduction";
}
def DFG_ArgMaxOp : DFG_ArgReduction<"arg_max", "\"ArgMax\"">;
def DFG_ArgMinOp : DFG_ArgReduction<"arg_min", "\"ArgMin\"">;
#endif // DFG_ARRAY_OPS
