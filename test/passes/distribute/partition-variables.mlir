// RUN: split-file %s %t
// RUN: distc-opt %t/graph.mlir --dist-apply-strategy="strategy=%t/strategy.pbtxt replicas=2" --dist-partition-variables --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Five rows are three and two; slots are split alike. Each shard is synchronized as part_config says, or as the variable; none is to be split again.
// CHECK-NOT: dist.parts
// CHECK: dfg.variable @"w/part_0" : tensor<3x4xf32> {dist.slice = #dist.slice<"w" [5, 4] at [0, 0]>, dist.sync = #dist.sync<all_reduce group 3>, trainable}
// CHECK: dfg.variable @"w/part_1" : tensor<2x4xf32> {dist.slice = #dist.slice<"w" [5, 4] at [3, 0]>, dist.sync = #dist.sync<all_reduce group 4>, trainable}
// CHECK: dfg.variable @"w/Momentum/part_0" : tensor<3x4xf32> {dist.slice = #dist.slice<"w/Momentum" [5, 4] at [0, 0]>}
// CHECK: dfg.variable @"w/Momentum/part_1" : tensor<2x4xf32> {dist.slice = #dist.slice<"w/Momentum" [5, 4] at [3, 0]>}
// CHECK: dfg.variable @"b/part_0" : tensor<2xf32> {{.*}}dist.sync = #dist.sync<all_reduce group 7>
// CHECK: dfg.variable @"b/part_1" : tensor<2xf32> {{.*}}dist.sync = #dist.sync<all_reduce group 7>
// CHECK-NOT: dist.parts
// CHECK: dfg.variable @step

// CHECK-DAG: %[[SIZES:.*]] = dfg.const dense<[3, 2]> : tensor<2xi64>
// CHECK-DAG: %[[AXIS:.*]] = dfg.const dense<0> : tensor<i32> loc("partition/const")
// CHECK: %[[LR:.*]] = dfg.placeholder
// CHECK: %[[G:.*]] = dfg.mat_mul
// The gradient is split right after it is made; the norm sees it whole.
// CHECK-NEXT: %[[GS:.*]]:2 = dfg.split_v %[[G]], %[[SIZES]], %[[AXIS]] : (tensor<5x4xf32>, tensor<2xi64>, tensor<i32>) -> (tensor<3x4xf32>, tensor<2x4xf32>) loc("g/split")
// CHECK: dfg.l2_loss %[[G]]

// A random value is computed whole; a constant of equal elements is made in parts.
// CHECK: %[[RANDOM:.*]] = dfg.random_uniform {{.*}} -> tensor<5x4xf32>
// CHECK: %[[INIT:.*]]:2 = dfg.split_v %[[RANDOM]]
// CHECK: %[[Z0:.*]] = dfg.const dense<0.000000e+00> : tensor<3x4xf32> loc("w/Momentum/part_0/zeros")
// CHECK: %[[Z1:.*]] = dfg.const dense<0.000000e+00> : tensor<2x4xf32> loc("w/Momentum/part_1/zeros")

// CHECK: %[[W0:.*]] = dfg.var_handle @"w/part_0" {tf = {_class = ["loc:@w/part_0"], shared_name = "w/part_0"}} : !dfg.ref<tensor<3x4xf32>> loc("w/part_0")
// CHECK: %[[W1:.*]] = dfg.var_handle @"w/part_1"
// CHECK: %[[M0:.*]] = dfg.var_handle @"w/Momentum/part_0" {tf = {_class = ["loc:@w/part_0"]}}
// CHECK: %[[M1:.*]] = dfg.var_handle @"w/Momentum/part_1" {tf = {_class = ["loc:@w/part_1"]}}

// CHECK: dfg.assign %[[W0]], %[[INIT]]#0 {{.*}}loc("w/part_0/Assign")
// CHECK: dfg.assign %[[W1]], %[[INIT]]#1 {{.*}}loc("w/part_1/Assign")
// CHECK: dfg.group {control = ["w/part_0/Assign", "w/part_1/Assign"]} : () -> () loc("w/Assign")
// CHECK: dfg.assign %[[M0]], %[[Z0]]
// CHECK: dfg.assign %[[M1]], %[[Z1]]

// CHECK: %[[I0:.*]] = dfg.is_initialized %[[W0]]
// CHECK: %[[I1:.*]] = dfg.is_initialized %[[W1]]
// CHECK: dfg.logical_and %[[I0]], %[[I1]] : (tensor<i1>, tensor<i1>) -> tensor<i1> loc("w/IsInitialized")
// CHECK: %[[R0:.*]] = dfg.read_variable %[[W0]] {control = ["e"]}{{.*}} loc("w/part_0/Read")
// CHECK: %[[R1:.*]] = dfg.read_variable %[[W1]] {control = ["e"]}{{.*}} loc("w/part_1/Read")
// CHECK: dfg.concat_v2 %[[R0]], %[[R1]], %[[AXIS]] : (tensor<3x4xf32>, tensor<2x4xf32>, tensor<i32>) -> tensor<5x4xf32> loc("w/Read")

// CHECK: dfg.apply_momentum %[[W0]], %[[M0]], %[[LR]], %[[GS]]#0, %[[LR]] {{.*}}loc("update/part_0")
// CHECK: dfg.apply_momentum %[[W1]], %[[M1]], %[[LR]], %[[GS]]#1, %[[LR]] {{.*}}loc("update/part_1")
// CHECK: dfg.group {control = ["update/part_0", "update/part_1"]} : () -> () loc("update")
// A second update of the same gradient takes the same parts.
// CHECK: dfg.assign_sub %[[W0]], %[[GS]]#0
// CHECK: dfg.assign_sub %[[W1]], %[[GS]]#1
// Where the split variable was named, its shards are.
// CHECK: dfg.group {control = ["update", "w/part_0", "w/part_1"], tf = {_class = ["loc:@w/part_0"]}}

// CHECK: dfg.split %[[AXIS]], %{{.*}} : (tensor<i32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)

//--- strategy.pbtxt
node_config {
  var_name: "w" partitioner: "2,1"
  part_config { var_name: "w/part_0" AllReduceSynchronizer { group: 3 } }
  part_config { var_name: "w/part_1" AllReduceSynchronizer { group: 4 } }
}
node_config {
  var_name: "b" partitioner: "2"
  part_config { var_name: "b/part_0" AllReduceSynchronizer { group: 7 } }
  part_config { var_name: "b/part_1" AllReduceSynchronizer { group: 7 } }
}
//--- graph.mlir
dfg.variable @w : tensor<5x4xf32> {trainable}
dfg.variable @"w/Momentum" : tensor<5x4xf32>
dfg.variable @b : tensor<4xf32> {trainable}
dfg.variable @step : tensor<i64>
dfg.graph {
  %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
  %x = dfg.placeholder : () -> tensor<?x5xf32> loc("x")
  %e = dfg.placeholder : () -> tensor<?x4xf32> loc("e")
  %g = dfg.mat_mul %x, %e {transpose_a = true} : (tensor<?x5xf32>, tensor<?x4xf32>) -> tensor<5x4xf32> loc("g")
  %norm = dfg.l2_loss %g : (tensor<5x4xf32>) -> tensor<f32> loc("norm")
  %shape = dfg.const dense<[5, 4]> : tensor<2xi32> : tensor<2xi32> loc("shape")
  %random = dfg.random_uniform %shape {seed = 1 : i64} : (tensor<2xi32>) -> tensor<5x4xf32> loc("w/random")
  %zeros = dfg.const dense<0.0> : tensor<5x4xf32> : tensor<5x4xf32> loc("w/Momentum/zeros")
  %w = dfg.var_handle @w {tf = {_class = ["loc:@w"], shared_name = "w"}} : !dfg.ref<tensor<5x4xf32>> loc("w")
  %m = dfg.var_handle @"w/Momentum" {tf = {_class = ["loc:@w"]}} : !dfg.ref<tensor<5x4xf32>> loc("w/Momentum")
  %b = dfg.var_handle @b : !dfg.ref<tensor<4xf32>> loc("b")
  dfg.assign %w, %random : (!dfg.ref<tensor<5x4xf32>>, tensor<5x4xf32>) -> () loc("w/Assign")
  dfg.assign %m, %zeros : (!dfg.ref<tensor<5x4xf32>>, tensor<5x4xf32>) -> () loc("w/Momentum/Assign")
  %i = dfg.is_initialized %w : (!dfg.ref<tensor<5x4xf32>>) -> tensor<i1> loc("w/IsInitialized")
  %read = dfg.read_variable %w {control = ["e"]} : (!dfg.ref<tensor<5x4xf32>>) -> tensor<5x4xf32> loc("w/Read")
  dfg.apply_momentum %w, %m, %lr, %g, %lr : (!dfg.ref<tensor<5x4xf32>>, !dfg.ref<tensor<5x4xf32>>, tensor<f32>, tensor<5x4xf32>, tensor<f32>) -> () loc("update")
  dfg.assign_sub %w, %g : (!dfg.ref<tensor<5x4xf32>>, tensor<5x4xf32>) -> () loc("again")
  dfg.group {control = ["update", "w"], tf = {_class = ["loc:@w"]}} : () -> () loc("train")
  %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %gb = dfg.sum %e, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gb")
  dfg.apply_gradient_descent %b, %lr, %gb : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_b")
}
