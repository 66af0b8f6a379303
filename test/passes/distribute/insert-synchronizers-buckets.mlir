// RUN: distc-opt --dist-insert-synchronizers=bucket-mb=1 --split-input-file %s | FileCheck %s --check-prefixes=CHECK,SPLIT
// RUN: distc-opt --dist-insert-synchronizers --split-input-file %s | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: distc-opt --dist-insert-synchronizers="bucket-mb=1 each-apart" --split-input-file %s | FileCheck %s --check-prefix=APART

// Two tasks: a group of two gradients of 1 MiB each is two buckets. Compressors that choose among a group's elements keep their groups.
// CHECK-LABEL: @two_tasks
// SPLIT-DAG: dist.all_reduce mean bucket {{[0-3]}} group {{[0-9]}} (%{{.*}}) variables ["w"]
// SPLIT-DAG: dist.all_reduce mean bucket {{[0-3]}} group {{[0-9]}} (%{{.*}}) variables ["v"]
// WHOLE: dist.all_reduce mean bucket 0 group 0 (%{{.*}}, %{{.*}}) variables ["v", "w"]
// CHECK: dist.all_reduce mean bucket {{[0-3]}} group 1 (%{{.*}}, %{{.*}}) variables ["x", "y"] {compression = #dist.compression<top_k
module @two_tasks attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>]
  dfg.variable @v : tensor<262144xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @w : tensor<262144xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @x : tensor<262144xf32> {trainable, dist.sync = #dist.sync<all_reduce group 1 compression <top_k>>}
  dfg.variable @y : tensor<262144xf32> {trainable, dist.sync = #dist.sync<all_reduce group 1 compression <top_k>>}
  dfg.graph {
    %in = dfg.placeholder : () -> tensor<?x262144xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<262144xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<262144xf32>>
    %hx = dfg.var_handle @x : !dfg.ref<tensor<262144xf32>>
    %hy = dfg.var_handle @y : !dfg.ref<tensor<262144xf32>>
    %gv = dfg.mean %in, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    %gw = dfg.mean %in, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    %gx = dfg.mean %in, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    %gy = dfg.mean %in, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    dfg.apply_gradient_descent %hv, %lr, %gv : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
    dfg.apply_gradient_descent %hx, %lr, %gx : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
    dfg.apply_gradient_descent %hy, %lr, %gy : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
  }
}

// -----

// Replicas of one task share memory, and meet once; those of devices are apart.
// CHECK-LABEL: @one_task
// CHECK: dist.all_reduce mean bucket 0 group 0 (%{{.*}}, %{{.*}}) variables ["v", "w"]
// APART-LABEL: @one_task
// APART-COUNT-2: dist.all_reduce mean bucket {{[01]}} group {{[0-9]}} (%{{[^,]*}}) variables
module @one_task attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @v : tensor<262144xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @w : tensor<262144xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %in = dfg.placeholder : () -> tensor<?x262144xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<262144xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<262144xf32>>
    %gv = dfg.mean %in, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    %gw = dfg.mean %in, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    dfg.apply_gradient_descent %hv, %lr, %gv : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
  }
}

// -----

// What power_sgd begins with is drawn for a group: it stays whole wherever it travels.
// CHECK-LABEL: @drawn
// CHECK: dist.all_reduce mean bucket 0 group 0 (%{{.*}}, %{{.*}}) variables ["v", "w"] {compression = #dist.compression<power_sgd
module @drawn attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>]
  dfg.variable @v : tensor<262144xf32> {trainable, dist.sync = #dist.sync<all_reduce compression <power_sgd rank 1>>}
  dfg.variable @w : tensor<262144xf32> {trainable, dist.sync = #dist.sync<all_reduce compression <power_sgd rank 1>>}
  dfg.graph {
    %in = dfg.placeholder : () -> tensor<?x262144xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<262144xf32>>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<262144xf32>>
    %gv = dfg.mean %in, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    %gw = dfg.mean %in, %zero : (tensor<?x262144xf32>, tensor<1xi32>) -> tensor<262144xf32>
    dfg.apply_gradient_descent %hv, %lr, %gv : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<262144xf32>>, tensor<f32>, tensor<262144xf32>) -> ()
  }
}
