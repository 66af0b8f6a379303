// RUN: distc-opt %s --split-input-file --dist-form-table-updates --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// The slot decays as a whole, rows are added to it, and the table changes by what it is then.
// CHECK-LABEL: @spelled_out
module @spelled_out attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<server>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %old = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK: dist.update %[[M:.*]] : !dfg.ref<tensor<9x4xf32>> {
    // CHECK-NEXT: ^bb0(%[[OLD:.*]]: f32
    // CHECK: %[[DECAYED:.*]] = arith.mulf %[[OLD]], %{{.*}} : f32
    // CHECK: dist.yield %[[DECAYED]] : f32
    // CHECK: loc("m/decay")
    // CHECK: dfg.scatter_add %[[M]], %{{.*}}, %{{.*}} {control = ["m/decay"]}
    // CHECK-NOT: dfg.read_variable
    // CHECK: dist.update %{{.*}}, %[[M]], %{{.*}} {control = ["m/add"]} : !dfg.ref<tensor<9x4xf32>>, !dfg.ref<tensor<9x4xf32>>, tensor<f32> {
    // CHECK-NEXT: ^bb0(%[[TABLE:.*]]: f32 {{.*}}, %[[NOW:.*]]: f32 {{.*}}, %[[RATE:.*]]: f32
    // CHECK: %[[STEP:.*]] = arith.mulf %[[NOW]], %[[RATE]] : f32
    // CHECK: %[[NEW:.*]] = arith.subf %[[TABLE]], %[[STEP]] : f32
    // CHECK: dist.yield %[[NEW]], %[[NOW]] : f32, f32
    // CHECK: loc("sub")
    // What waited for a read waits for what the read did.
    // CHECK: dfg.group {control = ["sub", "m/add"]}
    dfg.assign %m, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("m/decay")
    dfg.scatter_add %m, %ids, %rows {control = ["m/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/add")
    %now = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    %step = dfg.mul %now, %rate : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("step")
    dfg.assign_sub %table, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("sub")
    dfg.group {control = ["sub", "now"]} : () -> () loc("train")
  }
}
// -----

// Each shard has a server.
// CHECK-LABEL: @in_parts
module @in_parts attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.parts = #dist.parts<[3, 1] as [#dist.sync<server>, #dist.sync<server at "ps:1">, #dist.sync<server>]>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %old = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK: dist.update
    // CHECK: dist.update
    dfg.assign %m, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("m/decay")
    dfg.scatter_add %m, %ids, %rows {control = ["m/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/add")
    %now = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    %step = dfg.mul %now, %rate : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("step")
    dfg.assign_sub %table, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("sub")
    dfg.group {control = ["sub", "now"]} : () -> () loc("train")
  }
}
// -----

// Without a server each has all of it.
// CHECK-LABEL: @reduced
module @reduced attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %old = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK-NOT: dist.update
    // CHECK: dfg.assign %
    dfg.assign %m, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("m/decay")
    dfg.scatter_add %m, %ids, %rows {control = ["m/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/add")
    %now = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    %step = dfg.mul %now, %rate : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("step")
    dfg.assign_sub %table, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("sub")
    dfg.group {control = ["sub", "now"]} : () -> () loc("train")
  }
}
// -----

// So it is with a copy in every worker.
// CHECK-LABEL: @proxy
module @proxy attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<server proxy>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %old = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK-NOT: dist.update
    // CHECK: dfg.assign %
    dfg.assign %m, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("m/decay")
    dfg.scatter_add %m, %ids, %rows {control = ["m/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/add")
    %now = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    %step = dfg.mul %now, %rate : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("step")
    dfg.assign_sub %table, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("sub")
    dfg.group {control = ["sub", "now"]} : () -> () loc("train")
  }
}
// -----

// Replicas that are not in step have copies.
// CHECK-LABEL: @asynchronous
module @asynchronous attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<server async>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %old = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK-NOT: dist.update
    // CHECK: dfg.assign %
    dfg.assign %m, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("m/decay")
    dfg.scatter_add %m, %ids, %rows {control = ["m/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/add")
    %now = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    %step = dfg.mul %now, %rate : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("step")
    dfg.assign_sub %table, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("sub")
    dfg.group {control = ["sub", "now"]} : () -> () loc("train")
  }
}
// -----

// A norm over the slot is no matter of an element alone.
// CHECK-LABEL: @normed
module @normed attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<server>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %shape = dfg.const dense<[9, 4]> : tensor<2xi32> : tensor<2xi32> loc("shape")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %old = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK-NOT: dist.update
    // CHECK: dfg.assign %
    dfg.assign %m, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("m/decay")
    dfg.scatter_add %m, %ids, %rows {control = ["m/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/add")
    %now = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    %norm = dfg.l2_loss %now : (tensor<9x4xf32>) -> tensor<f32> loc("norm")
    %scaled = dfg.broadcast_to %norm, %shape : (tensor<f32>, tensor<2xi32>) -> tensor<9x4xf32> loc("scaled")
    %step = dfg.mul %now, %scaled : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4xf32> loc("step")
    dfg.assign_sub %table, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("sub")
    dfg.group {control = ["sub", "now"]} : () -> () loc("train")
  }
}
// -----

// What the slot was before it changed again is not what it is where the table changes.
// CHECK-LABEL: @written_between
module @written_between attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<server>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %old = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK-NOT: dist.update
    // CHECK: dfg.assign %
    dfg.assign %m, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("m/decay")
    dfg.scatter_add %m, %ids, %rows {control = ["m/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/add")
    %now = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    %step = dfg.mul %now, %rate : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("step")
    dfg.scatter_add %m, %ids, %rows {control = ["now"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/again")
    dfg.assign_sub %table, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("sub")
    dfg.group {control = ["sub", "m/again"]} : () -> () loc("train")
  }
}
// -----

// A read that is fetched stays; the table's rule reads the slot itself.
// CHECK-LABEL: @fetched
module @fetched attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<server>}
  dfg.variable @m : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train", fetches = ["now:0"]} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %m = dfg.var_handle @m : !dfg.ref<tensor<9x4xf32>> loc("m")
    %old = dfg.read_variable %m : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK: dist.update
    // CHECK: dfg.read_variable {{.*}} loc("now")
    // CHECK: dist.update
    dfg.assign %m, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("m/decay")
    dfg.scatter_add %m, %ids, %rows {control = ["m/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("m/add")
    %now = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    %step = dfg.mul %now, %rate : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("step")
    dfg.assign_sub %table, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("sub")
    dfg.group {control = ["sub", "now"]} : () -> () loc("train")
  }
}

// -----

// Rows that are added to the table are computed of rows of a slot, which decays as a whole: the slot is the update's, and its rows are read of the variable.
// CHECK-LABEL: @of_rows
module @of_rows attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<server>}
  dfg.variable @rms : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %beta = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("beta")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %rms = dfg.var_handle @rms : !dfg.ref<tensor<9x4xf32>> loc("rms")
    // CHECK: %[[UNIQUE:.*]]:2 = dfg.unique
    %unique:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
    %old = dfg.read_variable %rms : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("old")
    %decayed = dfg.mul %old, %beta : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32> loc("decayed")
    // CHECK: dist.update %[[RMS:[^ ]*]] : !dfg.ref<tensor<9x4xf32>>
    dfg.assign %rms, %decayed : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("rms/decay")
    dfg.scatter_add %rms, %unique#0, %rows {control = ["rms/decay"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("rms/add")
    %now = dfg.read_variable %rms {control = ["rms/add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("now")
    // CHECK-NOT: dfg.read_variable
    // CHECK: %[[SLICE:.*]] = dfg.resource_gather %[[RMS]], %[[UNIQUE]]#0 {control = ["rms/add"]}
    %slice = dfg.gather_v2 %now, %unique#0, %axis : (tensor<9x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("slice")
    // CHECK: %[[STEP:.*]] = dfg.mul %{{.*}}, %[[SLICE]]
    %step = dfg.mul %rows, %slice : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("step")
    // CHECK: dist.update %{{.*}}, %[[RMS]], %[[STEP]], %[[UNIQUE]]#0 {has_gradient, has_indices}
    // CHECK-NEXT: ^bb0(%[[TABLE:.*]]: f32 {{.*}}, %[[SLOT:.*]]: f32 {{.*}}, %[[ROW:.*]]: f32
    // CHECK: %[[NEW:.*]] = arith.addf %[[TABLE]], %[[ROW]]
    // CHECK: dist.yield %[[NEW]], %[[SLOT]]
    dfg.scatter_add %table, %unique#0, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("add")
    // What is read of the table for nobody does not keep it whole.
    %after = dfg.read_variable %table {control = ["add"]} : (!dfg.ref<tensor<9x4xf32>>) -> tensor<9x4xf32> loc("after")
    // CHECK: dfg.group {control = ["add"]}
    dfg.group {control = ["after"]} : () -> () loc("train")
  }
}

// -----

// Of rows that may be named twice it is not known what the slot's rows are where each is added.
// CHECK-LABEL: @not_distinct
module @not_distinct attributes {dist.strategy = #dist.strategy<"">} {
  dfg.variable @table : tensor<9x4xf32> {trainable, dist.sync = #dist.sync<server>}
  dfg.variable @rms : tensor<9x4xf32>
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %rows = dfg.placeholder : () -> tensor<?x4xf32> loc("rows")
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
    %rms = dfg.var_handle @rms : !dfg.ref<tensor<9x4xf32>> loc("rms")
    dfg.scatter_add %rms, %ids, %rows : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("rms/add")
    %slice = dfg.resource_gather %rms, %ids {control = ["rms/add"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("slice")
    %step = dfg.mul %rows, %slice : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("step")
    // CHECK: dfg.scatter_add
    // CHECK-NOT: dist.update
    // CHECK: dfg.scatter_add
    dfg.scatter_add %table, %ids, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("train")
  }
}
