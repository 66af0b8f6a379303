// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers | FileCheck %s

// Gradients go to the owners, who update alone, with the slots; then all have the values. What is no optimizer's stays everyone's.
// CHECK-LABEL: @owned
module @owned attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  // CHECK: dfg.variable @v : tensor<3x3xf32> {dist.sync = #dist.sync<server>, trainable}
  dfg.variable @v : tensor<3x3xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  // CHECK: dfg.variable @w : tensor<4xf32> {dist.sync = #dist.sync<server>, trainable}
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server>}
  // CHECK: dfg.variable @slot : tensor<3x3xf32> {dist.place = #dist.place<"worker" 1>}
  dfg.variable @slot : tensor<3x3xf32> {dist.place = #dist.place<"worker" 1>}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x3xf32>
    %y = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %initial = dfg.const dense<0.1> : tensor<3x3xf32> : tensor<3x3xf32>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<3x3xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %hs = dfg.var_handle @slot : !dfg.ref<tensor<3x3xf32>>
    // CHECK: dfg.assign %{{.*}} : (!dfg.ref<tensor<3x3xf32>>, tensor<3x3xf32>) -> ()
    dfg.assign %hs, %initial : (!dfg.ref<tensor<3x3xf32>>, tensor<3x3xf32>) -> ()
    %gv = dfg.mat_mul %x, %x {transpose_a = true} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<3x3xf32>
    %gw = dfg.sum %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: %[[S:.*]]:2 = dist.reduce_scatter sum bucket 0 group 0 (%{{.*}}, %{{.*}}) variables ["v", "w"] {owners = array<i64: 1, 0>} : (tensor<3x3xf32>, tensor<4xf32>) -> (tensor<3x3xf32>, tensor<4xf32>)
    // CHECK: dfg.apply_momentum %{{.*}}, %{{.*}}, %{{.*}}, %[[S]]#0, %{{.*}} {dist.place = #dist.place<"worker" 1>}
    dfg.apply_momentum %hv, %hs, %lr, %gv, %lr : (!dfg.ref<tensor<3x3xf32>>, !dfg.ref<tensor<3x3xf32>>, tensor<f32>, tensor<3x3xf32>, tensor<f32>) -> ()
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[S]]#1 {dist.place = #dist.place<"worker" 0>}
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    // CHECK-NEXT: dist.all_gather_variables bucket 1 (%{{.*}}, %{{.*}}) variables ["v", "w"] {owners = array<i64: 1, 0>} : !dfg.ref<tensor<3x3xf32>>, !dfg.ref<tensor<4xf32>>
  }
}

// -----

// A norm needs the whole gradient: it is all-reduced. A slot that a node computes with is everyone's, and so is its update.
// CHECK-LABEL: @clipped
module @clipped attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  dfg.variable @v : tensor<4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 1>, trainable, dist.sync = #dist.sync<server>}
  // CHECK: dfg.variable @slot : tensor<4xf32> loc(
  dfg.variable @slot : tensor<4xf32> {dist.place = #dist.place<"worker" 1>}
  dfg.graph attributes {fetches = ["size:0"]} {
    %y = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %hs = dfg.var_handle @slot : !dfg.ref<tensor<4xf32>>
    %old = dfg.read_variable %hs : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
    %size = dfg.l2_loss %old : (tensor<4xf32>) -> tensor<f32> loc("size")
    %g = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: %[[R:.*]] = dist.all_reduce mean bucket 0 group 0
    // CHECK: %[[N:.*]] = dfg.l2_loss %[[R]]
    %norm = dfg.l2_loss %g : (tensor<4xf32>) -> tensor<f32>
    // CHECK: %[[C:.*]] = dfg.real_div %[[R]], %[[N]]
    %c = dfg.real_div %g, %norm : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[C]] {dist.place = #dist.place<"worker" 1>}
    dfg.apply_gradient_descent %hv, %lr, %c : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    // CHECK-NEXT: dist.all_gather_variables bucket 1 (%{{.*}}) variables ["v"] {owners = array<i64: 1>}
    // CHECK: dfg.apply_momentum
    // CHECK-NOT: dist.place
    dfg.apply_momentum %hw, %hs, %lr, %c, %lr : (!dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>, tensor<f32>) -> ()
  }
}

// -----

// A group of what was ready first; another behind 1 MiB. Of an aggregator each variable is alone.
// CHECK-LABEL: @groups
module @groups attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>]
  dfg.variable @u : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server aggregator <median>>}
  dfg.variable @v : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server>}
  dfg.variable @w : tensor<262144xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server>}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x262144xf32>
    %y = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hu = dfg.var_handle @u : !dfg.ref<tensor<4xf32>>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<262144xf32>>
    %gw = dfg.mean %x, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    %gv = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %two = dfg.mul %gv, %lr : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %gu = dfg.sum %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: dist.reduce_scatter mean bucket 0 group 0 (%{{.*}}) variables ["w"] {owners = array<i64: 0>}
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
    // CHECK: dist.reduce_scatter mean bucket 1 group 1 (%{{.*}}) variables ["v"] {owners = array<i64: 0>}
    dfg.apply_gradient_descent %hv, %lr, %two : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    // CHECK: dist.all_reduce sum bucket 2 group 2 (%{{.*}}) variables ["u"] {aggregator = #dist.aggregator<median>}
    dfg.apply_gradient_descent %hu, %lr, %gu : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// Within one task nothing travels: one bucket, whatever its size.
// CHECK-LABEL: @one_task
module @one_task attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @v : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server>}
  dfg.variable @w : tensor<262144xf32> {dist.place = #dist.place<"worker" 0>, trainable, dist.sync = #dist.sync<server>}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x262144xf32>
    %y = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<262144xf32>>
    %gw = dfg.mean %x, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    %gv = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: dist.reduce_scatter mean bucket 0 group 0 (%{{.*}}, %{{.*}}) variables ["w", "v"] {owners = array<i64: 0, 0>}
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
    dfg.apply_gradient_descent %hv, %lr, %gv : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}
