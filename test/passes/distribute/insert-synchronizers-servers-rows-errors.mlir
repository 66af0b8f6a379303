// RUN: distc-opt %s --dist-insert-synchronizers --verify-diagnostics

// A norm over rows as each replica made them is of all replicas.
module attributes {dist.strategy = #dist.strategy<"" required 1>} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.graph attributes {train_op = "update"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    // expected-error @unknown {{the rows of the sparse gradient of variable 'table' are used as each replica made them}}
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    %norm = dfg.l2_loss %grad : (tensor<?x4xf32>) -> tensor<f32> loc("norm")
    %clipped = dfg.real_div %grad, %norm : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("clipped")
    dfg.scatter_sub %table, %ids, %clipped : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
  }
}
