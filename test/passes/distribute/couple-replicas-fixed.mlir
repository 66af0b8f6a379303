// A graph that fixes its batch: means and sums over it are reduced as in an open one, nothing is gathered.
// RUN: distc-opt %s --split-input-file --dist-couple-replicas | FileCheck %s

// CHECK-LABEL: @batch_norm
module @batch_norm attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["normal:0"]} {
    %x = dfg.placeholder : () -> tensor<8x4xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %mean = dfg.mean %x, %zero : (tensor<8x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    // CHECK: %[[ALL:.*]] = dist.all_reduce mean bucket 0 group -1 (%{{.*}}) variables ["mean"] {coupling} : tensor<4xf32>
    // CHECK: dfg.sub %{{.*}}, %[[ALL]]
    %y = dfg.sub %x, %mean : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> loc("normal")
  }
}

// -----

// The 4 beside the sums is no multiple of 8, nor one by any: both sums are whole.
// CHECK-LABEL: @weights
module @weights attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["weighted:0"]} {
    %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<8xf32> loc("w")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %four = dfg.const dense<4.0> : tensor<f32> : tensor<f32>
    %times = dfg.mul %x, %four : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32> loc("times")
    %sum = dfg.sum %times, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %weights = dfg.sum %w, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("weights")
    %rows = dfg.real_div %x, %weights : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32> loc("rows")
    // CHECK: %[[WEIGHTS:.*]] = dist.all_reduce sum bucket 0 group -1 (%{{.*}}) variables ["weights"] {coupling} : tensor<f32>
    // CHECK: dfg.real_div %{{.*}}, %[[WEIGHTS]] : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %weighted = dfg.sum %rows, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("weighted")
  }
}

// -----

// A reshape to [8, -1] has the batch's rows, and so has what a gradient is copied along.
// CHECK-LABEL: @rows
module @rows attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["product:0"]} {
    %x = dfg.placeholder : () -> tensor<8x2x2xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %flat = dfg.const dense<[8, -1]> : tensor<2xi32> : tensor<2xi32>
    %copies = dfg.const dense<[8, 1]> : tensor<2xi32> : tensor<2xi32>
    %row = dfg.const dense<[1, 4]> : tensor<2xi32> : tensor<2xi32>
    %y = dfg.reshape %x, %flat : (tensor<8x2x2xf32>, tensor<2xi32>) -> tensor<8x4xf32> loc("y")
    %mean = dfg.mean %y, %zero : (tensor<8x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %wide = dfg.reshape %mean, %row : (tensor<4xf32>, tensor<2xi32>) -> tensor<1x4xf32> loc("wide")
    // CHECK: %[[ALL:.*]] = dist.all_reduce mean bucket 0 group -1 (%{{.*}}) variables ["wide"] {coupling} : tensor<1x4xf32>
    // CHECK: dfg.tile %[[ALL]]
    %tiled = dfg.tile %wide, %copies : (tensor<1x4xf32>, tensor<2xi32>) -> tensor<8x4xf32> loc("tiled")
    %product = dfg.mul %y, %tiled : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> loc("product")
  }
}
