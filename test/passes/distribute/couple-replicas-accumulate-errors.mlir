// RUN: not distc-opt %s --dist-couple-replicas --dist-insert-synchronizers 2>&1 | FileCheck %s

// What is the whole batch's already is that of one of the batches that a step accumulates.
module attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    // CHECK: remark: values of the step depend on other replicas' examples: gathered is 'max'
    // CHECK: variable 'w' cannot be synchronized: the value of node 'max' (replicated), which its update 'train' depends on, is one batch's in all replicas, and how it adds up over accumulate_steps batches is not known; take accumulate_steps=1, or coupling=replica
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("max")
    dfg.assign_sub %w, %max : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}
