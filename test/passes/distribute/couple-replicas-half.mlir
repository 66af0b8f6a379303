// RUN: distc-opt %s --split-input-file --dist-couple-replicas | FileCheck %s

// A loss of a share is divided by the share's size: what is float16 of its gradient is divided by the number of replicas before it is rounded, so that
// it is no larger than one device's, and multiplied where it is float32 again.
// CHECK-LABEL: @backward
module @backward attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["gradient:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf16> loc("x")
    %y = dfg.placeholder : () -> tensor<?x3xf32> loc("y")
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
    %shape = dfg.shape %y : (tensor<?x3xf32>) -> tensor<2xi32> loc("shape")
    %size = dfg.gather_v2 %shape, %zero, %zero : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("size")
    %count = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("count")
    // CHECK: %[[SEED:.*]] = dfg.real_div
    %seed = dfg.real_div %y, %count : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32> loc("seed")
    // CHECK: %[[SMALL:.*]] = dist.rescale %[[SEED]] power -1 : tensor<?x3xf32>
    // CHECK: %[[HALF:.*]] = dfg.cast %[[SMALL]] : (tensor<?x3xf32>) -> tensor<?x3xf16>
    %half = dfg.cast %seed : (tensor<?x3xf32>) -> tensor<?x3xf16> loc("half")
    // CHECK: %[[PRODUCT:.*]] = dfg.mat_mul %{{.*}}, %[[HALF]]
    %product = dfg.mat_mul %x, %half {transpose_a = true} : (tensor<?x4xf16>, tensor<?x3xf16>) -> tensor<4x3xf16> loc("product")
    // CHECK: %[[WIDE:.*]] = dfg.cast %[[PRODUCT]]
    // CHECK: %[[GRADIENT:.*]] = dist.rescale %[[WIDE]] power 1 : tensor<4x3xf32>
    // CHECK: dfg.neg %[[GRADIENT]]
    %wide = dfg.cast %product : (tensor<4x3xf16>) -> tensor<4x3xf32> loc("wide")
    %gradient = dfg.neg %wide : (tensor<4x3xf32>) -> tensor<4x3xf32> loc("gradient")
  }
}

// -----

// What is divided in float16 itself is made smaller behind it; where something else is added to it, it is as it was. bfloat16 has room.
// CHECK-LABEL: @added
module @added attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["gradient:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf16> loc("x")
    %w = dfg.const dense<1.0> : tensor<4xf16> : tensor<4xf16> loc("w")
    %zeros = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zeros")
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
    %shape = dfg.shape %x : (tensor<?x4xf16>) -> tensor<2xi32> loc("shape")
    %size = dfg.gather_v2 %shape, %zero, %zero : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("size")
    %count = dfg.cast %size : (tensor<i32>) -> tensor<f16> loc("count")
    // CHECK: %[[SEED:.*]] = dfg.real_div
    // CHECK: %[[SMALL:.*]] = dist.rescale %[[SEED]] power -1 : tensor<?x4xf16>
    %seed = dfg.real_div %x, %count : (tensor<?x4xf16>, tensor<f16>) -> tensor<?x4xf16> loc("seed")
    // CHECK: %[[SUM:.*]] = dfg.sum %[[SMALL]]
    %sum = dfg.sum %seed, %zeros : (tensor<?x4xf16>, tensor<1xi32>) -> tensor<4xf16> loc("sum")
    // CHECK: %[[ORIGINAL:.*]] = dist.rescale %[[SUM]] power 1 : tensor<4xf16>
    // CHECK: dfg.add_v2 %[[ORIGINAL]]
    %gradient = dfg.add_v2 %sum, %w : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16> loc("gradient")
    // CHECK-NOT: dist.rescale
    %wide = dfg.cast %size : (tensor<i32>) -> tensor<bf16> loc("wide")
    %rows = dfg.cast %x : (tensor<?x4xf16>) -> tensor<?x4xbf16> loc("rows")
    %brain = dfg.real_div %rows, %wide : (tensor<?x4xbf16>, tensor<bf16>) -> tensor<?x4xbf16> loc("brain")
  }
}
