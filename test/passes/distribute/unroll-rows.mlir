// RUN: distc-opt %s --dist-unroll | FileCheck %s

// The replicas' rows stand behind each other, divided by their number for a mean.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
dfg.variable @table : tensor<9x4xf32>
dfg.graph {
  // CHECK: %[[I0:.*]] = dfg.placeholder {dist.replica = 0 : i64}
  // CHECK: %[[I1:.*]] = dfg.placeholder {dist.replica = 1 : i64}
  %ids = dfg.placeholder : () -> tensor<?xi32>
  %rows = dfg.placeholder : () -> tensor<?x4xf32>
  %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
  // CHECK: %[[I:.*]] = dfg.concat_v2 %[[I0]], %[[I1]], %{{.*}}
  // CHECK: %[[V:.*]] = dfg.concat_v2
  // CHECK: dfg.const dense<5.000000e-01>
  // CHECK: %[[MEAN:.*]] = dfg.mul %[[V]]
  %i, %v = dist.all_gather_slices mean bucket 0 group 0 (%ids, %rows) variable "table" : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>)
  // CHECK: dfg.scatter_sub %{{.*}}, %[[I]], %[[MEAN]]
  // CHECK-NOT: dfg.scatter_sub
  dfg.scatter_sub %table, %i, %v : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
}
