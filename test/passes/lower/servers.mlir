// RUN: distc-opt %s --split-input-file --convert-dfg-to-drt | FileCheck %s
// RUN: distc-opt %s --split-input-file --convert-dfg-to-drt --drt-fuse-elementwise --drt-outline-kernels --drt-insert-copies --drt-insert-barriers --drt-plan-memory --drt-verify-order | FileCheck %s --check-prefix=PLAN

// A replica's step takes all variables at its beginning, and gives all gradients at its end; an update begins with what it takes. Nobody meets.
module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 3 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.variable @b : tensor<f32> {trainable}
  // CHECK: drt.entry "step"
  // CHECK-NEXT: %[[PULLED:.*]]:2 = drt.pull {variables = [@w, @b]} : () -> (tensor<4xf32>, tensor<f32>)
  // CHECK: drt.push %{{.*}}, %{{.*}} {means = array<i1: true, false>, names = ["gradients/0/w", "gradients/1/b"], required = 2 : i64, staleness = 0 : i64}
  // CHECK-NEXT: drt.take_token
  // CHECK-NEXT: drt.fetch
  // PLAN: drt.entry "step"
  // PLAN-NOT: drt.barrier
  dfg.func @step() -> (tensor<f32>) attributes {dfg.entry = "step", dfg.fetches = ["loss:0"], dfg.joins = ["mean"]} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %i = dfg.var_handle @b : !dfg.ref<tensor<f32>>
    %w = dist.pull %h from <"worker" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32>
    %v = dist.pull %h from <"worker" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32>
    %g = dfg.mul %w, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    dist.push mean "gradients/0/w" to <"worker" 0> of 2 (%g) variable "w" : tensor<4xf32>
    %b = dist.pull %i from <"worker" 0> : !dfg.ref<tensor<f32>> -> tensor<f32>
    %l = dfg.neg %b : (tensor<f32>) -> tensor<f32>
    dist.push sum "gradients/1/b" to <"worker" 0> of 2 (%l) variable "b" : tensor<f32>
    dist.tokens at <"worker" 0> of 3
    dfg.return %l : tensor<f32>
  }
  // CHECK: drt.entry "update"
  // CHECK-NEXT: %[[TAKEN:.*]]:2 = drt.take {names = ["gradients/0/w", "gradients/1/b"]} : () -> (tensor<4xf32>, tensor<f32>)
  // CHECK: drt.update %[[TAKEN]]#0
  // CHECK: drt.update %[[TAKEN]]#1
  // PLAN: drt.entry "update"
  // PLAN-NOT: drt.barrier
  dfg.func @update() attributes {dfg.entry = "update", dfg.fetches = [], dfg.joins = []} {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %i = dfg.var_handle @b : !dfg.ref<tensor<f32>>
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32>
    %g = dist.take mean "gradients/0/w" from <"worker" 0> of 2 variable "w" : tensor<4xf32>
    %l = dist.take sum "gradients/1/b" from <"worker" 0> of 2 variable "b" : tensor<f32>
    dfg.apply_gradient_descent %h, %rate, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    dfg.apply_gradient_descent %i, %rate, %l : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> ()
    dfg.return
  }
}


// -----

// Rows of a sparse gradient: a mean scales the replica's own, and an update has those of all of its gradients.
module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 3 from 0>]
  dfg.variable @table : tensor<10x4xf32> {trainable}
  // CHECK: drt.entry "step"
  // CHECK: %[[IDS:.*]] = drt.feed
  // CHECK: %[[SCALED:.*]] = linalg.generic {{.*}} ins(
  // CHECK: arith.constant 5.000000e-01
  // CHECK: drt.push %[[IDS]], %[[SCALED]] {joined = array<i1: true, true>, means = array<i1: false, false>, names = ["gradients/0/table", "gradients/0/table"], required = 2 : i64, staleness = 0 : i64}
  dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = [], dfg.joins = []} {
    %h = dfg.var_handle @table : !dfg.ref<tensor<10x4xf32>>
    %ids = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[6]>} : () -> tensor<6xi32> loc("ids")
    %table = dist.pull %h from <"worker" 0> : !dfg.ref<tensor<10x4xf32>> -> tensor<10x4xf32>
    %rows = dfg.gather %table, %ids : (tensor<10x4xf32>, tensor<6xi32>) -> tensor<6x4xf32>
    dist.push mean "gradients/0/table" to <"worker" 0> of 2 (%ids, %rows) variable "table" : tensor<6xi32>, tensor<6x4xf32>
    dist.tokens at <"worker" 0> of 3
    dfg.return
  }
  // CHECK: drt.entry "update"
  // CHECK-NEXT: %[[TAKEN:.*]]:2 = drt.take {names = ["gradients/0/table", "gradients/0/table"]} : () -> (tensor<12xi32>, tensor<12x4xf32>)
  // CHECK: drt.sparse_update %[[TAKEN]]#0, %[[TAKEN]]#1
  dfg.func @update() attributes {dfg.entry = "update", dfg.fetches = [], dfg.joins = []} {
    %h = dfg.var_handle @table : !dfg.ref<tensor<10x4xf32>>
    %i, %v = dist.take mean "gradients/0/table" from <"worker" 0> of 2 variable "table" {rows = array<i64: 0, 6>} : tensor<12xi32>, tensor<12x4xf32>
    dfg.scatter_sub %h, %i, %v : (!dfg.ref<tensor<10x4xf32>>, tensor<12xi32>, tensor<12x4xf32>) -> ()
    dfg.return
  }
}

// -----

// Rows come with the variables: what they are chosen by is computed first, everything else behind.
module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 3 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.variable @table : tensor<10x4xf32> {trainable}
  // CHECK: drt.entry "step"
  // CHECK: %[[IDS:.*]] = drt.feed {{.*}}name = "ids"
  // CHECK: %[[HALVED:.*]] = linalg.generic {{.*}} ins(%[[IDS]]
  // CHECK: %[[PULLED:.*]]:2 = drt.pull %[[HALVED]] {tables = [@table], variables = [@w]} : (tensor<6xi32>) -> (tensor<4xf32>, tensor<6x4xf32>)
  // CHECK: %[[SUMS:.*]] = linalg.generic {{.*}} ins(%[[PULLED]]#1, %[[PULLED]]#0
  // CHECK: drt.push %[[HALVED]], %[[SUMS]]
  dfg.func @step() -> (tensor<6x4xf32>) attributes {dfg.entry = "step", dfg.fetches = ["rows:0"], dfg.joins = ["concat"]} {
    %v = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %h = dfg.var_handle @table : !dfg.ref<tensor<10x4xf32>>
    %w = dist.pull %v from <"worker" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32>
    %ids = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[6]>} : () -> tensor<6xi32> loc("ids")
    %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
    %halved = dfg.floor_div %ids, %two : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
    %rows = dist.pull_rows %h[%halved] from <"worker" 0> : (!dfg.ref<tensor<10x4xf32>>, tensor<6xi32>) -> tensor<6x4xf32> loc("rows")
    %sums = dfg.add_v2 %rows, %w : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
    dist.push sum "gradients/0/table" to <"worker" 0> of 1 (%halved, %sums) variable "table" async : tensor<6xi32>, tensor<6x4xf32>
    dfg.return %rows : tensor<6x4xf32>
  }
  dfg.func @update() attributes {dfg.entry = "update", dfg.fetches = [], dfg.joins = []} {
    %h = dfg.var_handle @table : !dfg.ref<tensor<10x4xf32>>
    %i, %v = dist.take sum "gradients/0/table" from <"worker" 0> of 1 variable "table" async {rows = array<i64: 0, 6>} : tensor<6xi32>, tensor<6x4xf32>
    dfg.scatter_sub %h, %i, %v : (!dfg.ref<tensor<10x4xf32>>, tensor<6xi32>, tensor<6x4xf32>) -> ()
    dfg.return
  }
}
