// RUN: distc-opt %s --dfg-expand-control-flow=max-iterations=3 --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Each iteration leaves an element, and nothing says how many there will be. The loop is written out as often as it is
// said to run at most; the program ends where it would go on.
dfg.func @above(%x: tensor<*xf32>, %l: tensor<!dfg.variant>) -> tensor<*xi1> {
  %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %greater = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("greater")
  dfg.return %greater : tensor<*xi1>
}
dfg.func @push(%x: tensor<*xf32>, %l: tensor<!dfg.variant>) -> (tensor<*xf32>, tensor<!dfg.variant>) {
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  %m = dfg.opaque "TensorListPushBack"(%l, %x) {stateless, tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<*xf32>) -> tensor<!dfg.variant> loc("push")
  dfg.return %y, %m : tensor<*xf32>, tensor<!dfg.variant>
}
// CHECK-LABEL: dfg.graph attributes {loss = "length"
dfg.graph attributes {loss = "length"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %shape = dfg.const dense<[]> : tensor<0xi32> : tensor<0xi32>
  %most = dfg.const dense<-1> : tensor<i32> : tensor<i32> loc("most")
  %l = dfg.opaque "EmptyTensorList"(%shape, %most) {stateless, tf = {element_dtype = f32}} : (tensor<0xi32>, tensor<i32>) -> tensor<!dfg.variant> loc("list")
  // CHECK-COUNT-3: dfg.tanh
  // CHECK-NOT: dfg.tanh
  // CHECK: dfg.logical_and {{.*}} loc("while/3/goes_on")
  // CHECK: %[[ENDED:.*]] = dfg.logical_not
  // CHECK: %[[MESSAGE:.*]] = dfg.const dense<"loop 'while' goes on behind the 3 iterations that --max-iterations allows">
  // CHECK: dfg.assert %[[ENDED]], %[[MESSAGE]] {{.*}} loc("while/ends")
  %w:2 = dfg.opaque "While"(%x, %l) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@push, {}>}} : (tensor<f32>, tensor<!dfg.variant>) -> (tensor<f32>, tensor<!dfg.variant>) loc("while")
  %n = dfg.opaque "TensorListLength"(%w#1) {stateless} : (tensor<!dfg.variant>) -> tensor<i32> loc("length")
}

// -----

// One that needs no bound has none.
dfg.func @above(%x: tensor<*xf32>) -> tensor<*xi1> {
  %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %greater = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("greater")
  dfg.return %greater : tensor<*xi1>
}
dfg.func @halve(%x: tensor<*xf32>) -> tensor<*xf32> {
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  dfg.return %y : tensor<*xf32>
}
// CHECK-LABEL: dfg.graph attributes {loss = "end"
dfg.graph attributes {loss = "end"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  // CHECK: dfg.while
  // CHECK-NOT: dfg.assert
  %w = dfg.opaque "While"(%x) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@halve, {}>}} : (tensor<f32>) -> tensor<f32> loc("while")
  %end = dfg.identity %w : (tensor<f32>) -> tensor<f32> loc("end")
}
