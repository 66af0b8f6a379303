//===- DistOps.td - The plan of distribution -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DIST_OPS
#define DIST_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def DIST_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::distc::dist";
  let summary = "How a graph is distributed: who runs it, and where it synchronizes";
  let description = [{
    A worker's program stands once, whatever the number of replicas (SPMD). Besides its operations the dialect has attributes on
    others:

    - `dist.strategy` on the module: the strategy, as Protocol Buffers' text;
    - `dist.share` on a placeholder: "sharded" where each replica is given its part of the first axis, "whole" where each is
      given all of it;
    - `dist.seed` = "replica" on a stateful random node: its numbers belong to a replica's own examples, so that each replica
      draws its own; without it all replicas draw the same;
    - `dist.replica` on a node of the unrolled form: the replica that it belongs to, until it has its scope.
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
  [I32EnumAttrCase<"Auto", 0, "auto">, I32EnumAttrCase<"Nccl", 1, "nccl">, I32EnumAttrCase<"Ring", 2, "ring">]>;
def DIST_SpecAttr : DIST_EnumAttr<DIST_Spec, "spec">;
def DIST_Compressor : DIST_Enum<"Compressor", "how a gradient is compressed on its way", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Horovod", 1, "horovod">,
  I32EnumAttrCase<"HorovodEF", 2, "horovod_ef">, I32EnumAttrCase<"PowerSGD", 3, "power_sgd">]>;
def DIST_CompressorAttr : DIST_EnumAttr<DIST_Compressor, "compressor">;

def DIST_TaskAttr : AttrDef<DIST_Dialect, "Task"> {
  let mnemonic = "task";
  let summary = "A process: its job and number in the job, its host, its devices and the replicas it runs";
  let description = [{
    `#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>`: replica i of the task, number
    `from + i` of all, runs on device i.
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

def DIST_AllReduceOp : Op<DIST_Dialect, "all_reduce", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "The sum or mean over all replicas of each value of a bucket";
  let description = [{
    Every replica gives its values and is given the reduced ones, in the same order. A bucket is one collective: its members have one
    element type. `bucket` numbers the graph's collectives in the order in which every replica issues them; `group` is the strategy's,
    -1 where the values belong to no entry of it (statistics). `variables` says which variable each value is for.

    ```mlir
    %w, %b = dist.all_reduce mean bucket 0 group 0 (%gw, %gb) variables ["w", "b"] : tensor<64x10xf32>, tensor<10xf32>
    ```
  }];
  let arguments = (ins DIST_ReductionAttr:$reduction, I32Attr:$bucket, I32Attr:$group, Variadic<AnyTensor>:$gradients, StrArrayAttr:$variables,
                       DefaultValuedAttr<DIST_SpecAttr, "::distc::dist::Spec::Auto">:$spec,
                       DefaultValuedAttr<DIST_CompressorAttr, "::distc::dist::Compressor::None">:$compressor);
  let results = (outs Variadic<AnyTensor>:$reduced);
  let assemblyFormat = [{
    $reduction `bucket` $bucket `group` $group ` ` `(` $gradients `)` `variables` $variables attr-dict `:` type($gradients)
  }];
  let hasVerifier = 1;
}
#endif // DIST_OPS
