// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A gradient is accumulated before anything that runs behind an update, which does so at an update's last batch alone.
// CHECK-LABEL: @behind_an_update
module @behind_an_update attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @rate : tensor<f32>
  dfg.graph attributes {train_op = "train"} {
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    // CHECK: %[[G:.*]] = dfg.mean
    // CHECK-NEXT: %[[A:.*]] = dist.accumulate mean of 2 (%[[G]])
    // CHECK-NEXT: dist.all_reduce mean bucket 0 group 0 (%[[A]])
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %rate = dfg.var_handle @rate : !dfg.ref<tensor<f32>> loc("rate")
    dfg.assign_sub %rate, %half : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("slower")
    %now = dfg.read_variable %rate {control = ["slower"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("now")
    %scaled = dfg.mul %now, %g : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32> loc("scaled")
    dfg.assign_sub %w, %scaled : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update", "slower"]} : () -> () loc("train")
  }
}

// -----

// What only waits for an update, and sees nothing of it, runs at each batch; what follows it waits for the update itself.
// CHECK-LABEL: @waits_for_an_update
module @waits_for_an_update attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @mean : tensor<4xf32>
  dfg.graph attributes {train_op = "train"} {
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %mean = dfg.var_handle @mean : !dfg.ref<tensor<4xf32>> loc("mean")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
    %less = dfg.mul %old, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("less")
    dfg.assign %w, %less : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("decay")
    // CHECK: %[[G:.*]] = dfg.mean %{{[^{]*}} : {{.*}} loc("g")
    %g = dfg.mean %x, %zero {control = ["decay"]} : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    // CHECK: dist.accumulate mean of 2 (%[[G]])
    // CHECK: dfg.group {control = ["g", "decay"]}{{.*}} loc("behind")
    dfg.group {control = ["g"]} : () -> () loc("behind")
    dfg.assign_sub %w, %g {control = ["behind"]} : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}

// -----

// So it is where it waits for a node that sees an accumulated gradient.
// CHECK-LABEL: @waits_for_a_reduced_gradient
module @waits_for_a_reduced_gradient attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %square = dfg.square %g : (tensor<4xf32>) -> tensor<4xf32> loc("square")
    // CHECK: dfg.mean %{{[^{]*}} : {{.*}} loc("other")
    %other = dfg.mean %x, %zero {control = ["square"]} : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("other")
    dfg.assign_sub %w, %square : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update_w")
    // CHECK: dfg.assign_sub {{.*}}control = ["square"]{{.*}} loc("update_v")
    dfg.assign_sub %v, %other : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update_v")
    dfg.group {control = ["update_w", "update_v"]} : () -> () loc("train")
  }
}

// -----

// A read that waits for such a node, of a variable that nothing has written yet, gives the same before it: a rate that is
// read behind the gradients and multiplied into one of them behind another variable's update.
// CHECK-LABEL: @reads_what_nothing_wrote
module @reads_what_nothing_wrote attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.variable @rate : tensor<f32>
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
    %handle = dfg.var_handle @rate : !dfg.ref<tensor<f32>> loc("rate")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %square = dfg.square %g : (tensor<4xf32>) -> tensor<4xf32> loc("square")
    // CHECK: dfg.read_variable %{{[^{]*}} : {{.*}} loc("read")
    %rate = dfg.read_variable %handle {control = ["square"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("read")
    %other = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("other")
    dfg.assign_sub %w, %square : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update_w")
    // CHECK: %[[STEP:.*]] = dfg.mul %{{[^{]*}} : {{.*}} loc("step")
    %step = dfg.mul %rate, %other {control = ["update_w"]} : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32> loc("step")
    // CHECK: dist.accumulate mean of 2 (%[[STEP]])
    // CHECK: dfg.assign_sub {{.*}}control = ["{{square", "update_w|update_w", "square}}"]{{.*}} loc("update_v")
    dfg.assign_sub %v, %step : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update_v")
    dfg.group {control = ["update_v"]} : () -> () loc("train")
  }
}

// -----

// A mean by the whole batch's sizes: the replicas' parts of it add up, and yet those of several batches are parts of a mean.
// CHECK-LABEL: @mean_by_whole_sizes
module @mean_by_whole_sizes attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %weights = dfg.placeholder : () -> tensor<?xf32> loc("weights")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %own = dfg.sum %weights, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("own")
    %all = dist.all_reduce sum bucket 0 group -1 (%own) variables ["own"] {coupling} : tensor<f32> loc("all")
    %weighted = dfg.mul %x, %weights : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("weighted")
    %part = dfg.real_div %weighted, %all : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("part")
    // CHECK: %[[G:.*]] = dfg.sum %{{[^{]*}} : {{.*}} loc("g")
    // CHECK: %[[A:.*]] = dist.accumulate mean of 2 (%[[G]])
    // CHECK: dist.all_reduce sum bucket {{[0-9]+}} group 0 (%[[A]])
    %g = dfg.sum %part, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("g")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}

// -----

// The same of all rows, which each replica has gathered, cut to its own.
// CHECK-LABEL: @mean_of_gathered
module @mean_of_gathered attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %rows = dist.all_gather bucket 0 (%x) name "x" : (tensor<?xf32>) -> tensor<?xf32> loc("rows")
    %running = dfg.cumsum %rows, %axis : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32> loc("running")
    %size = dfg.size %running : (tensor<?xf32>) -> tensor<i32> loc("size")
    %count = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("count")
    %own = dist.take_rows %running : (tensor<?xf32>) -> tensor<?xf32> loc("own")
    %part = dfg.real_div %own, %count : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("part")
    // CHECK: %[[G:.*]] = dfg.sum %{{[^{]*}} : {{.*}} loc("g")
    // CHECK: %[[A:.*]] = dist.accumulate mean of 2 (%[[G]])
    // CHECK: dist.all_reduce sum bucket {{[0-9]+}} group 0 (%[[A]])
    %g = dfg.sum %part, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("g")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}

// -----

// The gradients of a weight that is used twice, and of its penalty: the batches' average is that of the gradients, beside the penalty's.
// CHECK-LABEL: @tied_with_penalty
module @tied_with_penalty attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "update", loss = "loss"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %rate = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("rate")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
    %y = dfg.mul %x, %old : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    %loss = dfg.mean %y, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    // CHECK: %[[FIRST:.*]] = dfg.mean {{.*}} loc("first")
    // CHECK: %[[SECOND:.*]] = dfg.mean {{.*}} loc("second")
    // CHECK: %[[A:.*]]:2 = dist.accumulate mean of 2 (%[[FIRST]], %[[SECOND]])
    // CHECK: %[[R:.*]]:2 = dist.all_reduce mean bucket 0 group 0 (%[[A]]#0, %[[A]]#1)
    %first = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("first")
    %second = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("second")
    %penalty = dfg.mul %old, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("penalty")
    // CHECK: dfg.add_n %[[R]]#0, %[[R]]#1, %{{.*}} loc("gradient")
    %gradient = dfg.add_n %first, %second, %penalty : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("gradient")
    dfg.apply_gradient_descent %w, %rate, %gradient : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  }
}

// -----

// The results of a tf.function wait for all that it updates. The loss is each batch's nevertheless: at the first of two no update runs. It goes on waiting for
// what happens at each batch, and the train op, which is the loss itself here, waits for all.
// CHECK-LABEL: @result_of_a_function
// CHECK: dfg.graph
// CHECK-SAME: train_op = "loss/run"
module @result_of_a_function attributes {dist.strategy = #dist.strategy<"" accumulate 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @average : tensor<f32>
  dfg.graph attributes {train_op = "loss", loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %rate = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("rate")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %average = dfg.var_handle @average : !dfg.ref<tensor<f32>> loc("average")
    %old = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("old")
    %y = dfg.mul %x, %old : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    %mean = dfg.mean %y, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("mean")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    dfg.assign_add %average, %mean {dist.each_batch} : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("moving")
    dfg.apply_gradient_descent %w, %rate, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update", "moving"]} : () -> () loc("all_updates")
    // CHECK: dfg.identity %{{.*}} {control = ["moving"]} : {{.*}} loc("result")
    // CHECK-NEXT: dfg.identity %{{[^ ]*}} : {{.*}} loc("loss")
    // CHECK: dfg.group {control = ["loss", "all_updates"]} : {{.*}} loc("loss/run")
    %result = dfg.identity %mean {control = ["all_updates"]} : (tensor<f32>) -> tensor<f32> loc("result")
    %loss = dfg.identity %result : (tensor<f32>) -> tensor<f32> loc("loss")
  }
}
