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
