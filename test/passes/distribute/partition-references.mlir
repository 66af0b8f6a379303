// RUN: split-file %s %t
// RUN: distc-opt %t/graph.mlir --dist-apply-strategy="strategy=%t/strategy.pbtxt replicas=1" --dist-partition-variables --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Columns, a reference variable, and a saver of the graph itself.
// CHECK-DAG: %[[AXIS:.*]] = dfg.const dense<1> : tensor<i32>
// CHECK: %[[W0:.*]] = dfg.var_handle @"w/part_0" : !dfg.ref<tensor<2x3xf32>>
// CHECK: %[[W1:.*]] = dfg.var_handle @"w/part_1" : !dfg.ref<tensor<2x2xf32>>
// A read that is no node is called by its variable.
// CHECK: %[[R0:.*]] = dfg.read_variable %[[W0]] {implicit}
// CHECK: %[[R1:.*]] = dfg.read_variable %[[W1]] {implicit}
// CHECK: %[[READ:.*]] = dfg.concat_v2 %[[R0]], %[[R1]], %[[AXIS]] : (tensor<2x3xf32>, tensor<2x2xf32>, tensor<i32>) -> tensor<2x5xf32> loc("w/concat")
// CHECK: dfg.identity %[[READ]] {{.*}}loc("w/read")
// What an update gives is joined where it is used.
// CHECK: %[[U0:.*]] = dfg.apply_gradient_descent %[[W0]]
// CHECK: %[[U1:.*]] = dfg.apply_gradient_descent %[[W1]]
// CHECK: %[[U:.*]] = dfg.concat_v2 %[[U0]], %[[U1]], %[[AXIS]] {{.*}}loc("update")
// CHECK: dfg.l2_loss %[[U]]
// A way of a condition takes the variable's value, as it is behind what the switch waits for.
// CHECK: dfg.read_variable %[[W0]] {control = ["update", "asked"]} {{.*}}loc("w/part_0/whole")
// CHECK: dfg.read_variable %[[W1]] {control = ["update", "asked"]} {{.*}}loc("w/part_1/whole")
// CHECK: %[[WHOLE:.*]] = dfg.concat_v2 %{{.*}}, %{{.*}}, %[[AXIS]]
// CHECK: dfg.opaque "Switch"(%[[WHOLE]], %{{.*}}) {{.*}}loc("switch")

// CHECK: %[[NAMES:.*]] = dfg.const dense<["step", "w", "w"]> : tensor<3x!dfg.string>
// CHECK: %[[SLICES:.*]] = dfg.const dense<["", "2 5 -:0,3", "2 5 -:3,2"]>
// CHECK: dfg.opaque "SaveV2"(%{{.*}}, %[[NAMES]], %[[SLICES]], %{{.*}}, %{{.*}}, %{{.*}}) {tf = {dtypes = [i64, f32, f32]}}
// What a saver says of a variable it says of the shards.
// CHECK: dfg.opaque "DisableCopyOnRead"(%[[W0]])
// CHECK: dfg.opaque "DisableCopyOnRead"(%[[W1]])
// CHECK: %[[RESTORED:.*]]:3 = dfg.opaque "RestoreV2"({{.*}}) {tf = {dtypes = [f32, f32, i64]}} : {{.*}} -> (tensor<2x3xf32>, tensor<2x2xf32>, tensor<i64>) loc("save/RestoreV2")
// CHECK: %[[T0:.*]] = dfg.identity %[[RESTORED]]#0
// CHECK: %[[T1:.*]] = dfg.identity %[[RESTORED]]#1
// CHECK: dfg.assign %[[W0]], %[[T0]]
// CHECK: dfg.assign %[[W1]], %[[T1]]
// CHECK: dfg.assign %{{.*}}, %[[RESTORED]]#2

//--- strategy.pbtxt
node_config {
  var_name: "w" partitioner: "1,2"
  part_config { var_name: "w/part_0" AllReduceSynchronizer { group: 0 } }
  part_config { var_name: "w/part_1" AllReduceSynchronizer { group: 0 } }
}
//--- graph.mlir
dfg.variable @w : tensor<2x5xf32> {kind = "ref", trainable}
dfg.variable @step : tensor<i64> {kind = "ref"}
dfg.graph {
  %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
  %g = dfg.placeholder : () -> tensor<2x5xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<2x5xf32>> loc("w")
  %s = dfg.var_handle @step : !dfg.ref<tensor<i64>> loc("step")
  %read = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<2x5xf32>>) -> tensor<2x5xf32>
  %identity = dfg.identity %read {tf = {_class = ["loc:@w"]}} : (tensor<2x5xf32>) -> tensor<2x5xf32> loc("w/read")
  %u = dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<2x5xf32>>, tensor<f32>, tensor<2x5xf32>) -> tensor<2x5xf32> loc("update")
  %norm = dfg.l2_loss %u : (tensor<2x5xf32>) -> tensor<f32> loc("norm")
  %ask = dfg.placeholder : () -> tensor<i1> loc("ask")
  %asked = dfg.identity %ask {control = ["update"]} : (tensor<i1>) -> tensor<i1> loc("asked")
  %ways:2 = dfg.opaque "RefSwitch"(%w, %asked) {control = ["update"], tf = {T = f32}} : (!dfg.ref<tensor<2x5xf32>>, tensor<i1>) -> (tensor<2x5xf32>, tensor<2x5xf32>) loc("switch")
  %taken = dfg.identity %ways#1 : (tensor<2x5xf32>) -> tensor<2x5xf32> loc("taken")
  %file = dfg.const dense<"model"> : tensor<!dfg.string> : tensor<!dfg.string> loc("save/Const")
  %names = dfg.const dense<["step", "w"]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("save/names")
  %slices = dfg.const dense<["", ""]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("save/slices")
  %step = dfg.read_variable %s {implicit} : (!dfg.ref<tensor<i64>>) -> tensor<i64>
  %saved = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<2x5xf32>>) -> tensor<2x5xf32>
  dfg.opaque "SaveV2"(%file, %names, %slices, %step, %saved) {tf = {dtypes = [i64, f32]}} : (tensor<!dfg.string>, tensor<2x!dfg.string>, tensor<2x!dfg.string>, tensor<i64>, tensor<2x5xf32>) -> () loc("save/SaveV2")
  dfg.opaque "DisableCopyOnRead"(%w) : (!dfg.ref<tensor<2x5xf32>>) -> () loc("save/DisableCopyOnRead")
  %names2 = dfg.const dense<["w", "step"]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("save/names2")
  %restored:2 = dfg.opaque "RestoreV2"(%file, %names2, %slices) {tf = {dtypes = [f32, i64]}} : (tensor<!dfg.string>, tensor<2x!dfg.string>, tensor<2x!dfg.string>) -> (tensor<*xf32>, tensor<i64>) loc("save/RestoreV2")
  %again = dfg.identity %restored#0 : (tensor<*xf32>) -> tensor<*xf32> loc("save/Identity")
  %a = dfg.assign %w, %again : (!dfg.ref<tensor<2x5xf32>>, tensor<*xf32>) -> tensor<2x5xf32> loc("save/Assign")
  %as = dfg.assign %s, %restored#1 : (!dfg.ref<tensor<i64>>, tensor<i64>) -> tensor<i64> loc("save/Assign_1")
}
