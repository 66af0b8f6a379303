// RUN: distc-opt %s --dfg-inline-calls --dfg-extract-entries --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A training step that is one call: the endpoints that name it stay, under the names that the user knows.
// CHECK-LABEL: dfg.func @step()
// CHECK-SAME: dfg.fetches = ["call:1", "call:0"]
// CHECK: dfg.assign_sub
// CHECK: dfg.return %{{.*}}, %{{.*}} : tensor<f32>, tensor<i64>
// The results wait for all that the function must run, but see nothing of it: evaluation gives them.
// CHECK-LABEL: dfg.func @eval()
// CHECK-SAME: dfg.fetches = ["call:1", "call:0"]
// CHECK-NOT: dfg.assign_sub
dfg.variable @w : tensor<f32>
dfg.func @train(%w: tensor<*x!dfg.resource>, %x: tensor<f32>) -> (tensor<i64>, tensor<f32>) attributes {control = ["update"]} {
  %read = dfg.read_variable %w : (tensor<*x!dfg.resource>) -> tensor<f32> loc("read")
  %product = dfg.mul %read, %x : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("product")
  dfg.assign_sub %w, %x {control = ["read"]} : (tensor<*x!dfg.resource>, tensor<f32>) -> () loc("update")
  %one = dfg.const dense<1> : tensor<i64> : tensor<i64> loc("one")
  %count = dfg.identity %one {control = ["update"]} : (tensor<i64>) -> tensor<i64> loc("Identity")
  %loss = dfg.identity %product {control = ["update"]} : (tensor<f32>) -> tensor<f32> loc("Identity_1")
  dfg.return %count, %loss : tensor<i64>, tensor<f32>
}
dfg.graph attributes {train_op = "call", loss = "call:1", fetches = ["call"]} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %r:2 = dfg.call @train(%w, %x) {stateful} : (!dfg.ref<tensor<f32>>, tensor<f32>) -> (tensor<i64>, tensor<f32>) loc("call")
}
