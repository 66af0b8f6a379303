// RUN: not distc-opt %s --dist-couple-replicas --dist-insert-synchronizers 2>&1 | FileCheck %s

// The squares of a table's rows, added up for all rows of the table: of two batches' rows, each is divided by twice as many examples, and its square by four
// times as many, so that neither the sum nor the mean of the batches' sums is theirs.
module @squares_of_rows attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @squares : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train", loss = "loss"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %slot = dfg.var_handle @squares : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %loss = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    %square = dfg.square %grad : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("square")
    // CHECK: accumulated over 2 batches, but node {{.*}} adds up over one of them what is no linear function of its gradients; take accumulate_steps=1, or coupling=replica
    %sums = dfg.unsorted_segment_sum %square, %ids, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9x4xf32> loc("sums")
    dfg.assign_add %slot, %sums : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update_squares")
    %sum = dfg.unsorted_segment_sum %grad, %ids, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9x4xf32> loc("sum")
    dfg.assign_sub %table, %sum : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update")
    dfg.group {control = ["update", "update_squares"]} : () -> () loc("train")
  }
}
