// RUN: split-file %s %t
// RUN: distc-opt %t/graph.mlir --dist-apply-strategy="strategy=%t/strategy.pbtxt replicas=1" --dist-partition-variables --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: not distc-opt %t/update.mlir --dist-apply-strategy="strategy=%t/strategy.pbtxt replicas=1" --dist-partition-variables 2>&1 | FileCheck %s --check-prefix=UPDATE

// A loop reads what it is given; so does a call. Both run copies of their functions.
// CHECK: %[[WHOLE:.*]] = dfg.concat_v2 {{.*}} loc("w/whole")
// CHECK: %[[LOOP:.*]]:2 = dfg.opaque "While"(%{{.*}}, %[[WHOLE]]) {tf = {T = [i32, f32], body = #dfg.func<@body_of_values, {}>, cond = #dfg.func<@cond_of_values, {}>, output_shapes = [#dfg.shape<[]>, #dfg.shape<[4]>]}} : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
// CHECK: dfg.shape %[[LOOP]]#1 {{.*}}loc("shape")
// CHECK: dfg.call @f_of_values(%{{.*}}) : (tensor<4xf32>) -> tensor<f32>
// CHECK: dfg.func @body(%{{.*}}tensor<*x!dfg.resource>
// CHECK: dfg.func @body_of_values(%[[I:[a-z0-9]+]]: tensor<i32>{{.*}}, %[[W:[a-z0-9]+]]: tensor<4xf32>{{.*}}) -> (tensor<i32>, tensor<4xf32>)
// CHECK: %[[READ:.*]] = dfg.identity %[[W]] {control = ["x"], tf = {"$outputs" = ["output:0"]}} : (tensor<4xf32>) -> tensor<4xf32> loc("read")
// CHECK: dfg.l2_loss %[[READ]]
// CHECK: dfg.return %[[I]], %[[W]]
// CHECK: dfg.func @f_of_values(%{{.*}}: tensor<4xf32>

// UPDATE: node 'add' does more with a variable than reading it, in a function that is given the value of one that the strategy splits; leave the variable's partitioner out

//--- strategy.pbtxt
node_config {
  var_name: "w" partitioner: "2"
  part_config { var_name: "w/part_0" AllReduceSynchronizer { group: 0 } }
  part_config { var_name: "w/part_1" AllReduceSynchronizer { group: 0 } }
}
//--- graph.mlir
dfg.variable @w : tensor<4xf32> {trainable}
dfg.graph {
  %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
  %i = dfg.placeholder : () -> tensor<i32> loc("i")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
  %loop:2 = dfg.opaque "While"(%i, %w) {tf = {T = [i32, !dfg.resource], _read_only_resource_inputs = [1], body = #dfg.func<@body, {}>, cond = #dfg.func<@cond, {}>, output_shapes = [#dfg.shape<[]>, #dfg.shape<[]>]}} : (tensor<i32>, !dfg.ref<tensor<4xf32>>) -> (tensor<i32>, tensor<!dfg.resource>) loc("loop")
  %shape = dfg.variable_shape %loop#1 : (tensor<!dfg.resource>) -> tensor<1xi32> loc("shape")
  %f = dfg.call @f(%w) : (!dfg.ref<tensor<4xf32>>) -> tensor<f32> loc("call")
  dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
}
dfg.func @body(%i: tensor<i32>, %w: tensor<*x!dfg.resource>) -> (tensor<i32>, tensor<*x!dfg.resource>) {
  %read = dfg.read_variable %w {control = ["x"], tf = {"$outputs" = ["value:0"]}} : (tensor<*x!dfg.resource>) -> tensor<4xf32> loc("read")
  %norm = dfg.l2_loss %read : (tensor<4xf32>) -> tensor<f32> loc("norm")
  dfg.return %i, %w : tensor<i32>, tensor<*x!dfg.resource>
}
dfg.func @cond(%i: tensor<i32>, %w: tensor<*x!dfg.resource>) -> tensor<i1> {
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %more = dfg.less %zero, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
  dfg.return %more : tensor<i1>
}
dfg.func @f(%w: tensor<*x!dfg.resource>) -> tensor<f32> {
  %read = dfg.read_variable %w : (tensor<*x!dfg.resource>) -> tensor<4xf32> loc("read")
  %norm = dfg.l2_loss %read : (tensor<4xf32>) -> tensor<f32> loc("norm")
  dfg.return %norm : tensor<f32>
}
//--- update.mlir
dfg.variable @w : tensor<4xf32> {trainable}
dfg.graph {
  %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
  dfg.call @f(%w, %g) : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("call")
  dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
}
dfg.func @f(%w: tensor<*x!dfg.resource>, %g: tensor<4xf32>) {
  dfg.assign_add %w, %g : (tensor<*x!dfg.resource>, tensor<4xf32>) -> () loc("add")
  dfg.return
}
