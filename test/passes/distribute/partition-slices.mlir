// RUN: split-file %s %t
// RUN: distc-opt %t/graph.mlir --dist-apply-strategy="strategy=%t/strategy.pbtxt replicas=1" --dist-partition-variables | FileCheck %s

// A part of a table that the graph itself splits is a slice in its savers already: its shards are smaller ones.
// CHECK-DAG: dfg.const dense<["6 2 0,2:-", "6 2 2,1:-", "6 2 3,3:-"]>
// What is no slice of the variable's shape stays whole.
// CHECK-DAG: dfg.const dense<["6 2 0,3:-", "7 2 3,4:-"]>
// So do savers without one string for each tensor.
// CHECK-DAG: dfg.const dense<"table"> : tensor<4294967296x!dfg.string>

//--- strategy.pbtxt
node_config {
  var_name: "table/part_0" partitioner: "2,1"
  part_config { var_name: "table/part_0/part_0" AllReduceSynchronizer { group: 0 } }
  part_config { var_name: "table/part_0/part_1" AllReduceSynchronizer { group: 0 } }
}
//--- graph.mlir
dfg.variable @"table/part_0" : tensor<3x2xf32> {trainable}
dfg.variable @"table/part_1" : tensor<3x2xf32> {trainable}
dfg.graph {
  %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
  %g = dfg.placeholder : () -> tensor<3x2xf32> loc("g")
  %0 = dfg.var_handle @"table/part_0" : !dfg.ref<tensor<3x2xf32>> loc("table/part_0")
  %1 = dfg.var_handle @"table/part_1" : !dfg.ref<tensor<3x2xf32>> loc("table/part_1")
  dfg.apply_gradient_descent %0, %lr, %g : (!dfg.ref<tensor<3x2xf32>>, tensor<f32>, tensor<3x2xf32>) -> tensor<3x2xf32> loc("update")
  %file = dfg.const dense<"model"> : tensor<!dfg.string> : tensor<!dfg.string> loc("save/Const")
  %names = dfg.const dense<["table", "table"]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("save/names")
  %slices = dfg.const dense<["6 2 0,3:-", "6 2 3,3:-"]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("save/slices")
  %a = dfg.read_variable %0 : (!dfg.ref<tensor<3x2xf32>>) -> tensor<3x2xf32> loc("a")
  %b = dfg.read_variable %1 : (!dfg.ref<tensor<3x2xf32>>) -> tensor<3x2xf32> loc("b")
  dfg.opaque "SaveV2"(%file, %names, %slices, %a, %b) {tf = {dtypes = [f32, f32]}} : (tensor<!dfg.string>, tensor<2x!dfg.string>, tensor<2x!dfg.string>, tensor<3x2xf32>, tensor<3x2xf32>) -> () loc("save/SaveV2")
  %others = dfg.const dense<["table", "table"]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("save/others")
  %odd = dfg.const dense<["6 2 0,3:-", "7 2 3,4:-"]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("save/odd")
  %c = dfg.read_variable %1 : (!dfg.ref<tensor<3x2xf32>>) -> tensor<3x2xf32> loc("c")
  %d = dfg.read_variable %0 : (!dfg.ref<tensor<3x2xf32>>) -> tensor<3x2xf32> loc("d")
  dfg.opaque "SaveV2"(%file, %others, %odd, %c, %d) {tf = {dtypes = [f32, f32]}} : (tensor<!dfg.string>, tensor<2x!dfg.string>, tensor<2x!dfg.string>, tensor<3x2xf32>, tensor<3x2xf32>) -> () loc("save/SaveV2_1")
  // A constant may say that it has billions of the same string.
  %many = dfg.const dense<"table"> : tensor<4294967296x!dfg.string> : tensor<4294967296x!dfg.string> loc("save/many")
  dfg.opaque "SaveV2"(%file, %many, %many, %c, %d) {tf = {dtypes = [f32, f32]}} : (tensor<!dfg.string>, tensor<4294967296x!dfg.string>, tensor<4294967296x!dfg.string>, tensor<3x2xf32>, tensor<3x2xf32>) -> () loc("save/SaveV2_2")
}
