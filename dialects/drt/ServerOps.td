//===- ServerOps.td - What replicas and servers give each other ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_SERVER_OPS
#define DRT_SERVER_OPS

include "dialects/drt/DrtBase.td"

// The entry "step" of a program whose servers serve on their own is run by each replica at its own pace: it pulls, computes, pushes, and takes a
// token. What the gradients of an update become is the entry "update", which one replica runs while nobody pulls. drt-verify-order
// holds both to that.
def DRT_PullOp : DRT_Placed<"pull", [DRT_Scope<"server">, MemoryEffects<[MemRead, MemWrite]>, DRT_SymbolUser, DRT_Accesses<["getAccesses"]>]> {
  let hasVerifier = 1;
  let summary = "Copies of variables, and rows of tables, as one update left them all (drt_pull)";
  let description = [{
    The results are the values of `variables`, and behind them, of each of `tables`, a row for each of its `indices`; zeros for one that names no row.
    ```mlir
    %w, %rows = drt.pull %ids {tables = [@table], variables = [@w]} : (tensor<8xi32>) -> (tensor<4xf32>, tensor<8x16xf32>)
    ```
  }];
  let arguments = !con((ins FlatSymbolRefArrayAttr:$variables, OptionalAttr<FlatSymbolRefArrayAttr>:$tables, Variadic<DRT_Tensor>:$indices), placed);
  let extraClassDeclaration = [{
    /// The variable that result i is of, or has rows of.
    ::mlir::FlatSymbolRefAttr getPulled(unsigned i);
  }];
  let results = (outs Variadic<DRT_Tensor>:$values);
}
def DRT_PushOp : DRT_PlanOp<"push", [DRT_Scope<"server">, MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
  let summary = "Gives the replica's gradients of a step to the servers (drt_push)";
  let description = [{
    `names`: what each is the gradient of; `means`: whether an update gets the mean or the sum over its gradients; `joined`, where it is there: whether it gets
    all of them instead, one behind the other in the order of replicas (indices and rows of a sparse gradient). `required` of them make an update.
    Where that is the number of replicas, update k takes every replica's k-th, and `staleness` is how many steps a replica may be ahead of the
    slowest; else whoever comes first counts, and `staleness` is how many updates late a gradient may be. With `async` each is an update of its own.
    `aggregators`, where it is there: `#dist.aggregator` of each gradient, or unit where it is plainly reduced.
  }];
  let arguments = (ins StrArrayAttr:$names, DenseBoolArrayAttr:$means, OptionalAttr<DenseBoolArrayAttr>:$joined, I64Attr:$required,
                       I64Attr:$staleness, UnitAttr:$async, OptionalAttr<ArrayAttr>:$aggregators, Variadic<DRT_Tensor>:$gradients);
  let extraClassDeclaration = [{
    /// Whether an update gets gradient i of all its replicas one behind the other.
    bool isJoined(unsigned i) { return getJoined() && (*getJoined())[i]; }
    /// The rule (#dist.aggregator) that makes one gradient i of an update's; null for the plain reduction.
    ::mlir::Attribute getAggregator(unsigned i);
    /// What an update gets of gradient i.
    ::mlir::RankedTensorType getTakenType(unsigned i);
  }];
}
def DRT_TakeTokenOp : DRT_PlanOp<"take_token", [DRT_Synchronizes, DRT_Scope<"server">, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until the replica may begin its next step (drt_take_token)";
  let assemblyFormat = "attr-dict";
}
def DRT_TakeOp : DRT_Placed<"take", [DRT_Scope<"server">, MemoryEffects<[MemRead, MemWrite]>, DRT_AccessInterface]> {
  let hasVerifier = 1;
  let summary = "The reduced gradients of an update's replicas, in the order in which drt.push gives them (drt_take)";
  let arguments = !con((ins StrArrayAttr:$names), placed);
  let results = (outs Variadic<DRT_Tensor>:$gradients);
}

#endif // DRT_SERVER_OPS
