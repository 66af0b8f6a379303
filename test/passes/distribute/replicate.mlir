// RUN: distc-opt %s --dist-apply-strategy="replicas=2 strategy=AllReduce:chunk_size=1" --dist-replicate | FileCheck %s
// RUN: distc-opt %s --dist-apply-strategy="replicas=2 one-process-per-replica=true" --dist-replicate | FileCheck %s --check-prefix=EACH

// CHECK: dist.strategy = #dist.strategy<{{.*}}builder "AllReduce
// CHECK: dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
// EACH: #dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>
// EACH-SAME: #dist.task<"worker" 1 on "localhost" devices ["localhost:CPU:1"] replicas 1 from 1>
// CHECK: dfg.variable @w : tensor<4xf32> {dist.sync = #dist.sync<all_reduce>, trainable}
dfg.variable @w : tensor<4xf32> {trainable}
// CHECK: dfg.variable @b : tensor<4xf32> {dist.sync = #dist.sync<all_reduce group 1>, trainable}
dfg.variable @b : tensor<4xf32> {trainable}
dfg.graph {
  // CHECK: dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32>
  %x = dfg.placeholder : () -> tensor<?x4xf32>
  // CHECK: dfg.placeholder {dist.feed = "whole"} : () -> tensor<f32>
  %lr = dfg.placeholder : () -> tensor<f32>
  %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32>
  // Dropout's mask belongs to a replica's examples; noise on a variable is the same for all.
  // CHECK: dfg.random_uniform {{.*}} {dist.seed = "replica"}
  %mask = dfg.random_uniform %shape : (tensor<2xi32>) -> tensor<?x4xf32>
  %four = dfg.const dense<4> : tensor<1xi32> : tensor<1xi32>
  // CHECK: dfg.random_uniform %{{[^{]*}} : (tensor<1xi32>)
  %noise = dfg.random_uniform %four : (tensor<1xi32>) -> tensor<4xf32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %b = dfg.var_handle @b : !dfg.ref<tensor<4xf32>>
  dfg.apply_gradient_descent %w, %lr, %noise : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  dfg.apply_gradient_descent %b, %lr, %noise : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
}
