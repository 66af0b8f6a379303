// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --dist-verify-collectives --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Shards of a table on two servers: each replica pushes each of them its own rows, and the optimizer's deduplication is done there.
// CHECK-LABEL: @several_servers
module @several_servers attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>, #dist.task<"ps" 1 on "a" devices [] replicas 0 from 2>]
  dfg.variable @"table/part_0" : tensor<5x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @"table/part_1" : tensor<4x4xf32> {trainable, dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server>}
  dfg.graph {
    // CHECK: %[[IDS:.*]] = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    // CHECK: %[[GRAD:.*]] = dfg.placeholder : () -> tensor<?x4xf32> loc("grad")
    %grad = dfg.placeholder : () -> tensor<?x4xf32> loc("grad")
    // CHECK-DAG: %[[I0:.*]], %[[V0:.*]] = dist.own_rows 5 from 0 (%[[IDS]], %[[GRAD]])
    // CHECK-DAG: dist.push sum "synchronization/table/part_0" to <"ps" 0> of 2 (%[[I0]], %[[V0]]) variable "table/part_0"
    // CHECK-DAG: %[[I1:.*]], %[[V1:.*]] = dist.own_rows 4 from 5 (%[[IDS]], %[[GRAD]])
    // CHECK-DAG: dist.push sum "synchronization/table/part_1" to <"ps" 1> of 2 (%[[I1]], %[[V1]]) variable "table/part_1"
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %t0 = dfg.var_handle @"table/part_0" : !dfg.ref<tensor<5x4xf32>> loc("table/part_0")
    %t1 = dfg.var_handle @"table/part_1" : !dfg.ref<tensor<4x4xf32>> loc("table/part_1")
    // CHECK-DAG: %[[T0:.*]]:2 = dist.take sum "synchronization/table/part_0" from <"ps" 0> of 2 {{.*}}dist.place = #dist.place<"ps" 0>
    // CHECK-DAG: %[[T1:.*]]:2 = dist.take sum "synchronization/table/part_1" from <"ps" 1> of 2 {{.*}}dist.place = #dist.place<"ps" 1>
    // CHECK-NOT: dist.place<"worker" 0>
    // CHECK: %[[ROWS0:.*]]:2 = dfg.unique %[[T0]]#0 {dist.place = #dist.place<"ps" 0>} : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("update/part_0/rows/unique")
    // CHECK: %[[COUNT0:.*]] = dfg.size %[[ROWS0]]#0 {dist.place = #dist.place<"ps" 0>}
    // CHECK: %[[SUMS0:.*]] = dfg.unsorted_segment_sum %[[T0]]#1, %[[ROWS0]]#1, %[[COUNT0]]
    %rows, %which = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
    %count = dfg.size %rows : (tensor<?xi32>) -> tensor<i32> loc("count")
    %sums = dfg.unsorted_segment_sum %grad, %which, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sums")
    %step = dfg.mul %sums, %lr : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("step")
    // CHECK: %[[STEP0:.*]] = dfg.mul %[[SUMS0]], %{{.*}}
    // CHECK: dfg.scatter_sub %{{.*}}, %[[ROWS0]]#0, %[[STEP0]] {dist.place = #dist.place<"ps" 0>}
    // CHECK: dfg.unique %[[T1]]#0 {dist.place = #dist.place<"ps" 1>}
    // CHECK: dfg.scatter_sub {{.*}} {dist.place = #dist.place<"ps" 1>}
    %i0, %v0 = dist.own_rows 5 from 0 (%rows, %step) : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("update/part_0/rows")
    dfg.scatter_sub %t0, %i0, %v0 : (!dfg.ref<tensor<5x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update/part_0")
    %i1, %v1 = dist.own_rows 4 from 5 (%rows, %step) : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("update/part_1/rows")
    dfg.scatter_sub %t1, %i1, %v1 : (!dfg.ref<tensor<4x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update/part_1")
    // Nothing is left of the whole table's.
    // CHECK-NOT: dfg.unique
  }
}

// -----

// A norm over all rows stands between: the chief takes them, and sends each server its own.
// CHECK-LABEL: @clipped
module @clipped attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>, #dist.task<"ps" 1 on "a" devices [] replicas 0 from 2>]
  dfg.variable @"table/part_0" : tensor<5x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @"table/part_1" : tensor<4x4xf32> {trainable, dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    // CHECK: %[[GRAD:.*]] = dfg.real_div
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // CHECK: dist.push mean "synchronization/table/part_0" to <"ps" 0> of 2 (%{{.*}}, %[[GRAD]])
    // CHECK: %[[T:.*]]:2 = dist.take mean "synchronization/table/part_0" {{.*}}dist.place = #dist.place<"worker" 0>
    // CHECK: dfg.l2_loss %[[T]]#1 {dist.place = #dist.place<"worker" 0>}
    %norm = dfg.l2_loss %grad : (tensor<?x4xf32>) -> tensor<f32> loc("norm")
    // CHECK: %[[CLIPPED:.*]] = dfg.real_div %[[T]]#1,
    %clipped = dfg.real_div %grad, %norm : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("clipped")
    %t0 = dfg.var_handle @"table/part_0" : !dfg.ref<tensor<5x4xf32>> loc("table/part_0")
    %t1 = dfg.var_handle @"table/part_1" : !dfg.ref<tensor<4x4xf32>> loc("table/part_1")
    // CHECK: %[[I0:.*]], %[[V0:.*]] = dist.own_rows 5 from 0 (%[[T]]#0, %[[CLIPPED]]) {dist.place = #dist.place<"worker" 0>}
    // CHECK: dist.push sum "synchronization/sent/{{.*}}" to <"ps" 0> of 1 (%[[V0]])
    %i0, %v0 = dist.own_rows 5 from 0 (%ids, %clipped) : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("update/part_0/rows")
    dfg.scatter_sub %t0, %i0, %v0 : (!dfg.ref<tensor<5x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update/part_0")
    %i1, %v1 = dist.own_rows 4 from 5 (%ids, %clipped) : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("update/part_1/rows")
    dfg.scatter_sub %t1, %i1, %v1 : (!dfg.ref<tensor<4x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update/part_1")
  }
}

// -----

// Another variable's gradient is clipped by a norm over the rows, which takes all of them; the shards have their own nevertheless.
// CHECK-LABEL: @norm_elsewhere
module @norm_elsewhere attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>, #dist.task<"ps" 1 on "a" devices [] replicas 0 from 2>]
  dfg.variable @"table/part_0" : tensor<5x4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @"table/part_1" : tensor<4x4xf32> {trainable, dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server>}
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
    %size = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("size")
    // CHECK: %[[GRAD:.*]] = dfg.real_div
    %grad = dfg.real_div %x, %size : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("grad")
    // CHECK-DAG: dist.own_rows 5 from 0 (%{{.*}}, %[[GRAD]])
    // CHECK-DAG: dist.own_rows 4 from 5 (%{{.*}}, %[[GRAD]])
    // CHECK-DAG: dist.push mean "synchronization/table/part_0" to <"ps" 1> of 2 (%{{.*}}, %[[GRAD]])
    // CHECK-DAG: dist.push mean "synchronization/w" to <"ps" 1> of 2
    // CHECK: dfg.l2_loss %{{.*}} {dist.place = #dist.place<"ps" 1>}
    %gw = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gw")
    %norm = dfg.l2_loss %grad : (tensor<?x4xf32>) -> tensor<f32> loc("norm")
    %clipped = dfg.real_div %gw, %norm : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("clipped")
    %t0 = dfg.var_handle @"table/part_0" : !dfg.ref<tensor<5x4xf32>> loc("table/part_0")
    %t1 = dfg.var_handle @"table/part_1" : !dfg.ref<tensor<4x4xf32>> loc("table/part_1")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %i0, %v0 = dist.own_rows 5 from 0 (%ids, %grad) : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("update/part_0/rows")
    dfg.scatter_sub %t0, %i0, %v0 : (!dfg.ref<tensor<5x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update/part_0")
    %i1, %v1 = dist.own_rows 4 from 5 (%ids, %grad) : (tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) loc("update/part_1/rows")
    dfg.scatter_sub %t1, %i1, %v1 : (!dfg.ref<tensor<4x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update/part_1")
    dfg.apply_gradient_descent %w, %lr, %clipped : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
  }
}
