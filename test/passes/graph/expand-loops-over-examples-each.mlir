// RUN: distc-opt %s --dfg-expand-control-flow=batch=3 --split-input-file --mlir-print-debuginfo --mlir-print-local-scope 2>&1 | FileCheck %s

// Each example's state is made of that before it: as many iterations as the whole batch has examples, with rows of a tensor that is taken apart.
// What was joined of as many is rows of the batch again.
// CHECK: remark: {{.*}}node 'loop' is a loop over the examples of a batch, 3 of them, with iterations that no operation on all of them does
dfg.func @below(%i: tensor<*xi32>, %n: tensor<*xi32>, %h: tensor<*xf32>, %xs: tensor<*x!dfg.variant>, %out: tensor<*x!dfg.variant>) -> tensor<*xi1> {
  %less = dfg.less %i, %n : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @recur(%i: tensor<*xi32>, %n: tensor<*xi32>, %h: tensor<*xf32>, %xs: tensor<*x!dfg.variant>, %out: tensor<*x!dfg.variant>) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*x!dfg.variant>, tensor<*x!dfg.variant>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %three = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32> loc("size")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %row = dfg.opaque "TensorListGetItem"(%xs, %i, %three) {stateless, tf = {element_dtype = f32}} : (tensor<*x!dfg.variant>, tensor<*xi32>, tensor<1xi32>) -> tensor<*xf32> loc("row")
  %sum = dfg.add_v2 %h, %row : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("sum")
  %after = dfg.tanh %sum : (tensor<*xf32>) -> tensor<*xf32> loc("after")
  %set = dfg.opaque "TensorListSetItem"(%out, %i, %after) {stateless, tf = {element_dtype = f32}} : (tensor<*x!dfg.variant>, tensor<*xi32>, tensor<*xf32>) -> tensor<*x!dfg.variant> loc("set")
  dfg.return %next, %n, %after, %xs, %set : tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*x!dfg.variant>, tensor<*x!dfg.variant>
}
// CHECK-LABEL: dfg.graph
// CHECK-DAG: %[[X:.*]] = dfg.placeholder
// CHECK-DAG: %[[N:.*]] = dfg.gather_v2 {{.*}} loc("n")
// CHECK-DAG: %[[SIZES:.*]] = dfg.const dense<[3, 2]>
// CHECK: %[[ROWS:.*]] = dfg.reshape %[[X]], %[[SIZES]] {{.*}} -> tensor<3x2xf32>
// CHECK: %[[ROW:.*]]:3 = dfg.unpack %[[ROWS]]
// CHECK: dfg.add_v2 %{{.*}}, %[[ROW]]#0 {{.*}} loc("loop/0/sum")
// CHECK: dfg.add_v2 %{{.*}}, %[[ROW]]#1 {{.*}} loc("loop/1/sum")
// CHECK: dfg.add_v2 %{{.*}}, %[[ROW]]#2 {{.*}} loc("loop/2/sum")
// CHECK: %[[ALL:.*]] = dfg.pack {{.*}} -> tensor<3x2xf32>
// CHECK: dfg.reshape %[[ALL]], %{{.*}} -> tensor<?x2xf32>
dfg.graph attributes {loss = "states"} {
  %x = dfg.placeholder : () -> tensor<?x2xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %h = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32> loc("initial")
  %size = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32> loc("element")
  %shape = dfg.shape %x : (tensor<?x2xf32>) -> tensor<2xi32> loc("shape")
  %n = dfg.gather_v2 %shape, %zero, %zero : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("n")
  %xs = dfg.opaque "TensorListFromTensor"(%x, %size) {stateless, tf = {element_dtype = f32}} : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<!dfg.variant> loc("xs")
  %out = dfg.opaque "TensorListReserve"(%size, %n) {stateless, tf = {element_dtype = f32}} : (tensor<1xi32>, tensor<i32>) -> tensor<!dfg.variant> loc("out")
  %r:5 = dfg.opaque "While"(%zero, %n, %h, %xs, %out) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@recur, {}>}} : (tensor<i32>, tensor<i32>, tensor<2xf32>, tensor<!dfg.variant>, tensor<!dfg.variant>) -> (tensor<i32>, tensor<i32>, tensor<2xf32>, tensor<!dfg.variant>, tensor<!dfg.variant>) loc("loop")
  %states = dfg.opaque "TensorListStack"(%r#4, %size) {stateless, tf = {element_dtype = f32, num_elements = -1 : i64}} : (tensor<!dfg.variant>, tensor<1xi32>) -> tensor<?x2xf32> loc("states")
}
