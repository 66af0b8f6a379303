// RUN: distc-opt %s --dist-prune-optimizer-ops="role=worker" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: distc-opt %s --dist-prune-optimizer-ops="role=worker sessions" | FileCheck %s --check-prefix=SESSION
// RUN: distc-opt %s --dist-prune-optimizer-ops="role=chief sessions" | FileCheck %s --check-prefix=CHIEF

// A server's update goes, and what fed it alone; what the saver names stays.
// CHECK-NOT: dist.take
// CHECK-NOT: loc("rate")
// CHECK: loc("kept")
// CHECK-NOT: dfg.apply
// CHECK: dfg.group {control = ["push_v"]} {{.*}} loc("train")

// In sessions a worker runs the updates that wait for nobody, the chief those that do as well.
// SESSION-NOT: variable "w" {dist.place
// SESSION: dist.take mean "v" {{.*}} async
// SESSION: dfg.apply_gradient_descent
// SESSION-NOT: dfg.apply_gradient_descent
// CHIEF: dist.take mean "w"
// CHIEF: dist.take mean "v"
// CHIEF-COUNT-2: dfg.apply_gradient_descent
dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>}
dfg.variable @v : tensor<4xf32> {dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train", saver = {filename = "kept:0", restore = "", save = ""}} {
  %g = dfg.const dense<0.1> : tensor<4xf32> : tensor<4xf32> loc("g")
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("rate")
  %kept = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("kept")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
  dist.push mean "w" to <"ps" 0> of 2 (%g) variable "w" : tensor<4xf32> loc("push_w")
  dist.push mean "v" to <"ps" 0> of 1 (%g) variable "v" async : tensor<4xf32> loc("push_v")
  %tw = dist.take mean "w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("take_w")
  %tv = dist.take mean "v" from <"ps" 0> of 1 variable "v" async {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("take_v")
  dfg.apply_gradient_descent %w, %kept, %tw {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
  dfg.apply_gradient_descent %v, %rate, %tv {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_v")
  dfg.group {control = ["push_v", "update_w"]} : () -> () loc("train")
}
