// RUN: split-file %s %t
// RUN: distc-opt %t/graph.mlir --dist-apply-strategy="strategy=%t/strategy.pbtxt replicas=1" --dist-partition-variables --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Elements by coordinates are of the whole variable. A condition of version 1 lets its value through; where an initial value asks for it,
// the shards have theirs first.
// CHECK: %[[WHOLE:.*]] = dfg.concat_v2 {{.*}} loc("w/whole")
// CHECK: dfg.gather_nd %[[WHOLE]], %{{.*}} {control = ["g"]} : {{.*}} loc("elements")
// CHECK: dfg.const dense<[4, 2]> : tensor<2xi32> loc("sizes")
// Each read has a name of its own.
// CHECK: dfg.read_variable %{{.*}} {control = ["initial"]} : {{.*}} loc("w/part_0/whole_1")
// CHECK: dfg.read_variable %{{.*}} {control = ["initial"]} : {{.*}} loc("w/part_1/whole_1")
// CHECK: %[[VALUE:.*]] = dfg.concat_v2 {{.*}} loc("w/whole_1")
// CHECK: %[[SWITCH:.*]]:2 = dfg.opaque "Switch"(%[[VALUE]], %{{.*}}) {tf = {T = f32}} : (tensor<4x2xf32>, tensor<i1>) -> (tensor<4x2xf32>, tensor<4x2xf32>)
// CHECK: dfg.identity %[[SWITCH]]#1 : {{.*}} loc("value")
// So does a loop of version 1 that only reads it.
// CHECK: %[[LOOP:.*]] = dfg.concat_v2 {{.*}} loc("w/whole_2")
// CHECK: %[[ENTER:.*]] = dfg.opaque "Enter"(%[[LOOP]]) {tf = {T = f32, frame_name = "loop", is_constant = true}} : (tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK: dfg.identity %[[ENTER]] {control = ["iteration"]} : {{.*}} loc("inside")

//--- strategy.pbtxt
node_config {
  var_name: "w" partitioner: "2,1"
  part_config { var_name: "w/part_0" AllReduceSynchronizer { group: 0 } }
  part_config { var_name: "w/part_1" AllReduceSynchronizer { group: 0 } }
}
//--- graph.mlir
dfg.variable @w : tensor<4x2xf32> {trainable}
dfg.variable @average : tensor<4x2xf32>
dfg.graph attributes {train_op = "train", init_op = "init"} {
  %g = dfg.placeholder : () -> tensor<4x2xf32> loc("g")
  %at = dfg.placeholder : () -> tensor<?x2xi32> loc("at")
  %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4x2xf32>> loc("w")
  %average = dfg.var_handle @average : !dfg.ref<tensor<4x2xf32>> loc("average")
  %elements = dfg.resource_gather_nd %w, %at {control = ["g"]} : (!dfg.ref<tensor<4x2xf32>>, tensor<?x2xi32>) -> tensor<?xf32> loc("elements")
  %sizes = dfg.variable_shape %w : (!dfg.ref<tensor<4x2xf32>>) -> tensor<2xi32> loc("sizes")
  dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4x2xf32>>, tensor<f32>, tensor<4x2xf32>) -> () loc("train")
  %zeros = dfg.const dense<0.0> : tensor<4x2xf32> : tensor<4x2xf32> loc("zeros")
  dfg.assign %w, %zeros : (!dfg.ref<tensor<4x2xf32>>, tensor<4x2xf32>) -> () loc("initial")
  %has = dfg.is_initialized %w : (!dfg.ref<tensor<4x2xf32>>) -> tensor<i1> loc("has")
  %switch:2 = dfg.opaque "Switch"(%w, %has) {tf = {T = !dfg.resource}} : (!dfg.ref<tensor<4x2xf32>>, tensor<i1>) -> (tensor<!dfg.resource>, tensor<!dfg.resource>) loc("switch")
  %value = dfg.read_variable %switch#1 : (tensor<!dfg.resource>) -> tensor<4x2xf32> loc("value")
  dfg.assign %average, %value : (!dfg.ref<tensor<4x2xf32>>, tensor<4x2xf32>) -> () loc("average_initial")
  dfg.group {control = ["initial", "average_initial"]} : () -> () loc("init")
  %enter = dfg.opaque "Enter"(%w) {tf = {T = !dfg.resource, frame_name = "loop", is_constant = true}} : (!dfg.ref<tensor<4x2xf32>>) -> tensor<!dfg.resource> loc("enter")
  %begin = dfg.opaque "Enter"(%lr) {tf = {T = f32, frame_name = "loop"}} : (tensor<f32>) -> tensor<f32> loc("iteration")
  %inside = dfg.read_variable %enter {control = ["iteration"]} : (tensor<!dfg.resource>) -> tensor<4x2xf32> loc("inside")
}
