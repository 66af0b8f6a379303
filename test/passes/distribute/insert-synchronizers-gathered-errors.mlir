// RUN: distc-opt %s --dist-replicate --dist-insert-synchronizers --verify-diagnostics

// What was gathered is no share of the batch, and nothing says what the parts have to do with each other.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "h" devices ["h:CPU:0", "h:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>>
    %x = dfg.placeholder : () -> tensor<?xf32>
    %all = dist.all_gather bucket 0 (%x) name "x" : (tensor<?xf32>) -> tensor<?xf32>
    // expected-error @below {{variable 'w' cannot be synchronized: its update '' depends on node '' (dist.all_gather)}}
    %again = dist.all_gather bucket 1 (%all) name "all" : (tensor<?xf32>) -> tensor<?xf32>
    %sum = dfg.sum %again, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32>
    // expected-note @below {{the update is here}}
    dfg.apply_gradient_descent %w, %lr, %sum : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> ()
  }
}
