// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers | FileCheck %s

// Stage 2: gradients arrive as shares; slots are a share each; values are gathered behind the last update of the group.
// CHECK-LABEL: @stage2
module @stage2 attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 4 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1", "a:CPU:2", "a:CPU:3"] replicas 4 from 0>]
  dfg.variable @v : tensor<3x3xf32> {trainable, dist.sync = #dist.sync<all_reduce sharded 2>}
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce sharded 2>}
  // CHECK: dfg.variable @slot : tensor<3xf32> {dist.shares = 4 : i64, dist.slice = #dist.slice<"slot" [3, 3] at [0, 0]>}
  dfg.variable @slot : tensor<3x3xf32>
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x3xf32>
    %y = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %initial = dfg.const dense<0.1> : tensor<3x3xf32> : tensor<3x3xf32>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<3x3xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // CHECK: %[[HS:.*]] = dfg.var_handle @slot : !dfg.ref<tensor<3xf32>>
    %hs = dfg.var_handle @slot : !dfg.ref<tensor<3x3xf32>>
    // CHECK: %[[I:.*]] = dist.take_share %{{.*}} : tensor<3x3xf32> -> tensor<3xf32>
    // CHECK: dfg.assign %[[HS]], %[[I]] : (!dfg.ref<tensor<3xf32>>, tensor<3xf32>) -> ()
    dfg.assign %hs, %initial : (!dfg.ref<tensor<3x3xf32>>, tensor<3x3xf32>) -> ()
    %gv = dfg.mat_mul %x, %x {transpose_a = true} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<3x3xf32>
    %gw = dfg.sum %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: %[[S:.*]]:2 = dist.reduce_scatter sum bucket 0 group 0 (%{{.*}}, %{{.*}}) variables ["v", "w"] : (tensor<3x3xf32>, tensor<4xf32>) -> (tensor<3xf32>, tensor<1xf32>)
    // CHECK: %[[SV:.*]] = dist.share_handle %{{.*}} : !dfg.ref<tensor<3x3xf32>> -> !dfg.ref<tensor<3xf32>>
    // CHECK: dfg.apply_momentum %[[SV]], %[[HS]], %{{.*}}, %[[S]]#0, %{{.*}}
    dfg.apply_momentum %hv, %hs, %lr, %gv, %lr : (!dfg.ref<tensor<3x3xf32>>, !dfg.ref<tensor<3x3xf32>>, tensor<f32>, tensor<3x3xf32>, tensor<f32>) -> ()
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[S]]#1
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    // CHECK-NEXT: dist.all_gather_variables bucket 1 (%{{.*}}, %{{.*}}) variables ["v", "w"] : !dfg.ref<tensor<3x3xf32>>, !dfg.ref<tensor<4xf32>>
  }
}

// -----

// A norm needs the whole gradient: it is all-reduced, the update takes its share. A node that reads v waits for its values.
// CHECK-LABEL: @clipped
module @clipped attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @v : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce sharded 1>}
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce sharded 1>}
  dfg.graph {
    %y = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %g = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: %[[R:.*]] = dist.all_reduce mean bucket 0
    // CHECK: dfg.l2_loss %[[R]]
    %norm = dfg.l2_loss %g : (tensor<4xf32>) -> tensor<f32>
    // CHECK: %[[C:.*]] = dfg.real_div
    %c = dfg.real_div %g, %norm : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // CHECK: %[[T:.*]] = dist.take_share %[[C]] : tensor<4xf32> -> tensor<2xf32>
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[T]]
    dfg.apply_gradient_descent %hv, %lr, %c : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    // CHECK-NEXT: dist.all_gather_variables bucket 1 (%{{.*}}) variables ["v"]
    // CHECK-NEXT: dfg.read_variable
    %new = dfg.read_variable %hv : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
    // CHECK: dfg.apply_gradient_descent
    dfg.apply_gradient_descent %hw, %lr, %c : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    // CHECK-NEXT: dist.all_gather_variables bucket 2 (%{{.*}}) variables ["w"]
  }
}
