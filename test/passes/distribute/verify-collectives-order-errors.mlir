// RUN: not distc-opt %s --dist-verify-collectives 2>&1 | FileCheck %s

// What waits for a node that stands behind it would run before it, or, as members of one collective, wait for itself.
// CHECK: error: loc("loss"): stands behind node 'two', which waits for it
// CHECK: note: loc("two"): it waits here
module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {loss = "loss"} {
    %share = dfg.placeholder : () -> tensor<f32> loc("loss/share")
    %two = dfg.const dense<2.0> : tensor<f32> {control = ["loss"]} : tensor<f32> loc("two")
    %double = dfg.mul %share, %two : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("double")
    %r:2 = dist.all_reduce mean bucket 0 group 0 (%share, %double) variables ["best", "norm"] : tensor<f32>, tensor<f32> loc("all_reduce/0")
    %loss = dfg.identity %r#0 : (tensor<f32>) -> tensor<f32> loc("loss")
  }
}
