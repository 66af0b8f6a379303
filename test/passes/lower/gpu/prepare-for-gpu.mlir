// RUN: distc-opt %s --pass-pipeline='builtin.module(drt.entry(drt-prepare-for-gpu))' | FileCheck %s

drt.variable @w : tensor<5x5x3x16xf32> {trainable}
drt.variable @d : tensor<3x3x4x2xf32> {trainable}

// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3, d0)>
// CHECK-DAG: #[[SAME:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[BACK:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1, d2)>

// Of float64 with channels outermost.
// CHECK-DAG: #[[PLANES:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1, d0)>
// CHECK-DAG: #[[UNPLANES:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2, d0, d1)>

// CHECK-LABEL: drt.entry "filters"
drt.entry "filters" {
  // CHECK: %[[X:.*]] = drt.feed {{.*}}name = "x"
  // CHECK: %[[DY:.*]] = drt.feed {{.*}}name = "dy"
  // CHECK: %[[W:.*]] = drt.read @w
  %x = drt.feed {name = "x"} : () -> tensor<1x8x8x3xf32>
  %dy = drt.feed {name = "dy"} : () -> tensor<1x8x8x16xf32>
  %w = drt.read @w : tensor<5x5x3x16xf32>
  %again = drt.read @w : tensor<5x5x3x16xf32>
  // CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [#[[OUT]], #[[SAME]]]{{.*}} ins(%[[W]] : tensor<5x5x3x16xf32>)
  // CHECK: tensor<16x5x5x3xf32>
  // CHECK: drt.conv2d %[[X]], %[[T]] {{.*}}filter_layout = "OHWI"{{.*}} : (tensor<1x8x8x3xf32>, tensor<16x5x5x3xf32>)
  %y = drt.conv2d %x, %w {descriptor = array<i64: 1, 8, 8, 3, 5, 5, 16, 8, 8, 1, 1, 1, 1, 2, 2, 2, 2, 1>}
      : (tensor<1x8x8x3xf32>, tensor<5x5x3x16xf32>) -> tensor<1x8x8x16xf32>
  // One transpose serves both.
  // CHECK-NOT: linalg.generic
  // CHECK: drt.conv2d_grad_input %[[T]], %[[DY]] {{.*}}filter_layout = "OHWI"
  %dx = drt.conv2d_grad_input %again, %dy {descriptor = array<i64: 1, 8, 8, 3, 5, 5, 16, 8, 8, 1, 1, 1, 1, 2, 2, 2, 2, 1>}
      : (tensor<5x5x3x16xf32>, tensor<1x8x8x16xf32>) -> tensor<1x8x8x3xf32>
  // CHECK: %[[G:.*]] = drt.conv2d_grad_filter %[[X]], %[[DY]] {{.*}}filter_layout = "OHWI"{{.*}} -> tensor<16x5x5x3xf32>
  // CHECK: %[[DW:.*]] = linalg.generic {indexing_maps = [#[[BACK]], #[[SAME]]]{{.*}} ins(%[[G]] : tensor<16x5x5x3xf32>)
  %dw = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 1, 8, 8, 3, 5, 5, 16, 8, 8, 1, 1, 1, 1, 2, 2, 2, 2, 1>}
      : (tensor<1x8x8x3xf32>, tensor<1x8x8x16xf32>) -> tensor<5x5x3x16xf32>
  // CHECK: drt.fetch %[[DW]] {{.*}} : (tensor<5x5x3x16xf32>)
  drt.fetch %dw {name = "dw", join = 0 : i32} : (tensor<5x5x3x16xf32>) -> ()
  // The updated variable is another value.
  drt.update {kernel = @update, variables = [@w], count = 1200 : i64} : () -> ()
  // CHECK: drt.update
  // CHECK: linalg.generic {indexing_maps = [#[[OUT]]
  // CHECK: drt.conv2d
  %new = drt.conv2d %x, %w {descriptor = array<i64: 1, 8, 8, 3, 5, 5, 16, 8, 8, 1, 1, 1, 1, 2, 2, 2, 2, 1>}
      : (tensor<1x8x8x3xf32>, tensor<5x5x3x16xf32>) -> tensor<1x8x8x16xf32>
  drt.fetch %new {name = "new", join = 0 : i32} : (tensor<1x8x8x16xf32>) -> ()
}

// A multiplier of channels: (h, w, c, multiplier) is (c * multiplier, h, w, 1).
// CHECK-LABEL: drt.entry "depthwise"
drt.entry "depthwise" {
  %x = drt.feed {name = "x"} : () -> tensor<1x8x8x4xf32>
  %dy = drt.feed {name = "dy"} : () -> tensor<1x8x8x8xf32>
  // CHECK: %[[D:.*]] = drt.read @d
  %d = drt.read @d : tensor<3x3x4x2xf32>
  // CHECK: %[[LINE:.*]] = tensor.collapse_shape %[[D]]
  // CHECK: %[[F:.*]] = tensor.expand_shape %[[LINE]] {{.*}} into tensor<3x3x1x8xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[F]] : tensor<3x3x1x8xf32>) outs({{.*}} : tensor<8x3x3x1xf32>)
  // CHECK: drt.conv2d %{{.*}} : (tensor<1x8x8x4xf32>, tensor<8x3x3x1xf32>)
  %y = drt.conv2d %x, %d {descriptor = array<i64: 1, 8, 8, 4, 3, 3, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 4>}
      : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x8x8x8xf32>
  // CHECK: drt.conv2d_grad_filter {{.*}} -> tensor<8x3x3x1xf32>
  // CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<3x3x1x8xf32>)
  // CHECK: tensor.expand_shape {{.*}} into tensor<3x3x4x2xf32>
  %dd = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 1, 8, 8, 4, 3, 3, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 4>}
      : (tensor<1x8x8x4xf32>, tensor<1x8x8x8xf32>) -> tensor<3x3x4x2xf32>
  drt.fetch %y {name = "y", join = 0 : i32} : (tensor<1x8x8x8xf32>) -> ()
  drt.fetch %dd {name = "dd", join = 0 : i32} : (tensor<3x3x4x2xf32>) -> ()
}

// CHECK-LABEL: drt.entry "wide"
drt.entry "wide" {
  %x = drt.feed {name = "x"} : () -> tensor<1x8x8x3xf64>
  %dy = drt.feed {name = "dy"} : () -> tensor<1x8x8x16xf64>
  %w = drt.feed {name = "w"} : () -> tensor<5x5x3x16xf64>
  // CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [#[[PLANES]], #[[SAME]]]{{.*}} ins(%{{.*}} : tensor<5x5x3x16xf64>) outs(%{{.*}} : tensor<16x3x5x5xf64>)
  // CHECK: drt.conv2d %{{.*}}, %[[T]] {{.*}}filter_layout = "OIHW"
  %y = drt.conv2d %x, %w {descriptor = array<i64: 1, 8, 8, 3, 5, 5, 16, 8, 8, 1, 1, 1, 1, 2, 2, 2, 2, 1>}
      : (tensor<1x8x8x3xf64>, tensor<5x5x3x16xf64>) -> tensor<1x8x8x16xf64>
  // CHECK: %[[G:.*]] = drt.conv2d_grad_filter {{.*}}filter_layout = "OIHW"{{.*}} -> tensor<16x3x5x5xf64>
  // CHECK: linalg.generic {indexing_maps = [#[[UNPLANES]], #[[SAME]]]{{.*}} ins(%[[G]] : tensor<16x3x5x5xf64>) outs(%{{.*}} : tensor<5x5x3x16xf64>)
  %dw = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 1, 8, 8, 3, 5, 5, 16, 8, 8, 1, 1, 1, 1, 2, 2, 2, 2, 1>}
      : (tensor<1x8x8x3xf64>, tensor<1x8x8x16xf64>) -> tensor<5x5x3x16xf64>
  drt.fetch %y {name = "y", join = 0 : i32} : (tensor<1x8x8x16xf64>) -> ()
  drt.fetch %dw {name = "dw", join = 0 : i32} : (tensor<5x5x3x16xf64>) -> ()
}
