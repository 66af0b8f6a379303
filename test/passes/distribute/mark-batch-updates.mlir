// RUN: distc-opt %s --split-input-file --dist-mark-batch-updates --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// What sees forward values alone happens at each batch: statistics of a layer, and how many examples there were. What is
// made of a gradient does not, nor what counts updates.
// CHECK-LABEL: @forward
module @forward attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @moving : tensor<4xf32>
  dfg.variable @norm : tensor<4xf32>
  dfg.variable @examples : tensor<i32>
  dfg.variable @step : tensor<i32>
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %moving = dfg.var_handle @moving : !dfg.ref<tensor<4xf32>> loc("moving")
    %norm = dfg.var_handle @norm : !dfg.ref<tensor<4xf32>> loc("norm")
    %examples = dfg.var_handle @examples : !dfg.ref<tensor<i32>> loc("examples")
    %step = dfg.var_handle @step : !dfg.ref<tensor<i32>> loc("step")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
    %h = dfg.mul %x, %old : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("h")
    %mean = dfg.mean %h, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %loss = dfg.mean %mean, %zero : (tensor<4xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
    %size = dfg.size %h : (tensor<?x4xf32>) -> tensor<i32> loc("size")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %square = dfg.square %g : (tensor<4xf32>) -> tensor<4xf32> loc("square")
    // CHECK: dfg.assign_sub {{.*}}dist.each_batch{{.*}} loc("average")
    dfg.assign_sub %moving, %mean : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("average")
    // CHECK: dfg.assign_add {{.*}}dist.each_batch{{.*}} loc("seen")
    dfg.assign_add %examples, %size : (!dfg.ref<tensor<i32>>, tensor<i32>) -> () loc("seen")
    // CHECK-NOT: dist.each_batch
    dfg.assign_sub %norm, %square : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("of_gradient")
    dfg.assign_add %step, %one : (!dfg.ref<tensor<i32>>, tensor<i32>) -> () loc("count")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["average", "seen", "of_gradient", "count", "update"]} : () -> () loc("train")
  }
}

// -----

// What waits for an update that happens once for all batches does so too, and what waits for that.
// CHECK-LABEL: @behind
module @behind attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @first : tensor<4xf32>
  dfg.variable @second : tensor<4xf32>
  dfg.variable @third : tensor<4xf32>
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %first = dfg.var_handle @first : !dfg.ref<tensor<4xf32>> loc("first")
    %second = dfg.var_handle @second : !dfg.ref<tensor<4xf32>> loc("second")
    %third = dfg.var_handle @third : !dfg.ref<tensor<4xf32>> loc("third")
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %loss = dfg.mean %mean, %zero : (tensor<4xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    // CHECK: loc("update")
    // CHECK-NOT: dist.each_batch
    dfg.assign_sub %first, %mean {control = ["update"]} : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("waits")
    %new = dfg.read_variable %first {control = ["waits"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("new")
    %sum = dfg.add %new, %mean : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("sum")
    dfg.assign_sub %second, %sum : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("sees")
    // CHECK: dfg.assign_sub {{.*}}dist.each_batch{{.*}} loc("free")
    dfg.assign_sub %third, %mean : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("free")
    dfg.group {control = ["sees", "free"]} : () -> () loc("train")
  }
}

// -----

// A slot's update has a gradient, which the variable is given by way of the slot.
// CHECK-LABEL: @slot
// CHECK-NOT: dist.each_batch
module @slot attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @velocity : tensor<4xf32>
  dfg.graph attributes {train_op = "update", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %velocity = dfg.var_handle @velocity : !dfg.ref<tensor<4xf32>> loc("velocity")
    %loss = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("loss")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    dfg.assign_add %velocity, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("keep")
    %kept = dfg.read_variable %velocity {control = ["keep"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("kept")
    dfg.assign_sub %w, %kept : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
  }
}

// -----

// Nothing is accumulated.
// CHECK-LABEL: @each
// CHECK-NOT: dist.each_batch
module @each attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @moving : tensor<4xf32>
  dfg.graph attributes {train_op = "average", loss = "mean:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %moving = dfg.var_handle @moving : !dfg.ref<tensor<4xf32>> loc("moving")
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    dfg.assign_sub %moving, %mean : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("average")
  }
}

// -----

// The mean of all batches until now: of the count nothing else is made, so it counts batches too, and the one that a schedule reads counts updates.
// CHECK-LABEL: @counted
module @counted attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @moving : tensor<4xf32>
  dfg.variable @seen : tensor<f32>
  dfg.variable @step : tensor<f32>
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %one = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("one")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %moving = dfg.var_handle @moving : !dfg.ref<tensor<4xf32>> loc("moving")
    %seen = dfg.var_handle @seen : !dfg.ref<tensor<f32>> loc("seen")
    %step = dfg.var_handle @step : !dfg.ref<tensor<f32>> loc("step")
    %wv = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("wv")
    %y = dfg.mul %x, %wv : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    %loss = dfg.mean %y, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    // CHECK: dfg.assign_add {{.*}} {dist.each_batch} {{.*}} loc("count")
    dfg.assign_add %seen, %one : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("count")
    %n = dfg.read_variable %seen {control = ["count"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("n")
    %old = dfg.read_variable %moving : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
    %mean = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %away = dfg.sub %mean, %old : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("away")
    %share = dfg.real_div %away, %n : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("share")
    // CHECK: dfg.assign_add {{.*}} {dist.each_batch} {{.*}} loc("average")
    dfg.assign_add %moving, %share : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("average")
    // CHECK: dfg.assign_add {{.*}}tensor<f32>) -> () loc("schedule")
    dfg.assign_add %step, %one : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("schedule")
    %s = dfg.read_variable %step {control = ["schedule"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("s")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %scaled = dfg.real_div %g, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("scaled")
    dfg.assign_sub %w, %scaled : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update", "average", "count", "schedule"]} : () -> () loc("train")
  }
}
