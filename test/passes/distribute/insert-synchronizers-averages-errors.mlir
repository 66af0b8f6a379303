// RUN: distc-opt %s --dist-insert-synchronizers --split-input-file --verify-diagnostics

module attributes {dist.strategy = #dist.strategy<"" averages 7.500000e-01 : f32>} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  // expected-error@+1 {{the graph has one of its own of variable 'w', which would have the same name: leave variable_averages out of the strategy}}
  dfg.variable @"w/ExponentialMovingAverage" : tensor<4xf32>
  dfg.graph attributes {train_op = "update_w"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
  }
}

// -----

// A shard's average is one of the whole variable's.
module attributes {dist.strategy = #dist.strategy<"" averages 7.500000e-01 : f32>} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @"w/part_0" : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>, dist.slice = #dist.slice<"w" [8] at [0]>}
  // expected-error@+1 {{the graph has one of its own of variable 'w', which would have the same name}}
  dfg.variable @"w/ExponentialMovingAverage" : tensor<8xf32>
  dfg.graph attributes {train_op = "update_w"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @"w/part_0" : !dfg.ref<tensor<4xf32>> loc("w")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
  }
}
