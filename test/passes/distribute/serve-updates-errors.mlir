// RUN: distc-opt %s --split-input-file --dist-serve-updates --verify-diagnostics

module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" async>}
  dfg.graph attributes {train_op = "train"} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %g = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[4]>} : () -> tensor<4xf32>
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32>
    // expected-error @+1 {{needs all replicas in one step, but with servers that serve on their own (sync: false, replicas_to_aggregate, staleness) each goes on by itself; take a synchronous strategy}}
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {coupling} : tensor<4xf32>
    dfg.apply_gradient_descent %h, %rate, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" async>}
  dfg.graph attributes {train_op = "train"} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %g = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32>
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32>
    // expected-error @+1 {{is part of an update, but it needs the value of node 'g', which each replica has its own of and which is no gradient}}
    %m = dfg.mul %r, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    dfg.apply_gradient_descent %h, %rate, %m : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}
