// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --verify-diagnostics

// Of row numbers that each replica's examples choose no mean is anything.
module attributes {dist.coupling = "replica", dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {loss = "loss:0"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %loss = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    // expected-note@unknown {{the value is made here by 'dfg.unique'}}
    %rows, %which = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
    %old = dfg.resource_gather %table, %rows : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("old")
    %new = dfg.mul %old, %half : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("new")
    // expected-error@unknown {{which its update 'update' depends on, is of rows that the examples choose, and each replica's have others, of which no sum or mean is anything; take coupling=whole, and servers that keep replicas in step}}
    dfg.scatter_update %table, %rows, %new : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
  }
}
