// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --verify-diagnostics --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// With coupling=replica each replica has a loss of its own share. A quotient of sums over it (an overlap) is neither a sum nor a mean: as the losses of several
// batches would be, those of the replicas are averaged, and so are the gradients.
// CHECK-LABEL: @quotient_of_sums
module @quotient_of_sums attributes {dist.coupling = "replica", dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "update", loss = "loss"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("old")
    %y = dfg.mul %x, %old : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("y")
    %above = dfg.sum %y, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("above")
    %squares = dfg.square %x : (tensor<?xf32>) -> tensor<?xf32> loc("squares")
    %sum = dfg.sum %squares, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %below = dfg.add_v2 %sum, %one : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("below")
    %loss = dfg.real_div %above, %below : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    %rows = dfg.real_div %x, %below : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("rows")
    // CHECK: dist.all_reduce mean bucket 0 group 0 (
    // expected-remark @below {{the gradient of variable 'w' is made of those of 2 replicas' own shares, whose losses are not seen to be sums or means over the batch: it is the mean of theirs}}
    %g = dfg.sum %rows, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32>
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
  }
}

// -----

// Where a sum over the batch is a part of the loss, their average would be too little of it, unless the strategy says that it is wanted.
// CHECK-LABEL: @said_to_be_a_mean
module @said_to_be_a_mean attributes {dist.coupling = "replica", dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce reduction mean>}
  dfg.graph attributes {train_op = "update", loss = "loss"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("old")
    %y = dfg.mul %x, %old : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("y")
    %sum = dfg.sum %y, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %root = dfg.sqrt %sum : (tensor<f32>) -> tensor<f32> loc("root")
    %loss = dfg.add_v2 %sum, %root : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    %rows = dfg.real_div %x, %root : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("rows")
    // CHECK: %[[G:.*]] = dfg.sum {{.*}} loc("g")
    // CHECK: dist.all_reduce mean bucket 0 group 0 (%[[G]])
    %g = dfg.sum %rows, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("g")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
  }
}

// -----

module @sum_and_more attributes {dist.coupling = "replica", dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "update", loss = "loss"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("old")
    %y = dfg.mul %x, %old : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("y")
    %sum = dfg.sum %y, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %root = dfg.sqrt %sum : (tensor<f32>) -> tensor<f32> loc("root")
    %loss = dfg.add_v2 %sum, %root : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    %rows = dfg.real_div %x, %root : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("rows")
    // expected-note @below {{the value is made here by 'dfg.sum'}}
    %g = dfg.sum %rows, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32>
    // expected-error @below {{the loss is a sum over the batch and something else, so that those of several are neither parts of a sum nor of a mean; take a mean over the batch, or name an aggregator, mean or sum, in the strategy}}
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<f32>>, tensor<f32>) -> ()
  }
}

// -----

// Rows of a table, too: each replica's are divided by what its own loss is, and not by what all replicas have of that.
// CHECK-LABEL: @rows_of_quotient
module @rows_of_quotient attributes {dist.coupling = "replica", dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "update", loss = "loss"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9xf32>> loc("table")
    %taken = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9xf32>>, tensor<?xi32>) -> tensor<?xf32> loc("taken")
    %y = dfg.mul %x, %taken : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("y")
    %above = dfg.sum %y, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("above")
    %sum = dfg.sum %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %below = dfg.add_v2 %sum, %one : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("below")
    %loss = dfg.real_div %above, %below : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    // CHECK: dist.all_gather_slices mean bucket 0 group 0 (
    // expected-remark @below {{it is the mean of theirs}}
    %g = dfg.real_div %x, %below : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
    dfg.scatter_sub %table, %ids, %g : (!dfg.ref<tensor<9xf32>>, tensor<?xi32>, tensor<?xf32>) -> () loc("update")
  }
}
