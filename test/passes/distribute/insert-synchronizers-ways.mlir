// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers | FileCheck %s

// Compressors and aggregators with their parameters; values of one group part where these differ.
// CHECK-LABEL: @compressors
module @compressors attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @u : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce compression <fp16>>}
  dfg.variable @v : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce compression <power_sgd rank 4>>}
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce compression <top_k>>}
  dfg.variable @x : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce aggregator <trimmed_mean f 1>>}
  dfg.variable @y : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce reduction sum>}
  dfg.graph {
    %in = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hu = dfg.var_handle @u : !dfg.ref<tensor<4xf32>>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %hx = dfg.var_handle @x : !dfg.ref<tensor<4xf32>>
    %hy = dfg.var_handle @y : !dfg.ref<tensor<4xf32>>
    %gu = dfg.mean %in, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %gv = dfg.mean %in, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %gw = dfg.mean %in, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %gx = dfg.mean %in, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %gy = dfg.mean %in, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: dist.all_reduce mean bucket 0 group 0 {{.*}} variables ["u"] {compression = #dist.compression<fp16>}
    // CHECK: dist.all_reduce mean bucket 1 group 0 {{.*}} variables ["v"] {compression = #dist.compression<power_sgd rank 4>}
    // CHECK: dist.all_reduce mean bucket 2 group 0 {{.*}} variables ["w"] {compression = #dist.compression<top_k>}
    // CHECK: dist.all_reduce mean bucket 3 group 0 {{.*}} variables ["x"] {aggregator = #dist.aggregator<trimmed_mean f 1>}
    // CHECK: dist.all_reduce sum bucket 4 group 0 {{.*}} variables ["y"] :
    dfg.apply_gradient_descent %hu, %lr, %gu : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    dfg.apply_gradient_descent %hv, %lr, %gv : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    dfg.apply_gradient_descent %hx, %lr, %gx : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    dfg.apply_gradient_descent %hy, %lr, %gy : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// Of halves a rule judges in float32.
// CHECK-LABEL: @halves
module @halves attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @u : tensor<4xf16> {trainable, dist.sync = #dist.sync<all_reduce aggregator <median>>}
  dfg.graph {
    %in = dfg.placeholder : () -> tensor<?x4xf16>
    %lr = dfg.placeholder : () -> tensor<f16>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hu = dfg.var_handle @u : !dfg.ref<tensor<4xf16>>
    %gu = dfg.mean %in, %zero : (tensor<?x4xf16>, tensor<1xi32>) -> tensor<4xf16>
    // CHECK: %[[WIDE:.*]] = dfg.cast %{{.*}} : (tensor<4xf16>) -> tensor<4xf32>
    // CHECK: %[[MEDIAN:.*]] = dist.all_reduce mean bucket 0 group 0 (%[[WIDE]]) variables ["u"] {aggregator = #dist.aggregator<median>} : tensor<4xf32>
    // CHECK: %[[NARROW:.*]] = dfg.cast %[[MEDIAN]] : (tensor<4xf32>) -> tensor<4xf16>
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[NARROW]]
    dfg.apply_gradient_descent %hu, %lr, %gu : (!dfg.ref<tensor<4xf16>>, tensor<f16>, tensor<4xf16>) -> ()
  }
}

// -----

// One update of several batches.
// CHECK-LABEL: @accumulate
module @accumulate attributes {dist.strategy = #dist.strategy<"" accumulate 4>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @u : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @v : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %in = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hu = dfg.var_handle @u : !dfg.ref<tensor<4xf32>>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4xf32>>
    // CHECK: %[[GU:.*]] = dfg.mean
    // CHECK: %[[GV:.*]] = dfg.mean
    %gu = dfg.mean %in, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %gv = dfg.mean %in, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: %[[A:.*]]:2 = dist.accumulate mean of 4 (%[[GU]], %[[GV]]) variables ["u", "v"]
    // CHECK-NEXT: %[[R:.*]]:2 = dist.all_reduce mean bucket 0 group 0 (%[[A]]#0, %[[A]]#1) variables ["u", "v"]
    // CHECK-NEXT: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[R]]#0
    dfg.apply_gradient_descent %hu, %lr, %gu : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    dfg.apply_gradient_descent %hv, %lr, %gv : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}
