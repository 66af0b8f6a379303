// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A reference's value is taken from the server by whoever uses it; one that must wait is read there, by a node of its own.
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @v : tensor<4xf32> {kind = "ref", trainable, dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train", loss = "loss:0"} {
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  // CHECK: dfg.read_variable {{.*}}implicit
  %pushed = dist.pull %v from <"ps" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("pushed")
  %loss = dfg.l2_loss %pushed : (tensor<4xf32>) -> tensor<f32> loc("loss")
  dist.push mean "synchronization/v" to <"ps" 0> of 2 (%pushed) variable "v" : tensor<4xf32> loc("synchronization/v/push")
  %t = dist.take mean "synchronization/v" from <"ps" 0> of 2 variable "v" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/v/take")
  %u = dfg.apply_gradient_descent %v, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32> loc("update")
  // CHECK: dfg.read_variable %{{.*}} {control = ["update"], device = "/job:ps/task:0"{{.*}} loc("new")
  %new = dist.pull %v from <"ps" 0> {control = ["update"]} : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("new")
  %seen = dfg.square %new : (tensor<4xf32>) -> tensor<4xf32> loc("seen")
  dist.tokens at <"ps" 0> of 2 staleness 0 {control = ["synchronization/v/push", "update", "seen"]} loc("synchronization/tokens")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}
