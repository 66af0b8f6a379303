// RUN: distc-opt %s --dfg-expand-control-flow --split-input-file | FileCheck %s

// A function of each example is one of all: the matrix is multiplied with all of their rows.
dfg.func @below(%i: tensor<*xi32>, %n: tensor<*xi32>, %list: tensor<!dfg.variant>, %out: tensor<!dfg.variant>, %w: tensor<*xf32>) -> tensor<*xi1> {
  %less = dfg.less %i, %n : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @each(%i: tensor<*xi32>, %n: tensor<*xi32>, %list: tensor<!dfg.variant>, %out: tensor<!dfg.variant>, %w: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<!dfg.variant>, tensor<!dfg.variant>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %shape = dfg.const dense<[3]> : tensor<1xi32> : tensor<1xi32> loc("shape")
  %x = dfg.opaque "TensorListGetItem"(%list, %i, %shape) {tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<*xi32>, tensor<1xi32>) -> tensor<3xf32> loc("x_i")
  %axis = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("axis")
  %column = dfg.expand_dims %x, %axis : (tensor<3xf32>, tensor<i32>) -> tensor<*xf32> loc("column")
  %product = dfg.mat_mul %w, %column : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("product")
  %y = dfg.tanh %product : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  %set = dfg.opaque "TensorListSetItem"(%out, %i, %y) {tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<*xi32>, tensor<*xf32>) -> tensor<!dfg.variant> loc("set")
  dfg.return %next, %n, %list, %set, %w : tensor<*xi32>, tensor<*xi32>, tensor<!dfg.variant>, tensor<!dfg.variant>, tensor<*xf32>
}
// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder
// CHECK: %[[W:.*]] = dfg.placeholder
// CHECK: %[[COLUMNS:.*]] = dfg.reshape %[[X]], {{.*}} -> tensor<?x3x1xf32>
// CHECK: dfg.transpose %[[COLUMNS]]
// CHECK: dfg.mat_mul {{.*}}, %[[W]] {transpose_b = true} : (tensor<?x3xf32>, tensor<4x3xf32>) -> tensor<?x4xf32>
// CHECK: dfg.tanh {{.*}} -> tensor<?x4x1xf32>
// CHECK-NOT: dfg.gather_v2
// CHECK-NOT: While
dfg.graph attributes {loss = "all"} {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %w = dfg.placeholder : () -> tensor<4x3xf32> loc("w")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %shape = dfg.const dense<[3]> : tensor<1xi32> : tensor<1xi32> loc("shape")
  %unknown = dfg.const dense<-1> : tensor<i32> : tensor<i32> loc("unknown")
  %list = dfg.opaque "TensorListFromTensor"(%x, %shape) {tf = {element_dtype = f32}} : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<!dfg.variant> loc("list")
  %n = dfg.opaque "TensorListLength"(%list) : (tensor<!dfg.variant>) -> tensor<i32> loc("length")
  %out = dfg.opaque "TensorListReserve"(%unknown, %n) {tf = {element_dtype = f32}} : (tensor<i32>, tensor<i32>) -> tensor<!dfg.variant> loc("out")
  %r:5 = dfg.opaque "While"(%zero, %n, %list, %out, %w) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@each, {}>}} : (tensor<i32>, tensor<i32>, tensor<!dfg.variant>, tensor<!dfg.variant>, tensor<4x3xf32>) -> (tensor<i32>, tensor<i32>, tensor<!dfg.variant>, tensor<!dfg.variant>, tensor<4x3xf32>) loc("while")
  %all = dfg.opaque "TensorListStack"(%r#3, %unknown) {tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<i32>) -> tensor<?x4x1xf32> loc("all")
}

// -----

// What each example adds is a sum over them.
dfg.func @below(%i: tensor<*xi32>, %n: tensor<*xi32>, %sum: tensor<*xf32>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %less = dfg.less %i, %n : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @add(%i: tensor<*xi32>, %n: tensor<*xi32>, %sum: tensor<*xf32>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %row = dfg.gather_v2 %x, %i, %zero : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("row")
  %square = dfg.square %row : (tensor<*xf32>) -> tensor<*xf32> loc("square")
  %more = dfg.add_v2 %sum, %square : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("more")
  dfg.return %next, %n, %more, %x : tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>
}
// CHECK-LABEL: dfg.func @add
// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder
// CHECK: %[[SQUARES:.*]] = dfg.square %[[X]]
// CHECK: %[[SUM:.*]] = dfg.sum %[[SQUARES]], {{.*}} : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<3xf32>
// CHECK-NOT: While
dfg.graph attributes {loss = "while"} {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %sum = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32> loc("initial")
  %shape = dfg.shape %x : (tensor<?x3xf32>) -> tensor<2xi32> loc("shape")
  %n = dfg.gather_v2 %shape, %zero, %zero : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("n")
  %r:4 = dfg.opaque "While"(%zero, %n, %sum, %x) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@add, {}>}} : (tensor<i32>, tensor<i32>, tensor<3xf32>, tensor<?x3xf32>) -> (tensor<i32>, tensor<i32>, tensor<3xf32>, tensor<?x3xf32>) loc("loop")
  %l = dfg.identity %r#2 : (tensor<3xf32>) -> tensor<3xf32> loc("while")
}
