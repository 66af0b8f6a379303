//===- NnOps.td - Products, convolutions, pooling, losses, random numbers ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_NN_OPS
#define DFG_NN_OPS

include "dialects/dfg/DfgOpBase.td"

// ---- Products ---------------------------------------------------------------------------------
let linearity = "Each" in {
def DFG_MatMulOp : DFG_Pure<"mat_mul", "\"MatMul\"", [DFG_MultipliesMatrices]> {
  let arguments = (ins DFG_Tensor:$a, DFG_Tensor:$b, DefaultValuedAttr<BoolAttr, "false">:$transpose_a,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_b);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "matMul";
}
class DFG_BatchMatMul<string mnemonic, string tensorflow, string attributes> : DFG_Pure<mnemonic, tensorflow, [DFG_MultipliesMatrices]> {
  let arguments = (ins DFG_Tensor:$a, DFG_Tensor:$b, DefaultValuedAttr<BoolAttr, "false">:$adj_x, DefaultValuedAttr<BoolAttr, "false">:$adj_y);
  let results = (outs DFG_Tensor:$result);
  let types = attributes;
  let shape = "batchMatMul";
}
def DFG_BatchMatMulOp : DFG_BatchMatMul<"batch_mat_mul", "\"BatchMatMul\"", "T:0">;
def DFG_BatchMatMulV2Op : DFG_BatchMatMul<"batch_mat_mul_v2", "\"BatchMatMulV2\"", "T:0">;
def DFG_BatchMatMulV3Op : DFG_BatchMatMul<"batch_mat_mul_v3", "\"BatchMatMulV3\"", "Ta:0 Tb:1 Tout:r0">;

// ---- Convolutions -------------------------------------------------------------------------------
class DFG_Convolution<string mnemonic, string tensorflow, dag operands, list<Trait> traits = []> : DFG_Pure<mnemonic, tensorflow, traits> {
  let arguments = !con(operands, (ins I64ArrayAttr:$strides, StrAttr:$padding, DefaultValuedAttr<I64ArrayAttr, "{}">:$explicit_paddings,
                       DefaultValuedAttr<StrAttr, "\"NHWC\"">:$data_format, DefaultValuedAttr<I64ArrayAttr, "{1, 1, 1, 1}">:$dilations));
  let results = (outs DFG_Tensor:$result);
  let types = "T:r0";
}
def DFG_Conv2DOp : DFG_Convolution<"conv_2d", "\"Conv2D\"", (ins DFG_Tensor:$input, DFG_Tensor:$filter)> { let shape = "conv2d"; }
def DFG_Conv2DBackpropInputOp : DFG_Convolution<"conv_2d_backprop_input", "\"Conv2DBackpropInput\"",
    (ins DFG_Tensor:$input_sizes, DFG_Tensor:$filter, DFG_Tensor:$out_backprop), [DFG_SizedByParameter]> { let parameters = "operand == 0"; let shape = "conv2dGradInput"; }
def DFG_Conv2DBackpropFilterOp : DFG_Convolution<"conv_2d_backprop_filter", "\"Conv2DBackpropFilter\"",
    (ins DFG_Tensor:$input, DFG_Tensor:$filter_sizes, DFG_Tensor:$out_backprop)> { let parameters = "operand == 1"; let shape = "conv2dGradFilter"; }
def DFG_DepthwiseConv2dNativeOp : DFG_Convolution<"depthwise_conv_2d_native", "\"DepthwiseConv2dNative\"",
    (ins DFG_Tensor:$input, DFG_Tensor:$filter)> { let shape = "depthwiseConv2d"; }
def DFG_DepthwiseConv2dNativeBackpropInputOp : DFG_Convolution<"depthwise_conv_2d_native_backprop_input",
    "\"DepthwiseConv2dNativeBackpropInput\"", (ins DFG_Tensor:$input_sizes, DFG_Tensor:$filter, DFG_Tensor:$out_backprop), [DFG_SizedByParameter]> { let parameters = "operand == 0"; let shape = "depthwiseConv2dGradInput"; }
def DFG_DepthwiseConv2dNativeBackpropFilterOp : DFG_Convolution<"depthwise_conv_2d_native_backprop_filter",
    "\"DepthwiseConv2dNativeBackpropFilter\"", (ins DFG_Tensor:$input, DFG_Tensor:$filter_sizes, DFG_Tensor:$out_backprop)> { let parameters = "operand == 1"; let shape = "depthwiseConv2dGradFilter"; }
}

// ---- Pooling --------------------------------------------------------------------------------------
class DFG_Pooling<string mnemonic, string tensorflow, dag operands, string attributes = "T:0", list<Trait> traits = []> : DFG_Pure<mnemonic, tensorflow, traits> {
  let arguments = !con(operands, (ins I64ArrayAttr:$ksize, I64ArrayAttr:$strides, StrAttr:$padding,
                       DefaultValuedAttr<I64ArrayAttr, "{}">:$explicit_paddings, DefaultValuedAttr<StrAttr, "\"NHWC\"">:$data_format));
  let results = (outs DFG_Tensor:$result);
  let types = attributes;
}
def DFG_MaxPoolOp : DFG_Pooling<"max_pool", "\"MaxPool\"", (ins DFG_Tensor:$input)> { let degree = "1"; let shape = "pool"; }
def DFG_AvgPoolOp : DFG_Pooling<"avg_pool", "\"AvgPool\"", (ins DFG_Tensor:$input)> { let shape = "pool"; let linearity = "Joint"; }
def DFG_MaxPoolGradOp : DFG_Pooling<"max_pool_grad", "\"MaxPoolGrad\"",
    (ins DFG_Tensor:$orig_input, DFG_Tensor:$orig_output, DFG_Tensor:$grad)> {
  let shape = "maxPoolGrad";
  let linearity = "Last";
}
def DFG_AvgPoolGradOp : DFG_Pooling<"avg_pool_grad", "\"AvgPoolGrad\"", (ins DFG_Tensor:$orig_input_shape, DFG_Tensor:$grad), "T:1", [DFG_SizedByParameter]> {
  let parameters = "operand == 0";
  let shape = "avgPoolGrad";
  let linearity = "Joint";
}

// ---- Biases -----------------------------------------------------------------------------------------
let linearity = "Joint" in {
def DFG_BiasAddOp : DFG_Pure<"bias_add", "\"BiasAdd\""> {
  let arguments = (ins DFG_Tensor:$value, DFG_Tensor:$bias, DefaultValuedAttr<StrAttr, "\"NHWC\"">:$data_format);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "biasAdd";
}
def DFG_BiasAddV1Op : DFG_Pure<"bias_add_v1", "\"BiasAddV1\""> {
  let arguments = (ins DFG_Tensor:$value, DFG_Tensor:$bias);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "biasAdd";
}
def DFG_BiasAddGradOp : DFG_Pure<"bias_add_grad", "\"BiasAddGrad\"", [DFG_SumsRows]> {
  let arguments = (ins DFG_Tensor:$out_backprop, DefaultValuedAttr<StrAttr, "\"NHWC\"">:$data_format);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "biasAddGrad";
}
}

// ---- Normalization over the batch ------------------------------------------------------------------------
class DFG_BatchNorm<string mnemonic, string tensorflow, string attributes, dag outputs> : DFG_Composite<mnemonic, tensorflow, "batchNorm"> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$scale, DFG_Tensor:$offset, DFG_Tensor:$mean, DFG_Tensor:$variance,
                       DefaultValuedAttr<F32Attr, "0.0001f">:$epsilon, DefaultValuedAttr<F32Attr, "1.0f">:$exponential_avg_factor,
                       DefaultValuedAttr<StrAttr, "\"NHWC\"">:$data_format, DefaultValuedAttr<BoolAttr, "true">:$is_training);
  let results = outputs;
  let types = attributes;
  let shape = "batchNorm";
}
// The statistics that the gradient takes: the batch's own, in training mode.
defvar batchNormOutputs = (outs DFG_Tensor:$y, DFG_Tensor:$batch_mean, DFG_Tensor:$batch_variance, DFG_Tensor:$reserve_space_1,
                                DFG_Tensor:$reserve_space_2);
def DFG_FusedBatchNormOp : DFG_BatchNorm<"fused_batch_norm", "\"FusedBatchNorm\"", "T:0", batchNormOutputs>;
def DFG_FusedBatchNormV2Op : DFG_BatchNorm<"fused_batch_norm_v2", "\"FusedBatchNormV2\"", "T:r0 U:r1", batchNormOutputs>;
def DFG_FusedBatchNormV3Op : DFG_BatchNorm<"fused_batch_norm_v3", "\"FusedBatchNormV3\"", "T:r0 U:r1",
                                           !con(batchNormOutputs, (outs DFG_Tensor:$reserve_space_3))>;
class DFG_BatchNormGrad<string mnemonic, string tensorflow, string attributes, dag more>
    : DFG_Composite<mnemonic, tensorflow, "batchNormGrad", [Pure, DFG_SumsRows]> {
  let arguments = !con((ins DFG_Tensor:$y_backprop, DFG_Tensor:$x, DFG_Tensor:$scale, DFG_Tensor:$reserve_space_1, DFG_Tensor:$reserve_space_2),
                       more, (ins DefaultValuedAttr<F32Attr, "0.0001f">:$epsilon, DefaultValuedAttr<StrAttr, "\"NHWC\"">:$data_format,
                                  DefaultValuedAttr<BoolAttr, "true">:$is_training));
  let results = (outs DFG_Tensor:$x_backprop, DFG_Tensor:$scale_backprop, DFG_Tensor:$offset_backprop, DFG_Tensor:$reserve_space_3,
                      DFG_Tensor:$reserve_space_4);
  let types = attributes;
  let shape = "batchNormGrad";
  let linearity = "First";
}
def DFG_FusedBatchNormGradOp : DFG_BatchNormGrad<"fused_batch_norm_grad", "\"FusedBatchNormGrad\"", "T:0", (ins)>;
def DFG_FusedBatchNormGradV2Op : DFG_BatchNormGrad<"fused_batch_norm_grad_v2", "\"FusedBatchNormGradV2\"", "T:r0 U:r1", (ins)>;
def DFG_FusedBatchNormGradV3Op : DFG_BatchNormGrad<"fused_batch_norm_grad_v3", "\"FusedBatchNormGradV3\"", "T:r0 U:r1",
                                                   (ins DFG_Tensor:$reserve_space_5)>;

// ---- Losses ------------------------------------------------------------------------------------------
def DFG_SoftmaxOp : DFG_Pure<"softmax", "\"Softmax\""> {
  let arguments = (ins DFG_Tensor:$logits);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "rows";
}
def DFG_LogSoftmaxOp : DFG_Pure<"log_softmax", "\"LogSoftmax\""> {
  let arguments = (ins DFG_Tensor:$logits);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0";
  let shape = "rows";
}
def DFG_SoftmaxCrossEntropyWithLogitsOp : DFG_Pure<"softmax_cross_entropy_with_logits", "\"SoftmaxCrossEntropyWithLogits\""> {
  let arguments = (ins DFG_Tensor:$features, DFG_Tensor:$labels);
  let results = (outs DFG_Tensor:$loss, DFG_Tensor:$backprop);
  let types = "T:0";
  let shape = "crossEntropy";
}
def DFG_SparseSoftmaxCrossEntropyWithLogitsOp
    : DFG_Pure<"sparse_softmax_cross_entropy_with_logits", "\"SparseSoftmaxCrossEntropyWithLogits\""> {
  let arguments = (ins DFG_Tensor:$features, DFG_Tensor:$labels);
  let results = (outs DFG_Tensor:$loss, DFG_Tensor:$backprop);
  let types = "T:0 Tlabels:1";
  let shape = "crossEntropy";
}

// ---- Random numbers: they read and advance a generator's state, so they keep their order ---------------
class DFG_Random<string mnemonic, string tensorflow, string attributes, dag operands = (ins DFG_Tensor:$dimensions),
                 list<Trait> traits = [DFG_SizedByParameter]>
    : DFG_Node<mnemonic, tensorflow, [MemoryEffects<[MemRead, MemWrite]>, DFG_DrawsNumbers] # traits> {
  let parameters = "operand == 0";
  let arguments = !con(operands, (ins DefaultValuedAttr<I64Attr, "0">:$seed, DefaultValuedAttr<I64Attr, "0">:$seed2));
  let results = (outs DFG_Tensor:$result);
  let types = attributes;
  let shape = "fromSizes";
}
def DFG_RandomUniformOp : DFG_Random<"random_uniform", "\"RandomUniform\"", "T:0 dtype:r0">;
def DFG_RandomStandardNormalOp : DFG_Random<"random_standard_normal", "\"RandomStandardNormal\"", "T:0 dtype:r0">;
def DFG_TruncatedNormalOp : DFG_Random<"truncated_normal", "\"TruncatedNormal\"", "T:0 dtype:r0">;
def DFG_RandomUniformIntOp : DFG_Random<"random_uniform_int", "\"RandomUniformInt\"", "T:0 Tout:r0",
  (ins DFG_Tensor:$dimensions, DFG_Tensor:$minval, DFG_Tensor:$maxval)>;
def DFG_RandomPermutationOp : DFG_Random<"random_permutation", "\"\"", "", (ins DFG_Tensor:$count), []> {
  let parameters = "false";
  let summary = "0, 1, ... below `count` (a scalar), in an order of TensorFlow's RandomShuffle; no operation of TensorFlow";
  let description = [{
    Its numbers are not those of rows: replicas that are to have the order of the whole batch draw it all, alike (`dist.whole_size`).
  }];
  let shape = "permutation";
}

class DFG_StatelessRandom<string mnemonic, string tensorflow> : DFG_Pure<mnemonic, tensorflow, [DFG_DrawsNumbers, DFG_SizedByParameter]> {
  let parameters = "operand == 0";
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$seed);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tseed:1 dtype:r0";
  let shape = "fromSizes";
}
def DFG_StatelessRandomUniformOp : DFG_StatelessRandom<"stateless_random_uniform", "\"StatelessRandomUniform\"">;
def DFG_StatelessRandomNormalOp : DFG_StatelessRandom<"stateless_random_normal", "\"StatelessRandomNormal\"">;
def DFG_StatelessTruncatedNormalOp : DFG_StatelessRandom<"stateless_truncated_normal", "\"StatelessTruncatedNormal\"">;
def DFG_StatelessRandomUniformIntOp : DFG_StatelessRandom<"stateless_random_uniform_int", "\"StatelessRandomUniformInt\""> {
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$seed, DFG_Tensor:$minval, DFG_Tensor:$maxval);
}
// All numbers of an integer type.
def DFG_StatelessRandomUniformFullIntOp
    : DFG_StatelessRandom<"stateless_random_uniform_full_int", "\"StatelessRandomUniformFullInt\"">;
// Stateless random numbers, version 2: the key and counter come from an operation of their own.
def DFG_StatelessRandomGetKeyCounterOp : DFG_Pure<"stateless_random_get_key_counter", "\"StatelessRandomGetKeyCounter\""> {
  let arguments = (ins DFG_Tensor:$seed);
  let results = (outs DFG_Tensor:$key, DFG_Tensor:$counter);
  let types = "Tseed:0 =uint64:r*";
  let shape = "keyCounter";
}
class DFG_StatelessRandomV2<string mnemonic, string tensorflow> : DFG_Pure<mnemonic, tensorflow, [DFG_DrawsNumbers, DFG_SizedByParameter, DFG_DrawsByKey]> {
  let parameters = "operand == 0";
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$key, DFG_Tensor:$counter, DFG_Tensor:$alg);
  let results = (outs DFG_Tensor:$result);
  let types = "Tshape:0 dtype:r0";
  let shape = "fromSizes";
}
def DFG_StatelessRandomUniformV2Op : DFG_StatelessRandomV2<"stateless_random_uniform_v2", "\"StatelessRandomUniformV2\"">;
def DFG_StatelessRandomNormalV2Op : DFG_StatelessRandomV2<"stateless_random_normal_v2", "\"StatelessRandomNormalV2\"">;
def DFG_StatelessTruncatedNormalV2Op : DFG_StatelessRandomV2<"stateless_truncated_normal_v2", "\"StatelessTruncatedNormalV2\"">;
def DFG_StatelessRandomUniformIntV2Op : DFG_StatelessRandomV2<"stateless_random_uniform_int_v2", "\"StatelessRandomUniformIntV2\""> {
  let arguments = (ins DFG_Tensor:$dimensions, DFG_Tensor:$key, DFG_Tensor:$counter, DFG_Tensor:$alg, DFG_Tensor:$minval, DFG_Tensor:$maxval);
}
def DFG_StatelessRandomUniformFullIntV2Op
    : DFG_StatelessRandomV2<"stateless_random_uniform_full_int_v2", "\"StatelessRandomUniformFullIntV2\"">;
#endif // DFG_NN_OPS
