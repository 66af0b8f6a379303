// RUN: distc-opt %s --drt-set-precision=precision=tf32 | FileCheck %s
// RUN: distc-opt %s --drt-set-precision | FileCheck %s --check-prefix=OWN
// RUN: not distc-opt %s --drt-set-precision=precision=fp8 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: has no matmuls in fp8; there are fp32, tf32, bf16 and fp16
// OWN-NOT: precision
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<4x4xf32>
  %d = drt.feed {name = "d"} : () -> tensor<4x4xf64>
  %image = drt.feed {name = "image"} : () -> tensor<1x4x4x2xf32>
  %filter = drt.feed {name = "filter"} : () -> tensor<3x3x3x2xf32>
  // CHECK: drt.matmul %{{.*}} {precision = "tf32"} : (tensor<4x4xf32>
  %0 = drt.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // What is not made of float32 is as exact as before.
  // CHECK: drt.matmul %{{[^{]*}} : (tensor<4x4xf64>
  %1 = drt.matmul %d, %d : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  // CHECK: drt.conv2d {{.*}}precision = "tf32"
  %2 = drt.conv2d %image, %filter {descriptor = array<i64: 1, 4, 4, 2, 3, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 1>, filter_layout = "OHWI"} : (tensor<1x4x4x2xf32>, tensor<3x3x3x2xf32>) -> tensor<1x2x2x3xf32>
  // CHECK: drt.launch @norm(%{{.*}}) : (tensor<4x4xf32>)
  %3 = drt.launch @norm(%0) : (tensor<4x4xf32>) -> tensor<f32>
}
