// RUN: not distc-opt %s --dist-couple-replicas --dist-insert-synchronizers 2>&1 | FileCheck %s

// The squares of the examples' own gradients, added up over the batch (a diagonal of the empirical Fisher information): of two batches, each gradient is
// divided by twice as many examples, and its square by four times as many, so that neither the sum nor the mean of the batches' sums is theirs.
module @squares_of_examples attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @squares : tensor<4xf32>
  dfg.graph attributes {train_op = "train", loss = "loss"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %first = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("first")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %slot = dfg.var_handle @squares : !dfg.ref<tensor<4xf32>> loc("slot")
    %read = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
    %y = dfg.mul %x, %read : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    %loss = dfg.mean %y, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32> loc("shape")
    %batch = dfg.gather_v2 %shape, %axis, %axis : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    %square = dfg.square %grad : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("square")
    // CHECK: accumulated over 2 batches, but node {{.*}} adds up over one of them what is no linear function of its gradients; take accumulate_steps=1, or coupling=replica
    %sums = dfg.sum %square, %first : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("sums")
    dfg.assign_add %slot, %sums : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update_squares")
    %sum = dfg.sum %grad, %first : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("sum")
    dfg.assign_sub %w, %sum : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update", "update_squares"]} : () -> () loc("train")
  }
}
