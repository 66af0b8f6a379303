// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Rows of all replicas are joined before the optimizer's deduplication; a norm over the rows sees all of them.
// CHECK-LABEL: @rows
module @rows attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @slot : tensor<9x4xf32>
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32> loc("one")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("square")
    // CHECK: %[[GRAD:.*]] = dfg.real_div
    %grad = dfg.real_div %square, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices mean bucket 0 group 0 (%{{.*}}, %[[GRAD]]) variable "table" : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>)
    // CHECK: %[[R:.*]] = dist.all_reduce mean bucket 1 group 0
    %gw = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gw")
    // CHECK: dfg.l2_loss %[[V]]
    // CHECK: dfg.l2_loss %[[R]]
    %n1 = dfg.l2_loss %grad : (tensor<?x4xf32>) -> tensor<f32> loc("n1")
    %n2 = dfg.l2_loss %gw : (tensor<4xf32>) -> tensor<f32> loc("n2")
    %norm = dfg.add_v2 %n1, %n2 : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("norm")
    // CHECK: %[[CLIPPED:.*]] = dfg.real_div %[[V]],
    %clipped = dfg.real_div %grad, %norm : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("clipped")
    %cw = dfg.real_div %gw, %norm : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("cw")
    // CHECK: dfg.unique %[[I]]
    %rows, %which = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
    %shape = dfg.shape %rows : (tensor<?xi32>) -> tensor<1xi32> loc("shape")
    %count = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1 : i64} : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("count")
    // CHECK: %[[SUMS:.*]] = dfg.unsorted_segment_sum %[[CLIPPED]],
    %sums = dfg.unsorted_segment_sum %clipped, %which, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sums")
    // CHECK: dfg.sparse_apply_adagrad %{{.*}}, %{{.*}}, %{{.*}}, %[[SUMS]],
    dfg.sparse_apply_adagrad %table, %slot, %lr, %sums, %rows : (!dfg.ref<tensor<9x4xf32>>, !dfg.ref<tensor<9x4xf32>>, tensor<f32>, tensor<?x4xf32>, tensor<?xi32>) -> () loc("update")
    dfg.apply_gradient_descent %w, %lr, %cw : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
  }
}

// -----

// Rows that were added to a whole table are a dense gradient.
// CHECK-LABEL: @dense
module @dense attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %grad = dfg.placeholder : () -> tensor<?x4xf32> loc("grad")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    // CHECK: %[[G:.*]] = dfg.unsorted_segment_sum
    %sums = dfg.unsorted_segment_sum %grad, %ids, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9x4xf32> loc("sums")
    // CHECK: dist.all_reduce sum bucket 0 group 0 (%[[G]]) variables ["table"]
    // CHECK-NOT: all_gather_slices
    dfg.apply_gradient_descent %table, %lr, %sums : (!dfg.ref<tensor<9x4xf32>>, tensor<f32>, tensor<9x4xf32>) -> () loc("update")
  }
}

// -----

// On a server: workers pull rows and push rows, the server scatters what it takes.
// CHECK-LABEL: @server
module @server attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.graph {
    // CHECK: %[[IDS:.*]] = dfg.placeholder
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    // CHECK-NOT: dist.pull %
    // CHECK: %[[X:.*]] = dist.pull_rows %{{.*}}[%[[IDS]]] from <"ps" 0>
    %read = dfg.read_variable %table : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("read")
    %x = dfg.gather_v2 %read, %ids, %axis : (tensor<9x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("x")
    // CHECK: dist.push sum "synchronization/table" to <"ps" 0> of 2 (%[[IDS]], %[[X]]) variable "table"
    // CHECK: %[[T:.*]]:2 = dist.take sum "synchronization/table" from <"ps" 0> of 2
    // CHECK: %[[STEP:.*]] = dfg.mul %[[T]]#1, %{{.*}} {dist.place = #dist.place<"ps" 0>}
    %step = dfg.mul %x, %lr : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("step")
    // CHECK: dfg.scatter_sub %{{.*}}, %[[T]]#0, %[[STEP]] {dist.place = #dist.place<"ps" 0>}
    dfg.scatter_sub %table, %ids, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
  }
}

// -----

// CHECK-LABEL: @shared_indices
module @shared_indices attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @u : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @v : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %gu = dfg.placeholder : () -> tensor<?x4xf32> loc("gu")
    %gv = dfg.placeholder : () -> tensor<?x4xf32> loc("gv")
    %u = dfg.var_handle @u : !dfg.ref<tensor<9x4xf32>> loc("u")
    %v = dfg.var_handle @v : !dfg.ref<tensor<9x4xf32>> loc("v")
    // Two tables that one feed indexes: each has its own rows.
    // CHECK: %[[IU:.*]], %[[GU:.*]] = dist.all_gather_slices sum bucket 0 {{.*}} variable "u"
    // CHECK: %[[IV:.*]], %[[GV:.*]] = dist.all_gather_slices sum bucket 1 {{.*}} variable "v"
    // CHECK: dfg.scatter_sub %{{.*}}, %[[IU]], %[[GU]]
    // CHECK: dfg.scatter_sub %{{.*}}, %[[IV]], %[[GV]]
    dfg.scatter_sub %u, %ids, %gu : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update_u")
    dfg.scatter_sub %v, %ids, %gv : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update_v")
  }
}

// -----

// Indices are taken, by a cast that others need as well, before the rows are made, which wait for another update: who takes them
// stands behind both.
// CHECK-LABEL: @indices_before_rows
module @indices_before_rows attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @count : tensor<9xf32>
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %marks = dfg.placeholder : () -> tensor<?xi64> loc("marks")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %count = dfg.var_handle @count : !dfg.ref<tensor<9xf32>> loc("count")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %g = dfg.mean %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("g")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
    %long = dfg.cast %ids : (tensor<?xi32>) -> tensor<?xi64> loc("long")
    %mixed = dfg.add_v2 %long, %marks : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64> loc("mixed")
    %float = dfg.cast %mixed {control = ["update"]} : (tensor<?xi64>) -> tensor<?xf32> loc("float")
    // CHECK: %[[ROWS:.*]] = dfg.mul %{{.*}} loc("rows")
    %rows = dfg.mul %float, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("rows")
    // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices sum bucket {{.*}} (%{{.*}}, %[[ROWS]])
    // CHECK: %[[LONG:.*]] = dfg.cast %[[I]] {{.*}} loc("long/synchronized")
    // CHECK: dfg.scatter_add %{{.*}}, %[[LONG]], %[[V]]
    dfg.scatter_add %count, %long, %rows : (!dfg.ref<tensor<9xf32>>, tensor<?xi64>, tensor<?xf32>) -> () loc("scatter")
    dfg.group {control = ["update", "scatter"]} : () -> () loc("train")
  }
}

// -----

// Where the graph fixes its batch, too, rows that are parts of a mean are averaged; a norm of them sees those of the whole batch.
// CHECK-LABEL: @fixed_batch
module @fixed_batch attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<6xi32> loc("ids")
    %one = dfg.const dense<1.0> : tensor<1x1xf32> : tensor<1x1xf32> loc("one")
    %sizes = dfg.const dense<[6, 4]> : tensor<2xi32> : tensor<2xi32> loc("sizes")
    %count = dfg.const dense<24.0> : tensor<f32> : tensor<f32> loc("count")
    %copies = dfg.tile %one, %sizes : (tensor<1x1xf32>, tensor<2xi32>) -> tensor<6x4xf32> loc("copies")
    %seed = dfg.real_div %copies, %count : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32> loc("seed")
    %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("two")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<6xi32>) -> tensor<6x4xf32> loc("x")
    // CHECK: %[[GRAD:.*]] = dfg.mul
    // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices mean bucket 0 group 0 (%{{.*}}, %[[GRAD]])
    // CHECK: dfg.l2_loss %[[V]]
    %grad = dfg.mul %x, %seed : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32> loc("grad")
    // CHECK-NOT: dist.all_reduce
    %half = dfg.l2_loss %grad : (tensor<6x4xf32>) -> tensor<f32> loc("half")
    %square = dfg.mul %half, %two : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("square")
    %norm = dfg.sqrt %square : (tensor<f32>) -> tensor<f32> loc("norm")
    // CHECK: dfg.real_div %[[V]],
    %clipped = dfg.real_div %grad, %norm : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32> loc("clipped")
    // CHECK: dfg.scatter_sub %{{.*}}, %[[I]],
    dfg.scatter_sub %table, %ids, %clipped : (!dfg.ref<tensor<9x4xf32>>, tensor<6xi32>, tensor<6x4xf32>) -> () loc("update")
  }
}

// -----

// Where the numbers of rows come later than the rows, which an identity in between has taken already, they come earlier.
// CHECK-LABEL: @late_numbers
module @late_numbers attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @bank : tensor<9x4xf32>
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %at = dfg.placeholder : () -> tensor<?x1xi32> loc("at")
    %flat = dfg.const dense<[-1]> : tensor<1xi32> : tensor<1xi32> loc("flat")
    %bank = dfg.var_handle @bank : !dfg.ref<tensor<9x4xf32>> loc("bank")
    // CHECK: %[[NUMBERS:.*]] = dfg.reshape
    // CHECK: %[[ROWS:.*]] = dfg.square
    // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices {{.*}} (%[[NUMBERS]], %[[ROWS]]) variable "bank"
    // CHECK: %[[STOPPED:.*]] = dfg.stop_gradient %[[V]]
    // CHECK: dfg.scatter_update %{{.*}}, %[[I]], %[[STOPPED]]
    %rows = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("rows")
    %stopped = dfg.stop_gradient %rows : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("stopped")
    %numbers = dfg.reshape %at, %flat : (tensor<?x1xi32>, tensor<1xi32>) -> tensor<?xi32> loc("numbers")
    dfg.scatter_update %bank, %numbers, %stopped : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
  }
}

// -----

// Indices that wait for an update of the step are gathered behind it, and their rows with them.
// CHECK-LABEL: @waiting_indices
module @waiting_indices attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @bank : tensor<9x4xf32>
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %bank = dfg.var_handle @bank : !dfg.ref<tensor<9x4xf32>> loc("bank")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %read = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
    %h = dfg.mul %x, %read : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("h")
    %gw = dfg.mean %h, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gw")
    // CHECK: %[[R:.*]] = dist.all_reduce mean bucket 0
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[R]]
    dfg.apply_gradient_descent %w, %lr, %gw : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
    // CHECK: %[[AT:.*]] = dfg.reshape {{.*}}loc("at")
    // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices sum bucket 1 {{.*}}(%[[AT]], %{{.*}}) variable "bank"
    // CHECK: %[[H:.*]] = dfg.mul %[[V]]
    // CHECK: %[[ROWS:.*]] = dfg.stop_gradient %[[H]]
    // CHECK: dfg.scatter_update %{{.*}}, %[[I]], %[[ROWS]]
    %shape = dfg.const dense<-1> : tensor<1xi32> {control = ["update_w"]} : tensor<1xi32> loc("shape")
    %at = dfg.reshape %ids, %shape : (tensor<?xi32>, tensor<1xi32>) -> tensor<?xi32> loc("at")
    %rows = dfg.stop_gradient %h {control = ["update_w"]} : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("rows")
    dfg.scatter_update %bank, %at, %rows : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("put")
  }
}

// -----

// With replicas' own values an optimizer that is written as nodes (a lazy Adam's slot, TensorFlow's addons) works on the rows of all replicas: no sum of
// their distinct numbers, nor of their sums, is anything.
// CHECK-LABEL: @distinct_rows
module @distinct_rows attributes {dist.coupling = "replica", dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @slot : tensor<9x4xf32>
  dfg.graph attributes {loss = "loss:0"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32> loc("one")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %loss = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("square")
    // CHECK: %[[GRAD:.*]] = dfg.real_div
    %grad = dfg.real_div %square, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices mean bucket {{[0-9]+}} group {{.*}} (%{{.*}}, %[[GRAD]]) variable
    // CHECK: %[[ROWS:.*]]:2 = dfg.unique %[[I]]
    %rows, %which = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
    %shape = dfg.shape %rows : (tensor<?xi32>) -> tensor<1xi32> loc("shape")
    %count = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1 : i64} : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("count")
    // CHECK: %[[SUMS:.*]] = dfg.unsorted_segment_sum %[[V]],
    %sums = dfg.unsorted_segment_sum %grad, %which, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sums")
    // CHECK: dfg.resource_gather %{{.*}}, %[[ROWS]]#0
    %old = dfg.resource_gather %slot, %rows : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("old")
    %kept = dfg.mul %old, %half : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("kept")
    %new = dfg.add_v2 %kept, %sums : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("new")
    dfg.scatter_update %slot, %rows, %new : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update_slot")
    dfg.scatter_sub %table, %rows, %new : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
    // CHECK-NOT: all_reduce
  }
}

// -----

// So do rows of which each is squared by itself, as Keras 3 does: of a sum of the squares of means no sum or mean is the whole batch's. What is linear in
// them is reduced as it is.
// CHECK-LABEL: @squared_rows
module @squared_rows attributes {dist.coupling = "replica", dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.variable @v : tensor<9x4xf32>
  dfg.graph attributes {loss = "loss:0"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %v = dfg.var_handle @v : !dfg.ref<tensor<9x4xf32>> loc("v")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %loss = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    // CHECK: %[[GRAD:.*]] = dfg.real_div
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices mean bucket {{[0-9]+}} group {{.*}} (%{{.*}}, %[[GRAD]]) variable
    // CHECK: dfg.unsorted_segment_sum %[[GRAD]],
    // CHECK: dist.all_reduce mean
    // CHECK: %[[SQUARES:.*]] = dfg.square %[[V]]
    // CHECK: dfg.unsorted_segment_sum %[[SQUARES]], %[[I]]
    %sums = dfg.unsorted_segment_sum %grad, %ids, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9x4xf32> loc("sums")
    %squares = dfg.square %grad : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("squares")
    %of_squares = dfg.unsorted_segment_sum %squares, %ids, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9x4xf32> loc("of_squares")
    dfg.assign_add %m, %sums : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update_m")
    dfg.assign_add %v, %of_squares : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update_v")
  }
}

// -----

// Rows that reach the table by way of a slot, which the strategy does not name: they are the table's gradient, and what it says of that holds of them.
// CHECK-LABEL: @by_way_of_slot
module @by_way_of_slot attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce group 3 reduction sum>}
  dfg.variable @slot : tensor<9x4xf32>
  dfg.graph attributes {train_op = "update", loss = "loss"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("x")
    %loss = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // CHECK: dist.all_gather_slices sum bucket 0 group 3 (%{{.*}}, %{{.*}}) variable "table"
    dfg.scatter_add %slot, %ids, %grad : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("keep")
    %kept = dfg.read_variable %slot {control = ["keep"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("kept")
    dfg.assign_sub %table, %kept : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update")
  }
}
