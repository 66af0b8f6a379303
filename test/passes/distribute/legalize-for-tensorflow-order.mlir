// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=1" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// The update is the chief's alone. What this worker has behind it stays behind what it pushes for it.
// CHECK-NOT: loc("update")
// CHECK: dfg.assign_add {{.*}} {control = ["push/apply"]{{.*}} loc("count")
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.variable @step : tensor<i64>
dfg.graph attributes {train_op = "train"} {
  %x = dfg.placeholder {dist.share = "sharded"} : () -> tensor<?x4xf32> loc("x")
  %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  %one = dfg.const dense<1> : tensor<i64> : tensor<i64> loc("one")
  %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %hs = dfg.var_handle @step : !dfg.ref<tensor<i64>> loc("step")
  %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
  dist.push mean "w" to <"ps" 0> of 2 (%g) variable "w" : tensor<4xf32> loc("push")
  %taken = dist.take mean "w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("take")
  dfg.apply_gradient_descent %h, %lr, %taken {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  dfg.assign_add %hs, %one {control = ["update"]} : (!dfg.ref<tensor<i64>>, tensor<i64>) -> () loc("count")
  dist.tokens at <"ps" 0> of 2 {control = ["push", "update"]} loc("synchronization/tokens")
  dfg.group {control = ["update", "count", "synchronization/tokens"]} : () -> () loc("train")
}
