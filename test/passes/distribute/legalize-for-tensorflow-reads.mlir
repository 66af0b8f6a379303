// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,CHIEF
// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=1 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,OTHER

// Nobody pushes a gradient that is the same in all replicas: the chief updates when all workers have said that they have read. So it
// is with what only the loss reads; not with what a pushed gradient follows from, nor with what is read behind an update.
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.variable @v : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train", loss = "loss:0"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  %same = dist.pull %w from <"ps" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("same")
  %pushed = dist.pull %v from <"ps" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("pushed")
  %logged = dist.pull %v from <"ps" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("logged")
  %loss = dfg.mul %same, %logged : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("loss")
  %gradient = dfg.square %same : (tensor<4xf32>) -> tensor<4xf32> loc("gradient")
  dist.push mean "synchronization/v" to <"ps" 0> of 2 (%pushed) variable "v" : tensor<4xf32> loc("synchronization/v/push")
  %t = dist.take mean "synchronization/v" from <"ps" 0> of 2 variable "v" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/v/take")
  dist.push sum "synchronization/sent/0" to <"ps" 0> of 1 (%gradient) variable "w" {dist.place = #dist.place<"worker" 0>} : tensor<4xf32> loc("synchronization/sent/0/push")
  %sent = dist.take sum "synchronization/sent/0" from <"ps" 0> of 1 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/sent/0/take")
  // CHIEF: dfg.apply_gradient_descent %{{.*}} {control = ["synchronization/taken"]{{.*}} loc("update_v")
  // CHIEF: dfg.apply_gradient_descent %{{.*}} {control = ["synchronization/taken"]{{.*}} loc("update_w")
  dfg.apply_gradient_descent %v, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_v")
  dfg.apply_gradient_descent %w, %lr, %sent {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
  %new = dist.pull %v from <"ps" 0> {control = ["update_v"]} : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("new")
  // CHECK: %[[QUEUE:.*]] = dfg.opaque "FIFOQueueV2"{{.*}}shared_name = "synchronization/reads"
  // CHECK: dfg.opaque "QueueEnqueueV2"(%[[QUEUE]], {{.*}}control = ["same", "logged"]{{.*}} loc("[[SIGNAL:.*reads/enqueue]]")
  // CHIEF: "QueueDequeueManyV2"(%[[QUEUE]], {{.*}} loc("[[READ:.*reads/dequeue]]")
  // OTHER-NOT: QueueDequeueManyV2
  // CHECK: "QueueDequeueV2"
  // CHIEF: dfg.group {control = ["synchronization/v/take/gradient", "[[READ]]"]{{.*}} loc("synchronization/taken")
  dist.tokens at <"ps" 0> of 2 staleness 0 {control = ["synchronization/v/push", "update_v", "update_w", "new"]} loc("synchronization/tokens")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}
