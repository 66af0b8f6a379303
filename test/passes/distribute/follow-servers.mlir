// RUN: distc-opt %s --split-input-file --dist-follow-servers | FileCheck %s

// An average of a new value is held where that is, and so is a copy of the average. What takes the old value is each worker's own,
// and so is what merely runs behind the update.
// CHECK-LABEL: @new_values
// CHECK: dfg.variable @average : tensor<4xf32> {dist.place = #dist.place<"ps" 1>}
// CHECK: dfg.variable @copy : tensor<4xf32> {dist.place = #dist.place<"ps" 1>}
// CHECK: dfg.variable @old : tensor<4xf32> loc(
// CHECK: dfg.variable @step : tensor<f32> loc(
module @new_values attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>, #dist.task<"ps" 1 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server>}
  dfg.variable @average : tensor<4xf32>
  dfg.variable @copy : tensor<4xf32>
  dfg.variable @old : tensor<4xf32>
  dfg.variable @step : tensor<f32>
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %average = dfg.var_handle @average : !dfg.ref<tensor<4xf32>> loc("average")
    %copy = dfg.var_handle @copy : !dfg.ref<tensor<4xf32>> loc("copy")
    %old = dfg.var_handle @old : !dfg.ref<tensor<4xf32>> loc("old")
    %step = dfg.var_handle @step : !dfg.ref<tensor<f32>> loc("step")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
    %before = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("before")
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
    %new = dfg.read_variable %w {control = ["update"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("new")
    %part = dfg.mul %new, %lr : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("part")
    dfg.assign_add %average, %part : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("average_update")
    %averaged = dfg.read_variable %average {control = ["average_update"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("averaged")
    dfg.assign %copy, %averaged : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("copy_update")
    dfg.assign %old, %before {control = ["update"]} : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("old_update")
    dfg.assign_add %step, %lr {control = ["new"]} : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("count")
    dfg.group {control = ["copy_update", "old_update", "count"]} : () -> () loc("train")
  }
}

// -----

// Asynchronous servers are updated by each worker.
// CHECK-LABEL: @asynchronous
// CHECK: dfg.variable @average : tensor<4xf32> loc(
module @asynchronous attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server async>}
  dfg.variable @average : tensor<4xf32>
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %average = dfg.var_handle @average : !dfg.ref<tensor<4xf32>> loc("average")
    %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
    dfg.assign %w, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    %new = dfg.read_variable %w {control = ["update"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("new")
    dfg.assign %average, %new : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}
