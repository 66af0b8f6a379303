// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers | FileCheck %s

// Of a table of which nobody needs more than rows the owner alone has memory: it is asked for rows, and updates alone.
// CHECK-LABEL: @owned
module @owned attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, dist.sync = #dist.sync<server>, trainable}
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  // CHECK: dfg.variable @slot : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>}
  dfg.variable @slot : tensor<9x4xf32>
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %initial = dfg.const dense<0.1> : tensor<9x4xf32> : tensor<9x4xf32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>>
    dfg.assign %table, %initial : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> ()
    // CHECK: %[[X:.*]] = dist.pull_rows %{{.*}}[%{{.*}}] from <"worker" 1> {bucket = 0 : i32}
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    // CHECK: %[[SQUARE:.*]] = dfg.square %[[X]]
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // Rows of its gradient go to the owner alone.
    // CHECK: dist.all_gather_slices sum bucket 1 group 0 (%{{.*}}, %[[SQUARE]]) variable "table" {shards = array<i64: 0, 9, 1>}
    // CHECK: dfg.sparse_apply_adagrad {{.*}} {dist.place = #dist.place<"worker" 1>}
    dfg.sparse_apply_adagrad %table, %slot, %lr, %square, %ids : (!dfg.ref<tensor<9x4xf32>>, !dfg.ref<tensor<9x4xf32>>, tensor<f32>, tensor<?x4xf32>, tensor<?xi32>) -> ()
    // CHECK-NOT: dist.all_gather_variables
  }
}

// -----

// Rows of a reference variable's value; gradient descent, which adds rows.
// CHECK-LABEL: @reference
module @reference attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server>, trainable}
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    %value = dfg.read_variable %table : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32>
    %same = dfg.identity %value : (tensor<9x4xf32>) -> tensor<9x4xf32>
    // CHECK: %[[X:.*]] = dist.pull_rows %{{.*}}[%{{.*}}] from <"worker" 0> {bucket = 0 : i32}
    %x = dfg.gather_v2 %same, %ids, %axis : (tensor<9x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32>
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK: dfg.scatter_sub {{.*}} {dist.place = #dist.place<"worker" 0>}
    dfg.scatter_sub %table, %ids, %square : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}

// -----

// A norm over the table needs all of it. Every worker has it then, and updates it.
// CHECK-LABEL: @whole
module @whole attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @table : tensor<9x4xf32> {dist.sync = #dist.sync<server>, trainable}
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  dfg.graph attributes {fetches = ["norm:0"]} {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    %value = dfg.read_variable %table : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32>
    %norm = dfg.l2_loss %value : (tensor<9x4xf32>) -> tensor<f32> loc("norm")
    // CHECK: dfg.resource_gather
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK-NOT: shards
    // CHECK: dfg.scatter_sub
    // CHECK-NOT: dist.place
    dfg.scatter_sub %table, %ids, %square : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}

// -----

// So does one that is a summary.
// CHECK-LABEL: @summary
module @summary attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @table : tensor<9x4xf32> {dist.sync = #dist.sync<server>, trainable}
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  dfg.graph attributes {summaries = {"norm:0" = "norm"}} {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    %value = dfg.read_variable %table : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32>
    %norm = dfg.l2_loss %value : (tensor<9x4xf32>) -> tensor<f32> loc("norm")
    // CHECK: dfg.resource_gather
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK: dfg.scatter_sub
    // CHECK-NOT: dist.place
    dfg.scatter_sub %table, %ids, %square : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}

// -----

// Rows that are read of the value before the update cannot be asked for behind it.
// CHECK-LABEL: @old
module @old attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @table : tensor<9x4xf32> {dist.sync = #dist.sync<server>, trainable}
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server>}
  dfg.graph attributes {fetches = ["after:0"]} {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    %value = dfg.read_variable %table : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32>
    %x = dfg.gather_v2 %value, %ids, %axis : (tensor<9x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32>
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK-NOT: dist.pull_rows
    dfg.scatter_sub %table, %ids, %square : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("sub")
    %after = dfg.gather_v2 %value, %ids, %axis {control = ["sub"]} : (tensor<9x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("after")
  }
}

// -----

// A copy in every worker is what the strategy may ask for.
// CHECK-LABEL: @proxy
module @proxy attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @table : tensor<9x4xf32> {dist.sync = #dist.sync<server proxy>, trainable}
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server proxy>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    // CHECK: dfg.resource_gather
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK-NOT: dist.place
    dfg.scatter_sub %table, %ids, %square : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}

// -----

// A rule that changes all rows, spelled out with a slot that decays and to which rows are added: all of it is the owner's.
// CHECK-LABEL: @spelled_out
module @spelled_out attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, dist.sync = #dist.sync<server>, trainable}
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  // CHECK: dfg.variable @m : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>>
    // CHECK: %[[X:.*]] = dist.pull_rows %{{.*}}[%{{.*}}] from <"worker" 1>
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK: dist.update %{{.*}} {dist.place = #dist.place<"worker" 1>}
    dist.update %m : !dfg.ref<tensor<9x4xf32>> {
    ^bb0(%old: f32):
      %half = arith.constant 0.5 : f32
      %decayed = arith.mulf %old, %half : f32
      dist.yield %decayed : f32
    }
    // CHECK: dfg.scatter_add {{.*}} {dist.place = #dist.place<"worker" 1>}
    dfg.scatter_add %m, %ids, %square : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
    // CHECK: dist.update %{{.*}}, %{{.*}} {dist.place = #dist.place<"worker" 1>}
    dist.update %table, %m : !dfg.ref<tensor<9x4xf32>>, !dfg.ref<tensor<9x4xf32>> {
    ^bb0(%old: f32, %now: f32):
      %new = arith.subf %old, %now : f32
      dist.yield %new, %now : f32, f32
    }
    // CHECK-NOT: dist.all_gather_variables
  }
}

// -----

// Where something else computes with the slot, every worker has all of it.
// CHECK-LABEL: @slot_of_a_fetch
module @slot_of_a_fetch attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @table : tensor<9x4xf32> {dist.sync = #dist.sync<server>, trainable}
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {fetches = ["norm:0"]} {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>>
    // CHECK-NOT: dist.place
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    %square = dfg.square %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    dfg.scatter_add %m, %ids, %square : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
    dist.update %table, %m : !dfg.ref<tensor<9x4xf32>>, !dfg.ref<tensor<9x4xf32>> {
    ^bb0(%old: f32, %now: f32):
      %new = arith.subf %old, %now : f32
      dist.yield %new, %now : f32, f32
    }
    %value = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32>
    %norm = dfg.l2_loss %value : (tensor<9x4xf32>) -> tensor<f32> loc("norm")
  }
}

// -----

// Rows are deduplicated, and each shard's chosen, before its owner adds them: shards in the order of their rows.
// CHECK-LABEL: @shards
module @shards attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  dfg.variable @front : tensor<5x4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  dfg.variable @back : tensor<4x4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %given = dfg.placeholder : () -> tensor<?x4xf32>
    %rate = dfg.placeholder : () -> tensor<f32>
    %front = dfg.var_handle @front : !dfg.ref<tensor<5x4xf32>>
    %back = dfg.var_handle @back : !dfg.ref<tensor<4x4xf32>>
    %square = dfg.square %given : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK: dist.all_gather_slices {{.*}} {shards = array<i64: 0, 5, 1, 5, 4, 0>}
    %distinct:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
    %count = dfg.size %distinct#0 : (tensor<?xi32>) -> tensor<i32>
    %sums = dfg.unsorted_segment_sum %square, %distinct#1, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32>
    %scaled = dfg.mul %sums, %rate : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
    %i0, %v0 = dist.own_rows 5 from 0 (%distinct#0, %scaled) : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>)
    %i1, %v1 = dist.own_rows 4 from 5 (%distinct#0, %scaled) : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>)
    dfg.scatter_sub %back, %i1, %v1 : (!dfg.ref<tensor<4x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
    dfg.scatter_sub %front, %i0, %v0 : (!dfg.ref<tensor<5x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}

// -----

// A norm over the rows of all replicas is everyone's: each needs all of them.
// CHECK-LABEL: @clipped
module @clipped attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  dfg.variable @table : tensor<9x4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %given = dfg.placeholder : () -> tensor<?x4xf32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    %square = dfg.square %given : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK: dist.all_gather_slices
    // CHECK-NOT: shards
    %distinct:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
    %count = dfg.size %distinct#0 : (tensor<?xi32>) -> tensor<i32>
    %sums = dfg.unsorted_segment_sum %square, %distinct#1, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32>
    %norm = dfg.l2_loss %sums : (tensor<?x4xf32>) -> tensor<f32>
    %clipped = dfg.mul %sums, %norm : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
    dfg.scatter_sub %table, %distinct#0, %clipped : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}
