// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,CHIEF
// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=1 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,OTHER

dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.variable @e : tensor<8x4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train", init_op = "init"} {
  // CHECK: dfg.var_handle @w {device = "/job:ps/task:0"}
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %e = dfg.var_handle @e : !dfg.ref<tensor<8x4xf32>> loc("e")
  // CHECK: dfg.const dense<1.000000e-01> {{.*}}device = "/job:worker/task:[[TASK:.]]"
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  // CHECK: %[[W:.*]] = dfg.read_variable {{.*}}device = "/job:ps/task:0"{{.*}} loc("read")
  %value = dist.pull %w from <"ps" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("read")
  %i = dfg.const dense<[0, 3]> : tensor<2xi32> : tensor<2xi32> loc("i")
  // CHECK: %[[ROWS:.*]] = dfg.opaque "ResourceGather"{{.*}}device = "/job:ps/task:0"{{.*}} loc("rows")
  %rows = dist.pull_rows %e[%i] from <"ps" 0> : (!dfg.ref<tensor<8x4xf32>>, tensor<2xi32>) -> tensor<2x4xf32> loc("rows")
  // A gradient says of which step it is; what is late is dropped by the accumulator.
  // CHECK: %[[STEP:.*]] = dfg.opaque "VarHandleOp"() {device = "/job:worker/task:[[TASK]]"
  // CHECK: %[[LOCAL:.*]] = dfg.opaque "ReadVariableOp"(%[[STEP]])
  // CHECK: %[[LATE:.*]] = dfg.opaque "AddV2"(%[[LOCAL]]
  // CHECK: %[[ACC:.*]] = dfg.opaque "ConditionalAccumulator"() {device = "/job:ps/task:0", tf = {dtype = f32, reduction_type = "MEAN", shape = #dfg.shape<[4]>, shared_name = "synchronization/w"}}
  // CHECK: dfg.opaque "AccumulatorApplyGradient"(%[[ACC]], %[[LATE]], %[[W]]) {device = "/job:ps/task:0"{{.*}} loc("synchronization/w/push/apply")
  dist.push mean "synchronization/w" to <"ps" 0> of 2 (%value) variable "w" {staleness = 2 : i64} : tensor<4xf32> loc("synchronization/w/push")
  // CHECK: dfg.opaque "SparseConditionalAccumulator"() {{.*}}reduction_type = "SUM", shape = #dfg.shape<[?, 4]>
  // CHECK: dfg.opaque "SparseAccumulatorApplyGradient"
  dist.push mean "synchronization/e" to <"ps" 0> of 2 (%i, %rows) variable "e" : tensor<2xi32>, tensor<2x4xf32> loc("synchronization/e/push")
  // What the chief alone sends needs no accumulator.
  dist.push sum "synchronization/sent/0" to <"ps" 0> of 1 (%lr) variable "w" {dist.place = #dist.place<"worker" 0>} : tensor<f32> loc("synchronization/sent/0/push")
  %sent = dist.take sum "synchronization/sent/0" from <"ps" 0> of 1 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<f32> loc("synchronization/sent/0/take")
  // The chief alone takes and updates, when it has all gradients. Initialization stays where it is named, and is the chief's.
  // CHIEF: %[[T:.*]] = dfg.opaque "AccumulatorTakeGradient"{{.*}}device = "/job:ps/task:0"
  // OTHER-NOT: TakeGradient
  %t = dist.take mean "synchronization/w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/w/take")
  // CHIEF: %[[TE:.*]]:3 = dfg.opaque "SparseAccumulatorTakeGradient"
  // CHIEF: dfg.cast %[[TE]]#0
  // CHIEF: dfg.mul %[[TE]]#1
  %ti, %tv = dist.take mean "synchronization/e" from <"ps" 0> of 2 variable "e" {dist.place = #dist.place<"ps" 0>} : tensor<?xi32>, tensor<?x4xf32> loc("synchronization/e/take")
  // CHIEF: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[T]] {control = ["synchronization/taken"]{{.*}}device = "/job:ps/task:0"
  // OTHER-NOT: dfg.apply
  dfg.apply_gradient_descent %w, %sent, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  %zero = dfg.const dense<0.0> : tensor<4xf32> : tensor<4xf32> loc("zero")
  // CHECK: dfg.assign
  dfg.assign %w, %zero {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/Assign")
  // CHIEF: dfg.group {control = ["w/Assign", {{.*}} loc("init")
  // OTHER: dfg.group {control = ["synchronization/step/Assign"]{{.*}} loc("init")
  dfg.group {control = ["w/Assign"]} : () -> () loc("init")
  // CHECK: "FIFOQueueV2"
  // CHIEF: dfg.opaque "QueueEnqueueManyV2"
  // CHIEF: dfg.opaque "QueueEnqueueManyV2"{{.*}} loc("synchronization/tokens/enqueue_first")
  // OTHER-NOT: Enqueue
  // CHECK: %[[TOKEN:.*]] = dfg.opaque "QueueDequeueV2"
  // CHECK: dfg.opaque "AssignVariableOp"(%[[STEP]], %[[TOKEN]]){{.*}} loc("synchronization/tokens/step/next")
  dist.tokens at <"ps" 0> of 2 staleness 2 {control = ["synchronization/w/push", "synchronization/e/push", "update"]} loc("synchronization/tokens")
  // CHECK: dfg.group {control = ["synchronization/tokens/step/next"]{{.*}} loc("train")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}
