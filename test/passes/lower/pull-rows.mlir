// RUN: distc-opt %s --dfg-infer-shapes --dfg-fold --convert-dfg-to-drt | FileCheck %s

// Rows of a table that another task holds: a bucket of its own, behind the check of indices. The owner alone updates.
drt.program "g.meta" strategy "PS" target "cpu" batch 8 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "a" replicas 1 from 1>]
// CHECK: drt.variable @w : tensor<10x2xf32> {owner = 1 : i64
dfg.variable @w : tensor<10x2xf32> {dist.place = #dist.place<"worker" 1>, trainable}
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[IDS:.*]] = drt.feed
// CHECK: %[[ROWS:.*]] = drt.pull_rows {{\[}}@w{{\]}}[%[[IDS]]] from [1] bucket 0 : (tensor<4xi32>) -> tensor<4x2xf32>
// CHECK: drt.sparse_update %[[IDS]], %[[ROWS]] {{.*}}owner = 1 : i64, variables = [@w]
dfg.func @step() attributes {dfg.fetches = [], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %rows = dist.pull_rows %w[%ids] from <"worker" 1> {bucket = 0 : i32} : (!dfg.ref<tensor<10x2xf32>>, tensor<4xi32>) -> tensor<?x2xf32> loc("rows")
  dfg.scatter_add %w, %ids, %rows {dist.place = #dist.place<"worker" 1>} : (!dfg.ref<tensor<10x2xf32>>, tensor<4xi32>, tensor<?x2xf32>) -> () loc("update")
  dfg.return
}
