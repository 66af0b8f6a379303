// RUN: distc-opt %s --dfg-inline-calls --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// What a loop updates is not known by name: what of a call's body touches a variable waits for all that the call waits for.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.read_variable {{.*}} {control = ["exit", "x"]} {{.*}} loc("call/read")
dfg.variable @w : tensor<2xf32>
dfg.func @body(%w: tensor<*x!dfg.resource>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %read = dfg.read_variable %w : (tensor<*x!dfg.resource>) -> tensor<2xf32> loc("read")
  %y = dfg.mul %read, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("y")
  dfg.return %y : tensor<2xf32>
}
dfg.graph {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("w")
  %x = dfg.const dense<2.0> : tensor<2xf32> : tensor<2xf32> loc("x")
  %entered = dfg.opaque "Enter"(%w) {tf = {frame_name = "loop"}} : (!dfg.ref<tensor<2xf32>>) -> tensor<!dfg.resource> loc("entered")
  %in = dfg.opaque "Enter"(%x) {tf = {frame_name = "loop"}} : (tensor<2xf32>) -> tensor<2xf32> loc("in")
  dfg.assign_sub %entered, %in : (tensor<!dfg.resource>, tensor<2xf32>) -> () loc("inner")
  %out = dfg.identity %in {control = ["inner"]} : (tensor<2xf32>) -> tensor<2xf32> loc("out")
  %exit = dfg.opaque "Exit"(%out) : (tensor<2xf32>) -> tensor<2xf32> loc("exit")
  %r = dfg.call @body(%w, %x) {control = ["exit"], stateful} : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> tensor<2xf32> loc("call")
}
