// RUN: distc-opt %s --split-input-file --dist-apply-strategy="strategy=AllReduce replicas=2" --dist-replicate --dist-insert-synchronizers --dist-join-fetches | FileCheck %s

// Each fetch is what one device gives on the whole batch.
// CHECK-LABEL: module @verdicts
// CHECK: dfg.graph attributes {dist.joins = {"half:0" = "concat:0", "loss:0" = "sum", "mean:0" = "mean", "n:0" = "sum", "turned:0" = "concat:1", "w:0" = "first"}
module @verdicts {
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.graph attributes {loss = "loss", fetches = ["mean", "turned", "n", "w", "half"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %loss = dfg.sum %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    %mean = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("mean")
    %swap = dfg.const dense<[1, 0]> : tensor<2xi32> : tensor<2xi32> loc("swap")
    %turned = dfg.transpose %x, %swap : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<4x?xf32> loc("turned")
    %n = dfg.size %x : (tensor<?x4xf32>) -> tensor<i32> loc("n")
    %h = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("w")
    // Both halves of a concatenation, cut where they were joined.
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %twice = dfg.concat_v2 %x, %x, %axis : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<i32>) -> tensor<?x4xf32> loc("twice")
    %halves:2 = dfg.split %axis, %twice : (tensor<i32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) loc("halves")
    %half = dfg.identity %halves#1 : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("half")
  }
}

// -----

// A function of sums over the batch: they are reduced, and it is computed from the whole batch's. It is no sum or mean of
// what each example gives, and neither is what is computed from it.
// CHECK-LABEL: module @function
// CHECK: dist.joins = {"off:0" = "batch", "rate:0" = "first", "root:0" = "batch"}
module @function {
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.graph attributes {fetches = ["root", "off", "rate"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    // CHECK: %[[MEAN:.*]] = dfg.mean
    // CHECK: %[[WHOLE:.*]] = dist.all_reduce mean bucket 0 group -1 (%[[MEAN]])
    %mean = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("mean")
    // CHECK: dfg.sqrt %[[WHOLE]]
    %root = dfg.sqrt %mean : (tensor<f32>) -> tensor<f32> loc("root")
    // What is fed whole is the same in every batch.
    %given = dfg.placeholder : () -> tensor<f32> loc("given")
    %rate = dfg.sqrt %given : (tensor<f32>) -> tensor<f32> loc("rate")
    %distance = dfg.sub %x, %root : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("distance")
    %off = dfg.mean %distance, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("off")
  }
}

// -----

// A loss that a variable keeps is reduced for it, and its name goes to what that gives, behind the reduction. Who waited for
// the replica's own loss goes on to wait for that: here another member of the reduction, which else waited for itself.
// CHECK-LABEL: module @waited_for
// CHECK: dist.joins = {"loss:0" = "mean"}
module @waited_for {
  dfg.variable @best : tensor<f32>
  dfg.variable @norm : tensor<f32>
  dfg.graph attributes {loss = "loss", train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %loss = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    // CHECK: dfg.const dense<2.000000e+00> : tensor<f32> {control = ["loss/share"]}
    %two = dfg.const dense<2.0> : tensor<f32> {control = ["loss"]} : tensor<f32> loc("two")
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("square")
    %norm = dfg.mean %square, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("norm")
    %double = dfg.mul %norm, %two : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("double")
    %b = dfg.var_handle @best : !dfg.ref<tensor<f32>> loc("best")
    %n = dfg.var_handle @norm : !dfg.ref<tensor<f32>> loc("norm/handle")
    // CHECK: dist.all_reduce mean
    // CHECK: dfg.identity
    dfg.assign %b, %loss : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("keep")
    dfg.assign %n, %double : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("keep_norm")
    dfg.group {control = ["keep", "keep_norm"]} : () -> () loc("train")
  }
}
