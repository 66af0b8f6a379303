// RUN: distc-opt %s --drt-attention-kernels | FileCheck %s

// A block has 64 of a head's 70 tokens: two blocks for each of three heads of two examples. Equal attentions have one kernel; places stay.
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x70x3x32xbf16>
  %k = drt.feed {name = "k"} : () -> tensor<2x8x3x32xbf16>
  %v = drt.feed {name = "v"} : () -> tensor<2x8x3x32xbf16>
  %g = drt.feed {name = "g"} : () -> tensor<2x70x3x32xbf16>
  %b = drt.feed {name = "b"} : () -> tensor<2x1x1x8xf32>
  // CHECK: %[[O:.*]]:2 = drt.launch @attention_forward_0(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {at = array<i64: 0, 65536>} : (tensor<2x70x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x1x1x8xf32>) -> (tensor<2x70x3x32xbf16>, tensor<2x2x3x70xf32>)
  %o, %s = drt.attention %q, %k, %v, %b {at = array<i64: 0, 65536>, scale = 5.000000e-01 : f32} : (tensor<2x70x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x1x1x8xf32>) -> (tensor<2x70x3x32xbf16>, tensor<2x2x3x70xf32>)
  // CHECK: drt.launch @attention_forward_0(
  %o2, %s2 = drt.attention %g, %k, %v, %b {at = array<i64: 131072, 196608>, scale = 5.000000e-01 : f32} : (tensor<2x70x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x1x1x8xf32>) -> (tensor<2x70x3x32xbf16>, tensor<2x2x3x70xf32>)
  // CHECK: %[[Q:.*]]:2 = drt.launch @attention_query_gradient_1(
  %qg, %d = drt.attention_query_gradient %q, %k, %v, %b, %s, %g, %o {at = array<i64: 262144, 327680>, scale = 5.000000e-01 : f32} : (tensor<2x70x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x1x1x8xf32>, tensor<2x2x3x70xf32>, tensor<2x70x3x32xbf16>, tensor<2x70x3x32xbf16>) -> (tensor<2x70x3x32xbf16>, tensor<2x3x70xf32>)
  // CHECK: drt.launch @attention_key_value_gradient_2(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[O]]#1, %{{.*}}, %[[Q]]#1)
  %kg, %vg = drt.attention_key_value_gradient %q, %k, %v, %b, %s, %g, %d {at = array<i64: 393216, 458752>, scale = 5.000000e-01 : f32} : (tensor<2x70x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x8x3x32xbf16>, tensor<2x1x1x8xf32>, tensor<2x2x3x70xf32>, tensor<2x70x3x32xbf16>, tensor<2x3x70xf32>) -> (tensor<2x8x3x32xbf16>, tensor<2x8x3x32xbf16>)
}

// Scores of 64 keys, 8 at a time, two products deep; then 16 keys at a time of the values' 32 columns.
// CHECK: gpu.func @attention_forward_0({{.*}}) workgroup(%{{.*}} : memref<2560xbf16, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %{{.*}} : memref<2560xbf16, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK-SAME: drt.block = array<i64: 128, 1, 1>
// CHECK-SAME: drt.grid = array<i64: 12, 1, 1>
// CHECK-COUNT-32: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return

// Of 16 keys scores and their gradients, and what they add to the query's.
// CHECK: gpu.func @attention_query_gradient_1
// CHECK-SAME: drt.grid = array<i64: 12, 1, 1>
// CHECK-COUNT-12: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return

// Eight keys are one block's.
// CHECK: gpu.func @attention_key_value_gradient_2
// CHECK-SAME: drt.grid = array<i64: 6, 1, 1>
// CHECK-COUNT-16: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: gpu.return
