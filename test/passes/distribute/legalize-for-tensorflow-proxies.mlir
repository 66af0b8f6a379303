// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,CHIEF
// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=1 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,OTHER

dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train", init_op = "init", saver = {filename = "save/Const:0", save = "save:0", restore = "save/restore_all"}} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  // The step reads the worker's copy.
  // CHECK: %[[COPY:.*]] = dfg.opaque "VarHandleOp"() {device = "/job:worker/task:[[TASK:.]]", {{.*}}shape = #dfg.shape<[4]>, shared_name = "w/proxy/copy"
  // CHECK: dfg.opaque "ReadVariableOp"(%[[COPY]]) {device = "/job:worker/task:[[TASK]]"{{.*}} loc("read")
  %value = dist.pull %w from <"ps" 0> proxy : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("read")
  // What saves, the server's.
  // CHECK: dfg.read_variable {{.*}}device = "/job:ps/task:0"{{.*}} loc("saved")
  %saved = dist.pull %w from <"ps" 0> proxy : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("saved")
  dist.push mean "synchronization/w" to <"ps" 0> of 2 (%value) variable "w" : tensor<4xf32> loc("synchronization/w/push")
  %t = dist.take mean "synchronization/w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/w/take")
  dfg.apply_gradient_descent %w, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  %zero = dfg.const dense<0.0> : tensor<4xf32> : tensor<4xf32> loc("zero")
  dfg.assign %w, %zero {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/Assign")
  // CHECK: dfg.group {control = [{{.*}}"w/proxy/initial/assign"]{{.*}} loc("init")
  dfg.group {control = ["w/Assign"]} : () -> () loc("init")
  dfg.assign %w, %zero : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("save/Assign")
  // CHIEF: dfg.group {control = ["save/Assign", "w/proxy/restored/assign"]{{.*}} loc("save/restore_all")
  // OTHER: dfg.group {control = ["w/proxy/restored/assign"]{{.*}} loc("save/restore_all")
  dfg.group {control = ["save/Assign"]} : () -> () loc("save/restore_all")
  dist.tokens at <"ps" 0> of 2 {control = ["synchronization/w/push", "update"]} loc("synchronization/tokens")
  // CHECK: dfg.group {control = ["synchronization/tokens/step/next", "w/proxy/next/assign"]{{.*}} loc("train")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
  // The copy is given the server's value behind what changes that: the initializer, the end of a step, restoring. A worker
  // that is not the chief comes after it.
  // CHIEF: dfg.opaque "ReadVariableOp"{{.*}}control = ["w/Assign"], device = "/job:ps/task:0"{{.*}} loc("w/proxy/initial/value")
  // OTHER: dfg.opaque "ReadVariableOp"{{.*}}{device = "/job:ps/task:0"{{.*}} loc("w/proxy/initial/value")
  // CHIEF: dfg.opaque "ReadVariableOp"{{.*}}control = ["update", "synchronization/tokens/step/next"], device = "/job:ps/task:0"{{.*}} loc("w/proxy/next/value")
  // OTHER: dfg.opaque "ReadVariableOp"{{.*}}control = ["synchronization/tokens/step/next"], device = "/job:ps/task:0"{{.*}} loc("w/proxy/next/value")
  // CHECK: dfg.opaque "AssignVariableOp"(%[[COPY]], {{.*}}control = ["read"], device = "/job:worker/task:[[TASK]]"{{.*}} loc("w/proxy/next/assign")
  // CHECK: dfg.opaque "ReadVariableOp"{{.*}}control = ["synchronization/restored"], device = "/job:ps/task:0"{{.*}} loc("w/proxy/restored/value")
}
