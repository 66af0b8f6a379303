// RUN: distc-opt %s --drt-align-shares | FileCheck %s

drt.program "g.meta" strategy "ShardedUpdate" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
dfg.variable @w : tensor<5x2xf32> {trainable}
// A share is five elements; eight are two times 16 bytes.
// CHECK: dfg.variable @m : tensor<8xf32> {dist.shares = 2 : i64, dist.slice = #dist.slice<"m" [5, 2] at [0, 0]>}
dfg.variable @m : tensor<5xf32> {dist.shares = 2 : i64, dist.slice = #dist.slice<"m" [5, 2] at [0, 0]>}
// CHECK-LABEL: @init
dfg.func @init() -> () attributes {dfg.fetches = []} {
  // CHECK: dfg.var_handle @m : !dfg.ref<tensor<8xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<5xf32>>
  %zeros = dfg.const dense<0.0> : tensor<5x2xf32> : tensor<5x2xf32>
  // CHECK: dist.take_share %{{.*}} : tensor<5x2xf32> -> tensor<8xf32>
  %share = dist.take_share %zeros : tensor<5x2xf32> -> tensor<5xf32>
  // CHECK: dfg.assign %{{.*}} : (!dfg.ref<tensor<8xf32>>, tensor<8xf32>) -> ()
  dfg.assign %m, %share : (!dfg.ref<tensor<5xf32>>, tensor<5xf32>) -> ()
  dfg.return
}
// CHECK-LABEL: @step
dfg.func @step() -> () attributes {dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<5x2xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<5x2xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<5xf32>>
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  // CHECK: dist.reduce_scatter {{.*}} : (tensor<5x2xf32>) -> tensor<8xf32>
  %r = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["w"] : (tensor<5x2xf32>) -> tensor<5xf32>
  // CHECK: dist.share_handle %{{.*}} : !dfg.ref<tensor<5x2xf32>> -> !dfg.ref<tensor<8xf32>>
  %own = dist.share_handle %w : !dfg.ref<tensor<5x2xf32>> -> !dfg.ref<tensor<5xf32>>
  // CHECK: dfg.apply_momentum {{.*}} : (!dfg.ref<tensor<8xf32>>, !dfg.ref<tensor<8xf32>>, tensor<f32>, tensor<8xf32>, tensor<f32>) -> ()
  dfg.apply_momentum %own, %m, %half, %r, %half : (!dfg.ref<tensor<5xf32>>, !dfg.ref<tensor<5xf32>>, tensor<f32>, tensor<5xf32>, tensor<f32>) -> ()
  dist.all_gather_variables bucket 0 (%w) variables ["w"] : !dfg.ref<tensor<5x2xf32>>
  dfg.return
}
