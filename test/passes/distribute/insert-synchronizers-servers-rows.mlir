// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A norm over the rows as backward made them: a server's accumulator would add those of one index before.
// CHECK-LABEL: @norm
module @norm attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @slot : tensor<9x4xf32> {dist.place = #dist.place<"ps" 0>}
  dfg.graph attributes {train_op = "update"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    // CHECK: %[[GRAD:.*]] = dfg.real_div
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // CHECK: dist.push mean "synchronization/table" to <"ps" 0> of 2 (%{{.*}}, %[[GRAD]]) variable "table" apart
    // CHECK: dist.take mean "synchronization/table" from <"ps" 0> of 2 variable "table" apart
    %norm = dfg.l2_loss %grad : (tensor<?x4xf32>) -> tensor<f32> loc("norm")
    %clipped = dfg.real_div %grad, %norm : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("clipped")
    %rows, %which = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
    %sums = dfg.unsorted_segment_sum %clipped, %which, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sums")
    dfg.sparse_apply_adagrad %table, %slot, %lr, %sums, %rows : (!dfg.ref<tensor<9x4xf32>>, !dfg.ref<tensor<9x4xf32>>, tensor<f32>, tensor<?x4xf32>, tensor<?xi32>) -> () loc("update")
  }
}

// -----

// What follows the optimizer's own deduplication is the same, also a norm.
// CHECK-LABEL: @deduplicated
module @deduplicated attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @slot : tensor<9x4xf32> {dist.place = #dist.place<"ps" 0>}
  dfg.graph attributes {train_op = "update"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // CHECK: dist.push mean "synchronization/table"
    // CHECK-NOT: apart
    // CHECK: dist.take mean "synchronization/table"
    // CHECK-NOT: apart
    %rows, %which = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
    %sums = dfg.unsorted_segment_sum %grad, %which, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sums")
    %norm = dfg.l2_loss %sums : (tensor<?x4xf32>) -> tensor<f32> loc("norm")
    // CHECK: dfg.real_div {{.*}} loc("clipped")
    %clipped = dfg.real_div %sums, %norm : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("clipped")
    dfg.sparse_apply_adagrad %table, %slot, %lr, %clipped, %rows : (!dfg.ref<tensor<9x4xf32>>, !dfg.ref<tensor<9x4xf32>>, tensor<f32>, tensor<?x4xf32>, tensor<?xi32>) -> () loc("update")
  }
}

// -----

// Rows of one index are subtracted one after the other, or their sum at once; Adagrad's rule is of each.
// CHECK-LABEL: @updates
module @updates attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @other : tensor<9x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @slot : tensor<9x4xf32> {dist.place = #dist.place<"ps" 0>}
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %other = dfg.var_handle @other : !dfg.ref<tensor<9x4xf32>> loc("other")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %y = dfg.resource_gather %other, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("y")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    %gx = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("gx")
    // CHECK: dist.push mean "synchronization/table" {{.*}} variable "table" :
    %step = dfg.mul %gx, %lr : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("step")
    dfg.scatter_sub %table, %ids, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
    %gy = dfg.real_div %y, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("gy")
    // CHECK: dist.push mean "synchronization/other" {{.*}} variable "other" apart
    dfg.sparse_apply_adagrad %other, %slot, %lr, %gy, %ids : (!dfg.ref<tensor<9x4xf32>>, !dfg.ref<tensor<9x4xf32>>, tensor<f32>, tensor<?x4xf32>, tensor<?xi32>) -> () loc("update_other")
    dfg.group {control = ["update", "update_other"]} : () -> () loc("train")
  }
}
