// RUN: distc-opt %s --dfg-expand-control-flow | FileCheck %s
// A branch that data choose reads rows of a variable: they are read whichever is taken, behind what the condition's reads are behind, with
// indices that no error comes from where it is not taken.

dfg.variable @table : tensor<9x4xf32>

dfg.func @rows(%table: tensor<!dfg.resource>, %ids: tensor<?xi32>, %sum: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %rows = dfg.resource_gather %table, %ids : (tensor<!dfg.resource>, tensor<?xi32>) -> tensor<?x4xf32> loc("rows")
  dfg.return %rows : tensor<?x4xf32>
}

dfg.func @none(%table: tensor<!dfg.resource>, %ids: tensor<?xi32>, %sum: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dfg.return %sum : tensor<?x4xf32>
}

// CHECK-LABEL: dfg.graph
dfg.graph attributes {fetches = ["z:0"]} {
  %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
  // CHECK: %[[TAKEN:.*]] = dfg.placeholder : () -> tensor<i1>
  %taken = dfg.placeholder : () -> tensor<i1> loc("taken")
  %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  // CHECK: %[[IDS:.*]] = dfg.select_v2 %[[TAKEN]], %ids, %{{.*}} : (tensor<i1>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
  // CHECK: %[[ROWS:.*]] = dfg.resource_gather %table, %[[IDS]]
  // CHECK: %[[CHOSEN:.*]] = dfg.select_v2 %[[TAKEN]], %[[ROWS]], %x
  %y = dfg.opaque "If"(%taken, %table, %ids, %x) {tf = {then_branch = #dfg.func<@rows, {}>, else_branch = #dfg.func<@none, {}>}} : (tensor<i1>, !dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("y")
  // CHECK: dfg.identity %[[CHOSEN]]
  %z = dfg.identity %y : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("z")
}
