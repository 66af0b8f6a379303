// RUN: distc-opt %s --dfg-infer-shapes --dfg-fold --convert-dfg-to-drt=asserts=true | FileCheck %s

// Rows that the tasks which own them alone need: a bucket of its own, behind the check of indices. Elsewhere indices are -1, as padding is.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
drt.program "g.meta" strategy "PS" target "cpu" batch 8 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "a" replicas 1 from 1>]
dfg.variable @w : tensor<10x2xf32> {dist.place = #dist.place<"worker" 1>, trainable}
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[IDS:.*]] = drt.feed {{.*}}"ids"
// CHECK: %[[ROWS:.*]] = drt.feed {{.*}}"rows"
// CHECK: drt.check_indices %[[IDS]] {{.*}}sizes = array<i64: 10>
// CHECK: %[[I:.*]], %[[V:.*]] = drt.push_rows {{\[}}%[[IDS]]{{\]}}, [%[[ROWS]]{{\]}} of ["w"] to [array<i64: 0, 10, 1>] bucket 0 : (tensor<4xi32>, tensor<4x2xf32>) -> (tensor<8xi32>, tensor<8x2xf32>)
// CHECK: drt.check_indices %[[I]] {{.*}}padded{{.*}}sizes = array<i64: 10>
// CHECK: drt.sparse_update %[[I]], %[[V]] {{.*}}owner = 1 : i64, variables = [@w]
dfg.func @step() attributes {dfg.fetches = [], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %rows = dfg.placeholder : () -> tensor<4x2xf32> loc("rows")
  %i, %v = dist.all_gather_slices sum bucket 0 group 0 (%ids, %rows) variable "w" {shards = array<i64: 0, 10, 1>} : (tensor<4xi32>, tensor<4x2xf32>) -> (tensor<?xi32>, tensor<?x2xf32>) loc("slices")
  dfg.scatter_add %w, %i, %v {dist.place = #dist.place<"worker" 1>} : (!dfg.ref<tensor<10x2xf32>>, tensor<?xi32>, tensor<?x2xf32>) -> () loc("update")
  dfg.return
}
