// RUN: distc-opt %s --split-input-file --dist-couple-replicas --dist-insert-synchronizers --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A task that updates without waiting is given gradients, and computes what an update makes of them and of a slot.
// CHECK-LABEL: @of_a_slot
module @of_a_slot attributes {dist.strategy = #dist.strategy<"">, dist.coupling = "replica"} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server at "ps:1" async>}
  dfg.variable @slot : tensor<4xf32> {dist.place = #dist.place<"worker" 1>}
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<4xf32>> loc("slot")
    %squares = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("squares")
    %loss = dfg.mean %squares, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("loss")
    // CHECK: %[[G:.*]] = dfg.mean {{.*}} loc("g")
    // CHECK: %[[ALL:.*]] = dist.all_reduce mean {{.*}} (%[[G]])
    // CHECK-NOT: dist.all_reduce
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    // CHECK: dfg.square %[[ALL]]
    %square = dfg.square %g : (tensor<4xf32>) -> tensor<4xf32> loc("square")
    dfg.assign_add %slot, %square : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("keep")
    %kept = dfg.read_variable %slot {control = ["keep"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("kept")
    // CHECK: %[[ROOT:.*]] = dfg.rsqrt
    %root = dfg.rsqrt %kept : (tensor<4xf32>) -> tensor<4xf32> loc("root")
    // CHECK: dfg.mul %[[ALL]], %[[ROOT]]
    %change = dfg.mul %g, %root : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("change")
    dfg.assign_sub %w, %change : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update", "keep"]} : () -> () loc("train")
  }
}

// -----

// One replica's own values are the whole batch's, also where a server is given its gradients: nothing is refused, and
// nothing coupled.
// CHECK-LABEL: @alone
// CHECK-SAME: dist.coupling = "replica"
module @alone attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 1 [#dist.task<"chief" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 0>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %root = dfg.sqrt %mean : (tensor<4xf32>) -> tensor<4xf32> loc("root")
    %rows = dfg.mul %x, %root : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("rows")
    %loss = dfg.mean %rows, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("loss")
    %twice = dfg.add %rows, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("twice")
    // CHECK: %[[G:.*]] = dfg.sum {{.*}} loc("g")
    // CHECK: dist.push {{.*}} (%[[G]])
    %g = dfg.sum %twice, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}
