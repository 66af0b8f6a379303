// RUN: split-file %s %t
// RUN: distc-opt %t/behind.mlir --dist-legalize-for-tensorflow="worker=1" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %t/behind.mlir
// RUN: distc-opt %t/late.mlir --dist-legalize-for-tensorflow="worker=0" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %t/late.mlir

//--- behind.mlir
// The update is the chief's alone. What this worker has behind it stays behind what it pushes for it.
// CHECK-NOT: loc("update")
// CHECK: dfg.assign_add {{.*}} {control = ["push/apply"]{{.*}} loc("count")
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.variable @step : tensor<i64>
dfg.graph attributes {train_op = "train"} {
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
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

//--- late.mlir
// A gradient that waits for an update of the same step is taken behind it: that update does not wait for it, others do.
// CHECK: dfg.apply_gradient_descent {{.*}}control = ["synchronization/taken"]{{.*}} loc("first")
// CHECK: dfg.opaque "AccumulatorApplyGradient"{{.*}} loc("late/apply")
// CHECK: dfg.apply_gradient_descent {{.*}}control = ["synchronization/taken_late"]{{.*}} loc("second")
// CHECK: dfg.group {control = ["take/gradient"{{.*}} loc("synchronization/taken")
// CHECK: dfg.group {control = ["late_take/gradient", "synchronization/taken"]{{.*}} loc("synchronization/taken_late")
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.variable @v : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train"} {
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
  %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
  %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
  dist.push mean "w" to <"ps" 0> of 2 (%g) variable "w" : tensor<4xf32> loc("push")
  %taken = dist.take mean "w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("take")
  dfg.apply_gradient_descent %w, %lr, %taken {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("first")
  %half = dfg.const dense<0.5> : tensor<f32> {control = ["first"]} : tensor<f32> loc("half")
  %h = dfg.mul %g, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("h")
  dist.push mean "v" to <"ps" 0> of 2 (%h) variable "v" : tensor<4xf32> loc("late")
  %late = dist.take mean "v" from <"ps" 0> of 2 variable "v" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("late_take")
  dfg.apply_gradient_descent %v, %lr, %late {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("second")
  dist.tokens at <"ps" 0> of 2 {control = ["push", "first", "late", "second"]} loc("synchronization/tokens")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}
