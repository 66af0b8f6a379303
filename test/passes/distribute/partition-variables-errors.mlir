// RUN: split-file %s %t
// RUN: distc-opt %t/axis.mlir --dist-partition-variables --verify-diagnostics
// RUN: distc-opt %t/parts.mlir --dist-partition-variables --verify-diagnostics
// RUN: distc-opt %t/opaque.mlir --dist-apply-strategy="strategy=%t/half.pbtxt replicas=1" --dist-partition-variables --verify-diagnostics
// RUN: distc-opt %t/slot.mlir --dist-apply-strategy="strategy=%t/half.pbtxt replicas=1" --dist-partition-variables --verify-diagnostics
// RUN: distc-opt %t/taken.mlir --dist-apply-strategy="strategy=%t/half.pbtxt replicas=1" --dist-partition-variables --verify-diagnostics
// RUN: not distc-opt %t/taken.mlir --dist-partition-variables 2>&1 | FileCheck %s
// CHECK: has no strategy and topology; run dist-apply-strategy first

//--- half.pbtxt
node_config {
  var_name: "w" partitioner: "2"
  part_config { var_name: "w/part_0" AllReduceSynchronizer { group: 0 } }
  part_config { var_name: "w/part_1" AllReduceSynchronizer { group: 0 } }
}
//--- axis.mlir
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>]
  // expected-error @below {{the strategy's entry of variable 'w': partitioner "5" makes 5 shards of axis 0, which has only 4 entries}}
  dfg.variable @w : tensor<4xf32> {trainable, dist.parts = #dist.parts<[5]>, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %g = dfg.placeholder : () -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %lr = dfg.placeholder : () -> tensor<f32>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

//--- parts.mlir
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>]
  // expected-error @below {{the strategy's entry of variable 'w' has 1 part_config entries for the 2 shards of partitioner "2"; give one a shard}}
  dfg.variable @w : tensor<4xf32> {trainable, dist.parts = #dist.parts<[2] as [#dist.sync<all_reduce>]>, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %g = dfg.placeholder : () -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %lr = dfg.placeholder : () -> tensor<f32>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

//--- opaque.mlir
dfg.variable @w : tensor<4xf32> {trainable, dist.parts = #dist.parts<[5]>, dist.sync = #dist.sync<all_reduce>}
dfg.graph {
  %g = dfg.placeholder : () -> tensor<4xf32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %lr = dfg.placeholder : () -> tensor<f32>
  dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  // expected-error @below {{(op 'CountUpTo') uses variable 'w' as a whole, which the strategy splits into 2 shards; leave its partitioner out}}
  dfg.opaque "CountUpTo"(%w) : (!dfg.ref<tensor<4xf32>>) -> ()
}

//--- slot.mlir
dfg.variable @w : tensor<4xf32> {trainable, dist.parts = #dist.parts<[5]>, dist.sync = #dist.sync<all_reduce>}
dfg.variable @v : tensor<4xf32>
dfg.variable @m : tensor<4xf32>
dfg.graph {
  %g = dfg.placeholder : () -> tensor<4xf32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<4xf32>>
  %lr = dfg.placeholder : () -> tensor<f32>
  dfg.apply_momentum %w, %m, %lr, %g, %lr : (!dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>, tensor<f32>) -> ()
  // expected-error @below {{updates variable 'v' with slot 'm', which cannot be split as the variable is; leave the partitioner out}}
  dfg.apply_momentum %v, %m, %lr, %g, %lr : (!dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>, tensor<f32>) -> ()
}

//--- taken.mlir
// expected-error @below {{variable 'w' cannot be split: the graph has a variable 'w/part_0' already; leave its partitioner out}}
dfg.variable @w : tensor<4xf32> {trainable, dist.parts = #dist.parts<[5]>, dist.sync = #dist.sync<all_reduce>}
dfg.variable @"w/part_0" : tensor<2xf32>
dfg.graph {
  %g = dfg.placeholder : () -> tensor<4xf32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %lr = dfg.placeholder : () -> tensor<f32>
  dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
}
