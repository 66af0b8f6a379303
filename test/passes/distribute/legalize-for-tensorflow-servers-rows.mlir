// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=1 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=OTHER

// Rows that stay apart go through a queue of each replica; the chief takes one gradient of each and joins them in their order.
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @e : tensor<8x4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train"} {
  %e = dfg.var_handle @e : !dfg.ref<tensor<8x4xf32>> loc("e")
  %i = dfg.const dense<[0, 3]> : tensor<2xi64> : tensor<2xi64> loc("i")
  %rows = dist.pull_rows %e[%i] from <"ps" 0> : (!dfg.ref<tensor<8x4xf32>>, tensor<2xi64>) -> tensor<2x4xf32> loc("rows")
  // CHECK: %[[Q0:.*]] = dfg.opaque "FIFOQueueV2"() {{.*}}device = "/job:ps/task:0"{{.*}}component_types = [i64, f32], shapes = [], shared_name = "synchronization/e/rows_0"
  // CHECK: dfg.opaque "QueueEnqueueV2"(%[[Q0]], %{{.*}}, %{{.*}})
  // OTHER: %[[Q:.*]] = dfg.opaque "FIFOQueueV2"() {{.*}}shared_name = "synchronization/e/rows_1"
  // OTHER: dfg.opaque "QueueEnqueueV2"(%[[Q]],
  // OTHER-NOT: rows/dequeue
  dist.push mean "synchronization/e" to <"ps" 0> of 2 (%i, %rows) variable "e" apart : tensor<2xi64>, tensor<2x4xf32> loc("synchronization/e/push")
  // CHECK: %[[A:.*]]:2 = dfg.opaque "QueueDequeueV2"(%[[Q0]])
  // CHECK: %[[Q1:.*]] = dfg.opaque "FIFOQueueV2"() {{.*}}shared_name = "synchronization/e/rows_1"
  // CHECK: %[[B:.*]]:2 = dfg.opaque "QueueDequeueV2"(%[[Q1]])
  // CHECK: %[[I:[^ ]*]] = dfg.concat_v2 %[[A]]#0, %[[B]]#0,
  // CHECK: %[[V:[^ ]*]] = dfg.concat_v2 %[[A]]#1, %[[B]]#1,
  // CHECK: %[[M:[^ ]*]] = dfg.mul %[[V]],
  %ti, %tv = dist.take mean "synchronization/e" from <"ps" 0> of 2 variable "e" apart {dist.place = #dist.place<"ps" 0>} : tensor<?xi64>, tensor<?x4xf32> loc("synchronization/e/take")
  // CHECK: dfg.scatter_sub %{{.*}}, %[[I]], %[[M]]
  dfg.scatter_sub %e, %ti, %tv {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<8x4xf32>>, tensor<?xi64>, tensor<?x4xf32>) -> () loc("update")
  dist.tokens at <"ps" 0> of 2 {control = ["synchronization/e/push", "update"]} loc("synchronization/tokens")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}
