// RUN: distc-opt %s --drt-set-precision=precision=fp16 | FileCheck %s
// RUN: distc-opt %s --drt-set-precision="precision=fp16 device=true" | FileCheck %s --check-prefix=DEVICE

drt.variable @w : tensor<8x8xf32>
drt.variable @b : tensor<8xf32>

// The largest of an operand's elements says the power of two that it is multiplied with, and the product is scaled back
// before its bias and activation. What two products read in two shapes is scaled once.
// CHECK-LABEL: drt.entry "step"
// DEVICE-LABEL: drt.entry "step"
// DEVICE-NOT: precision =
drt.entry "step" {
  // CHECK: %[[X:.*]] = drt.feed
  %x = drt.feed {name = "x"} : () -> tensor<4x8xf32>
  // CHECK: %[[MOST:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%[[X]] : tensor<4x8xf32>) outs({{.*}} : tensor<f32>)
  // CHECK: math.absf
  // CHECK: arith.maximumf
  // CHECK: %[[FACTOR:.*]] = linalg.generic {{.*}} ins(%[[MOST]] : tensor<f32>)
  // CHECK: arith.constant 268 : i32
  // CHECK: %[[BACK:.*]] = linalg.generic {{.*}} ins(%[[MOST]] : tensor<f32>)
  // CHECK: %[[HALF:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[FACTOR]] : tensor<4x8xf32>, tensor<f32>) outs({{.*}} : tensor<4x8xf16>)
  // CHECK: arith.mulf
  // CHECK: arith.truncf
  // CHECK: %[[W:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<8x8xf16>)
  %w = drt.read @w : tensor<8x8xf32>
  %b = drt.read @b : tensor<8xf32>
  // CHECK: %[[BIAS:.*]] = drt.read @b
  // CHECK: %[[PRODUCT:.*]] = drt.matmul %[[HALF]], %[[W]] : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf32>
  // CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[PRODUCT]], %[[BACK]], %{{.*}}, %[[BIAS]] :
  // CHECK: arith.mulf
  // CHECK: arith.mulf
  // CHECK: arith.addf
  // CHECK: arith.maximumf
  // CHECK: drt.fetch %[[Y]]
  %y = drt.matmul %x, %w, %b {epilogue = 1 : i32} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  drt.fetch %y {join = 0 : i32, name = "y"} : (tensor<4x8xf32>) -> ()
  // CHECK: %[[ROWS:.*]] = tensor.expand_shape %[[HALF]] {{.*}} : tensor<4x8xf16> into tensor<2x2x8xf16>
  // CHECK: drt.matmul %[[ROWS]], %{{.*}} {transpose_b} : (tensor<2x2x8xf16>, tensor<2x2x8xf16>) -> tensor<2x2x2xf32>
  %rows = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 2, 8] : tensor<4x8xf32> into tensor<2x2x8xf32>
  %z = drt.matmul %rows, %rows {transpose_b} : (tensor<2x2x8xf32>, tensor<2x2x8xf32>) -> tensor<2x2x2xf32>
  drt.fetch %z {join = 0 : i32, name = "z"} : (tensor<2x2x2xf32>) -> ()
}

// Convolutions take TF32 on devices, and what they are on processors.
// CHECK-LABEL: drt.entry "eval"
// CHECK: drt.conv2d {{.*}} : (tensor<1x4x4x2xf32>, tensor<1x1x2x3xf32>) -> tensor<1x4x4x3xf32>
// DEVICE-LABEL: drt.entry "eval"
// DEVICE: drt.conv2d {{.*}}precision = "tf32"{{.*}} : (tensor<1x4x4x2xf32>, tensor<1x1x2x3xf32>) -> tensor<1x4x4x3xf32>
drt.entry "eval" {
  %image = drt.feed {name = "image"} : () -> tensor<1x4x4x2xf32>
  %filter = drt.feed {name = "filter"} : () -> tensor<1x1x2x3xf32>
  %0 = drt.conv2d %image, %filter {descriptor = array<i64: 1, 4, 4, 2, 1, 1, 3, 4, 4, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<1x4x4x2xf32>, tensor<1x1x2x3xf32>) -> tensor<1x4x4x3xf32>
  drt.fetch %0 {join = 0 : i32, name = "image"} : (tensor<1x4x4x3xf32>) -> ()
}
