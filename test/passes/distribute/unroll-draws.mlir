// RUN: distc-opt %s --split-input-file --verify-diagnostics --dist-unroll | FileCheck %s

// Numbers of the batch's rows are drawn once, for all rows: each replica has its own of them.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
dfg.graph {
  // CHECK: %[[X0:.*]] = dfg.placeholder {dist.replica = 0 : i64}
  // CHECK: %[[X1:.*]] = dfg.placeholder {dist.replica = 1 : i64}
  %x = dfg.placeholder : () -> tensor<?x4xf32>
  // CHECK: %[[S0:.*]] = dfg.shape %[[X0]]
  %share = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32>
  // CHECK: %[[BY:.*]] = dfg.const dense<[2, 1]> : tensor<2xi32>
  // CHECK: %[[WHOLE:.*]] = dfg.mul %[[S0]], %[[BY]]
  // CHECK: %[[ALL:.*]] = dfg.random_uniform %[[WHOLE]] {seed = 1 : i64, seed2 = 2 : i64} : (tensor<2xi32>) -> tensor<?x4xf32>
  // CHECK: %[[ROWS:.*]]:2 = dfg.split %{{.*}}, %[[ALL]]
  %noise = dfg.random_uniform %share {dist.seed = "replica", seed = 1 : i64, seed2 = 2 : i64} : (tensor<2xi32>) -> tensor<?x4xf32>
  // CHECK: dfg.mul %[[X0]], %[[ROWS]]#0 {dist.replica = 0 : i64}
  // CHECK: dfg.mul %[[X1]], %[[ROWS]]#1 {dist.replica = 1 : i64}
  %y = dfg.mul %x, %noise : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
}

// -----

dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
dfg.graph {
  %x = dfg.placeholder : () -> tensor<*xf32>
  %share = dfg.shape %x : (tensor<*xf32>) -> tensor<?xi32>
  // expected-error @+1 {{has numbers for each row of the batch, of unknown rank; give its result a shape}}
  %noise = dfg.random_uniform %share {dist.seed = "replica"} : (tensor<?xi32>) -> tensor<*xf32>
}
