// RUN: distc-opt %s --split-input-file --dist-separate-rows --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// The second table has other indices: its rows are joined by themselves. What led to its update leads to the first one's, too. The third
// one's are the first's.
// CHECK-LABEL: @tables
module @tables attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @a : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @b : tensor<5x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @c : tensor<7x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %others = dfg.placeholder : () -> tensor<?xi32> loc("others")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %a = dfg.var_handle @a : !dfg.ref<tensor<9x4xf32>> loc("a")
    %b = dfg.var_handle @b : !dfg.ref<tensor<5x4xf32>> loc("b")
    %c = dfg.var_handle @c : !dfg.ref<tensor<7x4xf32>> loc("c")
    // CHECK: %[[G:.*]] = dfg.placeholder : () -> tensor<?x4xf32>
    // CHECK: %[[SHAPE:.*]] = dfg.shape %[[G]] : (tensor<?x4xf32>) -> tensor<2xi32> loc("update_b/rows/shape")
    // CHECK: %[[OWN:.*]] = dfg.reshape %[[G]], %[[SHAPE]] {{.*}} loc("update_b/rows")
    %g = dfg.placeholder : () -> tensor<?x4xf32> loc("g")
    // CHECK: %[[FIRST:.*]] = dfg.mul %[[G]], %{{.*}} loc("scaled")
    // CHECK: %[[SECOND:.*]] = dfg.mul %[[OWN]], %{{.*}} loc("update_b/scaled")
    %scaled = dfg.mul %g, %lr : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("scaled")
    // CHECK: dfg.scatter_sub %a, %ids, %[[FIRST]]
    dfg.scatter_sub %a, %ids, %scaled : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update_a")
    // CHECK: dfg.scatter_sub %b, %others, %[[SECOND]]
    dfg.scatter_sub %b, %others, %scaled : (!dfg.ref<tensor<5x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update_b")
    // CHECK: dfg.scatter_sub %c, %ids, %[[FIRST]]
    dfg.scatter_sub %c, %ids, %scaled : (!dfg.ref<tensor<7x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update_c")
  }
}
