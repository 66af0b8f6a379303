// RUN: distc-opt %s --split-input-file --dist-couple-replicas | FileCheck %s

// What is subtracted from rows is reduced; the variance's root is whole once its sum is.
// CHECK-LABEL: @batch_norm
module @batch_norm attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["normal:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    // CHECK: %[[MEAN:.*]] = dfg.mean
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    // CHECK: %[[ALL:.*]] = dist.all_reduce mean bucket 0 group -1 (%[[MEAN]]) variables ["mean"] {coupling} : tensor<4xf32>
    // CHECK: dfg.squared_difference %{{.*}}, %[[ALL]]
    %square = dfg.squared_difference %x, %mean : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
    // CHECK: %[[VARIANCE:.*]] = dfg.mean
    %variance = dfg.mean %square, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("variance")
    // CHECK: %[[ALL2:.*]] = dist.all_reduce mean bucket 1 group -1 (%[[VARIANCE]]) variables ["variance"] {coupling} : tensor<4xf32>
    // CHECK: dfg.add_v2 %[[ALL2]]
    %epsilon = dfg.const dense<0.001> : tensor<f32> : tensor<f32>
    %positive = dfg.add_v2 %variance, %epsilon : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %root = dfg.rsqrt %positive : (tensor<4xf32>) -> tensor<4xf32>
    %y = dfg.mul %x, %root : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("normal")
  }
}

// -----

// One collective for what does not need each other.
// CHECK-LABEL: @together
module @together attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["a:0", "b:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %y = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %mean_x = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean_x")
    %a = dfg.sub %x, %mean_x : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("a")
    %mean_y = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean_y")
    // CHECK: dist.all_reduce mean bucket 0 group -1 ({{.*}}) variables ["mean_x", "mean_y"] {coupling} : tensor<4xf32>, tensor<4xf32>
    // CHECK: dfg.sub
    // CHECK: dfg.sub
    %b = dfg.sub %y, %mean_y : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("b")
  }
}

// -----

// Of a batch x batch matrix each replica computes its rows, of all columns.
// CHECK-LABEL: @matrix
module @matrix attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["loss:0"]} {
    // CHECK: %[[U:.*]] = dfg.placeholder
    %u = dfg.placeholder : () -> tensor<?x4xf32>
    // CHECK: %[[V:.*]] = dfg.placeholder
    %v = dfg.placeholder : () -> tensor<?x4xf32> loc("v")
    // CHECK: %[[ALL:.*]] = dist.all_gather bucket 0 (%[[V]]) name "v" : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // The place in the batch is that of the whole batch.
    // CHECK: %[[SIZE:.*]] = dist.whole_size %{{.*}} by [2]
    // CHECK: %[[RANGE:.*]] = dfg.range %{{.*}}, %[[SIZE]]
    // CHECK: %[[LABELS:.*]] = dist.take_rows %[[RANGE]]
    // CHECK: %[[LOGITS:.*]] = dfg.mat_mul %[[U]], %[[ALL]]
    %logits = dfg.mat_mul %u, %v {transpose_b = true} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x?xf32>
    // CHECK: dfg.sparse_softmax_cross_entropy_with_logits %[[LOGITS]], %[[LABELS]]
    %shape = dfg.shape %u : (tensor<?x4xf32>) -> tensor<2xi32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %b = dfg.gather_v2 %shape, %axis, %axis : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %labels = dfg.range %axis, %b, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32>
    %losses, %backprop = dfg.sparse_softmax_cross_entropy_with_logits %logits, %labels : (tensor<?x?xf32>, tensor<?xi32>) -> (tensor<?xf32>, tensor<?x?xf32>)
    %all = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %loss = dfg.mean %losses, %all : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// The greatest of all is the greatest of each replica's.
// CHECK-LABEL: @maximum
module @maximum attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 4 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1", "localhost:CPU:2", "localhost:CPU:3"] replicas 4 from 0>]
  dfg.graph attributes {fetches = ["max:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    // CHECK: %[[OWN:.*]] = dfg.max
    // CHECK: %[[ROW:.*]] = dfg.expand_dims %[[OWN]]
    // CHECK: %[[ALL:.*]] = dist.all_gather bucket 0 (%[[ROW]]) name "max" : (tensor<1x4xf32>) -> tensor<4x4xf32>
    // CHECK: dfg.max %[[ALL]]
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("max")
  }
}

// -----

// What is gathered is cut to own rows again where it meets them.
// CHECK-LABEL: @cumulative
module @cumulative attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["y:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
    // CHECK: %[[ALL:.*]] = dist.all_gather bucket 0 ({{.*}}) name "x"
    // CHECK: %[[SUMS:.*]] = dfg.cumsum %[[ALL]]
    %sums = dfg.cumsum %x, %zero : (tensor<?x4xf32>, tensor<i32>) -> tensor<?x4xf32>
    // CHECK: %[[ROWS:.*]] = dist.take_rows %[[SUMS]]
    // CHECK: dfg.mul %[[ROWS]]
    %y = dfg.mul %sums, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("y")
  }
}

// -----

// A later sum mends it: nothing to do.
// CHECK-LABEL: @plain
module @plain attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  // CHECK-NOT: dist.all
  dfg.graph attributes {fetches = ["loss:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %y = dfg.tanh %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %loss = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Who waits for what is made of an update's new value has the update run: the result of a metric, which is only waited for. What a
// saver gives is no value of the step.
// CHECK-LABEL: @waited_for
module @waited_for attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @total : tensor<f32>
  dfg.graph attributes {train_op = "train"} {
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %file = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("file")
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %total = dfg.var_handle @total : !dfg.ref<tensor<f32>> loc("total")
    // CHECK: dfg.max
    // CHECK: dist.all_gather
    %most = dfg.max %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("most")
    // Nothing is made of it, and nothing lies before it.
    // CHECK-NOT: dfg.square
    %nothing = dfg.square %most : (tensor<f32>) -> tensor<f32> loc("nothing")
    %waits = dfg.identity %nothing {control = ["most"]} : (tensor<f32>) -> tensor<f32> loc("waits")
    dfg.assign_sub %w, %most : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
    dfg.assign_add %total, %half : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("count")
    %counted = dfg.read_variable %total {control = ["count"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("counted")
    // CHECK: dfg.real_div
    %metric = dfg.real_div %counted, %half : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("metric")
    // CHECK: dfg.identity %{{.*}} {control = ["save"]}
    dfg.group {control = ["update"]} : () -> () loc("save")
    %saved = dfg.identity %file {control = ["save"]} : (tensor<f32>) -> tensor<f32> loc("saved")
    // CHECK: dfg.group {control = ["update", "metric", "most"]}
    dfg.group {control = ["update", "metric", "nothing", "waits"]} : () -> () loc("train")
  }
}

// -----

// Gradients that are taken behind an update are made of nothing that it wrote: of those, too, what is only waited for goes, and who
// waited for it waits for the update.
// CHECK-LABEL: @taken_behind_an_update
module @taken_behind_an_update attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @total : tensor<f32>
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %total = dfg.var_handle @total : !dfg.ref<tensor<f32>> loc("total")
    %most = dfg.max %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("most")
    dfg.assign_add %total, %half : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("count")
    // CHECK-NOT: dfg.shape
    // CHECK-NOT: dfg.reshape
    %sizes = dfg.shape %x {control = ["count"]} : (tensor<?xf32>) -> tensor<1xi32> loc("sizes")
    %gradient = dfg.reshape %x, %sizes : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32> loc("gradient")
    dfg.assign_sub %w, %most : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
    // CHECK: dfg.group {control = ["update", "count"]}
    dfg.group {control = ["update", "gradient"]} : () -> () loc("train")
  }
}

// -----

// Replicas' own maxima are gathered once, also where something else takes another round.
// CHECK-LABEL: @maximum_of_one_round
module @maximum_of_one_round attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    // CHECK: dfg.max
    // CHECK: dist.all_gather
    // CHECK: dfg.max
    // CHECK-NOT: dfg.max
    // CHECK-NOT: dist.all_gather
    %most = dfg.max %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("most")
    %below = dfg.sub %x, %most : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("below")
    %sum = dfg.sum %below, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %size = dfg.size %x : (tensor<?xf32>) -> tensor<i32> loc("size")
    %count = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("count")
    %squared = dfg.mul %sum, %count : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("squared")
    // CHECK: dfg.assign
    dfg.assign %w, %squared : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}

// -----

// Asked for: each replica's own.
// CHECK-LABEL: @replica
module @replica attributes {dist.strategy = #dist.strategy<"">, dist.coupling = "replica"} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  // CHECK-NOT: dist.all
  dfg.graph attributes {fetches = ["y:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %y = dfg.sub %x, %mean : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
  }
}

// -----

// An assertion is about the whole batch; one about every example holds of the batch where it holds of each share.
// CHECK-LABEL: @assertions
module @assertions attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    // CHECK: %[[EACH:.*]] = dfg.all
    %small = dfg.less %x, %limit : (tensor<?xf32>, tensor<f32>) -> tensor<?xi1>
    %all = dfg.all %small, %zero : (tensor<?xi1>, tensor<1xi32>) -> tensor<i1>
    // CHECK: dfg.assert %[[EACH]]
    dfg.assert %all, %all : (tensor<i1>, tensor<i1>) -> () loc("each")
    // CHECK-DAG: %[[MEAN:.*]] = dist.all_reduce mean {{.*}} variables ["mean"] {coupling}
    // CHECK-DAG: %[[LESS:.*]] = dfg.less %[[MEAN]]
    %mean = dfg.mean %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("mean")
    %less = dfg.less %mean, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    // CHECK-DAG: dfg.assert %[[LESS]]
    dfg.assert %less, %mean : (tensor<i1>, tensor<f32>) -> () loc("whole")
    // CHECK-DAG: %[[SIZE:.*]] = dist.whole_size
    // CHECK-DAG: dfg.equal %[[SIZE]]
    %count = dfg.size %x : (tensor<?xf32>) -> tensor<i32> loc("count")
    %eight = dfg.const dense<8> : tensor<i32> : tensor<i32>
    %equal = dfg.equal %count, %eight : (tensor<i32>, tensor<i32>) -> tensor<i1>
    dfg.assert %equal, %count : (tensor<i1>, tensor<i32>) -> () loc("size")
    %one = dfg.const dense<1.0> : tensor<f32> {control = ["each", "whole", "size"]} : tensor<f32>
    dfg.assign_sub %w, %one : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}

// -----

// A table's rows are joined by their indices; the variance that another update takes is no function of those rows, so that it is made whole.
// CHECK-LABEL: @statistics_beside_rows
// CHECK: dist.all_reduce mean bucket 0 group -1 ({{.*}}) variables ["mean"] {coupling} : tensor<4xf32>
module @statistics_beside_rows attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @variance : tensor<4xf32>
  dfg.variable @table : tensor<5x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %variance = dfg.var_handle @variance : !dfg.ref<tensor<4xf32>>
    %table = dfg.var_handle @table : !dfg.ref<tensor<5x4xf32>>
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %y = dfg.placeholder : () -> tensor<?x4xf32> loc("y")
    %rows = dfg.placeholder : () -> tensor<?xi32> loc("rows")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %square = dfg.squared_difference %x, %mean : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
    %new = dfg.mean %square, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("new")
    dfg.assign %variance, %new : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("keep")
    dfg.scatter_add %table, %rows, %y : (!dfg.ref<tensor<5x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("scatter")
    dfg.group {control = ["keep", "scatter"]} : () -> () loc("train")
  }
}

// -----

// An order of the whole batch, which every replica draws; it names rows of all.
// CHECK-LABEL: @order
module @order attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["y:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %size = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1}
      : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("size")
    // CHECK-DAG: %[[ALL:.*]] = dist.all_gather
    // CHECK-DAG: %[[SIZE:.*]] = dist.whole_size %{{.*}} by [2]
    // CHECK: %[[ORDER:.*]] = dfg.random_permutation %[[SIZE]]
    %order = dfg.random_permutation %size {seed = 1} : (tensor<i32>) -> tensor<?xi32> loc("order")
    // CHECK: dfg.gather_v2 %[[ALL]], %[[ORDER]]
    %y = dfg.gather_v2 %x, %order, %axis : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("y")
  }
}

// -----

// What waits for a node of a branch runs where that branch is taken: who reads a Switch stays, and what waits for another node waits for what
// that one is made of.
// CHECK-LABEL: @branches
module @branches attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32>
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %most = dfg.max %x, %axis : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("most")
    %flag = dfg.const dense<true> : tensor<i1> : tensor<i1>
    %half = dfg.const dense<5.000000e-01> : tensor<4xf32> : tensor<4xf32> loc("half")
    %switch:2 = dfg.opaque "Switch"(%flag, %flag) {tf = {T = i1}} : (tensor<i1>, tensor<i1>) -> (tensor<i1>, tensor<i1>) loc("switch")
    // CHECK: dfg.identity %{{.*}}#0
    %off = dfg.identity %switch#0 : (tensor<i1>) -> tensor<i1> loc("off")
    %values:2 = dfg.opaque "Switch"(%half, %flag) {tf = {T = f32}} : (tensor<4xf32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) loc("values")
    %on = dfg.neg %values#1 : (tensor<4xf32>) -> tensor<4xf32> loc("on")
    // CHECK-NOT: dfg.square
    %square = dfg.square %on : (tensor<4xf32>) -> tensor<4xf32> loc("square")
    // CHECK: dfg.const {{.*}} {control = ["off"]}
    %zero = dfg.const dense<0.0> : tensor<4xf32> {control = ["off"]} : tensor<4xf32> loc("zero")
    // CHECK: dfg.const {{.*}} {control = ["on"]}
    %one = dfg.const dense<1.0> : tensor<4xf32> {control = ["square"]} : tensor<4xf32> loc("one")
    %ones = dfg.mul %one, %on : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("ones")
    %merge:2 = dfg.opaque "Merge"(%zero, %ones) {tf = {N = 2 : i64, T = f32}} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) loc("merge")
    %new = dfg.add_v2 %merge#0, %most : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new")
    dfg.assign %w, %new : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}

// -----

// What is squeezed is what the whole batch's shape has of size 1: of a share of one example the batch's axis would go, too.
// CHECK-LABEL: @squeezed
module @squeezed attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["z:0"]} {
    %x = dfg.placeholder : () -> tensor<?x1x4xf32> loc("x")
    // CHECK: %[[Y:.*]] = dfg.squeeze %{{.*}} {squeeze_dims = [1]}
    %y = dfg.squeeze %x : (tensor<?x1x4xf32>) -> tensor<*xf32> loc("y")
    // CHECK: dfg.identity %[[Y]] {control = ["x"]}
    %z = dfg.squeeze %y {control = ["x"]} : (tensor<*xf32>) -> tensor<*xf32> loc("z")
  }
}

// -----

// Of each segment a replica's part is joined with the others'; these have other sizes.
// CHECK-LABEL: @segments
module @segments attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["total:0"]} {
    %v = dfg.placeholder : () -> tensor<?xf32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %flat_shape = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32>
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %axes = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %flat = dfg.reshape %x, %flat_shape : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32> loc("flat")
    // CHECK: %[[BOTH:.*]] = dfg.concat_v2 %{{.*}}, %flat
    // CHECK: %[[EACH:.*]] = dfg.const dense<[1, 4]> : tensor<2xi32>
    // CHECK: %[[ALL:.*]] = dfg.const dense<5> : tensor<1xi32>
    // CHECK: %[[UNIT:.*]] = dfg.floor_div %{{.*}}, %[[ALL]]
    // CHECK: %[[SIZES:.*]] = dfg.mul %[[UNIT]], %[[EACH]]
    // CHECK: %[[OWN:.*]]:2 = dfg.split_v %[[BOTH]], %[[SIZES]]
    // CHECK-DAG: %[[FIRST:.*]] = dist.all_gather bucket {{.*}} (%[[OWN]]#0)
    // CHECK-DAG: %[[SECOND:.*]] = dist.all_gather bucket {{.*}} (%[[OWN]]#1)
    // CHECK: %[[WHOLE:.*]] = dfg.concat_v2 %[[FIRST]], %[[SECOND]]
    // CHECK: dfg.cumsum %[[WHOLE]]
    %both = dfg.concat_v2 %v, %flat, %zero : (tensor<?xf32>, tensor<?xf32>, tensor<i32>) -> tensor<?xf32> loc("both")
    %sums = dfg.cumsum %both, %zero : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32> loc("sums")
    %total = dfg.max %sums, %axes : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("total")
  }
}

// -----

// A third of the whole batch's size, not twice a third of a share's: what is cut to an integer then may be another one.
// CHECK-LABEL: @part_of_the_size
module @part_of_the_size attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["worst:0"]} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %shape = dfg.shape %x : (tensor<?xf32>) -> tensor<1xi32> loc("shape")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
    // CHECK: %[[SIZE:.*]] = dfg.strided_slice
    %size = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1 : i64} : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("size")
    // CHECK: %[[WHOLE:.*]] = dist.whole_size %[[SIZE]] by [2]
    // CHECK: %[[FLOAT:.*]] = dfg.cast %[[WHOLE]] : (tensor<i32>) -> tensor<f32>
    // CHECK: %[[PART:.*]] = dfg.mul %[[FLOAT]], %{{.*}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK-NOT: dist.rescale
    // CHECK: %[[COUNT:.*]] = dfg.cast %[[PART]] : (tensor<f32>) -> tensor<i32>
    %float = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("float")
    %third = dfg.const dense<0.3> : tensor<f32> : tensor<f32> loc("third")
    %part = dfg.mul %float, %third : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("part")
    %count = dfg.cast %part : (tensor<f32>) -> tensor<i32> loc("count")
    // CHECK: dfg.top_k_v2 %{{.*}}, %[[COUNT]]
    %values, %indices = dfg.top_k_v2 %x, %count : (tensor<?xf32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>) loc("top")
    %worst = dfg.mean %values, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("worst")
  }
}

// -----

// Updates that the loss waits for, and the train op does not, are the step's as well.
// CHECK-LABEL: @behind_the_loss
module @behind_the_loss attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph attributes {loss = "loss:0", train_op = "result"} {
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    // CHECK: %[[MEAN:.*]] = dfg.mean
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    // CHECK: %[[ALL:.*]] = dist.all_reduce mean bucket 0 group -1 (%[[MEAN]])
    // CHECK: dfg.squared_difference %{{.*}}, %[[ALL]]
    %square = dfg.squared_difference %x, %mean : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("square")
    %gradient = dfg.mean %square, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gradient")
    dfg.assign_sub %w, %gradient : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    %value = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("value")
    %result = dfg.identity %value : (tensor<f32>) -> tensor<f32> loc("result")
    %loss = dfg.identity %value {control = ["update"]} : (tensor<f32>) -> tensor<f32> loc("loss")
  }
}

// -----

// No collective takes complex numbers: what they are made of is gathered, and they are made again.
// CHECK-LABEL: @transformed
module @transformed attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32>
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // CHECK: %[[ALL:.*]] = dist.all_gather bucket 0 (%x) name "x"
    %x = dfg.placeholder : () -> tensor<?x2x4xf32> loc("x")
    // CHECK: %[[WHOLE:.*]] = dfg.cast %[[ALL]] : (tensor<?x2x4xf32>) -> tensor<?x2x4xcomplex<f32>>
    // CHECK: dfg.opaque "FFT2D"(%[[WHOLE]])
    %complex = dfg.cast %x : (tensor<?x2x4xf32>) -> tensor<?x2x4xcomplex<f32>> loc("complex")
    %transformed = dfg.opaque "FFT2D"(%complex) {tf = {Tcomplex = complex<f32>}} : (tensor<?x2x4xcomplex<f32>>) -> tensor<?x2x4xcomplex<f32>> loc("transformed")
    %real = dfg.opaque "Real"(%transformed) {tf = {T = complex<f32>, Tout = f32}} : (tensor<?x2x4xcomplex<f32>>) -> tensor<?x2x4xf32> loc("real")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %mean = dfg.mean %real, %axes : (tensor<?x2x4xf32>, tensor<2xi32>) -> tensor<4xf32> loc("mean")
    dfg.assign %w, %mean : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}

// -----

// A loop over the batch's examples runs over all of them, also where it reads a variable, whose handle it gives again.
// CHECK-LABEL: @rows_in_turn
module @rows_in_turn attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.func @more(%i: tensor<i32>, %u: tensor<!dfg.resource>, %state: tensor<4xf32>, %rows: tensor<?x4xf32>) -> tensor<i1> {
    %three = dfg.const dense<3> : tensor<i32> : tensor<i32>
    %more = dfg.less %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("is_more")
    dfg.return %more : tensor<i1>
  }
  dfg.func @next(%i: tensor<i32>, %u: tensor<!dfg.resource>, %state: tensor<4xf32>, %rows: tensor<?x4xf32>) -> (tensor<i32>, tensor<!dfg.resource>, tensor<4xf32>, tensor<?x4xf32>) {
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %counted = dfg.add_v2 %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("counted")
    %row = dfg.gather_v2 %rows, %i, %axis : (tensor<?x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4xf32> loc("row")
    %read = dfg.opaque "ReadVariableOp"(%u) {tf = {dtype = f32}} : (tensor<!dfg.resource>) -> tensor<4xf32> loc("read")
    %kept = dfg.mul %state, %read : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("kept")
    %new = dfg.add_v2 %kept, %row : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new")
    dfg.return %counted, %u, %new, %rows : tensor<i32>, tensor<!dfg.resource>, tensor<4xf32>, tensor<?x4xf32>
  }
  dfg.variable @w : tensor<4xf32>
  dfg.variable @u : tensor<4xf32>
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // CHECK: %[[U:.*]] = dfg.var_handle @u
    %u = dfg.var_handle @u : !dfg.ref<tensor<4xf32>>
    // CHECK: %[[ALL:.*]] = dist.all_gather bucket 0 (%x) name "x"
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %first = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %zeros = dfg.const dense<0.0> : tensor<4xf32> : tensor<4xf32>
    // CHECK: dfg.opaque "While"(%{{.*}}, %[[U]], %{{.*}}, %[[ALL]])
    %loop:4 = dfg.opaque "While"(%first, %u, %zeros, %x) {tf = {cond = #dfg.func<@more, {}>, body = #dfg.func<@next, {}>}} : (tensor<i32>, !dfg.ref<tensor<4xf32>>, tensor<4xf32>, tensor<?x4xf32>) -> (tensor<i32>, tensor<!dfg.resource>, tensor<4xf32>, tensor<?x4xf32>) loc("loop")
    dfg.assign %w, %loop#2 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}
