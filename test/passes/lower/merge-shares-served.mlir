// RUN: distc-opt %s --drt-merge-shares | FileCheck %s

// Servers that serve on their own are in the first task. Others ask it for variables and have no memory for them, ...
drt.program "g.meta" strategy "PS:sync=false" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
// CHECK: dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable}
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"worker" 0>}
// CHECK: dfg.variable @m : tensor<4xf32> {dist.place = #dist.place<"worker" 0>}
dfg.variable @m : tensor<4xf32> {dist.place = #dist.place<"worker" 0>}
// ... unless an initial value is read of one: then all have it, and what is updated together with it.
// CHECK: dfg.variable @read : tensor<4xf32> loc(
dfg.variable @read : tensor<4xf32> {dist.place = #dist.place<"worker" 0>}
// CHECK: dfg.variable @beside : tensor<4xf32> loc(
dfg.variable @beside : tensor<4xf32> {dist.place = #dist.place<"worker" 0>}
dfg.func @init() -> () attributes {dfg.entry = "init", dfg.fetches = [], dfg.joins = []} {
  %zeros = dfg.const dense<0.0> : tensor<4xf32> : tensor<4xf32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<4xf32>>
  %r = dfg.var_handle @read : !dfg.ref<tensor<4xf32>>
  %b = dfg.var_handle @beside : !dfg.ref<tensor<4xf32>>
  dfg.assign %w, %zeros : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> ()
  dfg.assign %r, %zeros : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> ()
  %value = dfg.read_variable %r : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
  dfg.assign %m, %value : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> ()
  dfg.assign %b, %zeros : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> ()
  dfg.return
}
dfg.func @step() -> () attributes {dfg.entry = "step", dfg.fetches = [], dfg.joins = []} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %pulled = dist.pull %w from <"worker" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32>
  dist.push mean "gradients/0/w" to <"worker" 0> of 1 (%pulled) variable "w" : tensor<4xf32>
  dfg.return
}
dfg.func @update() -> () attributes {dfg.entry = "update", dfg.fetches = [], dfg.joins = []} {
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<4xf32>>
  %r = dfg.var_handle @read : !dfg.ref<tensor<4xf32>>
  %b = dfg.var_handle @beside : !dfg.ref<tensor<4xf32>>
  %g = dist.take mean "gradients/0/w" from <"worker" 0> of 1 variable "w" : tensor<4xf32>
  dfg.apply_momentum %w, %m, %half, %g, %half : (!dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>, tensor<f32>) -> ()
  dfg.apply_momentum %r, %b, %half, %g, %half : (!dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>, tensor<f32>) -> ()
  dfg.return
}
// The first task alone evaluates.
dfg.func @eval() -> (tensor<4xf32>) attributes {dfg.entry = "eval", dfg.fetches = ["w:0"], dfg.joins = ["none"]} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %value = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
  dfg.return %value : tensor<4xf32>
}
