// RUN: distc-opt %s --dfg-infer-shapes --dfg-fold --convert-dfg-to-drt --split-input-file | FileCheck %s

// What TensorFlow's optimizers do with a sparse gradient: equal indices become one, their rows are summed. The number of distinct ones is
// their bound, 4, and the update's rule runs once a row.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[IDS:.*]] = drt.feed {{.*}}name = "ids"
// CHECK: %[[G:.*]] = drt.feed {{.*}}name = "g"
// CHECK: %[[Y:.*]], %[[IDX:.*]], %{{.*}} = drt.unique %[[IDS]] : (tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>)
// CHECK: %[[SUM:.*]] = drt.scatter %[[IDX]], %[[G]] {depth = 1 : i64, kind = 1 : i32} : (tensor<4xi32>, tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK: drt.sparse_update %[[Y]], %[[SUM]] {depth = 1 : i64, kernel = @update_step_0, variables = [@w, @w_slot]}
// CHECK: drt.kernel range @update_step_0(%{{.*}}: i64{{.*}}, %{{.*}}: i64{{.*}}, %{{.*}}: memref<20xf32>{{.*}}, %{{.*}}: memref<20xf32>{{.*}}, %{{.*}}: memref<20xf32>{{.*}})
// CHECK: math.sqrt
dfg.variable @w : tensor<10x2xf32> {trainable}
dfg.variable @w_slot : tensor<10x2xf32>
dfg.func @step() attributes {dfg.fetches = [], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %slot = dfg.var_handle @w_slot : !dfg.ref<tensor<10x2xf32>> loc("w_slot")
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %g = dfg.placeholder : () -> tensor<4x2xf32> loc("g")
  %rate = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("rate")
  %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
  %shape = dfg.shape %y : (tensor<?xi32>) -> tensor<1xi32> loc("shape")
  %count = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1 : i64}
    : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("count")
  %sum = dfg.unsorted_segment_sum %g, %idx, %count : (tensor<4x2xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x2xf32> loc("sum")
  dfg.sparse_apply_adagrad %w, %slot, %rate, %sum, %y
    : (!dfg.ref<tensor<10x2xf32>>, !dfg.ref<tensor<10x2xf32>>, tensor<f32>, tensor<?x2xf32>, tensor<?xi32>) -> () loc("update")
  dfg.return
}

// -----

// The rows of a variable are read where it lies; the identity of its handle is no work. An index vector names a slice.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[IDS:.*]] = drt.feed
// CHECK: %[[W:.*]] = drt.read @w : tensor<10x2xf32>
// CHECK: %[[ROWS:.*]] = linalg.generic
// CHECK: tensor.extract %[[W]]
// CHECK: drt.sparse_update %{{.*}}, %[[ROWS]] {depth = 1 : i64, kernel = @update_step_0, variables = [@w]}
dfg.variable @w : tensor<10x2xf32> {trainable}
dfg.func @step() attributes {dfg.fetches = [], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %same = dfg.identity %w : (!dfg.ref<tensor<10x2xf32>>) -> !dfg.ref<tensor<10x2xf32>> loc("same")
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %rows = dfg.resource_gather %same, %ids : (!dfg.ref<tensor<10x2xf32>>, tensor<4xi32>) -> tensor<?x2xf32> loc("rows")
  %vectors = dfg.const dense<[[1], [2], [3], [4]]> : tensor<4x1xi32> : tensor<4x1xi32> loc("vectors")
  dfg.scatter_nd_add %same, %vectors, %rows : (!dfg.ref<tensor<10x2xf32>>, tensor<4x1xi32>, tensor<?x2xf32>) -> () loc("update")
  dfg.return
}

// -----

// Each replica scales its own rows, then all are joined.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[SCALED:.*]] = linalg.generic
// CHECK: arith.constant 5.000000e-01
// CHECK: drt.all_reduce_start %{{.*}} {bucket = 0 : i32, gather = 2 : i64, mean = false, names = ["w"]} : (tensor<4xi32>) -> ()
// CHECK: drt.all_reduce_start %[[SCALED]] {bucket = 1 : i32, gather = 2 : i64, mean = false, names = ["w"]} : (tensor<4x2xf32>) -> ()
// CHECK: drt.all_reduce_wait 0
// CHECK: %[[I:.*]] = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<8xi32>
// CHECK: drt.all_reduce_wait 1
// CHECK: %[[V:.*]] = drt.all_reduce_result {bucket = 1 : i32} : () -> tensor<8x2xf32>
// CHECK: drt.sparse_update %[[I]], %[[V]]
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
dfg.variable @w : tensor<10x2xf32> {trainable}
dfg.func @step() attributes {dfg.fetches = [], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %g = dfg.placeholder : () -> tensor<4x2xf32> loc("g")
  %i, %v = dist.all_gather_slices mean bucket 0 group 0 (%ids, %g) variable "w" : (tensor<4xi32>, tensor<4x2xf32>) -> (tensor<?xi32>, tensor<?x2xf32>)
  dfg.scatter_sub %w, %i, %v : (!dfg.ref<tensor<10x2xf32>>, tensor<?xi32>, tensor<?x2xf32>) -> () loc("update")
  dfg.return
}
