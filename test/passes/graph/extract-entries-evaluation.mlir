// RUN: distc-opt %s --dfg-extract-entries=fetches=new,after,late 2>&1 | FileCheck %s

dfg.variable @w : tensor<f32> {trainable}

// Evaluation changes no variable: what is computed of what an update leaves is the step's alone. What only waits for it is not.
// CHECK: warning: {{.*}}'new:0' stands behind the update 'update' of a variable; --eval, which changes no variable, does not give it
// CHECK-NOT: 'after:0' stands behind
// CHECK: warning: {{.*}}'late:0' stands behind the update 'update' of a variable; --eval, which changes no variable, does not give it
// CHECK-LABEL: dfg.func @step
// CHECK-SAME: dfg.fetches = ["loss:0", "new:0", "after:0", "late:0"]
// CHECK-LABEL: dfg.func @eval
// CHECK-SAME: dfg.fetches = ["loss:0", "after:0"]
// CHECK-NOT: dfg.assign
dfg.graph attributes {train_op = "train", loss = "loss:0"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %value = dfg.read_variable %w : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("w/Read")
  %loss = dfg.mul %value, %x : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
  dfg.assign_sub %w, %x : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")

  %new = dfg.read_variable %w {control = ["update"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("new")

  %after = dfg.neg %x {control = ["update"]} : (tensor<f32>) -> tensor<f32> loc("after")

  %done = dfg.identity %after : (tensor<f32>) -> tensor<f32> loc("done")
  %late = dfg.read_variable %w {control = ["done"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("late")
  dfg.group {control = ["update"]} : () -> () loc("train")
}
