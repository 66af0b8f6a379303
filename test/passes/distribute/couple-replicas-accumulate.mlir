// RUN: distc-opt %s --split-input-file --dist-couple-replicas --dist-insert-synchronizers --mlir-print-debuginfo --mlir-print-local-scope 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// What all replicas have of the whole batch is that of one of the batches that an update is made of.
// CHECK-LABEL: @whole_in_all_replicas
module @whole_in_all_replicas attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {loss = "loss:0", train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    // CHECK: %[[MAX:.*]] = dfg.max {{.*}} loc("max")
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("max")
    // CHECK-NEXT: %[[A:.*]] = dist.accumulate {{ *}}mean of 2 (%[[MAX]])
    // CHECK-NEXT: %[[R:.*]] = dist.all_reduce {{ *}}mean bucket {{.*}} (%[[A]])
    %loss = dfg.sum %max, %zero : (tensor<4xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
    // CHECK: dfg.assign_sub %{{.*}}, %[[R]]
    dfg.assign_sub %w, %max : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// Rows of a loss over the sum of its weights, scaled by their norm: that sum is the whole batch's, and the rest then is as in a mean. The
// norm is that of all batches' rows, and nothing else is reduced.
// CHECK-LABEL: @norm_of_rows
module @norm_of_rows attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {loss = "loss:0", train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %weights = dfg.placeholder : () -> tensor<?xf32> loc("weights")
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    // CHECK: dfg.sum {{.*}} loc("total")
    // CHECK: dist.all_reduce {{.*}} loc("coupling/total/all_reduce")
    // CHECK-NOT: dist.all_reduce
    %total = dfg.sum %weights, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("total")
    %squares = dfg.l2_loss %x : (tensor<?x4xf32>) -> tensor<f32> loc("squares")
    %loss = dfg.real_div %squares, %total : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    // CHECK: %[[ROWS:.*]] = dfg.real_div {{.*}} loc("rows")
    %rows = dfg.real_div %x, %total : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("rows")
    // CHECK: %[[ALL:.*]] = dist.accumulate {{ *}}mean of 2 (%[[ROWS]])
    // CHECK: %[[IDS:.*]], %[[VALUES:.*]] = dist.all_gather_slices {{ *}}sum {{.*}}%[[ALL]])
    // CHECK: dfg.l2_loss %[[VALUES]] {{.*}} loc("norm")
    %norm = dfg.l2_loss %rows : (tensor<?x4xf32>) -> tensor<f32> loc("norm")
    %scale = dfg.minimum %norm, %one : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("scale")
    %scaled = dfg.mul %rows, %scale : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("scaled")
    // CHECK: dfg.scatter_sub %{{.*}}, %[[IDS]], 
    dfg.scatter_sub %table, %ids, %scaled : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("train")
  }
}

// -----

// Of a loss that is neither a sum nor a mean over the batch, the mean of the batches' gradients.
// REMARK: remark: {{.*}}the gradient of variable 'w' is accumulated over 2 batches, whose losses are not seen to be sums or means over the batch: it is the mean of theirs
// CHECK-LABEL: @neither_sum_nor_mean
module @neither_sum_nor_mean attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {loss = "loss:0", train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %weights = dfg.placeholder : () -> tensor<?xf32> loc("weights")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %total = dfg.sum %weights, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("total")
    %floor = dfg.maximum %total, %one : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("floor")
    %sums = dfg.sum %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("sums")
    // CHECK: %[[G:.*]] = dfg.real_div {{.*}} loc("g")
    // CHECK-NEXT: dist.accumulate {{ *}}mean of 2 (%[[G]])
    %g = dfg.real_div %sums, %floor : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("g")
    %loss = dfg.sum %g, %zero : (tensor<4xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}
