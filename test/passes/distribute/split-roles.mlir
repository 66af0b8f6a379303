// RUN: distc-opt %s --dist-verify-collectives --dist-split-roles --dist-verify-collectives --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: distc-opt %s --dist-split-roles="role=server index=0" | FileCheck %s --check-prefix=SERVER

// What insert-synchronizers leaves of a variable on a server, with the learning rate sent by the chief.
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.variable @step : tensor<i64>

// The chief sends the learning rate.
// CHECK: dfg.graph attributes {dist.role = "chief", init_op = "init", train_op = "train"}
// CHECK: dist.push sum "sent" to <"ps" 0> of 1 (%{{.*}}) variable "w" :
// CHECK-NOT: dist.take
// CHECK: dist.pull
// CHECK: dist.push mean "w" to <"ps" 0> of 2
// CHECK-NOT: dfg.apply
// CHECK: dfg.assign_add
// CHECK: dist.tokens at <"ps" 0> of 2 {control = ["push_lr", "push"]}
// CHECK: dfg.group {control = ["count", "synchronization/tokens"]} {{.*}} loc("train")

// A worker does not; what fed an update alone is gone.
// CHECK: dfg.graph attributes {dist.role = "worker", init_op = "init", train_op = "train"}
// CHECK: dfg.placeholder {{.*}} loc("lr")
// CHECK-NOT: "sent"
// CHECK-NOT: loc("decay")
// CHECK: dist.tokens at <"ps" 0> of 2 {control = ["push"]}

// The server takes and updates, and initializes.
// CHECK: dfg.graph attributes {dist.place = #dist.place<"ps" 0>, dist.role = "server", init_op = "init", train_op = "train"}
// CHECK-NOT: dfg.placeholder
// CHECK: dfg.assign
// CHECK: %[[LR:.*]] = dist.take sum "sent"
// CHECK: %[[G:.*]] = dist.take mean "w"
// CHECK: %[[D:.*]] = dfg.mul %[[G]], %{{.*}}
// CHECK: dfg.apply_gradient_descent %{{.*}}, %[[LR]], %[[D]] : {{.*}} loc("update")
// CHECK: dfg.group {control = ["take_lr", "take", "decayed", "update"]} {{.*}} loc("train")
// CHECK: dfg.group {control = ["assign"]} {{.*}} loc("init")

// SERVER-NOT: dfg.variable @step
// SERVER: dfg.variable @w
// SERVER: dist.role = "server"
// SERVER-NOT: dfg.graph
dfg.graph attributes {init_op = "init", train_op = "train"} {
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
  %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %decay = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("decay")
  %one = dfg.const dense<1> : tensor<i64> : tensor<i64> loc("one")
  %initial = dfg.const dense<1.0> : tensor<4xf32> : tensor<4xf32> loc("initial")
  %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %hs = dfg.var_handle @step : !dfg.ref<tensor<i64>> loc("step")
  dfg.assign %h, %initial {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("assign")
  dfg.group {control = ["assign"]} : () -> () loc("init")
  dist.push sum "sent" to <"ps" 0> of 1 (%lr) variable "w" {dist.place = #dist.place<"worker" 0>} : tensor<f32> loc("push_lr")
  %sent = dist.take sum "sent" from <"ps" 0> of 1 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<f32> loc("take_lr")
  %w = dist.pull %h from <"ps" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("read")
  %y = dfg.mul %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
  %g = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
  dist.push mean "w" to <"ps" 0> of 2 (%g) variable "w" : tensor<4xf32> loc("push")
  %taken = dist.take mean "w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("take")
  %decayed = dfg.mul %taken, %decay {dist.place = #dist.place<"ps" 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("decayed")
  dfg.apply_gradient_descent %h, %sent, %decayed {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  dfg.assign_add %hs, %one {control = ["update"]} : (!dfg.ref<tensor<i64>>, tensor<i64>) -> () loc("count")
  dist.tokens at <"ps" 0> of 2 {control = ["push_lr", "push", "update"]} loc("synchronization/tokens")
  dfg.group {control = ["update", "count", "synchronization/tokens"]} : () -> () loc("train")
}
