// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --verify-diagnostics

// The forward pass reads what a step has written: at each batch, or once for all of them? Neither is one device's step.
module attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "train"} {
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
    %less = dfg.mul %old, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("less")
    dfg.assign %w, %less : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("decay")
    %new = dfg.read_variable %w {control = ["decay"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("new")
    %y = dfg.mul %x, %new : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    // expected-error @below {{the gradient of variable 'w' is accumulated over 2 batches, but node}}
    %g = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

module attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  // expected-error @below {{no update of the training step depends on the batch}}
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
    dfg.assign_sub %w, %old : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// Random bits of a count that an update sees as well: both batches would drop the same elements. Those of a key are each
// batch's own (the first variable), and what only multiplies does not matter.
module attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @key : tensor<4xi32>
  dfg.variable @schedule : tensor<4xf32>
  dfg.variable @count : tensor<4xi32>
  dfg.graph attributes {train_op = "train"} {
    %one = dfg.const dense<1> : tensor<4xi32> : tensor<4xi32> loc("one")
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %key = dfg.var_handle @key : !dfg.ref<tensor<4xi32>> loc("key")
    %schedule = dfg.var_handle @schedule : !dfg.ref<tensor<4xf32>> loc("schedule")
    %count = dfg.var_handle @count : !dfg.ref<tensor<4xi32>> loc("count")
    %k = dfg.read_variable %key : (!dfg.ref<tensor<4xi32>>) -> tensor<4xi32> loc("k")
    %split = dfg.bitwise_xor %k, %one : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> loc("split")
    %first = dfg.cast %split : (tensor<4xi32>) -> tensor<4xf32> loc("first")
    %c = dfg.read_variable %count : (!dfg.ref<tensor<4xi32>>) -> tensor<4xi32> loc("c")
    %rate = dfg.cast %c : (tensor<4xi32>) -> tensor<4xf32> loc("rate")
    %dropped = dfg.mul %x, %first : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("dropped")
    %annealed = dfg.mul %dropped, %rate : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("annealed")
    %h = dfg.mean %annealed, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("h")
    dfg.assign_sub %v, %h : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train_v")
    %bits = dfg.bitwise_xor %c, %one : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> loc("bits")
    %mask = dfg.cast %bits : (tensor<4xi32>) -> tensor<4xf32> loc("mask")
    %y = dfg.mul %x, %mask : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    // expected-error @below {{gradients are accumulated over several batches, which would all draw the same random numbers: variable 'count', which they are made of, changes once for all of them}}
    %g = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train_w")
    dfg.assign %schedule, %rate : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("scheduled")
    dfg.assign %key, %split : (!dfg.ref<tensor<4xi32>>, tensor<4xi32>) -> () loc("next")
    dfg.assign_add %count, %one : (!dfg.ref<tensor<4xi32>>, tensor<4xi32>) -> () loc("counted")
    dfg.group {control = ["train_v", "train_w", "scheduled", "next", "counted"]} : () -> () loc("train")
  }
}

// -----

// Rows that are scaled by a norm of one batch's whole gradient: of several batches it is that of all of theirs.
module attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %squares = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("squares")
    %loss = dfg.mean %squares, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("loss")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %all = dist.all_reduce mean bucket 0 group -1 (%g) variables ["g"] {coupling} : tensor<4xf32> loc("all")
    %norm = dfg.l2_loss %all : (tensor<4xf32>) -> tensor<f32> loc("norm")
    %rows = dfg.mul %x, %norm : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("rows")
    // expected-error @below {{the gradient of variable 'w' is accumulated over 2 batches, but node}}
    %clipped = dfg.mean %rows, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    dfg.assign_sub %w, %clipped : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}
