// RUN: distc-opt %s --dfg-expand-control-flow --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A branch takes the next one of three elements, as `tf.nn.raw_rnn` does while not all sequences have ended. What the loop leaves to
// a gradient needs a bound: it runs as often as there are elements to take, and once more, where none is.
dfg.func @above(%t: tensor<*xi32>, %x: tensor<*xf32>, %xs: tensor<!dfg.variant>, %out: tensor<!dfg.variant>) -> tensor<*xi1> {
  %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %greater = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("greater")
  dfg.return %greater : tensor<*xi1>
}
dfg.func @none(%xs: tensor<!dfg.variant>, %i: tensor<*xi32>) -> tensor<*xf32> {
  %zero = dfg.const dense<0.0> : tensor<f32> : tensor<f32> loc("zero")
  dfg.return %zero : tensor<f32>
}
dfg.func @read(%xs: tensor<!dfg.variant>, %i: tensor<*xi32>) -> tensor<*xf32> {
  %shape = dfg.const dense<[]> : tensor<0xi32> : tensor<0xi32> loc("shape")
  %item = dfg.opaque "TensorListGetItem"(%xs, %i, %shape) {stateless, tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<*xi32>, tensor<0xi32>) -> tensor<*xf32> loc("item")
  dfg.return %item : tensor<*xf32>
}
dfg.func @next(%t: tensor<*xi32>, %x: tensor<*xf32>, %xs: tensor<!dfg.variant>, %out: tensor<!dfg.variant>) -> (tensor<*xi32>, tensor<*xf32>, tensor<!dfg.variant>, tensor<!dfg.variant>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %next = dfg.add_v2 %t, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %limit = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("limit")
  %ended = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("ended")
  %y = dfg.opaque "StatelessIf"(%ended, %xs, %next) {stateless, tf = {then_branch = #dfg.func<@none, {}>, else_branch = #dfg.func<@read, {}>}} : (tensor<*xi1>, tensor<!dfg.variant>, tensor<*xi32>) -> tensor<*xf32> loc("either")
  %m = dfg.opaque "TensorListPushBack"(%out, %x) {stateless, tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<*xf32>) -> tensor<!dfg.variant> loc("push")
  dfg.return %next, %y, %xs, %m : tensor<*xi32>, tensor<*xf32>, tensor<!dfg.variant>, tensor<!dfg.variant>
}
// CHECK-LABEL: dfg.graph attributes {loss = "length"
dfg.graph attributes {loss = "length"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %all = dfg.placeholder : () -> tensor<3xf32> loc("all")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %shape = dfg.const dense<[]> : tensor<0xi32> : tensor<0xi32> loc("shape")
  %most = dfg.const dense<-1> : tensor<i32> : tensor<i32> loc("most")
  %xs = dfg.opaque "TensorListFromTensor"(%all, %shape) {stateless, tf = {element_dtype = f32}} : (tensor<3xf32>, tensor<0xi32>) -> tensor<!dfg.variant> loc("elements")
  %l = dfg.opaque "EmptyTensorList"(%shape, %most) {stateless, tf = {element_dtype = f32}} : (tensor<0xi32>, tensor<i32>) -> tensor<!dfg.variant> loc("list")
  // CHECK: %[[PARTS:.*]]:3 = dfg.unpack
  // CHECK: dfg.select_v2 %{{.*}}, %{{.*}}, %[[PARTS]]#1
  // CHECK: dfg.select_v2 %{{.*}}, %{{.*}}, %[[PARTS]]#2
  // CHECK: dfg.const dense<"'while/2/either/else/item' takes element 3 of a list of 3">
  // CHECK: dfg.assert {{.*}} loc("while/2/either/else/item/is_there")
  // CHECK: dfg.const dense<"loop 'while' goes on behind the last of the elements that it takes one of in each iteration">
  // CHECK: dfg.assert {{.*}} loc("while/ends")
  // CHECK-NOT: while/3/either
  %w:4 = dfg.opaque "While"(%zero, %x, %xs, %l) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@next, {}>}} : (tensor<i32>, tensor<f32>, tensor<!dfg.variant>, tensor<!dfg.variant>) -> (tensor<i32>, tensor<f32>, tensor<!dfg.variant>, tensor<!dfg.variant>) loc("while")
  %n = dfg.opaque "TensorListLength"(%w#3) {stateless} : (tensor<!dfg.variant>) -> tensor<i32> loc("length")
}
