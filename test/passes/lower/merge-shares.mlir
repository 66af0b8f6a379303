// RUN: distc-opt %s --drt-merge-shares | FileCheck %s

drt.program "g.meta" strategy "ShardedUpdate" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
// CHECK: dfg.variable @m : tensor<5x2xf32> loc(
dfg.variable @w : tensor<5x2xf32> {trainable}
dfg.variable @m : tensor<5xf32> {dist.shares = 2 : i64, dist.slice = #dist.slice<"m" [5, 2] at [0, 0]>}
// CHECK-LABEL: @init
dfg.func @init() -> () attributes {dfg.fetches = []} {
  // CHECK: %[[M:.*]] = dfg.var_handle @m : !dfg.ref<tensor<5x2xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<5xf32>>
  // CHECK: %[[ZEROS:.*]] = dfg.const
  %zeros = dfg.const dense<0.0> : tensor<5x2xf32> : tensor<5x2xf32>
  %share = dist.take_share %zeros : tensor<5x2xf32> -> tensor<5xf32>
  // CHECK-NEXT: dfg.assign %[[M]], %[[ZEROS]] : (!dfg.ref<tensor<5x2xf32>>, tensor<5x2xf32>)
  dfg.assign %m, %share : (!dfg.ref<tensor<5xf32>>, tensor<5xf32>) -> ()
  dfg.return
}
// CHECK-LABEL: @step
dfg.func @step() -> () attributes {dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<5x2xf32> loc("g")
  // CHECK: %[[W:.*]] = dfg.var_handle @w
  %w = dfg.var_handle @w : !dfg.ref<tensor<5x2xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<5xf32>>
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  // CHECK: %[[R:.*]] = dist.all_reduce mean bucket 0 group 0 (%{{.*}}) variables ["w"] : tensor<5x2xf32>
  %r = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["w"] : (tensor<5x2xf32>) -> tensor<5xf32>
  %own = dist.share_handle %w : !dfg.ref<tensor<5x2xf32>> -> !dfg.ref<tensor<5xf32>>
  // CHECK-NEXT: dfg.apply_momentum %[[W]], %{{.*}}, %{{.*}}, %[[R]], %
  dfg.apply_momentum %own, %m, %half, %r, %half : (!dfg.ref<tensor<5xf32>>, !dfg.ref<tensor<5xf32>>, tensor<f32>, tensor<5xf32>, tensor<f32>) -> ()
  // CHECK-NEXT: dfg.return
  dist.all_gather_variables bucket 0 (%w) variables ["w"] : !dfg.ref<tensor<5x2xf32>>
  dfg.return
}

// What one task owns is as plain.
// CHECK: dfg.variable @n : tensor<5x2xf32> loc(
dfg.variable @n : tensor<5x2xf32> {dist.place = #dist.place<"worker" 0>}
// CHECK-LABEL: @owned
dfg.func @owned() -> () attributes {dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<5x2xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<5x2xf32>>
  %n = dfg.var_handle @n : !dfg.ref<tensor<5x2xf32>>
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  // CHECK: %[[R:.*]] = dist.all_reduce mean bucket 0 group 0 (%{{.*}}) variables ["w"] : tensor<5x2xf32>
  %r = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["w"] {owners = array<i64: 0>} : (tensor<5x2xf32>) -> tensor<5x2xf32>
  // CHECK-NEXT: dfg.apply_momentum %{{.*}}, %{{.*}}, %{{.*}}, %[[R]], %{{[^{]*}} : (
  dfg.apply_momentum %w, %n, %half, %r, %half {dist.place = #dist.place<"worker" 0>} : (!dfg.ref<tensor<5x2xf32>>, !dfg.ref<tensor<5x2xf32>>, tensor<f32>, tensor<5x2xf32>, tensor<f32>) -> ()
  // CHECK-NEXT: dfg.return
  dist.all_gather_variables bucket 1 (%w) variables ["w"] {owners = array<i64: 0>} : !dfg.ref<tensor<5x2xf32>>
  dfg.return
}

// Rows of what it owns it reads.
// CHECK-LABEL: @rows
dfg.func @rows() -> () attributes {dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<3xi32> loc("ids")
  %n = dfg.var_handle @n : !dfg.ref<tensor<5x2xf32>>
  // CHECK: dfg.resource_gather %{{.*}}, %{{.*}} : (!dfg.ref<tensor<5x2xf32>>, tensor<3xi32>) -> tensor<3x2xf32>
  %x = dist.pull_rows %n[%ids] from <"worker" 0> {bucket = 0 : i32} : (!dfg.ref<tensor<5x2xf32>>, tensor<3xi32>) -> tensor<3x2xf32>
  dfg.return
}
