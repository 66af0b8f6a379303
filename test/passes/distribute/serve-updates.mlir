// RUN: distc-opt %s --split-input-file --dist-serve-updates | FileCheck %s

// A gradient goes to the server, which does all that follows: the update, and the step that is counted. What it needs besides it computes itself;
// replicas pull what it writes, and end their step with a token.
module attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 3 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1", "a:CPU:2"] replicas 3 from 0>]
  // CHECK: dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server at "ps:0">, trainable}
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  // CHECK: dfg.variable @step : tensor<i64> {dist.place = #dist.place<"worker" 0>}
  dfg.variable @step : tensor<i64>
  // CHECK: dfg.variable @frozen : tensor<4xf32> loc(
  dfg.variable @frozen : tensor<4xf32>
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %x = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[?, 4]>} : () -> tensor<?x4xf32> loc("x")
    %rate = dfg.placeholder {dist.feed = "whole"} : () -> tensor<f32> loc("rate")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %s = dfg.var_handle @step : !dfg.ref<tensor<i64>> loc("step")
    %f = dfg.var_handle @frozen : !dfg.ref<tensor<4xf32>> loc("frozen")
    // CHECK: %[[W:.*]] = dist.pull %[[H:.*]] from <"worker" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32>
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
    // CHECK: dfg.read_variable
    %v = dfg.read_variable %f : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read_frozen")
    // CHECK: %[[HALF:.*]] = dfg.const dense<5.000000e-01>
    // CHECK: %[[COPY:.*]] = dfg.const dense<5.000000e-01> {{.*}} {dist.place = #dist.place<"worker" 0>}
    %half = dfg.const dense<5.000000e-01> : tensor<f32> : tensor<f32> loc("half")
    // CHECK: dfg.mul %[[W]], %[[HALF]]
    %m = dfg.mul %w, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("mul")
    %n = dfg.mul %m, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("mul_frozen")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %d = dfg.sub %n, %x : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("difference")
    %g = dfg.mean %d, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gradient")
    // CHECK-NOT: dist.all_reduce
    // CHECK: dist.push mean "gradients/0/w" to <"worker" 0> of 2 (%[[G:.*]]) variable "w"
    // CHECK: %[[R:.*]] = dist.take mean "gradients/0/w" from <"worker" 0> of 2 variable "w" {dist.place = #dist.place<"worker" 0>}
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32> loc("all_reduce/0")
    // CHECK: %[[C:.*]] = dfg.mul %[[R]], %[[COPY]] {dist.place = #dist.place<"worker" 0>}
    %c = dfg.mul %r, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("scaled")
    // CHECK: dfg.apply_gradient_descent %[[H]], %{{.*}}, %[[C]] {dist.place = #dist.place<"worker" 0>}
    dfg.apply_gradient_descent %h, %rate, %c : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
    %one = dfg.const dense<1> : tensor<i64> : tensor<i64> loc("one")
    // CHECK: dfg.assign_add %{{.*}}, %{{.*}} {control = ["update"], dist.place = #dist.place<"worker" 0>}
    dfg.assign_add %s, %one {control = ["update", "gradient"]} : (!dfg.ref<tensor<i64>>, tensor<i64>) -> () loc("train")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %loss = dfg.mean %d, %all {control = ["gradient"]} : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    // CHECK: dist.tokens at <"worker" 0> of 3 {control = ["gradients/0/w/push"]}
  }
}

// -----

// Where every gradient is an update of its own nobody waits.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" async>}
  dfg.graph attributes {train_op = "train"} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %g = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    // CHECK: dist.push mean "gradients/0/w" to <"worker" 0> of 1 (%{{.*}}) variable "w" async
    // CHECK: dist.take mean "gradients/0/w" from <"worker" 0> of 1 variable "w" async
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32> loc("all_reduce/0")
    dfg.apply_gradient_descent %h, %rate, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
    // CHECK-NOT: dist.tokens
  }
}

// -----

// Synchronous servers are owners: nothing is parted.
// CHECK: dist.topology
// CHECK: dist.all_reduce
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.graph attributes {train_op = "train"} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %g = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32> loc("all_reduce/0")
    dfg.apply_gradient_descent %h, %rate, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// Of a sparse gradient the server has the rows of all replicas, one behind the other: as many as a replica's share of the batch says. Of a table replicas
// pull the rows that they name.
module attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 3 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1", "a:CPU:2"] replicas 3 from 0>]
  dfg.variable @table : tensor<10x4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("ids")
    %h = dfg.var_handle @table : !dfg.ref<tensor<10x4xf32>> loc("table")
    // CHECK: %[[ROWS:.*]] = dist.pull_rows %{{.*}}[%[[IDS:.*]]] from <"worker" 0> : (!dfg.ref<tensor<10x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32>
    %rows = dfg.resource_gather %h, %ids : (!dfg.ref<tensor<10x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("rows")
    // CHECK-NOT: dist.all_gather_slices
    // CHECK: dist.push mean "gradients/0/table" to <"worker" 0> of 2 (%[[IDS]], %[[ROWS]]) variable "table" : tensor<?xi32>, tensor<?x4xf32>
    // CHECK: %[[TAKEN:.*]]:2 = dist.take mean "gradients/0/table" from <"worker" 0> of 2 variable "table" {dist.place = #dist.place<"worker" 0>, rows = array<i64: 1, 0>} : tensor<?xi32>, tensor<?x4xf32>
    %i, %v = dist.all_gather_slices mean bucket 0 group 0 (%ids, %rows) variable "table" : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("all_gather_slices/0")
    // CHECK: dfg.scatter_sub %{{.*}}, %[[TAKEN]]#0, %[[TAKEN]]#1 {dist.place = #dist.place<"worker" 0>}
    dfg.scatter_sub %h, %i, %v : (!dfg.ref<tensor<10x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("train")
  }
}

// -----

// Rows that are chosen by what is pulled itself are taken of a copy: all that is pulled comes at once. So are those of another axis.
// CHECK-LABEL: @chosen_by_variables
module @chosen_by_variables attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @map : tensor<10xi32> {dist.place = #dist.place<"worker" 0>}
  dfg.variable @table : tensor<10x4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.graph attributes {train_op = "train"} {
    %ids = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("ids")
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
    %ones = dfg.const dense<1> : tensor<10xi32> : tensor<10xi32> loc("ones")
    %m = dfg.var_handle @map : !dfg.ref<tensor<10xi32>> loc("map")
    %h = dfg.var_handle @table : !dfg.ref<tensor<10x4xf32>> loc("table")
    // CHECK: %[[MAPPED:.*]] = dist.pull_rows %{{.*}}[%{{.*}}] from <"worker" 0> : (!dfg.ref<tensor<10xi32>>, tensor<?xi32>) -> tensor<?xi32>
    %mapped = dfg.resource_gather %m, %ids : (!dfg.ref<tensor<10xi32>>, tensor<?xi32>) -> tensor<?xi32> loc("mapped")
    // CHECK: %[[TABLE:.*]] = dist.pull %{{.*}} from <"worker" 0> : !dfg.ref<tensor<10x4xf32>> -> tensor<10x4xf32>
    // CHECK: dfg.gather_v2 %[[TABLE]], %[[MAPPED]]
    %rows = dfg.resource_gather %h, %mapped : (!dfg.ref<tensor<10x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("rows")
    // CHECK: %[[AGAIN:.*]] = dist.pull %{{.*}} from <"worker" 0> : !dfg.ref<tensor<10x4xf32>> -> tensor<10x4xf32>
    // CHECK: dfg.gather_v2 %[[AGAIN]]
    %whole = dfg.read_variable %h : (!dfg.ref<tensor<10x4xf32>>) -> tensor<10x4xf32> loc("whole")
    %column = dfg.gather_v2 %whole, %zero, %one : (tensor<10x4xf32>, tensor<i32>, tensor<i32>) -> tensor<10xf32> loc("column")
    %i, %v = dist.all_gather_slices mean bucket 0 group 0 (%ids, %rows) variable "table" : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("all_gather_slices/0")
    dfg.scatter_sub %h, %i, %v : (!dfg.ref<tensor<10x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update_table")
    dfg.assign_add %m, %ones {control = ["update_table"]} : (!dfg.ref<tensor<10xi32>>, tensor<10xi32>) -> () loc("train")
  }
}

// -----

// What no endpoint needs of what the server computes is left out; the server takes its slot's rows by the numbers that it is given.
// CHECK-LABEL: @left_out
module @left_out attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<9x4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" async>}
  dfg.variable @slot : tensor<9x4xf32> {dist.place = #dist.place<"worker" 0>}
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<9x4xf32>> loc("w")
    %s = dfg.var_handle @slot : !dfg.ref<tensor<9x4xf32>> loc("slot")
    %i = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("i")
    %g = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[?, 4]>} : () -> tensor<?x4xf32> loc("g")
    // CHECK: %[[TAKE:.*]]:2 = dist.take
    %rows, %values = dist.all_gather_slices mean bucket 0 group 0 (%i, %g) variable "w" : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("all_gather_slices/0")
    // CHECK: dfg.gather_v2 %{{.*}}, %[[TAKE]]#0, {{.*}}dist.place = #dist.place<"worker" 0>
    %old = dfg.resource_gather %s, %rows : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("old")
    %new = dfg.add_v2 %old, %values : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("new")
    dfg.scatter_update %s, %rows, %new : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update_slot")
    dfg.scatter_sub %h, %rows, %new {control = ["update_slot"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("train")
    // CHECK-NOT: dfg.identity
    // CHECK-NOT: "unneeded"
    %given = dfg.identity %new : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("unneeded")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %loss = dfg.mean %g, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    dfg.group {control = ["unneeded"]} : () -> () loc("waits")
  }
}

// -----

// The rule goes with the gradient: the server aggregates.
// CHECK-LABEL: @aggregated
module @aggregated attributes {dist.strategy = #dist.strategy<"" required 3>} {
  dist.topology @cluster replicas 3 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1", "a:CPU:2"] replicas 3 from 0>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.graph attributes {train_op = "train"} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %g = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
    // CHECK: dist.push mean "gradients/0/w" to <"worker" 0> of 3 (%{{.*}}) variable "w" {aggregator = #dist.aggregator<median>}
    // CHECK: dist.take mean "gradients/0/w" from <"worker" 0> of 3 variable "w" {aggregator = #dist.aggregator<median>
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {aggregator = #dist.aggregator<median>} : tensor<4xf32> loc("all_reduce/0")
    dfg.apply_gradient_descent %h, %rate, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// Numbers that updates alone are made of are drawn once an update, with what is computed of them; a replica's own each replica draws.
// CHECK-LABEL: @noise
module @noise attributes {dist.strategy = #dist.strategy<"" required 3>} {
  dist.topology @cluster replicas 3 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1", "a:CPU:2"] replicas 3 from 0>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.graph attributes {train_op = "train"} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %four = dfg.const dense<4> : tensor<1xi32> : tensor<1xi32> loc("four")
    %x = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("x")
    // CHECK: dfg.random_uniform %{{.*}} {seed = 1 : i64, seed2 = 1 : i64} :
    // CHECK: dfg.random_standard_normal %{{.*}} {dist.place = #dist.place<"worker" 0>, seed = 1 : i64, seed2 = 2 : i64}
    // CHECK: dfg.mul %{{.*}}, %{{.*}} {dist.place = #dist.place<"worker" 0>}
    %kept = dfg.random_uniform %four {seed = 1, seed2 = 1} : (tensor<1xi32>) -> tensor<4xf32> loc("kept")
    %g = dfg.mul %x, %kept : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("g")
    %normal = dfg.random_standard_normal %four {seed = 1, seed2 = 2} : (tensor<1xi32>) -> tensor<4xf32> loc("normal")
    %noise = dfg.mul %normal, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("noise")
    %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32> loc("all_reduce/0")
    %noisy = dfg.add_v2 %r, %noise : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("noisy")
    dfg.apply_gradient_descent %h, %rate, %noisy : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// Where no gradient is of a replica's share all tasks make the same updates, of variables that each has.
// CHECK-LABEL: @alike
module @alike attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>]
  // CHECK: dfg.variable @w : tensor<4xf32> {dist.sync = #dist.sync<server at "ps:0">, trainable}
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.graph attributes {train_op = "train"} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    // CHECK: %[[W:.*]] = dfg.read_variable
    // CHECK-NEXT: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[W]] :
    // CHECK-NOT: dist.
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
    dfg.apply_gradient_descent %h, %rate, %w : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}
