//===- Passes.td - Rows whose number data decide ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ROWS_PASSES
#define ROWS_PASSES

include "mlir/Pass/PassBase.td"

def MaskRows : Pass<"dfg-mask-rows", "::mlir::ModuleOp"> {
  let summary = "Rows that data choose stay in place, with a mask that says which are there";
  let description = [{
    For executables, whose tensors have sizes that follow from the batch: what needs `Where` or `DynamicPartition` (boolean_mask, lookups of tables
    that the graph itself splits, sparse tensors made of dense ones) works on all rows, of which a mask says which were chosen. So the batch's axis
    goes through it, and gradients of chosen rows are sums over the batch like others.

    Before:
    ```mlir
    %at = dfg.opaque "Where" (%mask) : (tensor<?xi1>) -> tensor<?x1xi64>
    %rows = dfg.gather_nd %x, %at : ... -> tensor<?x4xf32>
    %sum = dfg.sum %rows, %axes
    ```
    After:
    ```mlir
    %rows = dfg.identity %x
    %there = dfg.select_v2 %mask, %rows, %zero
    %sum = dfg.sum %there, %axes
    ```
    What it has no rule for is an error at the node.
  }];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

def PadBatch : Pass<"dfg-pad-batch", "::mlir::ModuleOp"> {
  let summary = "The step computes what it does of the batch's rows that are there, which a feed says";
  let description = [{
    For executables of `--pad-batch`, whose last batch of an epoch may have fewer examples than the others: the batch is the rows that a placeholder of bools,
    `distc/valid_rows`, chooses, as if the graph did so by `tf.boolean_mask`. It has the attribute `dfg.validity`; the runtime gives it. What follows from that,
    `dfg-mask-rows` says, or refuses.

    Before:
    ```mlir
    %x = dfg.placeholder : tensor<?x4xf32>
    ```
    After:
    ```mlir
    %valid = dfg.placeholder {dfg.validity} : tensor<?xi1>
    %at = dfg.opaque "Where" (%valid) : (tensor<?xi1>) -> tensor<?x1xi64>
    %x = dfg.placeholder : tensor<?x4xf32>
    %rows = dfg.gather_nd %x, %at : ... -> tensor<?x4xf32>
    ```
  }];
  let options = [ListOption<"feeds", "feeds", "std::string", "NAME=2x3: the shape that a placeholder is fed, which then has no batch">];
  let dependentDialects = ["::distc::dfg::DFGDialect"];
}

#endif // ROWS_PASSES
