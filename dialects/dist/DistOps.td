//===- DistOps.td - The plan of distribution -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DIST_OPS
#define DIST_OPS

include "dialects/dfg/DfgInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def DIST_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::distc::dist";
  let summary = "How a graph is distributed: who runs it, and where it synchronizes";
  let description = [{
    A worker's program stands once, whatever the number of replicas (SPMD). Besides its operations the dialect has attributes on
    others:

    - `dist.place` on a variable: the task that holds it, a parameter server; without it every worker has it. Where servers share workers'
      processes (dist-colocate-servers), a worker: the owner of the variable, and behind dist-insert-synchronizers the one task that has memory for it;
    - `dist.place` on a node: the task that runs it, a server, a worker that owns what it updates, or the chief (`<"worker" 0>`); without it every
      worker does;
    - `dist.role` on a graph: the role whose program it is, "chief", "worker" or "server" (with `dist.place`);
    - `dist.slice` on a variable: the part of a whole variable that it is;
    - `dist.shares` on a variable of rank 1: each replica holds its own share of a slot that is split into so many equal shares, flat, the last
      one padded; the whole one is `dist.slice`;
    - `dist.strategy` on the module: the strategy, but for what it says of single variables;
    - `dist.sync` on a variable: how the strategy synchronizes it;
    - `dist.parts` on a variable: the shards that the strategy splits it into, until `dist-partition-variables`;
    - `dist.coupling` = "replica" on the module, where replicas use values of their own share in place of the whole batch's, which the strategy asks
      for;
    - `dist.joins` on a graph: of each fetched tensor what it gives over all replicas, "concat:AXIS", "sum", "mean", "batch" or "first";
    - `dist.feed` on a placeholder: "sharded" where each replica is given its part of the first axis, "whole" where each is
      given all of it;
    - `dist.each_batch` on an update, where gradients are accumulated: it happens at each batch, and not once for all;
    - `dist.seed` = "replica" on a random node: its numbers belong to a replica's own examples, so that each replica draws its rows
      of what one replica would draw for the whole batch; without it all replicas draw the same;
    - `dist.replica` on a node of the unrolled form: the replica that it belongs to, until it has its scope.

    Each of them is checked where it stands; another name of this dialect on an operation is an error.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = "void registerAttributes();";
}

class DIST_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::distc::dist";
  let genSpecializedAttr = 0;
}
class DIST_EnumAttr<DIST_Enum enum, string keyword> : EnumAttr<DIST_Dialect, enum, keyword> { let assemblyFormat = "`<` $value `>`"; }

// Numbers are those of the runtime (DRT_REDUCE_*) and of strategy.proto.
def DIST_Reduction : DIST_Enum<"Reduction", "how the replicas' values become one",
  [I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">]>;
// The operation prints it as a keyword.
def DIST_ReductionAttr : EnumAttr<DIST_Dialect, DIST_Reduction, "reduction">;
def DIST_Spec : DIST_Enum<"Spec", "what carries a collective",
  [I32EnumAttrCase<"Auto", 0, "auto">, I32EnumAttrCase<"Nccl", 1, "nccl">, I32EnumAttrCase<"Ring", 2, "ring">,
   I32EnumAttrCase<"Doubling", 100, "doubling">, I32EnumAttrCase<"Halving", 101, "halving">]>;
def DIST_SpecAttr : DIST_EnumAttr<DIST_Spec, "spec">;
// Numbers are those of strategy.proto.
def DIST_Compressor : DIST_Enum<"Compressor", "how a gradient is compressed on its way", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"FP16", 1, "fp16">, I32EnumAttrCase<"FP16EF", 2, "fp16_ef">,
  I32EnumAttrCase<"PowerSGD", 3, "power_sgd">, I32EnumAttrCase<"BF16", 100, "bf16">, I32EnumAttrCase<"BF16EF", 101, "bf16_ef">,
  I32EnumAttrCase<"TopK", 102, "top_k">]>;
def DIST_CompressionAttr : AttrDef<DIST_Dialect, "Compression"> {
  let mnemonic = "compression";
  let summary = "A compressor with its parameters: the rank of power_sgd, the ratio of elements that top_k sends";
  let description = "`#dist.compression<bf16>`, `#dist.compression<power_sgd rank 4>`, `#dist.compression<top_k ratio 1.0e-02 : f64>`";
  let parameters = (ins EnumParameter<DIST_Compressor>:$kind, DefaultValuedParameter<"int64_t", "0">:$rank,
                        OptionalParameter<"::mlir::FloatAttr">:$ratio);
  let assemblyFormat = "`<` $kind (`rank` $rank^)? (`ratio` $ratio^)? `>`";
  let extraClassDeclaration = [{
    /// Of power_sgd; 1 where nothing is said.
    int64_t getMatrixRank() const;
    /// How many of `count` elements top_k sends: at least one, where there is one; 0.01 of them where nothing is said.
    int64_t getKept(int64_t count) const;
  }];
}

def DIST_AggregatorKind : DIST_Enum<"AggregatorKind", "how many replicas' gradients become one, where some may be wrong", [
  I32EnumAttrCase<"Median", 4, "median">, I32EnumAttrCase<"TrimmedMean", 5, "trimmed_mean">, I32EnumAttrCase<"Krum", 6, "krum">,
  I32EnumAttrCase<"MultiKrum", 7, "multi_krum">, I32EnumAttrCase<"GeometricMedian", 8, "geometric_median">]>;
def DIST_AggregatorAttr : AttrDef<DIST_Dialect, "Aggregator"> {
  let mnemonic = "aggregator";
  let summary = "A rule that outvotes up to f wrong gradients; multi_krum takes the mean of the m best";
  let description = [{
    `#dist.aggregator<median>`, `#dist.aggregator<trimmed_mean f 1>`, `#dist.aggregator<multi_krum f 1 m 2>`. For a sum over the batch the
    aggregated gradient is multiplied by the number of gradients.
  }];
  let parameters = (ins EnumParameter<DIST_AggregatorKind>:$kind, DefaultValuedParameter<"int64_t", "0">:$f, DefaultValuedParameter<"int64_t", "0">:$m);
  let assemblyFormat = "`<` $kind (`f` $f^)? (`m` $m^)? `>`";
}

// What a strategy decides: for each variable on the variable, for all of them on the module.
def DIST_SyncKind : DIST_Enum<"SyncKind", "who makes one gradient of those of all replicas",
  [I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"Server", 1, "server">]>;
def DIST_SpecParameter : EnumParameter<DIST_Spec> { let defaultValue = "::distc::dist::Spec::Auto"; }
def DIST_SyncAttr : AttrDef<DIST_Dialect, "Sync"> {
  let mnemonic = "sync";
  let summary = "How a variable is synchronized, as the strategy says";
  let description = [{
    `#dist.sync<all_reduce group 3>`, `#dist.sync<all_reduce group 0 compression <bf16> sharded 1>`, `#dist.sync<server at "ps:0" staleness 2>`.
    Gradients of one `group` are reduced together. `at` is the strategy's name for who owns the variable; `dist.place` says which task that is. `reduction` is
    what the strategy fixes; without it, it is as the loss was.
  }];
  let parameters = (ins EnumParameter<DIST_SyncKind>:$kind, DefaultValuedParameter<"int64_t", "0">:$group, DIST_SpecParameter:$spec,
                        OptionalParameter<"::distc::dist::CompressionAttr">:$compression, DefaultValuedParameter<"int64_t", "0">:$shardedStage,
                        OptionalParameter<"::mlir::StringAttr">:$destination, DefaultValuedParameter<"bool", "false">:$async,
                        DefaultValuedParameter<"bool", "false">:$proxy, DefaultValuedParameter<"int64_t", "0">:$staleness,
                        OptionalParameter<"::distc::dist::ReductionAttr">:$reduction, OptionalParameter<"::distc::dist::AggregatorAttr">:$aggregator);
  let assemblyFormat = [{
    `<` $kind (`group` $group^)? (`spec` $spec^)? (`compression` $compression^)? (`sharded` $shardedStage^)? (`at` $destination^)?
    (custom<AsyncWord>($async)^)? (custom<ProxyWord>($proxy)^)? (`staleness` $staleness^)? (`reduction` $reduction^)? (`aggregator` $aggregator^)? `>`
  }];
  let genVerifyDecl = 1;
}
def DIST_PartsAttr : AttrDef<DIST_Dialect, "Parts"> {
  let mnemonic = "parts";
  let summary = "How many shards a variable is to be split into along each axis, and how each is synchronized";
  let description = [{
    `#dist.parts<[1, 2]>`, `#dist.parts<[1, 2] as [#dist.sync<all_reduce>, #dist.sync<all_reduce group 1>]>`; without the latter each is as the
    variable. `dist-partition-variables` makes variables of them.
  }];
  let parameters = (ins "::mlir::DenseI64ArrayAttr":$counts, OptionalParameter<"::mlir::ArrayAttr">:$syncs);
  let assemblyFormat = "`<` $counts (`as` $syncs^)? `>`";
  let genVerifyDecl = 1;
}
def DIST_StrategyAttr : AttrDef<DIST_Dialect, "Strategy"> {
  let mnemonic = "strategy";
  let summary = "The strategy that was applied: what it says of all variables together";
  let description = [{
    `#dist.strategy<"AllReduce">`, `#dist.strategy<"mine" builder "PS:staleness=2" required 3>`: its name, the builder that made it and the file it is from; the
    devices of its `replicas`; the `coupling` that it asks for ("replica" or "whole"); how many batches' gradients are added up for an update (`accumulate`), how many
    gradients make one (`required`; 0: one from each replica), and by what moving averages of variables decay. What it says of a variable
    is on that one (`dist.sync`, `dist.parts`).
  }];
  let parameters = (ins "::mlir::StringAttr":$id, OptionalParameter<"::mlir::StringAttr">:$builder, OptionalParameter<"::mlir::StringAttr">:$path,
                        OptionalParameter<"::mlir::ArrayAttr">:$replicas, OptionalParameter<"::mlir::StringAttr">:$coupling,
                        DefaultValuedParameter<"int64_t", "0">:$accumulate, DefaultValuedParameter<"int64_t", "0">:$required,
                        OptionalParameter<"::mlir::FloatAttr">:$averagesDecay);
  let assemblyFormat = [{
    `<` $id (`builder` $builder^)? (`path` $path^)? (`replicas` $replicas^)? (`coupling` $coupling^)? (`accumulate` $accumulate^)? (`required` $required^)?
    (`averages` $averagesDecay^)? `>`
  }];
  let genVerifyDecl = 1;
}
def DIST_PlaceAttr : AttrDef<DIST_Dialect, "Place"> {
  let mnemonic = "place";
  let summary = "A task, as the place of a variable";
  let description = "`#dist.place<\"ps\" 0>`";
  let parameters = (ins StringRefParameter<>:$job, "int64_t":$index);
  let assemblyFormat = "`<` $job $index `>`";
}
def DIST_SliceAttr : AttrDef<DIST_Dialect, "Slice"> {
  let mnemonic = "slice";
  let summary = "What part of a whole variable a variable is";
  let description = [{
    `#dist.slice<"dense/kernel" [784, 512] at [392, 0]>`: the name and shape in the original graph and in checkpoints, and where the part
    begins along each axis; its sizes are those of the variable that has the attribute.
  }];
  let parameters = (ins "::mlir::StringAttr":$whole, "::mlir::DenseI64ArrayAttr":$shape, "::mlir::DenseI64ArrayAttr":$offsets);
  let assemblyFormat = "`<` $whole $shape `at` $offsets `>`";
}

def DIST_TaskAttr : AttrDef<DIST_Dialect, "Task"> {
  let mnemonic = "task";
  let summary = "A process: its job and number in the job, its host, its devices and the replicas it runs";
  let description = [{
    `#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>`: replica i of the task, number
    `from + i` of all, runs on device i. A server has no replicas:
    `#dist.task<"ps" 0 on "localhost" devices [] replicas 0 from 2>`.
  }];
  let parameters = (ins StringRefParameter<>:$job, "int64_t":$index, "::mlir::StringAttr":$host, "::mlir::ArrayAttr":$devices,
                        "int64_t":$numReplicas, "int64_t":$firstReplica);
  let assemblyFormat = "`<` $job $index `on` $host `devices` $devices `replicas` $numReplicas `from` $firstReplica `>`";
}
def DIST_TaskArrayAttr : TypedArrayAttrBase<DIST_TaskAttr, "tasks">;

def DIST_TopologyOp : Op<DIST_Dialect, "topology", [Symbol]> {
  let summary = "The tasks, and how many replicas there are in all";
  let description = [{
    ```mlir
    dist.topology @cluster replicas 4 [
      #dist.task<"worker" 0 on "11.0.0.1" devices ["11.0.0.1:CPU:0", "11.0.0.1:CPU:1"] replicas 2 from 0>,
      #dist.task<"worker" 1 on "11.0.0.2" devices ["11.0.0.2:CPU:0", "11.0.0.2:CPU:1"] replicas 2 from 2>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$replicas, DIST_TaskArrayAttr:$tasks);
  let assemblyFormat = "$sym_name `replicas` $replicas $tasks attr-dict";
  let hasVerifier = 1;
}

// ---- Facts that passes ask for (Dist.h says what each means) -----------------------------------------------
class DIST_Fact<string name> : NativeOpTrait<name> { let cppNamespace = "::distc::dist"; }
def DIST_Collective : DIST_Fact<"Collective">;
def DIST_Couples : DIST_Fact<"Couples">;
def DIST_GivesAll : DIST_Fact<"GivesAll">;
def DIST_GivesShare : DIST_Fact<"GivesShare">;
def DIST_OfServers : DIST_Fact<"OfServers">;

// ---- Gradients of all replicas ----------------------------------------------------------------------------
def DIST_AllReduceOp : Op<DIST_Dialect, "all_reduce", [DIST_Collective, DIST_GivesAll, Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "The sum or mean over all replicas of each value of a bucket";
  let description = [{
    Every replica gives its values and is given the reduced ones, in the same order. A bucket is one collective: its members have one
    element type. `bucket` numbers the graph's collectives in the order in which every replica issues them; `group` is the strategy's,
    -1 where the values belong to no entry of it (statistics). `variables` says which variable each value is for; with `coupling` the
    values are not gradients on their way to updates but what other values of the step are computed from, and it says which nodes' they are.

    ```mlir
    %w, %b = dist.all_reduce mean bucket 0 group 0 (%gw, %gb) variables ["w", "b"] : tensor<64x10xf32>, tensor<10xf32>
    ```
  }];
  let arguments = (ins DIST_ReductionAttr:$reduction, I32Attr:$bucket, I32Attr:$group, Variadic<AnyTensor>:$gradients, StrArrayAttr:$variables,
                       DefaultValuedAttr<DIST_SpecAttr, "::distc::dist::Spec::Auto">:$spec,
                       OptionalAttr<DIST_CompressionAttr>:$compression, OptionalAttr<DIST_AggregatorAttr>:$aggregator, UnitAttr:$coupling);
  let results = (outs Variadic<AnyTensor>:$reduced);
  let assemblyFormat = [{
    $reduction `bucket` $bucket `group` $group ` ` `(` $gradients `)` `variables` $variables attr-dict `:` type($gradients)
  }];
  let hasVerifier = 1;
}

// ---- Values that depend on other replicas' examples ---------------------------------------------------
def DIST_AllGatherOp : Op<DIST_Dialect, "all_gather", [DIST_Collective, DIST_Couples, DIST_GivesAll, Pure, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "The rows of all replicas, joined along the first axis in the order of replicas";
  let description = [{
    Every replica gives as many rows, and is given all of them: the value of the whole batch where the rows are those of its share.
    `name` says which node's they are.

    ```mlir
    %all = dist.all_gather bucket 1 (%rows) name "encoder/features" : (tensor<?x64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins I32Attr:$bucket, AnyTensor:$rows, StrAttr:$name, DefaultValuedAttr<DIST_SpecAttr, "::distc::dist::Spec::Auto">:$spec);
  let results = (outs AnyTensor:$all_rows);
  let assemblyFormat = "`bucket` $bucket ` ` `(` $rows `)` `name` $name attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def DIST_TakeRowsOp : Op<DIST_Dialect, "take_rows", [DIST_Couples, DIST_GivesShare, Pure, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "The replica's rows of a value of the whole batch that all replicas have";
  let description = [{
    Of N replicas, replica r takes the r-th of N equal parts of the first axis: what `dist.all_gather` would join again.
    ```mlir
    %rows = dist.take_rows %all : (tensor<?x64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins AnyTensor:$all_rows);
  let results = (outs AnyTensor:$rows);
  let assemblyFormat = "$all_rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def DIST_WholeSizeOp : Op<DIST_Dialect, "whole_size", [DIST_Couples, Pure, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "Sizes of the whole batch, from those of a replica's share";
  let description = [{
    `factors` are one an element: 1, or the number of replicas for a multiple of the batch's size.
    ```mlir
    %shape = dist.whole_size %share by [4, 1] : (tensor<2xi32>) -> tensor<2xi32>
    ```
  }];
  let arguments = (ins AnyTensor:$share, DenseI64ArrayAttr:$factors);
  let results = (outs AnyTensor:$whole);
  let assemblyFormat = "$share `by` $factors attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def DIST_RescaleOp : Op<DIST_Dialect, "rescale", [DIST_Couples, Pure, SameOperandsAndResultType, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "The whole batch's value, of one that is smaller or larger in each replica by a power of their number N";
  let description = [{
    Times N^`power`: of values that were divided by the size of the replica's share, with -1.
    ```mlir
    %whole = dist.rescale %share power -1 : tensor<f32>
    ```
  }];
  let arguments = (ins AnyTensor:$share, I64Attr:$power);
  let results = (outs AnyTensor:$whole);
  let assemblyFormat = "$share `power` $power attr-dict `:` type($share)";
  let hasVerifier = 1;
}

// ---- Sparse gradients -------------------------------------------------------------------------------
def DIST_AllGatherSlicesOp : Op<DIST_Dialect, "all_gather_slices", [DIST_Collective, DIST_GivesAll, Pure, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "The rows of a sparse gradient of all replicas, joined in the order of replicas";
  let description = [{
    A sparse gradient is (indices, values): values[i] belongs to row indices[i], and a row may occur more than once. With `mean` the values
    are divided by the number of replicas, so that their sum over equal indices is the whole batch's gradient.

    ```mlir
    %i, %v = dist.all_gather_slices mean bucket 1 group 0 (%indices, %values) variable "embedding" : (tensor<?xi32>, tensor<?x32xf32>) -> (tensor<?xi32>, tensor<?x32xf32>)
    ```
    `shards`, where workers own the table's rows, and nobody else needs their gradients: three numbers a shard, its first row, how many it has, and the worker. Rows go to who owns
    them; elsewhere their places have the index -1 and zeros.
  }];
  let arguments = (ins DIST_ReductionAttr:$reduction, I32Attr:$bucket, I32Attr:$group, AnyTensor:$indices, AnyTensor:$values, StrAttr:$variable,
                       DefaultValuedAttr<DIST_SpecAttr, "::distc::dist::Spec::Auto">:$spec, OptionalAttr<DenseI64ArrayAttr>:$shards);
  let results = (outs AnyTensor:$all_indices, AnyTensor:$all_values);
  let assemblyFormat = [{
    $reduction `bucket` $bucket `group` $group ` ` `(` $indices `,` $values `)` `variable` $variable attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def DIST_OwnRowsOp : Op<DIST_Dialect, "own_rows", [Pure, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "The rows of a sparse gradient that belong to a shard of the variable";
  let description = [{
    Those whose index is in [begin, begin + count), with indices from `begin` on. Exported, the others are left out; where code is generated,
    sizes are those of the operands, and the others have index -1, which updates skip.

    ```mlir
    %i, %v = dist.own_rows 500 from 500 (%indices, %values) : (tensor<?xi32>, tensor<?x32xf32>) -> (tensor<?xi32>, tensor<?x32xf32>)
    ```
  }];
  let arguments = (ins AnyTensor:$indices, AnyTensor:$values, I64Attr:$begin, I64Attr:$count);
  let results = (outs AnyTensor:$own_indices, AnyTensor:$own_values);
  let assemblyFormat = "$count `from` $begin ` ` `(` $indices `,` $values `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

// ---- Sharded updates: each replica updates its share of a variable, and alone holds its slots ---------
def DIST_ReduceScatterOp : Op<DIST_Dialect, "reduce_scatter", [DIST_Collective, DIST_GivesShare, Pure]> {
  let summary = "Each replica's share of the sum or mean over all replicas of each value of a bucket";
  let description = [{
    A value's share is flat: of n elements and N replicas, ceil(n / N) from replica * ceil(n / N) on; what lies past the end is zero.

    ```mlir
    %w = dist.reduce_scatter mean bucket 0 group 0 (%gw) variables ["w"] : (tensor<64x10xf32>) -> tensor<320xf32>
    ```
    With `owners` nothing is cut: each value goes whole to the worker of that number, its variable's owner. In other tasks the result is not defined.

    ```mlir
    %w = dist.reduce_scatter mean bucket 0 group 0 (%gw) variables ["w"] {owners = array<i64: 1>} : (tensor<64x10xf32>) -> tensor<64x10xf32>
    ```
  }];
  let arguments = (ins DIST_ReductionAttr:$reduction, I32Attr:$bucket, I32Attr:$group, Variadic<AnyTensor>:$gradients, StrArrayAttr:$variables,
                       DefaultValuedAttr<DIST_SpecAttr, "::distc::dist::Spec::Auto">:$spec, OptionalAttr<DenseI64ArrayAttr>:$owners);
  let results = (outs Variadic<AnyTensor>:$shares);
  let assemblyFormat = [{
    $reduction `bucket` $bucket `group` $group ` ` `(` $gradients `)` `variables` $variables attr-dict `:` functional-type($gradients, $shares)
  }];
  let hasVerifier = 1;
}
def DIST_TakeShareOp : Op<DIST_Dialect, "take_share", [DIST_GivesShare, Pure]> {
  let summary = "The replica's share of a value that all replicas have";
  let arguments = (ins AnyTensor:$value);
  let results = (outs AnyTensor:$share);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($share)";
  let hasVerifier = 1;
}
def DIST_ShareHandleOp : Op<DIST_Dialect, "share_handle", [DIST_GivesShare, Pure]> {
  let summary = "The handle of the replica's share of a variable that all replicas have";
  let arguments = (ins AnyType:$handle);
  let results = (outs AnyType:$share);
  let assemblyFormat = "$handle attr-dict `:` type($handle) `->` type($share)";
  let hasVerifier = 1;
}
def DIST_AllGatherVariablesOp : Op<DIST_Dialect, "all_gather_variables", [DIST_Collective]> {
  let summary = "Gives every replica the shares of variables that the others have updated";
  let description = "With `owners` each variable comes whole from the worker of that number.";
  let arguments = (ins I32Attr:$bucket, Arg<Variadic<AnyType>, "", [MemRead, MemWrite]>:$handles, StrArrayAttr:$variables,
                       OptionalAttr<DenseI64ArrayAttr>:$owners);
  let hasVerifier = 1;
  let assemblyFormat = "`bucket` $bucket ` ` `(` $handles `)` `variables` $variables attr-dict `:` type($handles)";
}

// ---- Updates that are spelled out ---------------------------------------------------------------------
def DIST_UpdateOp : Op<DIST_Dialect, "update", [SingleBlock, IsolatedFromAbove, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                                                DeclareOpInterfaceMethods<DFG_UpdateInterface, ["getIndicesOperand"]>]> {
  let summary = "An optimizer's update whose rule is its region";
  let description = [{
    What dist-form-updates makes of assignments that are functions, element by element, of the old values, of one gradient and of scalars. Operands are
    the handles of the variable and its slots, the gradient (where there is one: `has_gradient`), and scalars. The region has an argument for an
    element of each, and yields the new element of each handle. Of a sparse gradient (`has_indices`) the distinct numbers of its rows stand behind it, for which
    the region has no argument: the same rule holds for the elements of these rows, and the others stay as they are.
    ```mlir
    dist.update %w, %trace, %gradient, %rate {has_gradient} : !dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>, tensor<4xf32>, tensor<f32> {
    ^bb0(%old: f32, %old_trace: f32, %g: f32, %r: f32):
      %new_trace = arith.addf %old_trace, %g : f32
      %step = arith.mulf %new_trace, %r : f32
      %new = arith.subf %old, %step : f32
      dist.yield %new, %new_trace : f32, f32
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$inputs, UnitAttr:$has_gradient, UnitAttr:$has_indices);
  let regions = (region SizedRegion<1>:$rule);
  let hasVerifier = 1;
  let assemblyFormat = "$inputs attr-dict `:` type($inputs) $rule";
  let extraClassDeclaration = [{
    /// How many variables it writes: they are its first operands.
    unsigned getNumWritten();
  }];
}
def DIST_YieldOp : Op<DIST_Dialect, "yield", [Pure, ReturnLike, Terminator, HasParent<"UpdateOp">]> {
  let summary = "The new elements of what is updated";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

// ---- Several batches an update ------------------------------------------------------------------------
def DIST_AccumulateOp : Op<DIST_Dialect, "accumulate", [DIST_GivesShare, MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "The sum or mean of a replica's gradients over several batches";
  let description = [{
    Of `steps` batches in a row the last gives the result; whatever needs it, by data or by order, runs at that one only.
    ```mlir
    %a, %b = dist.accumulate mean of 4 (%ga, %gb) variables ["a", "b"] : tensor<64x10xf32>, tensor<10xf32>
    ```
    A sparse gradient's indices and values are joined instead, each in its own operation with `slices`.
  }];
  let arguments = (ins DIST_ReductionAttr:$reduction, I64Attr:$steps, Variadic<AnyTensor>:$gradients, StrArrayAttr:$variables, UnitAttr:$slices);
  let results = (outs Variadic<AnyTensor>:$accumulated);
  let assemblyFormat = [{
    $reduction `of` $steps ` ` `(` $gradients `)` `variables` $variables (`slices` $slices^)? attr-dict `:` type($gradients) `->` type($accumulated)
  }];
  let hasVerifier = 1;
}

// ---- Parameter servers --------------------------------------------------------------------------------
def DIST_PullOp : Op<DIST_Dialect, "pull", [DIST_OfServers]> {
  let summary = "A variable's value from the server that holds it";
  let description = [{
    With `proxy` the worker keeps a copy, which it refreshes after each step, and reads that.
    ```mlir
    %w = dist.pull %handle from <"ps" 0> : !dfg.ref<tensor<64x10xf32>> -> tensor<64x10xf32>
    ```
  }];
  let arguments = (ins Arg<AnyType, "", [MemRead]>:$handle, DIST_PlaceAttr:$place, UnitAttr:$proxy);
  let results = (outs AnyTensor:$value);
  let assemblyFormat = "$handle `from` $place (`proxy` $proxy^)? attr-dict `:` type($handle) `->` type($value)";
  let hasVerifier = 1;
}
def DIST_PullRowsOp : Op<DIST_Dialect, "pull_rows", [DIST_OfServers, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "Rows of a variable from the server that holds it";
  let description = [{
    Where servers are workers of an executable, all replicas ask the owner in the same place of their step: it is a collective, with a `bucket`.
    ```mlir
    %rows = dist.pull_rows %table[%ids] from <"worker" 1> {bucket = 0 : i32} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Arg<AnyType, "", [MemRead]>:$handle, AnyTensor:$indices, DIST_PlaceAttr:$place, OptionalAttr<I32Attr>:$bucket);
  let results = (outs AnyTensor:$rows);
  let assemblyFormat = "$handle `[` $indices `]` `from` $place attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def DIST_PushOp : Op<DIST_Dialect, "push", [DIST_OfServers, MemoryEffects<[MemWrite]>]> {
  let summary = "A replica's gradient, sent to the accumulator of the server that updates its variable";
  let description = [{
    One value is a dense gradient, two are (indices, values). The accumulator, named by `accumulator`, gives the reduced gradient to its
    `dist.take` when it has `required` of them (backup workers: fewer than there are replicas; those that come late, counted by step, are
    dropped unless `staleness` says how many steps late one may be). With `async` nothing waits: every gradient is an update of its own.
    Rows of a sparse gradient that have one index may be added on the way, and come in any order; with `apart` they are taken as they are
    pushed, replica after replica, one gradient of each. In an executable `aggregator` says here, too, how one is made of them.
    ```mlir
    dist.push mean "gradients/w" to <"ps" 0> of 4 (%g) variable "w" : tensor<64x10xf32>
    %a = dist.take mean "gradients/w" from <"ps" 0> of 4 variable "w" : tensor<64x10xf32>
    ```
  }];
  let arguments = (ins DIST_ReductionAttr:$reduction, StrAttr:$accumulator, DIST_PlaceAttr:$place, I64Attr:$required, Variadic<AnyTensor>:$gradient,
                       StrAttr:$variable, DefaultValuedAttr<I64Attr, "0">:$staleness, UnitAttr:$async,
                       UnitAttr:$apart, OptionalAttr<DIST_AggregatorAttr>:$aggregator);
  let assemblyFormat = [{
    $reduction $accumulator `to` $place `of` $required ` ` `(` $gradient `)` `variable` $variable (`async` $async^)? (`apart` $apart^)? attr-dict `:` type($gradient)
  }];
  let hasVerifier = 1;
}
def DIST_TakeOp : Op<DIST_Dialect, "take", [DIST_OfServers, MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<DFG_ShapeInterface>]> {
  let summary = "What an accumulator has made of its gradients";
  let description = [{
    Runs where the update runs; see `dist.push`. Of a sparse gradient in an executable `rows` says how many rows each replica pushes, as numbers (s, o) of
    s * b + o with the replica's share b of the batch, `padded` that some of them may be padding: those of all `required` gradients lie one behind the
    other, as they were pushed.
    ```mlir
    %i, %v = dist.take mean "gradients/w" from <"worker" 0> of 4 variable "w" {rows = array<i64: 2, 0>} : tensor<?xi32>, tensor<?x8xf32>
    ```
  }];
  let arguments = (ins DIST_ReductionAttr:$reduction, StrAttr:$accumulator, DIST_PlaceAttr:$place, I64Attr:$required, StrAttr:$variable,
                       OptionalAttr<DIST_AggregatorAttr>:$aggregator, UnitAttr:$async, UnitAttr:$apart,
                       OptionalAttr<DenseI64ArrayAttr>:$rows, UnitAttr:$padded);
  let results = (outs Variadic<AnyTensor>:$gradient);
  let assemblyFormat = [{
    $reduction $accumulator `from` $place `of` $required `variable` $variable (`async` $async^)? (`apart` $apart^)? attr-dict `:` type($gradient)
  }];
  let hasVerifier = 1;
}
def DIST_TokensOp : Op<DIST_Dialect, "tokens", [DIST_OfServers, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Ends a step: the chief gives every replica a token when the updates are done, a replica goes on when it has one";
  let description = [{
    `staleness` tokens are there from the beginning: by so many steps a fast replica may be ahead of the updates.
    ```mlir
    dist.tokens at <"ps" 0> of 4 staleness 2
    ```
  }];
  let arguments = (ins DIST_PlaceAttr:$place, I64Attr:$replicas, DefaultValuedAttr<I64Attr, "0">:$staleness);
  let assemblyFormat = "`at` $place `of` $replicas (`staleness` $staleness^)? attr-dict";
  let hasVerifier = 1;
}
#endif // DIST_OPS
