// RUN: distc-opt %s --dist-couple-replicas --dist-insert-synchronizers --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// An optimizer that squares a table's rows and adds them up for all rows of the table: of several batches, as of several replicas, the rows themselves are
// joined, once for all that is made of them, and squared behind it.
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
    // CHECK: %[[GRAD:.*]] = dfg.real_div {{.*}} loc("grad")
    // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices
    // CHECK-NOT: dist.all_gather
    // CHECK-NOT: dist.all_reduce
    // CHECK: dfg.square
    %square = dfg.square %grad : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("square")
    %sums = dfg.unsorted_segment_sum %square, %ids, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9x4xf32> loc("sums")
    dfg.assign_add %slot, %sums : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update_squares")
    %sum = dfg.unsorted_segment_sum %grad, %ids, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9x4xf32> loc("sum")
    dfg.assign_sub %table, %sum : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update")
    dfg.group {control = ["update", "update_squares"]} : () -> () loc("train")
  }
}
