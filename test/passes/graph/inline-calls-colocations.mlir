// RUN: distc-opt %s --dfg-inline-calls --mlir-print-debuginfo | FileCheck %s
// A node that is put in is with nodes of the body it comes from, by the names that they have now. What names an argument of the
// function, or a call that is gone, is dropped: TensorFlow refuses a colocation with a node that is not there.

dfg.func @inner(%x: tensor<f32>) -> tensor<f32> {
  %y = dfg.add_v2 %x, %x {tf = {_class = ["loc:@gradients"], kept = 1 : i64}} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("sum")
  %z = dfg.mul %y, %y {tf = {_class = ["loc:@sum", "loc:@gradients", "elsewhere"]}} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("square")
  dfg.return %z : tensor<f32>
}

dfg.func @outer(%x: tensor<f32>) -> tensor<f32> {
  %y = dfg.call @inner(%x) : (tensor<f32>) -> tensor<f32> loc("call")
  %z = dfg.neg %y {tf = {_class = ["loc:@call"]}} : (tensor<f32>) -> tensor<f32> loc("negative")
  dfg.return %z : tensor<f32>
}

// CHECK-DAG: #[[SQUARE:.*]] = {_class = ["loc:@step/call/sum", "elsewhere"]}
// CHECK-DAG: #[[EXP:.*]] = {_class = ["loc:@gradients"]}
// CHECK-LABEL: dfg.graph
dfg.graph {
  // The graph has a node of the argument's name, too.
  %x = dfg.placeholder : () -> tensor<f32> loc("gradients")
  // CHECK: dfg.add_v2 {{.*}} {tf = {kept = 1 : i64}}
  // CHECK: dfg.mul {{.*}} {tf = #[[SQUARE]]}
  // CHECK: dfg.neg %{{[a-z0-9_.]*}} : (tensor<f32>)
  %y = dfg.call @outer(%x) : (tensor<f32>) -> tensor<f32> loc("step")
  // CHECK: dfg.exp %{{.*}} {tf = #[[EXP]]}
  %z = dfg.exp %y {tf = {_class = ["loc:@gradients", "loc:@step"]}} : (tensor<f32>) -> tensor<f32> loc("z")
}
