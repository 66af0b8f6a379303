// RUN: distc-opt %s --split-input-file --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>]
dfg.variable @w : tensor<4x2xf32> {trainable}
dfg.variable @b : tensor<2xf32> {trainable}
dfg.graph attributes {train_op = "train", init_op = "init"} {
  // CHECK: %[[GW:.*]] = dfg.const {{.*}} loc("gw")
  %gw = dfg.const dense<1.0> : tensor<4x2xf32> : tensor<4x2xf32> loc("gw")
  // CHECK: %[[GB:.*]] = dfg.const {{.*}} loc("gb")
  %gb = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32> loc("gb")
  // Of each gradient the two and the one largest of what is left and what is new; indices are those of the bucket.
  // CHECK: %[[FLAT:.*]] = dfg.reshape %[[GW]]
  // CHECK: %[[WHOLE:.*]] = dfg.opaque "AddV2"(%[[FLAT]], %[[ERROR:.*]]) {{.*}} loc("all_reduce/0/corrected")
  // CHECK: %[[LARGEST:.*]]:2 = dfg.opaque "TopKV2"{{.*}} -> (tensor<2xf32>, tensor<2xi32>)
  // CHECK: dfg.opaque "GatherV2"(%[[WHOLE]], %[[LARGEST]]#1
  // CHECK: %[[LOST:.*]] = dfg.opaque "TensorScatterUpdate"(%[[WHOLE]]
  // CHECK: dfg.opaque "AssignVariableOp"(%{{.*}}, %[[LOST]])
  // CHECK: dfg.opaque "TopKV2"{{.*}} -> (tensor<1xf32>, tensor<1xi32>)
  // CHECK: dfg.const dense<8> {{.*}} loc("all_reduce/0/offset_1")
  // CHECK: %[[I:.*]] = dfg.opaque "CollectiveGatherV2"{{.*}} -> tensor<6x1xi32>
  // CHECK: %[[V:.*]] = dfg.opaque "CollectiveGatherV2"{{.*}} -> tensor<6xf32>
  // CHECK: dfg.opaque "ScatterNd"(%[[I]], %[[V]], %{{.*}}) {{.*}} -> tensor<10xf32>
  %rw, %rb = dist.all_reduce mean bucket 0 group 0 (%gw, %gb) variables ["w", "b"] {compression = #dist.compression<top_k ratio 0.25 : f64>} : tensor<4x2xf32>, tensor<2xf32> loc("all_reduce/0")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4x2xf32>> loc("w")
  %b = dfg.var_handle @b : !dfg.ref<tensor<2xf32>> loc("b")
  %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("lr")
  dfg.apply_gradient_descent %w, %lr, %rw : (!dfg.ref<tensor<4x2xf32>>, tensor<f32>, tensor<4x2xf32>) -> () loc("update_w")
  dfg.apply_gradient_descent %b, %lr, %rb : (!dfg.ref<tensor<2xf32>>, tensor<f32>, tensor<2xf32>) -> () loc("update_b")
  // What is left is the worker's, from zero on.
  // CHECK: dfg.group {control = ["all_reduce/0/error/Assign", "all_reduce/0/error/Assign_1"]{{.*}} loc("init")
  dfg.group {} : () -> () loc("init")
  // CHECK: dfg.group {control = ["update_w", "update_b", "all_reduce/0/error/Update", "all_reduce/0/error/Update_1"]{{.*}} loc("train")
  dfg.group {control = ["update_w", "update_b"]} : () -> () loc("train")
}

// -----

dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>]
dfg.variable @w : tensor<2x4x8xf32> {trainable}
dfg.variable @b : tensor<8xf32> {trainable}
dfg.graph attributes {train_op = "train"} {
  %gw = dfg.const dense<1.0> : tensor<2x4x8xf32> : tensor<2x4x8xf32> loc("gw")
  %gb = dfg.const dense<1.0> : tensor<8xf32> : tensor<8xf32> loc("gb")
  // Q begins with the numbers of the runtime.
  // CHECK: dfg.const dense<{{\[\[}}0.766621589, -0.136944056]
  // CHECK: %[[Q:.*]] = dfg.opaque "ReadVariableOp"{{.*}} -> tensor<8x2xf32> loc("all_reduce/0/q/Read")
  // CHECK: %[[M:.*]] = dfg.opaque "AddV2"{{.*}} -> tensor<8x8xf32> loc("all_reduce/0/corrected")
  // CHECK: dfg.opaque "MatMul"(%[[M]], %[[Q]]) {{.*}} -> tensor<8x2xf32>
  // P and what is no matrix in one collective.
  // CHECK: dfg.opaque "CollectiveReduceV2"{{.*}} -> tensor<24xf32>
  // The second column without what the first one shows, twice.
  // CHECK: dfg.opaque "Split"
  // CHECK-COUNT-2: loc("all_reduce/0/rest{{(_1)?}}")
  // CHECK-NOT: all_reduce/0/rest
  // CHECK: %[[P:.*]] = dfg.cast {{.*}} loc("all_reduce/0/p")
  // CHECK: %[[OWN:.*]] = dfg.opaque "MatMul"(%[[M]], %[[P]]) {{.*}}transpose_a = true
  // CHECK: %[[SEEN:.*]] = dfg.opaque "MatMul"(%[[P]], %[[OWN]]) {{.*}}transpose_b = true
  // CHECK: dfg.opaque "Sub"(%[[M]], %[[SEEN]])
  // CHECK: %[[SUM:.*]] = dfg.opaque "CollectiveReduceV2"{{.*}} -> tensor<16xf32>
  // CHECK: %[[NEXT:.*]] = dfg.reshape %[[SUM]]
  // CHECK: %[[R:.*]] = dfg.opaque "MatMul"(%[[P]], %[[NEXT]]) {{.*}}transpose_b = true
  // CHECK: %[[G:.*]] = dfg.reshape %[[R]]
  // CHECK: dfg.opaque "SelectV2"(%{{.*}}, %{{.*}}, %[[NEXT]]) {{.*}} loc("all_reduce/0/q/next")
  // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[G]]
  %rw, %rb = dist.all_reduce mean bucket 0 group 0 (%gw, %gb) variables ["w", "b"] {compression = #dist.compression<power_sgd rank 2>} : tensor<2x4x8xf32>, tensor<8xf32> loc("all_reduce/0")
  %w = dfg.var_handle @w : !dfg.ref<tensor<2x4x8xf32>> loc("w")
  %b = dfg.var_handle @b : !dfg.ref<tensor<8xf32>> loc("b")
  %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("lr")
  dfg.apply_gradient_descent %w, %lr, %rw : (!dfg.ref<tensor<2x4x8xf32>>, tensor<f32>, tensor<2x4x8xf32>) -> () loc("update_w")
  dfg.apply_gradient_descent %b, %lr, %rb : (!dfg.ref<tensor<8xf32>>, tensor<f32>, tensor<8xf32>) -> () loc("update_b")
  dfg.group {control = ["update_w", "update_b"]} : () -> () loc("train")
}
