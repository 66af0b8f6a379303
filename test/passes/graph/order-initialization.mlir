// RUN: distc-opt %s --dfg-order-initialization --split-input-file | FileCheck %s

// An average starts as a copy of the variable: TensorFlow fails where the copy is first.
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @average : tensor<4xf32>
// CHECK-LABEL: dfg.graph
dfg.graph attributes {init_op = "init", train_op = "train"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %average = dfg.var_handle @average : !dfg.ref<tensor<4xf32>> loc("average")
  %initial = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("initial")
  %half = dfg.mul %initial, %initial : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("half")
  // What a step reads is where it was.
  // CHECK-NOT: %initial
  // CHECK: %old = dfg.read_variable %w :
  %old = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
  %value = dfg.const dense<2.0> : tensor<4xf32> : tensor<4xf32> loc("value")
  // CHECK: dfg.assign %w, %value
  // CHECK: %initial = dfg.read_variable %w {control = ["w/Assign"]}
  // CHECK: %half = dfg.mul %initial, %initial
  // CHECK: dfg.assign %average, %half
  dfg.assign %w, %value : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/Assign")
  dfg.assign %average, %half : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("average/Assign")
  dfg.group {control = ["w/Assign", "average/Assign"]} : () -> () loc("init")
  dfg.assign_sub %w, %old : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
  dfg.group {control = ["update"]} : () -> () loc("train")
}

// -----

// A read that the assignment is made of, one that a step needs too, and two that wait for each other stay.
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @shared : tensor<4xf32>
dfg.variable @copy : tensor<4xf32>
dfg.variable @a : tensor<4xf32>
dfg.variable @b : tensor<4xf32>
// CHECK-LABEL: dfg.graph
// CHECK-NOT: read_variable {{.*}}control
// CHECK: dfg.group {control = ["w/Assign"
dfg.graph attributes {init_op = "init", train_op = "train"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %shared = dfg.var_handle @shared : !dfg.ref<tensor<4xf32>> loc("shared")
  %copy = dfg.var_handle @copy : !dfg.ref<tensor<4xf32>> loc("copy")
  %a = dfg.var_handle @a : !dfg.ref<tensor<4xf32>> loc("a")
  %b = dfg.var_handle @b : !dfg.ref<tensor<4xf32>> loc("b")
  %own = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("own")
  %both = dfg.read_variable %shared : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("both")
  %of_a = dfg.read_variable %a : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("of_a")
  %of_b = dfg.read_variable %b : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("of_b")
  %value = dfg.const dense<2.0> : tensor<4xf32> : tensor<4xf32> loc("value")
  dfg.assign %w, %own : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/Assign")
  dfg.assign %shared, %value : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("shared/Assign")
  dfg.assign %copy, %both : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("copy/Assign")
  dfg.assign %a, %of_b : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("a/Assign")
  dfg.assign %b, %of_a : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("b/Assign")
  dfg.group {control = ["w/Assign", "shared/Assign", "copy/Assign", "a/Assign", "b/Assign"]} : () -> () loc("init")
  dfg.assign_sub %w, %both : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
  dfg.group {control = ["update"]} : () -> () loc("train")
}
