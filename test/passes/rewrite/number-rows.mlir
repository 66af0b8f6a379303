// RUN: distc-opt %s --dfg-number-rows --split-input-file | FileCheck %s

// Coordinates of one number are numbers of rows.
// CHECK-LABEL: dfg.graph
// CHECK: %[[NUMBERS:.*]] = dfg.reshape %{{.*}} -> tensor<?xi32>
// CHECK: dfg.scatter_update %{{.*}}, %[[NUMBERS]], %{{.*}} {control = ["before"]}
dfg.variable @bank : tensor<8x4xf32>
dfg.graph {
  %bank = dfg.var_handle @bank : !dfg.ref<tensor<8x4xf32>> loc("bank")
  %at = dfg.placeholder : () -> tensor<?x1xi32> loc("at")
  %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
  dfg.group : () -> () loc("before")
  dfg.scatter_nd_update %bank, %at, %rows {control = ["before"]} : (!dfg.ref<tensor<8x4xf32>>, tensor<?x1xi32>, tensor<?x4xf32>) -> () loc("update")
}

// -----

// Those of two name elements.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.scatter_nd_add
dfg.variable @bank : tensor<8x4xf32>
dfg.graph {
  %bank = dfg.var_handle @bank : !dfg.ref<tensor<8x4xf32>> loc("bank")
  %at = dfg.placeholder : () -> tensor<?x2xi32> loc("at")
  %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
  dfg.scatter_nd_add %bank, %at, %x : (!dfg.ref<tensor<8x4xf32>>, tensor<?x2xi32>, tensor<?xf32>) -> () loc("update")
}
