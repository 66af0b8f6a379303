// RUN: distc-opt %s --split-input-file --dist-check-shares=batch=8 --verify-diagnostics

dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
dfg.variable @w : tensor<f32> {trainable}
dfg.graph attributes {train_op = "train"} {
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?xf32> loc("x")
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("rate")
  %eight = dfg.const dense<1.0> : tensor<8xf32> : tensor<8xf32> loc("eight")
  %axes = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axes")
  // expected-error @+1 {{where a replica is fed 4 of the batch's 8 examples: the graph has the batch's size as a number; take sizes from what is fed (tf.shape), or compile an executable}}
  %y = dfg.sub %x, %eight : (tensor<?xf32>, tensor<8xf32>) -> tensor<8xf32>
  %sum = dfg.sum %y, %axes : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
  dfg.apply_gradient_descent %w, %rate, %sum : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("train")
}

// -----

// A feed of its own size says nothing of the step's shapes.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
dfg.variable @w : tensor<f32> {trainable}
dfg.graph attributes {train_op = "train"} {
  %x = dfg.placeholder {dist.feed = "whole"} : () -> tensor<?xf32> loc("x")
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("rate")
  %eight = dfg.const dense<1.0> : tensor<8xf32> : tensor<8xf32> loc("eight")
  %axes = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axes")
  %y = dfg.sub %x, %eight : (tensor<?xf32>, tensor<8xf32>) -> tensor<8xf32> loc("y")
  %sum = dfg.sum %y, %axes : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
  dfg.apply_gradient_descent %w, %rate, %sum : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("train")
}
