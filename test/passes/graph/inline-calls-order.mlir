// RUN: distc-opt %s --dfg-inline-calls --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A call runs when all that it takes is there. What of its body reads or updates a variable stays behind the update that an
// operand came behind, although it uses none of that.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.assign {{.*}} loc("first")
// CHECK: dfg.read_variable {{.*}} {control = ["first"]} {{.*}} loc("call/read")
// CHECK: dfg.assign_add {{.*}} {control = ["first"]} {{.*}} loc("call/second")
// CHECK: dfg.read_variable %{{.*}} : (!dfg.ref<tensor<3xf32>>) -> tensor<3xf32> loc("call/other")
dfg.variable @w : tensor<2xf32>
dfg.variable @v : tensor<3xf32>
dfg.func @body(%w: tensor<*x!dfg.resource>, %v: tensor<*x!dfg.resource>, %g: tensor<2xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
  %read = dfg.read_variable %w : (tensor<*x!dfg.resource>) -> tensor<2xf32> loc("read")
  dfg.assign_add %w, %g : (tensor<*x!dfg.resource>, tensor<2xf32>) -> () loc("second")
  %other = dfg.read_variable %v : (tensor<*x!dfg.resource>) -> tensor<3xf32> loc("other")
  dfg.return %read, %other : tensor<2xf32>, tensor<3xf32>
}
dfg.graph {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("w")
  %v = dfg.var_handle @v : !dfg.ref<tensor<3xf32>> loc("v")
  %one = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32> loc("one")
  dfg.assign %w, %one : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("first")
  %g = dfg.const dense<2.0> : tensor<2xf32> {control = ["first"]} : tensor<2xf32> loc("g")
  %r:2 = dfg.call @body(%w, %v, %g) {stateful} : (!dfg.ref<tensor<2xf32>>, !dfg.ref<tensor<3xf32>>, tensor<2xf32>) -> (tensor<2xf32>, tensor<3xf32>) loc("call")
}
