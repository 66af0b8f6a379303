// RUN: distc-opt %s --dist-couple-replicas --dist-replicate --dist-insert-synchronizers --dist-join-fetches --dist-serve-updates --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A mean over the batch and a penalty: to replicas that a server serves on its own nobody gives the whole batch's, and the mean of what each of them has is that.
// CHECK: dfg.graph attributes {dist.joins = {"loss:0" = "mean"}
module @penalty attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %rate = dfg.const dense<1.000000e-01> : tensor<f32> : tensor<f32> loc("rate")
    %first = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("first")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
    %y = dfg.mul %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    %mean = dfg.mean %y, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("mean")
    // CHECK: %[[PENALTY:.*]] = dfg.l2_loss %{{.*}} loc("penalty")
    %penalty = dfg.l2_loss %w : (tensor<4xf32>) -> tensor<f32> loc("penalty")
    // CHECK: dfg.add_v2 %{{.*}}, %[[PENALTY]] : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    %loss = dfg.add_v2 %mean, %penalty : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    %g = dfg.mean %x, %first : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gradient")
    // CHECK-COUNT-1: dist.push
    // CHECK-NOT: dist.push
    dfg.apply_gradient_descent %h, %rate, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}
