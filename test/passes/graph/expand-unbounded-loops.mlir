// RUN: distc-opt %s --dfg-expand-control-flow --split-input-file | FileCheck %s
// RUN: distc-opt %s --dfg-expand-control-flow --split-input-file | distc-opt --split-input-file | FileCheck %s

// Data alone decide when it ends: one node, with what it takes from outside as variables that stay as they are; the
// variable is read before it, and constants are inside.
dfg.variable @scale : tensor<f32>
dfg.func @above(%x: tensor<*xf32>, %n: tensor<*xui32>, %v: tensor<!dfg.resource>) -> tensor<*xi1> {
  %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("limit")
  %greater = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("greater")
  dfg.return %greater : tensor<*xi1>
}
dfg.func @shrink(%x: tensor<*xf32>, %n: tensor<*xui32>, %v: tensor<!dfg.resource>) -> (tensor<*xf32>, tensor<*xui32>, tensor<!dfg.resource>) {
  %s = dfg.read_variable %v : (tensor<!dfg.resource>) -> tensor<f32> loc("read")
  %y = dfg.mul %x, %s : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32> loc("mul")
  %one = dfg.const dense<1> : tensor<ui32> : tensor<ui32> loc("one")
  %m = dfg.add_v2 %n, %one : (tensor<*xui32>, tensor<ui32>) -> tensor<*xui32> loc("count")
  dfg.return %y, %m, %v : tensor<*xf32>, tensor<*xui32>, tensor<!dfg.resource>
}
// CHECK-LABEL: dfg.graph
// CHECK: %[[HANDLE:.*]] = dfg.var_handle @scale
// CHECK: %[[FIRST:.*]] = dfg.cast %{{.*}} : (tensor<ui32>) -> tensor<i64>
// CHECK: %[[READ:.*]] = dfg.read_variable %[[HANDLE]]
// CHECK: dfg.while(%{{.*}}, %[[FIRST]], %[[READ]]) {
// CHECK: ^bb0(%[[X:.*]]: tensor<f32>{{.*}}, %{{.*}}: tensor<i64>{{.*}}, %{{.*}}: tensor<f32>{{.*}}):
// CHECK: %[[LIMIT:.*]] = dfg.const dense<1.0
// CHECK: %[[GREATER:.*]] = dfg.greater %[[X]], %[[LIMIT]]
// CHECK: dfg.yield %[[GREATER]]
// CHECK: ^bb0(%[[X:.*]]: tensor<f32>{{.*}}, %{{.*}}: tensor<i64>{{.*}}, %[[S:.*]]: tensor<f32>{{.*}}):
// CHECK: %[[NEXT:.*]] = dfg.mul %[[X]], %[[S]]
// CHECK: dfg.yield %[[NEXT]], %{{.*}}, %[[S]]
// CHECK: } : (tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<f32>, tensor<i64>, tensor<f32>)
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %n = dfg.const dense<0> : tensor<ui32> : tensor<ui32> loc("zero")
  %v = dfg.var_handle @scale : tensor<!dfg.resource> loc("v")
  %w:3 = dfg.opaque "While"(%x, %n, %v) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@shrink, {}>}} : (tensor<f32>, tensor<ui32>, tensor<!dfg.resource>) -> (tensor<f32>, tensor<ui32>, tensor<!dfg.resource>) loc("while")
  %c = dfg.cast %w#1 : (tensor<ui32>) -> tensor<f32> loc("cast")
  %l = dfg.add_v2 %w#0, %c : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// A list that nothing takes (values for a gradient that is not computed) is no variable.
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
// CHECK-LABEL: dfg.graph
// CHECK: dfg.while(%{{[^,]*}}) {
// CHECK-NOT: TensorListPushBack
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %shape = dfg.const dense<[]> : tensor<0xi32> : tensor<0xi32>
  %most = dfg.const dense<-1> : tensor<i32> : tensor<i32> loc("most")
  %l = dfg.opaque "EmptyTensorList"(%shape, %most) {stateless, tf = {element_dtype = f32}} : (tensor<0xi32>, tensor<i32>) -> tensor<!dfg.variant> loc("list")
  %w:2 = dfg.opaque "While"(%x, %l) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@push, {}>}} : (tensor<f32>, tensor<!dfg.variant>) -> (tensor<f32>, tensor<!dfg.variant>) loc("while")
  %y = dfg.tanh %w#0 : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// At least two iterations, which are written out, and then as many as data say.
dfg.func @above(%x: tensor<*xf32>, %k: tensor<*xi32>) -> tensor<*xi1> {
  %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %greater = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("greater")
  %less = dfg.less %k, %two : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1> loc("less")
  %or = dfg.logical_or %greater, %less : (tensor<*xi1>, tensor<*xi1>) -> tensor<*xi1> loc("or")
  dfg.return %or : tensor<*xi1>
}
dfg.func @next(%x: tensor<*xf32>, %k: tensor<*xi32>) -> (tensor<*xf32>, tensor<*xi32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  %n = dfg.add_v2 %k, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("count")
  dfg.return %y, %n : tensor<*xf32>, tensor<*xi32>
}
// CHECK-LABEL: dfg.graph
// CHECK-COUNT-2: dfg.tanh
// CHECK-NOT: dfg.tanh
// CHECK: dfg.while(
// CHECK: dfg.logical_or
// CHECK: dfg.tanh
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %w:2 = dfg.opaque "While"(%x, %zero) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@next, {}>}} : (tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>) loc("while")
  %y = dfg.tanh %w#0 : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// tf.function ends a body with a node that waits for its reads, and results wait for it: of values there is nothing to keep in order.
dfg.variable @scale : tensor<f32>
dfg.func @above(%x: tensor<*xf32>, %v: tensor<!dfg.resource>) -> tensor<*xi1> {
  %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("limit")
  %greater = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("greater")
  dfg.return %greater : tensor<*xi1>
}
dfg.func @shrink(%x: tensor<*xf32>, %v: tensor<!dfg.resource>) -> (tensor<*xf32>, tensor<!dfg.resource>) {
  %s = dfg.read_variable %v : (tensor<!dfg.resource>) -> tensor<f32> loc("read")
  %y = dfg.mul %x, %s : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32> loc("mul")
  dfg.group {control = ["read"]} : () -> () loc("NoOp")
  %z = dfg.identity %y {control = ["NoOp"]} : (tensor<*xf32>) -> tensor<*xf32> loc("Identity")
  dfg.return %z, %v : tensor<*xf32>, tensor<!dfg.resource>
}
// CHECK-LABEL: dfg.graph
// CHECK: dfg.while(%x, %{{.*}}) {
// CHECK-NOT: control
// CHECK-NOT: dfg.group
// CHECK: } : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
// CHECK: dfg.group
dfg.graph attributes {loss = "loss", train_op = "done"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %v = dfg.var_handle @scale : tensor<!dfg.resource> loc("v")
  %w:2 = dfg.opaque "While"(%x, %v) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@shrink, {}>}} : (tensor<f32>, tensor<!dfg.resource>) -> (tensor<f32>, tensor<!dfg.resource>) loc("while")
  %l = dfg.identity %w#0 : (tensor<f32>) -> tensor<f32> loc("loss")
  dfg.group {control = ["while"]} : () -> () loc("done")
}
