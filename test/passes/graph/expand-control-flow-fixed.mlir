// Of a graph that fixes its batch: what was decided by a number that may be its size.
// RUN: distc-opt %s --dfg-expand-control-flow --split-input-file | FileCheck %s

dfg.func @mean(%x: tensor<*xf32>) -> tensor<*xf32> {
  dfg.return %x : tensor<*xf32>
}
dfg.func @tanh(%x: tensor<*xf32>) -> tensor<*xf32> {
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  dfg.return %y : tensor<*xf32>
}
// Six is more than four, and less than eight; of features, and of whether there is a row, there is nothing to decide.
// CHECK: dfg.graph attributes {decided_by_rows = {more = []}, train_op = "train"}
dfg.graph attributes {train_op = "train"} {
  %x = dfg.placeholder : () -> tensor<4x12xf32> loc("x")
  %shape = dfg.const dense<[4, 12]> : tensor<2xi32> : tensor<2xi32>
  %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32>
  %two = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32>
  %none = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %six = dfg.const dense<6> : tensor<i32> : tensor<i32>
  %rows = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("rows")
  %features = dfg.strided_slice %shape, %one, %two, %one {shrink_axis_mask = 1} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("features")
  %is_more = dfg.greater %rows, %six : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("is_more")
  %is_some = dfg.greater %rows, %none : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("is_some")
  %is_wide = dfg.greater %features, %six : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("is_wide")
  %some = dfg.opaque "If"(%is_some, %x) {tf = {then_branch = #dfg.func<@mean, {}>, else_branch = #dfg.func<@tanh, {}>}} : (tensor<i1>, tensor<4x12xf32>) -> tensor<4x12xf32> loc("some")
  %wide = dfg.opaque "If"(%is_wide, %some) {tf = {then_branch = #dfg.func<@mean, {}>, else_branch = #dfg.func<@tanh, {}>}} : (tensor<i1>, tensor<4x12xf32>) -> tensor<4x12xf32> loc("wide")
  %more = dfg.opaque "If"(%is_more, %wide) {tf = {then_branch = #dfg.func<@mean, {}>, else_branch = #dfg.func<@tanh, {}>}} : (tensor<i1>, tensor<4x12xf32>) -> tensor<4x12xf32> loc("more")
  %train = dfg.identity %more : (tensor<4x12xf32>) -> tensor<4x12xf32> loc("train")
}

// -----

dfg.func @below(%i: tensor<*xi32>, %n: tensor<*xi32>, %list: tensor<!dfg.variant>, %h: tensor<*xf32>) -> tensor<*xi1> {
  %less = dfg.less %i, %n : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @step(%i: tensor<*xi32>, %n: tensor<*xi32>, %list: tensor<!dfg.variant>, %h: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<!dfg.variant>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %sizes = dfg.const dense<[4, 3]> : tensor<2xi32> : tensor<2xi32>
  %row = dfg.opaque "TensorListGetItem"(%list, %i, %sizes) {tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<*xi32>, tensor<2xi32>) -> tensor<*xf32> loc("row")
  %sum = dfg.add_v2 %h, %row : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("sum")
  dfg.return %next, %n, %list, %sum : tensor<*xi32>, tensor<*xi32>, tensor<!dfg.variant>, tensor<*xf32>
}
// As many time steps as rows: a loop that takes one after the other until there are none.
// CHECK: dfg.graph attributes {decided_by_rows = {while = ["steps:0", 0]}, train_op = "train"}
dfg.graph attributes {train_op = "train"} {
  %x = dfg.placeholder : () -> tensor<4x8x3xf32> loc("x")
  %turn = dfg.const dense<[1, 0, 2]> : tensor<3xi32> : tensor<3xi32>
  %steps = dfg.transpose %x, %turn : (tensor<4x8x3xf32>, tensor<3xi32>) -> tensor<8x4x3xf32> loc("steps")
  %shape = dfg.const dense<[8, 4, 3]> : tensor<3xi32> : tensor<3xi32>
  %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32>
  %first = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %nothing = dfg.const dense<0.0> : tensor<4x3xf32> : tensor<4x3xf32>
  %sizes = dfg.const dense<[4, 3]> : tensor<2xi32> : tensor<2xi32>
  %count = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1} : (tensor<3xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("count")
  %list = dfg.opaque "TensorListFromTensor"(%steps, %sizes) {tf = {element_dtype = f32}} : (tensor<8x4x3xf32>, tensor<2xi32>) -> tensor<!dfg.variant> loc("list")
  %w:4 = dfg.opaque "While"(%first, %count, %list, %nothing) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@step, {}>}} : (tensor<i32>, tensor<i32>, tensor<!dfg.variant>, tensor<4x3xf32>) -> (tensor<i32>, tensor<i32>, tensor<!dfg.variant>, tensor<4x3xf32>) loc("while")
  %train = dfg.identity %w#3 : (tensor<4x3xf32>) -> tensor<4x3xf32> loc("train")
}
