// RUN: distc-opt %s --drt-convolutions-to-matmuls --split-input-file | FileCheck %s

// Pixels are rows, channels columns; bias and activation go along.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[X:.*]] = drt.feed {batched, name = "x"}
// CHECK: %[[F:.*]] = drt.feed {name = "f"}
// CHECK: %[[B:.*]] = drt.feed {name = "b"}
// CHECK-DAG: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{.*}} into tensor<60x3xf32>
// CHECK-DAG: %[[MATRIX:.*]] = tensor.collapse_shape %[[F]] {{.*}} into tensor<3x7xf32>
// CHECK: %[[Y:.*]] = drt.matmul %[[ROWS]], %[[MATRIX]], %[[B]] {epilogue = 1 : i32} : (tensor<60x3xf32>, tensor<3x7xf32>, tensor<7xf32>) -> tensor<60x7xf32>
// CHECK: tensor.expand_shape %[[Y]] {{.*}} into tensor<2x5x6x7xf32>
// CHECK: drt.matmul %{{.*}}, %{{.*}} {transpose_b} : (tensor<60x7xf32>, tensor<3x7xf32>) -> tensor<60x3xf32>
// CHECK: drt.matmul %{{.*}}, %{{.*}} {transpose_a} : (tensor<60x3xf32>, tensor<60x7xf32>) -> tensor<3x7xf32>
// CHECK: tensor.expand_shape {{.*}} into tensor<1x1x3x7xf32>
drt.entry "step" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x5x6x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<2x5x6x7xf32>
  %f = drt.feed {name = "f"} : () -> tensor<1x1x3x7xf32>
  %b = drt.feed {name = "b"} : () -> tensor<7xf32>
  %y = drt.conv2d %x, %f, %b {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 5, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1>, epilogue = 1 : i32} : (tensor<2x5x6x3xf32>, tensor<1x1x3x7xf32>, tensor<7xf32>) -> tensor<2x5x6x7xf32>
  %dx = drt.conv2d_grad_input %f, %dy {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 5, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<1x1x3x7xf32>, tensor<2x5x6x7xf32>) -> tensor<2x5x6x3xf32>
  %df = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 5, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<2x5x6x3xf32>, tensor<2x5x6x7xf32>) -> tensor<1x1x3x7xf32>
}

// Strides choose pixels: the others are not read, and their gradient is 0.
// CHECK-LABEL: drt.entry "strided"
// CHECK: %[[X:.*]] = drt.feed {batched, name = "x"}
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x3x2x1x1x3xf32>)
// CHECK-NOT: scf.if
// CHECK: tensor.extract %[[X]]{{.*}} : tensor<2x5x6x3xf32>
// CHECK: drt.matmul {{.*}} : (tensor<12x3xf32>, tensor<3x7xf32>) -> tensor<12x7xf32>
// CHECK: %[[G:.*]] = drt.matmul {{.*}} {transpose_b} : (tensor<12x7xf32>, tensor<3x7xf32>) -> tensor<12x3xf32>
// CHECK: %[[PIXELS:.*]] = tensor.expand_shape %[[G]] {{.*}} into tensor<2x3x2x1x1x3xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x5x6x3xf32>)
// CHECK-NOT: scf.for
// CHECK: scf.if
// CHECK: tensor.extract %[[PIXELS]]
// CHECK: tensor.extract %[[X]]
// CHECK: drt.matmul {{.*}} {transpose_a} : (tensor<12x3xf32>, tensor<12x7xf32>) -> tensor<3x7xf32>
drt.entry "strided" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x5x6x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<2x3x2x7xf32>
  %f = drt.feed {name = "f"} : () -> tensor<1x1x3x7xf32>
  %y = drt.conv2d %x, %f {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 3, 2, 2, 3, 1, 1, 0, 0, 0, 0, 1>} : (tensor<2x5x6x3xf32>, tensor<1x1x3x7xf32>) -> tensor<2x3x2x7xf32>
  %dx = drt.conv2d_grad_input %f, %dy {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 3, 2, 2, 3, 1, 1, 0, 0, 0, 0, 1>} : (tensor<1x1x3x7xf32>, tensor<2x3x2x7xf32>) -> tensor<2x5x6x3xf32>
  %df = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 3, 2, 2, 3, 1, 1, 0, 0, 0, 0, 1>} : (tensor<2x5x6x3xf32>, tensor<2x3x2x7xf32>) -> tensor<1x1x3x7xf32>
}

// A larger window, groups, padding: convolutions.
// CHECK-LABEL: drt.entry "others"
// CHECK-COUNT-3: drt.conv2d
// CHECK-NOT: drt.matmul
drt.entry "others" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x5x6x3xf32>
  %f = drt.feed {name = "f"} : () -> tensor<1x1x3x7xf32>
  %large = drt.feed {name = "large"} : () -> tensor<1x3x3x7xf32>
  %deep = drt.feed {name = "deep"} : () -> tensor<1x1x3x2xf32>
  %0 = drt.conv2d %x, %f {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x5x6x3xf32>, tensor<1x1x3x7xf32>) -> tensor<2x4x4x7xf32>
  %1 = drt.conv2d %x, %large {descriptor = array<i64: 2, 5, 6, 3, 1, 3, 7, 5, 6, 1, 1, 1, 1, 0, 1, 0, 1, 1>} : (tensor<2x5x6x3xf32>, tensor<1x3x3x7xf32>) -> tensor<2x5x6x7xf32>
  %2 = drt.conv2d %x, %deep {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 6, 5, 6, 1, 1, 1, 1, 0, 0, 0, 0, 3>} : (tensor<2x5x6x3xf32>, tensor<1x1x3x2xf32>) -> tensor<2x5x6x6xf32>
}

// Few windows beside a large filter: each is a row, and the image's gradient is the sum of what they have at its place. (The
// elements of OIHW: channels first.)
// CHECK-LABEL: drt.entry "few_windows"
// CHECK: %[[X:.*]] = drt.feed {batched, name = "x"}
// CHECK: %[[DY:.*]] = drt.feed {batched, name = "dy"}
// CHECK: %[[F:.*]] = drt.feed {name = "f"}
// CHECK: %[[O:.*]] = drt.feed {name = "o"}
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2x2x3x3x64xf32>)
// CHECK: scf.if
// CHECK: tensor.extract %[[X]]
// CHECK: %[[A:.*]] = tensor.collapse_shape %[[W]] {{.*}} into tensor<8x576xf32>
// CHECK: drt.matmul %[[A]], %{{.*}} : (tensor<8x576xf32>, tensor<576x96xf32>) -> tensor<8x96xf32>
// CHECK: %[[D:.*]] = drt.matmul %{{.*}} {transpose_b} : (tensor<8x96xf32>, tensor<576x96xf32>) -> tensor<8x576xf32>
// CHECK: tensor.expand_shape %[[D]] {{.*}} into tensor<2x2x2x3x3x64xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x3x3x64xf32>)
// CHECK: scf.for
// CHECK: scf.for
// CHECK: drt.matmul %{{.*}} {transpose_a} : (tensor<8x576xf32>, tensor<8x96xf32>) -> tensor<576x96xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2x2x64x3x3xf32>)
// CHECK: drt.matmul %{{.*}} {transpose_b} : (tensor<8x576xf32>, tensor<96x576xf32>) -> tensor<8x96xf32>
// CHECK: drt.matmul %{{.*}} {transpose_a} : (tensor<8x96xf32>, tensor<8x576xf32>) -> tensor<96x576xf32>
drt.entry "few_windows" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x3x3x64xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<2x2x2x96xf32>
  %f = drt.feed {name = "f"} : () -> tensor<3x3x64x96xf32>
  %o = drt.feed {name = "o"} : () -> tensor<96x64x3x3xf32>
  %y = drt.conv2d %x, %f {descriptor = array<i64: 2, 3, 3, 64, 3, 3, 96, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x3x3x64xf32>, tensor<3x3x64x96xf32>) -> tensor<2x2x2x96xf32>
  %dx = drt.conv2d_grad_input %f, %dy {descriptor = array<i64: 2, 3, 3, 64, 3, 3, 96, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1>} : (tensor<3x3x64x96xf32>, tensor<2x2x2x96xf32>) -> tensor<2x3x3x64xf32>
  %df = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 2, 3, 3, 64, 3, 3, 96, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x3x3x64xf32>, tensor<2x2x2x96xf32>) -> tensor<3x3x64x96xf32>
  %z = drt.conv2d %x, %o {descriptor = array<i64: 2, 3, 3, 64, 3, 3, 96, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1>, filter_layout = "OIHW"} : (tensor<2x3x3x64xf32>, tensor<96x64x3x3xf32>) -> tensor<2x2x2x96xf32>
  %do = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 2, 3, 3, 64, 3, 3, 96, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1>, filter_layout = "OIHW"} : (tensor<2x3x3x64xf32>, tensor<2x2x2x96xf32>) -> tensor<96x64x3x3xf32>
}

// -----

// What is few for each of four cores.
drt.program "conv.meta" strategy "AllReduce" target "cpu" batch 32 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] cores 4
// CHECK-LABEL: drt.entry "cores"
// CHECK-NOT: drt.conv2d
// CHECK: drt.matmul %{{.*}} : (tensor<128x576xf32>, tensor<576x96xf32>) -> tensor<128x96xf32>
drt.entry "cores" {
  %x = drt.feed {name = "x", batched} : () -> tensor<32x3x3x64xf32>
  %f = drt.feed {name = "f"} : () -> tensor<3x3x64x96xf32>
  %y = drt.conv2d %x, %f {descriptor = array<i64: 32, 3, 3, 64, 3, 3, 96, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1>} : (tensor<32x3x3x64xf32>, tensor<3x3x64x96xf32>) -> tensor<32x2x2x96xf32>
}
