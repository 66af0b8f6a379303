// RUN: distc-opt %s --split-input-file --dfg-inline-calls | FileCheck %s

// A stateful call waits for all that it takes, also for what its body does not use: whoever waits for the call, or takes a result, waits for it.
// TensorFlow leaves out what other calls do not use.
dfg.variable @u : tensor<f32>
dfg.variable @v : tensor<f32>
// CHECK-LABEL: dfg.graph attributes {train_op = "train"}
dfg.graph attributes {train_op = "train"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %u = dfg.var_handle @u : !dfg.ref<tensor<f32>> loc("u")
  %v = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  dfg.assign_sub %u, %x : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
  %rate = dfg.const dense<0.5> : tensor<f32> {control = ["update"]} : tensor<f32> loc("rate")
  %0 = dfg.call @counts(%v, %x, %rate) {stateful} : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> tensor<f32> loc("counts")
  // CHECK: %taken = dfg.neg %{{.*}} {control = ["rate"]}
  %taken = dfg.neg %0 : (tensor<f32>) -> tensor<f32> loc("taken")
  // CHECK: dfg.group  {control = ["counts/add", "counts/square", "rate"]}
  dfg.group {control = ["counts"]} : () -> () loc("waits")
  %1 = dfg.call @square(%x, %rate) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("square")
  // CHECK: %other = dfg.neg %{{[^ ]*}} :
  %other = dfg.neg %1 : (tensor<f32>) -> tensor<f32> loc("other")
  // CHECK: dfg.group  {control = ["square/square"]}
  dfg.group {control = ["square"]} : () -> () loc("waits_1")
  dfg.group {control = ["waits", "taken", "other", "waits_1"]} : () -> () loc("train")
}
dfg.func @counts(%v: !dfg.ref<tensor<f32>>, %x: tensor<f32>, %unused: tensor<f32>) -> tensor<f32> attributes {control = ["add"]} {
  dfg.assign_add %v, %x : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("add")
  %square = dfg.square %x : (tensor<f32>) -> tensor<f32> loc("square")
  dfg.return %square : tensor<f32>
}
dfg.func @square(%x: tensor<f32>, %unused: tensor<f32>) -> tensor<f32> {
  %square = dfg.square %x : (tensor<f32>) -> tensor<f32> loc("square")
  dfg.return %square : tensor<f32>
}

// -----

// What a body writes of a variable comes behind the reads that the call waits for, whether the body's value of it does or not; what it reads does not.
dfg.variable @w : tensor<4xf32>
// CHECK-LABEL: dfg.graph attributes {train_op = "decay/run"}
dfg.graph attributes {train_op = "decay"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %old = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
  %gradient = dfg.square %old : (tensor<4xf32>) -> tensor<4xf32> loc("gradient")
  // CHECK: %decay.read = dfg.read_variable %w :
  // CHECK: dfg.assign %w, %decay.less {control = ["old"]}
  // CHECK: dfg.assign_sub %w, %gradient {control = ["decay/assign", "old"]}
  dfg.call @decay(%w, %gradient) {stateful} : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("decay")
}
dfg.func @decay(%w: !dfg.ref<tensor<4xf32>>, %gradient: tensor<4xf32>) -> () attributes {control = ["sub"]} {
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
  %read = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
  %less = dfg.mul %read, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("less")
  dfg.assign %w, %less : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("assign")
  dfg.assign_sub %w, %gradient {control = ["assign"]} : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("sub")
  dfg.return
}
