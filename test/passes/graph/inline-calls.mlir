// RUN: distc-opt %s --dfg-inline-calls --mlir-print-debuginfo | FileCheck %s

dfg.variable @v : tensor<f32>

dfg.func @double(%x: tensor<f32>) -> tensor<f32> {
  %y = dfg.add_v2 %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("sum")
  dfg.return %y : tensor<f32>
}

// An operation that is called like a function calls it.
dfg.func @quadruple(%x: tensor<f32>) -> tensor<f32> {
  %y = dfg.opaque "double"(%x) : (tensor<f32>) -> tensor<f32> loc("once")
  %z = dfg.opaque "double"(%y) : (tensor<f32>) -> tensor<f32> loc("again")
  dfg.return %z : tensor<f32>
}
// CHECK-LABEL: dfg.func @quadruple
// CHECK: %[[Y:.*]] = dfg.add_v2
// CHECK: %[[Z:.*]] = dfg.add_v2 %[[Y]], %[[Y]]
// CHECK: dfg.return %[[Z]]

dfg.func @add_to(%handle: tensor<!dfg.resource>, %x: tensor<f32>) attributes {control = ["add"]} {
  %y = dfg.call @double(%x) : (tensor<f32>) -> tensor<f32> loc("twice")
  dfg.assign_add %handle, %y : (tensor<!dfg.resource>, tensor<f32>) -> () loc("add")
  dfg.return
}

// CHECK-LABEL: dfg.graph
dfg.graph {
  // CHECK: %[[HANDLE:.*]] = dfg.var_handle @v
  %handle = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  // CHECK: %[[X:.*]] = dfg.placeholder
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  // CHECK: %[[Y:.*]] = dfg.add_v2 %[[X]], %[[X]] {{.*}} loc("update/twice/sum")
  // CHECK: dfg.assign_add %[[HANDLE]], %[[Y]] {{.*}} loc("update/add")
  dfg.call @add_to(%handle, %x) {stateful} : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
  // What waits for the call waits for what the function says must run.
  // CHECK: dfg.group {control = ["update/add"]}
  dfg.group {control = ["update"]} : () -> () loc("train")
}
// CHECK-NOT: dfg.call
