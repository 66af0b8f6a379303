// RUN: distc-opt %s --dist-insert-synchronizers --verify-diagnostics

// Replicas' rows are joined, so that a rule by which gradients are outvoted would be of nothing; also where the table is changed by way of a slot.
module @rows attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 3 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1", "localhost:CPU:2"] replicas 3 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce aggregator <median>>}
  dfg.variable @slot : tensor<9x4xf32>
  dfg.graph attributes {train_op = "update", loss = "loss"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %loss = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // expected-error @below {{the gradient of variable 'table' is sparse, rows of which each replica has others, and its aggregator, #dist.aggregator<median>, has no rule for these}}
    dfg.scatter_add %slot, %ids, %grad : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
    %kept = dfg.read_variable %slot : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("kept")
    dfg.assign_sub %table, %kept : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update")
  }
}
