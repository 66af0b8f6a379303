// RUN: distc-opt %s --split-input-file --dist-make-saver --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A SavedModel's saver calls functions: it becomes nodes, under the objects' keys, with the objects.
// CHECK-LABEL: dfg.graph
// CHECK-SAME: init_op = "save/init"
// CHECK-SAME: saver = {filename = "save/filename:0", restore = "save/restore_all", save = "save/control_dependency:0"}
// CHECK: %[[W:.*]] = dfg.var_handle @w
// CHECK: %[[FILE:.*]] = dfg.opaque "PlaceholderWithDefault"
// CHECK: %[[NAMES:.*]] = dfg.const dense<["model/w", "_CHECKPOINTABLE_OBJECT_GRAPH"]>
// CHECK: %[[READ:.*]] = dfg.read_variable %[[W]] {{.*}} -> tensor<2x3xf32>
// CHECK: %[[OBJECTS:.*]] = dfg.const dense<"described">
// CHECK: dfg.opaque "SaveV2"(%[[FILE]], %[[NAMES]], %{{.*}}, %[[READ]], %[[OBJECTS]]) {tf = {dtypes = [f32, !dfg.string]}}
// CHECK: dfg.identity %[[FILE]] {control = ["save/SaveV2"]} {{.*}}loc("save/control_dependency")
// CHECK: dfg.assign_sub
// CHECK-NOT: dfg.call
// CHECK: %[[RESTORED:.*]] = dfg.opaque "RestoreV2"(%[[FILE]]
// CHECK: dfg.assign %[[W]], %[[RESTORED]]
// CHECK: dfg.group {control = ["save/Assign"]} {{.*}}loc("save/restore_all")
dfg.variable @w : tensor<2x3xf32> {trainable}
// No object has it, so that no checkpoint does.
dfg.variable @hidden : tensor<3xf32>
dfg.graph attributes {objects = {graph = "described", keys = {w = "model/w"}}, saver = {filename = "file:0", restore = "restore", save = "save_call:0"}} {
  %file = dfg.placeholder : () -> tensor<!dfg.string> loc("file")
  %w = dfg.var_handle @w : !dfg.ref<tensor<2x3xf32>> loc("w")
  %hidden = dfg.var_handle @hidden : !dfg.ref<tensor<3xf32>> loc("hidden")
  %g = dfg.placeholder : () -> tensor<2x3xf32> loc("g")
  dfg.assign_sub %w, %g : (!dfg.ref<tensor<2x3xf32>>, tensor<2x3xf32>) -> () loc("update")
  %saved = dfg.call @save(%file, %w) {stateful} : (tensor<!dfg.string>, !dfg.ref<tensor<2x3xf32>>) -> tensor<!dfg.string> loc("save_call")
  %restored = dfg.call @restore(%file, %w) {stateful} : (tensor<!dfg.string>, !dfg.ref<tensor<2x3xf32>>) -> tensor<!dfg.string> loc("restore")
}
dfg.func @save(%file: tensor<!dfg.string>, %w: tensor<*x!dfg.resource>) -> tensor<!dfg.string> {
  dfg.return %file : tensor<!dfg.string>
}
dfg.func @restore(%file: tensor<!dfg.string>, %w: tensor<*x!dfg.resource>) -> tensor<!dfg.string> {
  dfg.return %file : tensor<!dfg.string>
}

// -----

// A saver of nodes stays.
// CHECK-LABEL: dfg.graph
// CHECK-SAME: saver = {filename = "file:0", restore = "restore", save = "saved:0"}
// CHECK-NOT: SaveV2
dfg.variable @w : tensor<2x3xf32> {trainable}
dfg.graph attributes {saver = {filename = "file:0", restore = "restore", save = "saved:0"}} {
  %file = dfg.placeholder : () -> tensor<!dfg.string> loc("file")
  %w = dfg.var_handle @w : !dfg.ref<tensor<2x3xf32>> loc("w")
  %saved = dfg.identity %file : (tensor<!dfg.string>) -> tensor<!dfg.string> loc("saved")
  dfg.group : () -> () loc("restore")
}

// -----

// Without a saver, as the graph of a function is, variables have their names.
// CHECK-LABEL: dfg.graph
// CHECK-SAME: init_op = "begin"
// CHECK: dfg.const dense<"w"> : tensor<1x!dfg.string>
// CHECK: dfg.opaque "SaveV2"({{.*}}) {tf = {dtypes = [f32]}}
dfg.variable @w : tensor<2x3xf32> {kind = "captured", trainable}
dfg.graph attributes {init_op = "begin"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2x3xf32>> loc("w")
  dfg.group : () -> () loc("begin")
}

// -----

// Parts of a table that the graph itself splits are slices of it; of a table of which there is not every part they are not.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.const dense<["table", "table", "rest/part_0"]> : tensor<3x!dfg.string>
// CHECK: dfg.const dense<["9 4 0,5:-", "9 4 5,4:-", ""]> : tensor<3x!dfg.string>
// CHECK: dfg.const dense<["table", "table", "rest/part_0"]> : tensor<3x!dfg.string>
// CHECK: dfg.const dense<["9 4 0,5:-", "9 4 5,4:-", ""]> : tensor<3x!dfg.string>
dfg.variable @"table/part_0" : tensor<5x4xf32> {trainable}
dfg.variable @"table/part_1" : tensor<4x4xf32> {trainable}
dfg.variable @"rest/part_0" : tensor<2xf32> {trainable}
dfg.graph attributes {init_op = "begin",
                      dfg.slices = {"table/part_0" = #dfg.slice<"table" [9, 4] at [0, 0] sizes [5, 4]>,
                                    "table/part_1" = #dfg.slice<"table" [9, 4] at [5, 0] sizes [4, 4]>,
                                    "rest/part_0" = #dfg.slice<"rest" [4] at [0] sizes [2]>}} {
  %a = dfg.var_handle @"table/part_0" : !dfg.ref<tensor<5x4xf32>> loc("a")
  %b = dfg.var_handle @"table/part_1" : !dfg.ref<tensor<4x4xf32>> loc("b")
  %c = dfg.var_handle @"rest/part_0" : !dfg.ref<tensor<2xf32>> loc("c")
  dfg.group : () -> () loc("begin")
}

// -----

// What a graph of version 1 saves its collections say: a saver of the resource alone would leave the reference out.
// CHECK-LABEL: dfg.graph
// CHECK-NOT: SaveV2
dfg.variable @step : tensor<i64>
dfg.variable @old : tensor<3xf32> {kind = "ref"}
dfg.graph {
  %s = dfg.var_handle @step : !dfg.ref<tensor<i64>> loc("step")
  %o = dfg.var_handle @old : !dfg.ref<tensor<3xf32>> loc("old")
}
