// RUN: distc-opt %s --dist-unroll | FileCheck %s

// What makes sizes and values of a share those of the whole batch is a product in each replica.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
dfg.graph {
  // CHECK: %[[X0:.*]] = dfg.placeholder {dist.replica = 0 : i64}
  // CHECK: %[[X1:.*]] = dfg.placeholder {dist.replica = 1 : i64}
  %x = dfg.placeholder : () -> tensor<?x4xf32>
  // CHECK: %[[S0:.*]] = dfg.shape %[[X0]]
  // CHECK: %[[S1:.*]] = dfg.shape %[[X1]]
  %share = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32>
  // CHECK: %[[BY:.*]] = dfg.const dense<[2, 1]> : tensor<2xi32>
  // CHECK: dfg.mul %[[S0]], %[[BY]] {dist.replica = 0 : i64} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  // CHECK: dfg.mul %[[S1]], %[[BY]] {dist.replica = 1 : i64}
  %whole = dist.whole_size %share by [2, 1] : (tensor<2xi32>) -> tensor<2xi32>
  // CHECK: %[[HALF:.*]] = dfg.const dense<5.000000e-01> : tensor<f32>
  // CHECK: dfg.mul %[[X0]], %[[HALF]] {dist.replica = 0 : i64}
  // CHECK: dfg.mul %[[X1]], %[[HALF]] {dist.replica = 1 : i64}
  %part = dist.rescale %x power -1 : tensor<?x4xf32>
}
