//===- SparseOps.td - Rows by index: gathers, scatters, segments, distinct values ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Some results are as long as the data says (the distinct values of a tensor). In
// the graph such a size is unknown; where code is generated it is its bound (see
// docs/design.md, "Sizes that depend on data").
//
//===----------------------------------------------------------------------===//
#ifndef DFG_SPARSE_OPS
#define DFG_SPARSE_OPS

include "dialects/dfg/DfgOpBase.td"

// ---- Gathers ---------------------------------------------------------------------------------
let linearity = "First" in {
def DFG_GatherV2Op : DFG_Pure<"gather_v2", "\"GatherV2\"", [DFG_Gathers, DFG_TakesPart]> {
  let parameters = "operand == 2";
  let created = 1;
  let arguments = (ins DFG_Tensor:$params, DFG_Tensor:$indices, DFG_Tensor:$axis, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs DFG_Tensor:$result);
  let types = "Tparams:0 Tindices:1 Taxis:2";
  let shape = "gather";
}
def DFG_GatherOp : DFG_Pure<"gather", "\"Gather\"", [DFG_Gathers, DFG_TakesPart]> {
  let arguments = (ins DFG_Tensor:$params, DFG_Tensor:$indices, DefaultValuedAttr<BoolAttr, "true">:$validate_indices);
  let results = (outs DFG_Tensor:$result);
  let types = "Tparams:0 Tindices:1";
  let shape = "gather";
}
def DFG_GatherNdOp : DFG_Pure<"gather_nd", "\"GatherNd\"", [DFG_Gathers, DFG_TakesPart]> {
  let created = 1;
  let summary = "Slices of a tensor: the last axis of the indices names the first axes of the tensor";
  let arguments = (ins DFG_Tensor:$params, DFG_Tensor:$indices);
  let results = (outs DFG_Tensor:$result);
  let types = "Tparams:0 Tindices:1";
  let shape = "gatherNd";
}
}
def DFG_ResourceGatherOp : DFG_Node<"resource_gather", "\"\", \"ResourceGather\"", [DFG_ReadsVariable, DFG_Gathers]> {
  let summary = "Rows of a variable";
  let arguments = (ins Arg<DFG_Handle, "", [MemRead]>:$handle, DFG_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims,
                       DefaultValuedAttr<BoolAttr, "true">:$validate_indices);
  let results = (outs DFG_Tensor:$result);
  let types = "dtype:r0 Tindices:1";
  let shape = "gather";
}
def DFG_ResourceGatherNdOp : DFG_Node<"resource_gather_nd", "\"\", \"ResourceGatherNd\"", [DFG_ReadsVariable, DFG_Gathers]> {
  let summary = "Slices of a variable";
  let arguments = (ins Arg<DFG_Handle, "", [MemRead]>:$handle, DFG_Tensor:$indices);
  let results = (outs DFG_Tensor:$result);
  let types = "dtype:r0 Tindices:1";
  let shape = "gatherNd";
}

// ---- Distinct values -----------------------------------------------------------------------------
def DFG_UniqueOp : DFG_Pure<"unique", "\"Unique\"", [DFG_FindsDistinct]> {
  let summary = "The distinct elements in the order in which they are met, and which of them each element is";
  let arguments = (ins DFG_Tensor:$x);
  let results = (outs DFG_Tensor:$y, DFG_Tensor:$idx);
  let types = "T:0 out_idx:r1";
  let shape = "unique";
}
def DFG_UniqueWithCountsOp : DFG_Pure<"unique_with_counts", "\"UniqueWithCounts\"", [DFG_FindsDistinct]> {
  let arguments = (ins DFG_Tensor:$x);
  let results = (outs DFG_Tensor:$y, DFG_Tensor:$idx, DFG_Tensor:$count);
  let types = "T:0 out_idx:r1 out_idx:r2";
  let shape = "unique";
}
def DFG_UniqueV2Op : DFG_Pure<"unique_v2", "\"UniqueV2\"", [DFG_FindsDistinct]> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$axis);
  let results = (outs DFG_Tensor:$y, DFG_Tensor:$idx);
  let types = "T:0 Taxis:1 out_idx:r1";
  let shape = "unique";
}
def DFG_UniqueWithCountsV2Op : DFG_Pure<"unique_with_counts_v2", "\"UniqueWithCountsV2\"", [DFG_FindsDistinct]> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$axis);
  let results = (outs DFG_Tensor:$y, DFG_Tensor:$idx, DFG_Tensor:$count);
  let types = "T:0 Taxis:1 out_idx:r1 out_idx:r2";
  let shape = "unique";
}

// ---- Segments: rows with equal numbers become one ---------------------------------------------------
class DFG_UnsortedSegment<string mnemonic, string tensorflow, list<Trait> traits = []>
    : DFG_Pure<mnemonic, tensorflow, traits # [DFG_SizedByParameter]> {
  let parameters = "operand == 2";
  let scatters = 1;
  let arguments = (ins DFG_Tensor:$data, DFG_Tensor:$segment_ids, DFG_Tensor:$num_segments);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tindices:1 Tnumsegments:2";
  let shape = "unsortedSegment";
}
def DFG_UnsortedSegmentSumOp : DFG_UnsortedSegment<"unsorted_segment_sum", "\"UnsortedSegmentSum\"", [DFG_SumsRows]> { let linearity = "First"; }
def DFG_UnsortedSegmentProdOp : DFG_UnsortedSegment<"unsorted_segment_prod", "\"UnsortedSegmentProd\"">;
def DFG_UnsortedSegmentMaxOp : DFG_UnsortedSegment<"unsorted_segment_max", "\"UnsortedSegmentMax\"">;
def DFG_UnsortedSegmentMinOp : DFG_UnsortedSegment<"unsorted_segment_min", "\"UnsortedSegmentMin\"">;

// ---- Scatters ------------------------------------------------------------------------------------------
def DFG_ScatterNdOp : DFG_Pure<"scatter_nd", "\"ScatterNd\"", [DFG_SumsRows, DFG_SizedByParameter]> {
  let scatters = 0;
  let parameters = "operand == 2";
  let summary = "Zeros, to which each slice of the updates is added where its index says";
  let arguments = (ins DFG_Tensor:$indices, DFG_Tensor:$updates, DFG_Tensor:$dimensions);
  let results = (outs DFG_Tensor:$result);
  let types = "T:1 Tindices:0";
  let shape = "scatterNd";
  let linearity = "First";
}
class DFG_TensorScatter<string mnemonic, string tensorflow, list<Trait> traits = []> : DFG_Pure<mnemonic, tensorflow, traits> {
  let scatters = 1;
  let arguments = (ins DFG_Tensor:$tensor, DFG_Tensor:$indices, DFG_Tensor:$updates);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tindices:1";
  let shape = "tensorScatter";
}
let linearity = "Joint" in {
def DFG_TensorScatterUpdateOp : DFG_TensorScatter<"tensor_scatter_update", "\"TensorScatterUpdate\"">;
def DFG_TensorScatterAddOp : DFG_TensorScatter<"tensor_scatter_add", "\"TensorScatterAdd\"", [DFG_SumsRows, DFG_AddsSlices]>;
def DFG_TensorScatterSubOp : DFG_TensorScatter<"tensor_scatter_sub", "\"TensorScatterSub\"", [DFG_SumsRows, DFG_AddsSlices]>;
def DFG_ScatterNdNonAliasingAddOp : DFG_TensorScatter<"scatter_nd_non_aliasing_add", "\"ScatterNdNonAliasingAdd\"", [DFG_SumsRows, DFG_AddsSlices]>;
}
def DFG_TensorScatterMaxOp : DFG_TensorScatter<"tensor_scatter_max", "\"TensorScatterMax\"">;
def DFG_TensorScatterMinOp : DFG_TensorScatter<"tensor_scatter_min", "\"TensorScatterMin\"">;

def DFG_DynamicPartitionOp : DFG_Pure<"dynamic_partition", "\"DynamicPartition\"", [DFG_Moves]> {
  let summary = "Rows by the number of the part that each belongs to";
  let arguments = (ins DFG_Tensor:$data, DFG_Tensor:$partitions);
  let results = (outs Variadic<DFG_Tensor>:$parts);
  let types = "T:0 num_partitions:#r";
  let shape = "dynamicPartition";
}

// ---- Updates of a variable's rows ----------------------------------------------------------------------
// Rows are named by an index vector (`nd`: by the last axis of the indices), the values are one slice an index.
class DFG_Scatter<string mnemonic, string tensorflow, string types_, code body, list<Trait> traits>
    : DFG_SparseUpdate<mnemonic, tensorflow, "0", 2, 1, body, traits> {
  let arguments = (ins DFG_Written:$handle, DFG_Tensor:$indices, DFG_Tensor:$updates);
  let optimizer = 0;
  let types = types_;
}
class DFG_ScatterRows<string mnemonic, string tensorflow, code body, list<Trait> traits = []>
    : DFG_Scatter<mnemonic, tensorflow, "T|dtype:2 Tindices:1", body, traits>;
def DFG_ScatterUpdateOp : DFG_ScatterRows<"scatter_update", "\"ScatterUpdate\", \"ResourceScatterUpdate\"", "return {args[1]};", [DFG_Overwrites]>;
def DFG_ScatterAddOp : DFG_ScatterRows<"scatter_add", "\"ScatterAdd\", \"ResourceScatterAdd\"", "return {s.add(args[0], args[1])};", [DFG_AddsSlices]>;
def DFG_ScatterSubOp : DFG_ScatterRows<"scatter_sub", "\"ScatterSub\", \"ResourceScatterSub\"", "return {s.sub(args[0], args[1])};", [DFG_AddsSlices]>;
def DFG_ScatterMulOp : DFG_ScatterRows<"scatter_mul", "\"ScatterMul\", \"ResourceScatterMul\"", "return {s.mul(args[0], args[1])};">;
def DFG_ScatterDivOp : DFG_ScatterRows<"scatter_div", "\"ScatterDiv\", \"ResourceScatterDiv\"", "return {s.div(args[0], args[1])};">;
def DFG_ScatterMinOp : DFG_ScatterRows<"scatter_min", "\"ScatterMin\", \"ResourceScatterMin\"", "return {s.minimum(args[0], args[1])};", [DFG_Overwrites]>;
def DFG_ScatterMaxOp : DFG_ScatterRows<"scatter_max", "\"ScatterMax\", \"ResourceScatterMax\"", "return {s.maximum(args[0], args[1])};", [DFG_Overwrites]>;

class DFG_ScatterNdRows<string mnemonic, string tensorflow, code body, list<Trait> traits>
    : DFG_Scatter<mnemonic, tensorflow, "T:2 Tindices:1", body, traits> { let nd = 1; }
def DFG_ScatterNdUpdateOp : DFG_ScatterNdRows<"scatter_nd_update", "\"ScatterNdUpdate\", \"ResourceScatterNdUpdate\"", "return {args[1]};", [DFG_Overwrites]>;
def DFG_ScatterNdAddOp : DFG_ScatterNdRows<"scatter_nd_add", "\"ScatterNdAdd\", \"ResourceScatterNdAdd\"", "return {s.add(args[0], args[1])};", [DFG_AddsSlices]>;
def DFG_ScatterNdSubOp : DFG_ScatterNdRows<"scatter_nd_sub", "\"ScatterNdSub\", \"ResourceScatterNdSub\"", "return {s.sub(args[0], args[1])};", [DFG_AddsSlices]>;
def DFG_ScatterNdMinOp : DFG_ScatterNdRows<"scatter_nd_min", "\"ScatterNdMin\", \"ResourceScatterNdMin\"", "return {s.minimum(args[0], args[1])};", [DFG_Overwrites]>;
def DFG_ScatterNdMaxOp : DFG_ScatterNdRows<"scatter_nd_max", "\"ScatterNdMax\", \"ResourceScatterNdMax\"", "return {s.maximum(args[0], args[1])};", [DFG_Overwrites]>;
#endif // DFG_SPARSE_OPS
