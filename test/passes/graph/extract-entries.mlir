// RUN: distc-opt %s --dfg-extract-entries=fetches=y,rows,count | FileCheck %s

dfg.variable @w : tensor<f32> {trainable}

// CHECK-NOT: dfg.graph
// CHECK-LABEL: dfg.func @init() attributes {dfg.entry = "init", dfg.fetches = [], dfg.joins = []}
// CHECK-NEXT: dfg.const
// CHECK-NEXT: dfg.var_handle
// CHECK-NEXT: dfg.assign %
// CHECK-NEXT: dfg.return

// CHECK-LABEL: dfg.func @step()
// CHECK-SAME: dfg.entry = "step", dfg.fetches = ["loss:0", "y:0", "rows:0", "count:0"]
// CHECK-SAME: dfg.joins = ["mean", "mean", "concat:0", "first"]
// CHECK: %[[LOSS:.*]] = dfg.square
// CHECK: dfg.assign_sub
// CHECK-NOT: dfg.group
// CHECK: dfg.return %[[LOSS]]

// CHECK-LABEL: dfg.func @eval()
// CHECK-SAME: dfg.entry = "eval", dfg.fetches = ["loss:0", "y:0", "rows:0", "count:0"]
// CHECK-SAME: dfg.joins = ["mean", "mean", "concat:0", "first"]
// CHECK-NOT: dfg.assign
// CHECK: dfg.return
// CHECK-NOT: save
// No entry calls what is called by a function that none calls.
// CHECK-NOT: dfg.func
dfg.func @called(%x: tensor<f32>) -> tensor<f32> {
  dfg.return %x : tensor<f32>
}
dfg.func @calls(%x: tensor<f32>) -> tensor<f32> {
  %y = dfg.call @called(%x) : (tensor<f32>) -> tensor<f32>
  dfg.return %y : tensor<f32>
}
dfg.graph attributes {train_op = "train", init_op = "init", loss = "loss:0"} {
  %zero = dfg.const dense<0.0> : tensor<f32> : tensor<f32> loc("zero")
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %value = dfg.read_variable %w : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("w/Read")
  %y = dfg.mul %value, %x : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("y")
  %loss = dfg.square %y : (tensor<f32>) -> tensor<f32> loc("loss")
  // Its rows are the batch's.
  %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
  %count = dfg.const dense<3> : tensor<i32> : tensor<i32> loc("count")
  dfg.assign %w, %zero : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("w/Assign")
  dfg.group {control = ["w/Assign"]} : () -> () loc("init")
  dfg.assign_sub %w, %y : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
  dfg.group {control = ["update"]} : () -> () loc("train")
  // Nothing that trains needs it.
  dfg.opaque "SaveV2"(%value) : (tensor<f32>) -> () loc("save")
}
