// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// TensorFlow's accumulators have no integers: a sum of small ones is one of doubles, and an integer again where it is taken.
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @rows : tensor<i32> {dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train"} {
  %v = dfg.var_handle @rows : !dfg.ref<tensor<i32>> loc("rows")
  %n = dfg.const dense<3> : tensor<i32> : tensor<i32> loc("n")
  // CHECK: %[[NUMBER:.*]] = dfg.cast %{{.*}} : (tensor<i32>) -> tensor<f64>
  // CHECK: "AccumulatorApplyGradient"(%{{.*}}, %{{.*}}, %[[NUMBER]]) {{.*}}dtype = f64
  dist.push sum "synchronization/rows" to <"ps" 0> of 2 (%n) variable "rows" : tensor<i32> loc("synchronization/rows/push")
  // CHECK: %[[SUM:.*]] = dfg.opaque "AccumulatorTakeGradient"{{.*}}dtype = f64{{.*}} -> tensor<f64>
  // CHECK: %[[TAKEN:.*]] = dfg.cast %[[SUM]] {{.*}}device = "/job:ps/task:0"{{.*}} : (tensor<f64>) -> tensor<i32>
  // CHECK: dfg.assign_add %{{.*}}, %[[TAKEN]]
  %t = dist.take sum "synchronization/rows" from <"ps" 0> of 2 variable "rows" {dist.place = #dist.place<"ps" 0>} : tensor<i32> loc("synchronization/rows/take")
  dfg.assign_add %v, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<i32>>, tensor<i32>) -> () loc("update")
  dist.tokens at <"ps" 0> of 2 staleness 0 {control = ["synchronization/rows/push", "update"]} loc("synchronization/tokens")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}
