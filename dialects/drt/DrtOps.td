//===- DrtOps.td - The plan of a role: kernels, library calls, synchronization ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_OPS
#define DRT_OPS

include "dialects/drt/DrtBase.td"

// ---- What the program describes ------------------------------------------------------------
def DRT_TaskAttr : AttrDef<DRT_Dialect, "Task"> {
  let mnemonic = "task";
  let summary = "A process: its job and number in the job, its host and the replicas it runs";
  let description = "`#drt.task<\"worker\" 1 on \"11.0.0.2\" replicas 2 from 2>`: replicas 2 and 3 of all.";
  let parameters = (ins StringRefParameter<>:$job, "int64_t":$index, StringRefParameter<>:$host, "int64_t":$numReplicas,
                        "int64_t":$firstReplica);
  let assemblyFormat = "`<` $job $index `on` $host `replicas` $numReplicas `from` $firstReplica `>`";
}
def DRT_TaskArrayAttr : TypedArrayAttrBase<DRT_TaskAttr, "tasks">;

def DRT_ProgramOp : DRT_Op<"program", [DRT_SymbolUser]> {
  let hasVerifier = 1;
  let summary = "What the program says of itself: where it comes from, its tasks and the batch of a step";
  let description = [{
    A module has one, from `drt-describe-program` on. `batch` is the number of examples of a step over all replicas, 0 where the graph is fed no batch.
    Servers that run no replica are tasks with `replicas 0`. `global_step` names the variable that counts the steps; `placeholders` what the graph
    could be fed, whether an entry reads it or not, so that an unknown array is told from an unused one. With `cores` as many
    of a processor compute each replica's step together (`drt-divide-kernels`). `arena` is the size in bytes of a replica's arena, which
    `drt-plan-memory` says, as it does in programs for devices that of a replica's block of variables (`variables`).
    With `joint` the tasks have a replica each and, being on one host, arenas and variables in common, as the replicas of one task have.

    ```mlir
    drt.program "mlp.meta" strategy "AllReduce" target "cpu" batch 64 tasks [
      #drt.task<"worker" 0 on "localhost" replicas 2 from 0>] global_step @global_step placeholders ["x", "y"] arena 4096
    ```
  }];
  let arguments = (ins StrAttr:$graph, StrAttr:$strategy, StrAttr:$target, I64Attr:$batch, DRT_TaskArrayAttr:$tasks,
                       OptionalAttr<FlatSymbolRefAttr>:$global_step, OptionalAttr<StrArrayAttr>:$placeholders,
                       OptionalAttr<I64Attr>:$cores, OptionalAttr<I64Attr>:$arena_bytes, OptionalAttr<I64Attr>:$variable_bytes,
                       UnitAttr:$joint);
  let assemblyFormat = [{
    $graph `strategy` $strategy `target` $target `batch` $batch `tasks` $tasks (`joint` $joint^)? (`global_step` $global_step^)? (`placeholders` $placeholders^)?
    (`cores` $cores^)? (`arena` $arena_bytes^)? (`variables` $variable_bytes^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Over all tasks.
    int64_t getNumReplicas();
    /// Of each task.
    llvm::SmallVector<int64_t> getTaskReplicas();
    /// Whether all replicas reach each other's arenas and have the variables in common.
    bool sharesMemory() { return getTasks().size() == 1 || getJoint(); }
    /// Whether its memory is planned for devices.
    bool isForDevices() { return getVariableBytesAttr() != nullptr; }
  }];
}

def DRT_VariableOp : DRT_Op<"variable", [Symbol, DRT_SymbolUser]> {
  let hasVerifier = 1;
  let summary = "A variable that the task holds, in the order of the program's table";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, UnitAttr:$trainable, UnitAttr:$saved,
                       OptionalAttr<StrAttr>:$whole, OptionalAttr<DenseI64ArrayAttr>:$full_shape, OptionalAttr<DenseI64ArrayAttr>:$slice_begin,
                       OptionalAttr<I64Attr>:$shares, OptionalAttr<I64Attr>:$at, OptionalAttr<I64Attr>:$owner, UnitAttr:$carried);
  let description = [{
    With `owner` the task of that number alone has memory for it, and only updates of that owner access it, and entries that it alone runs (`drt.entry`). A shard says what variable it is a part of (`whole`, the name in checkpoints), that one's shape, and where it begins. With `shares` a replica
    holds one of so many equal, flat shares of `whole`, together not less than it; the type is a share's, and whoever reads or updates it means the replica's own. In programs for devices
    `drt-plan-memory` says where it lies in the replica's block of variables, in bytes (`at`). One that is `carried` holds what a step leaves to the next one
    and is not `saved`: a resumed run begins without it.
  }];
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}

def DRT_ImageOp : DRT_Op<"image", [HasParent<"::mlir::ModuleOp">]> {
  let hasVerifier = 1;
  let summary = "The program's kernels, compiled (drt_image)";
  let description = [{
    `arch` is what can load `data`: a chip's cubin ("sm_90"), PTX for it and later ones ("compute_90", closed by a zero), or an object for
    emulated devices ("host").
  }];
  let arguments = (ins StrAttr:$arch, StrAttr:$data);
  let assemblyFormat = "$arch $data attr-dict";
}

def DRT_EntryOp : DRT_Op<"entry", [HasParent<"::mlir::ModuleOp">, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let hasVerifier = 1;
  let summary = "What every replica of the task runs of a kind: its operations, in their order";
  let description = [{
    `name` is what the runtime asks for: "init", "step", "eval", "accumulate" or "update". Tensors are values of the entry; what it takes are feeds
    and variables, what it gives are fetches. All tasks run it, but "eval", and what takes gradients of servers that serve on their own (`drt.take`): the first one does.

    ```mlir
    drt.entry "step" {
      %x = drt.feed {batched, name = "x"} : () -> tensor<4x8xf32>
      %y = drt.launch @kernel_0(%x) : (tensor<4x8xf32>) -> tensor<4xf32>
      drt.fetch %y {axis = 0 : i32, join = 2 : i32, name = "y:0"} : (tensor<4xf32>) -> ()
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name)>];
  let extraClassDeclaration = [{
    /// The one task that runs the entry, where not all do: the first one evaluates, and does the updates of servers that serve on their own.
    std::optional<int64_t> getTask();
  }];
  let assemblyFormat = "$name attr-dict-with-keyword $body";
}

// ---- Kernels ---------------------------------------------------------------------------------
def DRT_KernelOp : DRT_Op<"kernel", [AffineScope, AutomaticAllocationScope, FunctionOpInterface, HasParent<"::mlir::ModuleOp">, IsolatedFromAbove]> {
  let summary = "Code that the operations of an entry run: on whole tensors, or on a range of an update's elements";
  let description = [{
    Arguments are tensors' memory: those that a launch takes, then those of its results; there are no results. Until it is lowered a kernel is linalg on buffers.

    With `range` it is the rule of an update (`drt.update`), on elements [begin, end), which are its first two arguments; all buffers are flat.

    With `divided` the cores of a replica share it (`drt-divide-kernels`): it computes the part [begin, end), its first two arguments, of a loop. `divided` says
    how long the loop is, and how much of it is worth a core. One without a body is code that is elsewhere.

    ```mlir
    drt.kernel @kernel_0(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
      linalg.generic ... ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>) { ... }
      drt.return
    }
    drt.kernel range @update_step_0(%begin: i64, %end: i64, %g: memref<32xf32>, %w: memref<32xf32>) { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs, UnitAttr:$range,
                       OptionalAttr<DenseI64ArrayAttr>:$divided);
  let regions = (region AnyRegion:$body);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return getBody().empty() ? nullptr : &getBody(); }
    /// The types of what is behind [begin, end), where the kernel is given such a part.
    ::llvm::ArrayRef<::mlir::Type> getBufferTypes();
  }];
}
def DRT_ReturnOp : DRT_Op<"return", [Pure, HasParent<"KernelOp">, ReturnLike, Terminator]> {
  let summary = "The end of a kernel";
  let assemblyFormat = "attr-dict";
}

// ---- Addresses ------------------------------------------------------------------------------
def DRT_FeedOp : DRT_PlanOp<"feed", [Pure]> {
  let summary = "What the replica is fed: its share where `batched`, else the whole";
  let arguments = (ins StrAttr:$name, UnitAttr:$batched);
  let results = (outs DRT_Tensor:$result);
}
def DRT_ReadOp : DRT_Op<"read", [MemoryEffects<[MemRead]>, DRT_SymbolUser, DRT_Accesses<["getAccesses"]>]> {
  let summary = "A variable's memory as a tensor, not a copy: valid until the variable is updated";
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs DRT_Tensor:$result);
  let assemblyFormat = "$variable attr-dict `:` type($result)";
}
def DRT_FeedOrOp : DRT_Placed<"feed_or", [DRT_Scope<"copy">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "What the replica is fed, whole; the default where the data has nothing of that name";
  let arguments = !con((ins StrAttr:$name, DRT_Tensor:$default_value), placed);
  let results = (outs DRT_Tensor:$result);
}
def DRT_ReplicaIndexOp : DRT_PlanOp<"replica_index", [Pure]> {
  let hasVerifier = 1;
  let summary = "The replica's number among all, in its device memory (drt_replica_index)";
  let results = (outs DRT_Tensor:$result);
}
def DRT_CopyOp : DRT_Placed<"copy", [DRT_Scope<"copy">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "A copy in the arena (an old value that outlives an update, a fetch of a feed)";
  let arguments = !con((ins DRT_Tensor:$input), placed);
  let results = (outs DRT_Tensor:$result);
}

def DRT_TakeRowsOp : DRT_Placed<"take_rows", [DRT_Scope<"copy">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "A copy of the replica's rows: part r of N equal ones along the first axis, with r its number of all N replicas";
  let arguments = !con((ins DRT_Tensor:$input), placed);
  let results = (outs DRT_Tensor:$result);
}

def DRT_EmptyOp : DRT_Placed<"empty"> {
  let hasVerifier = 1;
  let summary = "A tensor without elements: an extent is 0, so that nothing computes it and nothing reads it";
  let description = [{
    No kernel and no library call is made for what has no elements. What only takes a tensor's address or size (a fetch, a bucket, a scatter of no rows)
    takes this.
  }];
  let arguments = placed;
  let results = (outs DRT_Tensor:$result);
}

// ---- Work -------------------------------------------------------------------------------------
def DRT_LaunchOp : DRT_Placed<"launch", [DRT_Scope<"kernel">, Pure, DRT_SymbolUser, DRT_AccessInterface]> {
  let summary = "Runs a kernel: operands' addresses, then results'";
  let arguments = !con((ins FlatSymbolRefAttr:$kernel, Variadic<DRT_Tensor>:$operands), placed);
  let results = (outs Variadic<DRT_Tensor>:$results);
  let assemblyFormat = "$kernel `(` operands `)` attr-dict `:` functional-type(operands, results)";
}
def DRT_MatmulOp : DRT_Placed<"matmul", [DRT_Scope<"matmul">, Pure, DRT_ProductInterface, DRT_Accesses<["getAccesses", "meetsBefore", "meetsAfter"]>]> {
  let hasVerifier = 1;
  let summary = "drt_matmul: epilogue(op(a) op(b) + bias), rank 2 or batched rank 3 and more";
  let description = [{
    With `joined` (drt_matmul_joined) the task's replicas compute the product for all of them together, each some of its columns: b is
    the same for all, a and the result are each replica's own.
  }];
  let arguments = !con((ins DRT_Tensor:$a, DRT_Tensor:$b, Optional<DRT_Tensor>:$bias, UnitAttr:$transpose_a,
                            UnitAttr:$transpose_b, DefaultValuedAttr<I32Attr, "0">:$epilogue, UnitAttr:$joined), placed,
                       (ins OptionalAttr<DRT_PrecisionAttr>:$precision));
  let results = (outs DRT_Tensor:$result);
}
def DRT_PackOp : DRT_Placed<"pack", [DRT_Scope<"copy">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "drt_pack: the right operand of several matmuls, packed once for all of them";
  let description = [{
    In the form in which the machine that the program runs on multiplies it; the result is as large as any form, and its elements are nobody's to read but
    those of `drt.matmul_packed`. With `joined` it is for matmuls that are: each replica, and each of its cores, packs the columns that it computes.

    ```mlir
    %p = drt.pack %w {transpose_b} : (tensor<256x1024xf32>) -> tensor<1573184xi8>
    %y = drt.matmul_packed %x, %w, %p {transpose_b} : (tensor<64x1024xf32>, tensor<256x1024xf32>, tensor<1573184xi8>) -> tensor<64x256xf32>
    ```
  }];
  let arguments = !con((ins DRT_Tensor:$b, UnitAttr:$transpose_b, UnitAttr:$joined), placed);
  let results = (outs DRT_Tensor:$packed);
}
def DRT_MatmulPackedOp : DRT_Placed<"matmul_packed", [DRT_Scope<"matmul">, Pure, DRT_Accesses<["getAccesses", "meetsBefore", "meetsAfter"]>]> {
  let hasVerifier = 1;
  let summary = "drt_matmul_packed: drt.matmul of float32 whose right operand is also there as `drt.pack` made it";
  let description = [{
    Which elements have no packed form only the run knows, so that it takes b as well. With `joined` it is drt_matmul_joined, as `drt.matmul` is.
  }];
  let arguments = !con((ins DRT_Tensor:$a, DRT_Tensor:$b, DRT_Tensor:$packed, Optional<DRT_Tensor>:$bias, UnitAttr:$transpose_a,
                            UnitAttr:$transpose_b, DefaultValuedAttr<I32Attr, "0">:$epilogue, UnitAttr:$joined), placed);
  let results = (outs DRT_Tensor:$result);
}
def DRT_MatmulStackedOp : DRT_Placed<"matmul_stacked", [DRT_Scope<"matmul">, Pure, DRT_AccessInterface, AttrSizedOperandSegments]> {
  let hasVerifier = 1;
  let summary = "drt_matmul_stacked: epilogue(a_i op(b) + bias) for each of several a_i, matrices of float32 of the same shape";
  let description = [{
    As if the a_i were stacked to one tall matrix: b is read once for all of them. Each result is a tensor of its own.
  }];
  let arguments = !con((ins Variadic<DRT_Tensor>:$a, DRT_Tensor:$b, Optional<DRT_Tensor>:$bias, UnitAttr:$transpose_b,
                            DefaultValuedAttr<I32Attr, "0">:$epilogue), placed);
  let results = (outs Variadic<DRT_Tensor>:$results);
  let assemblyFormat = "$a `by` $b (`,` $bias^)? attr-dict `:` functional-type(operands, $results)";
}
def DRT_MatmulSumOp : DRT_Placed<"matmul_sum", [DRT_Scope<"matmul">, Pure, DRT_AccessInterface, SameVariadicOperandSize]> {
  let hasVerifier = 1;
  let summary = "drt_matmul_sum: the sum of a_i^T b_i over all pairs, matrices of the same shapes";
  let description = "The gradient of a matrix that a step uses several times: the kernels of a recurrent cell.";
  let arguments = !con((ins Variadic<DRT_Tensor>:$a, Variadic<DRT_Tensor>:$b), placed);
  let results = (outs DRT_Tensor:$result);
}
def DRT_MatmulBiasGradOp : DRT_Placed<"matmul_bias_grad", [DRT_Scope<"matmul">, Pure, DRT_AccessInterface, DRT_ProductInterface]> {
  let hasVerifier = 1;
  let summary = "drt_matmul_bias_grad: a^T b, and the sums of b's columns: the gradients of a layer's matrix and of its bias";
  let description = [{
    For GPUs. a and b are matrices of bfloat16 or float16 with equally many rows; both results are float32.

    ```mlir
    %w, %b = drt.matmul_bias_grad %x, %g : (tensor<64x32xbf16>, tensor<64x16xbf16>) -> (tensor<32x16xf32>, tensor<16xf32>)
    ```
  }];
  let arguments = !con((ins DRT_Tensor:$a, DRT_Tensor:$b), placed);
  let results = (outs DRT_Tensor:$result, DRT_Tensor:$bias_grad);
  let extraClassDeclaration = [{
    /// Elements are multiplied as they are.
    ::mlir::StringAttr getPrecisionAttr() { return {}; }
    void setPrecisionAttr(::mlir::StringAttr) {}
  }];
}
def DRT_MatmulAddOp : DRT_Placed<"matmul_add", [DRT_Scope<"matmul">, Pure, DRT_AccessInterface, DRT_ProductInterface]> {
  let hasVerifier = 1;
  let summary = "drt_matmul_add: op(a) op(b) + addend + bias: what is added to a matmul joins it while it is made";
  let description = [{
    For GPUs. The addend has the result's type, and may be a residual connection's other branch or an earlier matmul's result.

    ```mlir
    %y = drt.matmul_add %x, %w, %addend : (tensor<64x32xbf16>, tensor<32x16xbf16>, tensor<64x16xf32>) -> tensor<64x16xf32>
    ```
  }];
  let arguments = !con((ins DRT_Tensor:$a, DRT_Tensor:$b, DRT_Tensor:$addend, Optional<DRT_Tensor>:$bias, UnitAttr:$transpose_a,
                            UnitAttr:$transpose_b), placed, (ins OptionalAttr<DRT_PrecisionAttr>:$precision));
  let results = (outs DRT_Tensor:$result);
}
// Tensors of an attention are [batch, tokens, heads, size], as the layers before and behind it have them.
class DRT_Attends<string mnemonic> : DRT_Placed<mnemonic, [DRT_Scope<"matmul">, Pure, DRT_AccessInterface, DRT_ProductInterface]> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements are multiplied as they are.
    ::mlir::StringAttr getPrecisionAttr() { return {}; }
    void setPrecisionAttr(::mlir::StringAttr) {}
    /// Multiplications and additions of all its products.
    int64_t getProductOperations();
  }];
}
def DRT_AttentionOp : DRT_Attends<"attention"> {
  let summary = "softmax(scale * query key^T + bias) value, of each head, without its scores in memory";
  let description = [{
    Elements, `[batch, tokens, heads, size]`, are bfloat16 on GPUs, float32 on CPUs (drt_attention). Scores, their exponentials' sums and the output's are float32, the exponentials that
    `value` is multiplied with of the elements' type. `bias`, of float32, is `[batch, heads, queries, keys]`, each of them or 1. `statistics` are two numbers for each row of scores,
    `[2, batch, heads, queries]`: the largest score (on GPUs times log2 e), and the sum of the exponentials of what scores are below it. From them the gradient makes the row's probabilities again. Dao et al.,
    FlashAttention, 2022, algorithm 1, which has the logarithm of both in one number; where all of a row's scores are large (a mask of -1e9), that number rounds the sum away.

    ```mlir
    %output, %statistics = drt.attention %q, %k, %v {scale = 0.125 : f32} : (...) -> (tensor<2x512x16x64xbf16>, tensor<2x2x16x512xf32>)
    ```
  }];
  let arguments = !con((ins DRT_Tensor:$query, DRT_Tensor:$key, DRT_Tensor:$value, Optional<DRT_Tensor>:$bias, F32Attr:$scale), placed);
  let results = (outs DRT_Tensor:$output, DRT_Tensor:$statistics);
}
def DRT_AttentionQueryGradientOp : DRT_Attends<"attention_query_gradient"> {
  let summary = "The gradient of an attention's query, without its probabilities in memory";
  let description = [{
    For GPUs. `dots` is for each row of scores the sum of output times its gradient, which is that of probabilities times their gradients (FlashAttention, appendix B.4).
  }];
  let arguments = !con((ins DRT_Tensor:$query, DRT_Tensor:$key, DRT_Tensor:$value, Optional<DRT_Tensor>:$bias, DRT_Tensor:$statistics,
                            DRT_Tensor:$output_grad, DRT_Tensor:$output, F32Attr:$scale), placed);
  let results = (outs DRT_Tensor:$query_grad, DRT_Tensor:$dots);
}
def DRT_AttentionKeyValueGradientOp : DRT_Attends<"attention_key_value_gradient"> {
  let summary = "The gradients of an attention's key and value, without its probabilities in memory";
  let description = [{
    Beside `drt.attention_query_gradient`, which gives it `dots`: each has for a thread's results what all of the others' rows add to them, so that no two
    threads add to one element, and sums have a fixed order. It makes scores and their gradients once more for that.
  }];
  let arguments = !con((ins DRT_Tensor:$query, DRT_Tensor:$key, DRT_Tensor:$value, Optional<DRT_Tensor>:$bias, DRT_Tensor:$statistics,
                            DRT_Tensor:$output_grad, DRT_Tensor:$dots, F32Attr:$scale), placed);
  let results = (outs DRT_Tensor:$key_grad, DRT_Tensor:$value_grad);
}
def DRT_AttentionGradientOp : DRT_Attends<"attention_gradient"> {
  let summary = "drt_attention_gradient: the gradients of an attention's query, key and value, without its probabilities in memory";
  let description = [{
    For CPUs, where a core has all of a head: each row's probabilities and their gradients are made once, for all three results.
  }];
  let arguments = !con((ins DRT_Tensor:$query, DRT_Tensor:$key, DRT_Tensor:$value, Optional<DRT_Tensor>:$bias, DRT_Tensor:$statistics,
                            DRT_Tensor:$output_grad, DRT_Tensor:$output, F32Attr:$scale), placed);
  let results = (outs DRT_Tensor:$query_grad, DRT_Tensor:$key_grad, DRT_Tensor:$value_grad);
}
class DRT_Conv<string mnemonic, dag operands> : DRT_Placed<mnemonic, [DRT_Convolves, DRT_Scope<"conv">, Pure, DRT_AccessInterface, DRT_ProductInterface]> {
  let hasVerifier = 1;
  // The C descriptor's numbers: n h w c kh kw k oh ow stride_h stride_w dilation_h dilation_w pad_top pad_left pad_bottom pad_right groups.
  let arguments = !con(operands, (ins DenseI64ArrayAttr:$descriptor, DefaultValuedAttr<I32Attr, "0">:$epilogue), placed,
                       (ins OptionalAttr<StrAttr>:$filter_layout, OptionalAttr<DRT_PrecisionAttr>:$precision));
  let results = (outs DRT_Tensor:$result);
  let description = [{
    Images are NHWC. `filter_layout`: of the filter or its gradient. HWIO without it (that of a depthwise convolution has its multiplier as the
    last axis); "OHWI" as the libraries of GPUs want it, (k, kh, kw, c / groups); "OIHW" as PyTorch has it, (k, c / groups, kh, kw).
  }];
}
def DRT_Conv2DOp : DRT_Conv<"conv2d", (ins DRT_Tensor:$input, DRT_Tensor:$filter, Optional<DRT_Tensor>:$bias)>;
def DRT_Conv2DGradInputOp : DRT_Conv<"conv2d_grad_input", (ins DRT_Tensor:$filter, DRT_Tensor:$output_grad)>;
def DRT_Conv2DGradFilterOp : DRT_Conv<"conv2d_grad_filter", (ins DRT_Tensor:$input, DRT_Tensor:$output_grad)>;
class DRT_Pool<string mnemonic, dag operands> : DRT_Placed<mnemonic, [DRT_Scope<"pool">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  // kind, then n h w c oh ow kh kw stride_h stride_w pad_top pad_left pad_bottom pad_right.
  let arguments = !con(operands, (ins I32Attr:$kind, DenseI64ArrayAttr:$descriptor), placed);
  let results = (outs DRT_Tensor:$result);
}
def DRT_PoolOp : DRT_Pool<"pool", (ins DRT_Tensor:$input)>;
def DRT_PoolGradOp : DRT_Pool<"pool_grad", (ins Variadic<DRT_Tensor>:$input_and_output, DRT_Tensor:$output_grad)> {
  let description = "Operands: input and output (maximum only), then the gradient of the output.";
}
def DRT_RandomOp : DRT_Placed<"random", [DRT_Scope<"random">, MemoryEffects<[MemRead, MemWrite]>, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let description = [{
    `per_replica`: the replica's part of a tensor that all replicas draw together. `reserved`: positions of the generator that go with the result, where
    they are not 256 an element.
  }];
  let arguments = !con((ins I32Attr:$distribution, I64Attr:$seed, I64Attr:$seed2, Variadic<DRT_Tensor>:$bounds, UnitAttr:$per_replica,
                            DefaultValuedAttr<I64Attr, "0">:$reserved), placed);
  let results = (outs DRT_Tensor:$result);
}
def DRT_RandomStatelessOp : DRT_Placed<"random_stateless", [DRT_Scope<"random">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "`seed`: two int64, or with `keyed` a generator's key and the two words of its counter; `bounds`: minimum and maximum of a uniform integer, none where all integers may come";
  let arguments = !con((ins I32Attr:$distribution, DRT_Tensor:$seed, Variadic<DRT_Tensor>:$bounds, UnitAttr:$per_replica,
                            UnitAttr:$keyed), placed);
  let results = (outs DRT_Tensor:$result);
}
def DRT_DrawOp : DRT_PlanOp<"draw", [DRT_Scope<"random">, MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let hasVerifier = 1;
  let summary = "Random numbers that an update draws as it goes (drt_draw)";
  let description = [{
    What `drt.random` (with `seed` and `seed2`) or `drt.random_stateless` (with `key`) gives, without memory: updates alone have it, as an argument with as many
    elements as they update, and draw the numbers of a range when they come to it. A table is initialized without a second one in the arena of each
    replica, and each replica draws its own part.
  }];
  let arguments = (ins I32Attr:$distribution, OptionalAttr<I64Attr>:$seed, OptionalAttr<I64Attr>:$seed2, Optional<DRT_Tensor>:$key,
                       Variadic<DRT_Tensor>:$bounds, UnitAttr:$per_replica, UnitAttr:$keyed, DefaultValuedAttr<I64Attr, "0">:$reserved);
  let results = (outs DRT_Tensor:$result);
}

def DRT_RandomStateOp : DRT_PlanOp<"random_state", [MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
  let summary = "A random operation's state in the replica's device memory (drt_random_state)";
  let description = [{
    Seven 32-bit words: Philox's counter (4, the lowest first), its key (2), and the replica's number among all. Every such operation is a state of its
    own. Kernels draw from it; `drt.random_advance` moves it on behind them.
  }];
  let arguments = (ins I64Attr:$seed, I64Attr:$seed2);
  let results = (outs DRT_Tensor:$state);
}
def DRT_RandomAdvanceOp : DRT_PlanOp<"random_advance", [DRT_Scope<"random">, MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
  let summary = "Runs a kernel that moves states on by what a run of the entry draws from them";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<DRT_Tensor>:$states);
  let assemblyFormat = "$kernel `(` $states `)` attr-dict `:` type($states)";
}

// ---- Rows by index: padding's index is -1 -----------------------------------------------------------
def DRT_UniqueOp : DRT_Placed<"unique", [DRT_Scope<"rows">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "drt_unique: distinct values, which one each element is, and how often each occurs";
  let arguments = !con((ins DRT_Tensor:$x), placed);
  let results = (outs DRT_Tensor:$y, DRT_Tensor:$idx, DRT_Tensor:$count);
}
def DRT_ScatterOp : DRT_Placed<"scatter", [DRT_Scope<"rows">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "drt_scatter: slices of the result combined with rows of updates, from `initial` or what changes nothing";
  let description = "`kind` as DRT_SCATTER_*. An index has `depth` numbers, which name the result's first axes.";
  let arguments = !con((ins I32Attr:$kind, I64Attr:$depth, DRT_Tensor:$indices, DRT_Tensor:$updates,
                            Optional<DRT_Tensor>:$initial), placed);
  let results = (outs DRT_Tensor:$result);
}
def DRT_RoutineOp : DRT_Placed<"routine", [DRT_Scope<"routine">, Pure, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "drt_routine_NAME: a routine of the runtime's library on whole tensors (sorting, linear algebra)";
  let description = [{
    `parameters` are the numbers that drt.h names for the routine. Operands' addresses, then results', are its tensors.
    ```mlir
    %values, %indices = drt.routine "top_k" (%x) {parameters = array<i64: ...>} : (tensor<8x10xf32>) -> (tensor<8x3xf32>, tensor<8x3xi32>)
    ```
  }];
  let arguments = !con((ins StrAttr:$name, DenseI64ArrayAttr:$parameters, Variadic<DRT_Tensor>:$operands), placed);
  let results = (outs Variadic<DRT_Tensor>:$results);
  let assemblyFormat = "$name `(` operands `)` attr-dict `:` functional-type(operands, results)";
}
def DRT_AssertOp : DRT_PlanOp<"assert", [DRT_Scope<"rows">, MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
  let summary = "drt_routine_assert: ends the program with `message` where the condition does not hold";
  let description = [{
    Where the message has a byte 1, the first `summarize` elements of the next tensor of `data` are put. With `prints` the program goes on, and the
    message is written to stderr where the condition holds.
  }];
  let arguments = (ins StrAttr:$message, I64Attr:$summarize, UnitAttr:$prints, DRT_Tensor:$condition, Variadic<DRT_Tensor>:$data);
}
def DRT_CheckNumericsOp : DRT_PlanOp<"check_numerics", [DRT_Scope<"rows">, MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
  let summary = "Ends the program with `message` where an element is infinite or NaN";
  let arguments = (ins StrAttr:$message, DRT_Tensor:$input);
}
def DRT_CheckIndicesOp : DRT_PlanOp<"check_indices", [DRT_Scope<"rows">, MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
  let summary = "drt_check_indices: ends the program where an index is outside of its axis";
  let description = [{
    An index has as many numbers as `sizes`, each from 0 to below its size. `name` says for the message where indices come from; `per_row` of them
    belong to an example of the replica's share of the batch (0: they have none). With `padded` -1 is padding, and passes.
  }];
  let arguments = (ins StrAttr:$name, DenseI64ArrayAttr:$sizes, I64Attr:$per_row, UnitAttr:$padded, DRT_Tensor:$indices);
}

// ---- Synchronization ------------------------------------------------------------------------------
// The dialect dist's, by name: a plan needs nothing else of it.
class DRT_DistAttr<string mnemonic> : Attr<CPred<"$_self.getAbstractAttribute().getName() == \"dist." # mnemonic # "\"">, "a #dist." # mnemonic> {
  let storageType = "::mlir::Attribute";
  let returnType = "::mlir::Attribute";
  let convertFromStorage = "$_self";
}
def DRT_PullRowsOp : DRT_Placed<"pull_rows", [DRT_Scope<"rows">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser,
                                              DRT_Accesses<["getAccesses", "meetsBefore", "meetsAfter"]>]> {
  let hasVerifier = 1;
  let summary = "Rows of variables that one task alone holds each (drt_pull_rows)";
  let description = [{
    All replicas of all tasks come here: a bucket of its own, which is started and waited for at once. `variables`, `indices`, `owners` and the results
    belong together, one by one; indices are of one type. All of them are asked for at once, and come at once (`drt-join-row-exchanges`). An index that names no
    row, as padding does, gives zeros.
    ```mlir
    %a, %b = drt.pull_rows [@table_0, @table_1][%i, %j] from [0, 1] bucket 0 : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    ```
  }];
  let arguments = !con((ins ConfinedAttr<FlatSymbolRefArrayAttr, [ArrayMinCount<1>]>:$variables, Variadic<DRT_Tensor>:$indices, DenseI64ArrayAttr:$owners,
                            I32Attr:$bucket), placed);
  let results = (outs Variadic<DRT_Tensor>:$rows);
  let assemblyFormat = "$variables `[` $indices `]` `from` $owners `bucket` $bucket attr-dict `:` functional-type(operands, results)";
}
def DRT_PushRowsOp : DRT_Placed<"push_rows", [DRT_Scope<"rows">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser, SameVariadicOperandSize,
                                              SameVariadicResultSize, DRT_Accesses<["getAccesses", "meetsBefore", "meetsAfter"]>]> {
  let hasVerifier = 1;
  let summary = "Rows of all replicas, to the tasks that own them (drt_push_rows)";
  let description = [{
    All replicas of all tasks come here: a bucket of its own, which is started and waited for at once. Indices, values, `names`, `shards` and results belong
    together, a table each; indices are of one type. All tables' rows go at once (`drt-join-row-exchanges`). The results have the rows of all replicas in
    their order; where a row's index is in none of the shards that the task owns there is -1, and zeros. `shards`, of each table: the first row of each, how
    many it has, and its task.
    ```mlir
    %i, %v = drt.push_rows [%ids], [%rows] of ["table"] to [array<i64: 0, 5, 0, 5, 4, 1>] bucket 2 : (tensor<8xi32>, tensor<8x4xf32>) -> (tensor<16xi32>, tensor<16x4xf32>)
    ```
  }];
  let arguments = !con((ins Variadic<DRT_Tensor>:$indices, Variadic<DRT_Tensor>:$values, ConfinedAttr<StrArrayAttr, [ArrayMinCount<1>]>:$names,
                            TypedArrayAttrBase<DenseI64ArrayAttr, "shards of each table">:$shards, I32Attr:$bucket), placed);
  let results = (outs Variadic<DRT_Tensor>:$all_indices, Variadic<DRT_Tensor>:$all_values);
  let assemblyFormat = "` ` `[` $indices `]` `,` `[` $values `]` `of` $names `to` $shards `bucket` $bucket attr-dict `:` functional-type(operands, results)";
}
def DRT_AllReduceStartOp : DRT_Op<"all_reduce_start", [DRT_Synchronizes, DRT_Scope<"all_reduce">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser, DRT_Accesses<["getAccesses"]>]> {
  let hasVerifier = 1;
  let summary = "This replica's gradients of a bucket are written";
  let description = [{
    The operands lie side by side in the arena, in this order, each aligned to 64 bytes, at the bucket's place `at` (one number). `names`:
    what each is the gradient of. `compression` and `aggregator` are `#dist.compression` and `#dist.aggregator`. With `scatter` a task needs its
    replicas' shares of the result only (DRT_BUCKET_REDUCE_SCATTER), or with `owners`, a task a gradient, the gradients that it owns. With `gather` = N the bucket has one member, whose rows of all N replicas are
    joined (DRT_BUCKET_GATHER_ROWS); the joined rows lie behind it, and are what drt.all_reduce_result gives. `room`, on devices: elements that each
    gradient which is scattered has room for, the equal shares of all replicas, so that each is reduced in its place. `algorithm`: what tasks add up by
    over a network (DRT_ALL_REDUCE_*). `pipelined`: gradients go to their owners piece by piece (drt-pipeline-owners).
  }];
  let arguments = (ins I32Attr:$bucket, BoolAttr:$mean, StrArrayAttr:$names, Variadic<DRT_Tensor>:$gradients, OptionalAttr<DenseI64ArrayAttr>:$at,
                       OptionalAttr<DRT_DistAttr<"compression">>:$compression, OptionalAttr<DRT_DistAttr<"aggregator">>:$aggregator, UnitAttr:$scatter, DefaultValuedAttr<I64Attr, "0">:$gather,
                       OptionalAttr<DenseI64ArrayAttr>:$owners, OptionalAttr<DenseI64ArrayAttr>:$room,
                       DefaultValuedAttr<ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<3>]>, "0">:$algorithm, UnitAttr:$pipelined);
  let builders = [OpBuilder<(ins "int32_t":$bucket, "bool":$mean, "::mlir::ArrayAttr":$names, "::mlir::ValueRange":$gradients, CArg<"int64_t", "0">:$gather), [{
    build($_builder, $_state, $_builder.getI32IntegerAttr(bucket), $_builder.getBoolAttr(mean), names, gradients, {}, {}, {}, {}, $_builder.getI64IntegerAttr(gather), {}, {},
          $_builder.getI32IntegerAttr(0), {});
  }]>];
}
def DRT_GatherStartOp : DRT_Op<"gather_start", [DRT_Synchronizes, DRT_Scope<"all_reduce">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser, DRT_Accesses<["getAccesses"]>]> {
  let hasVerifier = 1;
  let summary = "This replica has updated its shares of the bucket's variables; all of them are there after the wait (DRT_BUCKET_GATHER)";
  let description = [{
    `bucket` numbers it among the buckets of the entry. With `owners`, a task a variable, each comes whole from its owner instead. `room`, on devices:
    elements that each variable has room for in the block of variables, the equal shares of all replicas. `pipelined`: the values come piece by piece, as owners update them (drt-pipeline-owners).
  }];
  let arguments = (ins I32Attr:$bucket, FlatSymbolRefArrayAttr:$variables, OptionalAttr<DenseI64ArrayAttr>:$owners, OptionalAttr<DenseI64ArrayAttr>:$room, UnitAttr:$pipelined);
}
def DRT_AllReduceWaitOp : DRT_PlanOp<"all_reduce_wait", [DRT_Synchronizes, DRT_Scope<"all_reduce">, MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins I32Attr:$bucket);
  let assemblyFormat = "$bucket attr-dict";
}
def DRT_AllReduceResultOp : DRT_Op<"all_reduce_result", [DRT_Scope<"all_reduce">, MemoryEffects<[MemRead]>, DRT_Accesses<["getAccesses", "meetsAfter"]>]> {
  let summary = "The reduced gradients, shared by the task's replicas, in the bucket's order";
  let arguments = (ins I32Attr:$bucket);
  let results = (outs Variadic<DRT_Tensor>:$gradients);
}
def DRT_UpdateOp : DRT_Op<"update", [DRT_Scope<"update">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser, DRT_Accesses<["getAccesses"]>]> {
  let hasVerifier = 1;
  let summary = "Runs a range kernel on this replica's part of the variables";
  let description = [{
    With `bucket`: drt_update, the gradient is member `member` of the bucket; without: drt_update_local. The range kernel is a
    `drt.kernel range` of
    `(i64 begin, i64 end, [memref<Nxtype> gradient,] one memref<Nxtype> a variable, one memref<Nxtype> or memref<1xtype> an argument)`,
    N = `count`. The gradient is there with `bucket` only, and its element 0 is that of `begin`; all others are indexed from 0.

    With `share` (drt_update_share) the replica updates its share, so many elements, of a variable of `count`: N = `share`. Variables that have
    `shares` are the replica's own share; of all others, and of arguments with `count` elements, the kernel is given the part that begins at its share.

    With `owner` (drt_update_owned) the replicas of that task update, each its range, and those of others do nothing.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, DRT_Updated:$variables, OptionalAttr<I32Attr>:$bucket, OptionalAttr<I64Attr>:$member,
                       I64Attr:$count, Variadic<DRT_Tensor>:$arguments, OptionalAttr<I64Attr>:$share, OptionalAttr<I64Attr>:$owner);
}
def DRT_UpdateGroupOp : DRT_PlanOp<"update_group", [DRT_Scope<"update">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser, AttrSizedOperandSegments]> {
  let summary = "One launch that updates several variables by one rule, on a device";
  let description = [{
    The kernel is a `gpu.func`, whose arguments are the base of the arena, the base of the replica's block of variables, and `arguments`: tensors with one
    element that serve all members, or what an only member reads that is neither in the arena nor a variable. A table beside the kernel says where
    variables, slots and gradients of each member lie, from those bases. `variables` has an array for each member: those that it writes. `reads` are the
    other tensors that the table names, equally many for each member, in the order of members. With `bucket`,
    `members` are those of the bucket that the gradients are; `scale` is what the kernel multiplies them by: 1/N for the mean of a bucket that is summed.
    With `shares`, elements of a share of each member, the replica updates its share of each: the first of `arguments` is its number (drt.replica_index).
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, DRT_UpdatedGroup:$variables, OptionalAttr<I32Attr>:$bucket, OptionalAttr<DenseI64ArrayAttr>:$members,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale, Variadic<DRT_Tensor>:$arguments, Variadic<DRT_Tensor>:$reads,
                       OptionalAttr<DenseI64ArrayAttr>:$shares);
  let hasVerifier = 1;
  let assemblyFormat = "$arguments (`reads` `(` $reads^ `:` type($reads) `)`)? attr-dict `:` functional-type($arguments, results)";
}
def DRT_SparseUpdateOp : DRT_Op<"sparse_update", [DRT_Scope<"update">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser, DRT_Accesses<["getAccesses"]>]> {
  let hasVerifier = 1;
  let summary = "Runs a range kernel on rows of the variables (drt_sparse_update)";
  let description = [{
    The kernel is as that of `drt.update` with a bucket: its gradient is the row of `values`. `depth`: the numbers of an index, which name the
    first axes of the variables.

    Rows that occur several times are updated in the order of their positions. For devices `drt-row-kernels` says how threads know it: indices are
    `distinct`, or `sorted`, which is `tensor<2 x count>`: the rows' numbers in their order, and then which index each was.

    With `owner` the replicas of that task update, and those of others do nothing.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, DRT_Updated:$variables, I64Attr:$depth, DRT_Tensor:$indices, DRT_Tensor:$values,
                       Variadic<DRT_Tensor>:$arguments, UnitAttr:$sorted, UnitAttr:$distinct, OptionalAttr<I64Attr>:$owner);
  let extraClassDeclaration = [{
    /// How many rows `values` has.
    int64_t getNumRows();
  }];
}
def DRT_MatmulUpdateOp : DRT_Op<"matmul_update", [DRT_Scope<"update">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser, DRT_Accesses<["getAccesses"]>]> {
  let hasVerifier = 1;
  let summary = "An update from a product over the joined batch (drt_matmul_update)";
  let arguments = (ins FlatSymbolRefAttr:$kernel, DRT_Updated:$variables, DRT_Tensor:$a, DRT_Tensor:$b, UnitAttr:$transpose_a,
                       UnitAttr:$transpose_b, F64Attr:$scale, Variadic<DRT_Tensor>:$arguments);
}
// ---- Several batches an update ------------------------------------------------------------------------
def DRT_AccumulateOp : DRT_PlanOp<"accumulate", [DRT_Scope<"accumulate">, MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
  let summary = "Keeps a batch's gradients (drt_accumulate); `first` numbers the first one's accumulator";
  let arguments = (ins I32Attr:$first, I64Attr:$steps, UnitAttr:$slices, Variadic<DRT_Tensor>:$gradients);
}
def DRT_AccumulatedOp : DRT_Placed<"accumulated", [DRT_Scope<"accumulate">, MemoryEffects<[MemRead, MemWrite]>, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "The sums, times scale, of the gradients kept and of these, the last batch's (drt_accumulated)";
  let arguments = !con((ins I32Attr:$first, I64Attr:$steps, F64Attr:$scale, UnitAttr:$slices, Variadic<DRT_Tensor>:$gradients), placed);
  let results = (outs Variadic<DRT_Tensor>:$accumulated);
}
def DRT_BarrierOp : DRT_Op<"barrier", [DRT_Synchronizes, DRT_Scope<"all_reduce">, MemoryEffects<[MemRead, MemWrite]>, DRT_Accesses<["meetsBefore"]>]> {
  let assemblyFormat = "attr-dict";
}
def DRT_FetchOp : DRT_PlanOp<"fetch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
  let summary = "The entry leaves this value in the arena under a name; `join` as DRT_JOIN_*, along `axis`";
  let arguments = (ins StrAttr:$name, I32Attr:$join, DefaultValuedAttr<I32Attr, "0">:$axis, DRT_Tensor:$value);
}
#endif // DRT_OPS
