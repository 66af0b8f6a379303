// RUN: distc-opt %s --drt-fold-filter-layouts | FileCheck %s
// RUN: distc-opt %s --drt-fold-filter-layouts --drt-pointwise-convolutions | FileCheck %s --check-prefix=POINTWISE

#oihw = affine_map<(h, w, i, o) -> (o, i, h, w)>
#hwio = affine_map<(o, i, h, w) -> (h, w, i, o)>
#same = affine_map<(a, b, c, d) -> (a, b, c, d)>

// Filters that are transposed from OIHW, and gradients that are transposed to it.
// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: linalg.generic
// CHECK: %[[F:.*]] = drt.feed {name = "f"}
// CHECK: drt.conv2d %{{.*}}, %[[F]] {{{.*}}filter_layout = "OIHW"} : (tensor<2x5x6x3xf32>, tensor<7x3x3x3xf32>) -> tensor<2x5x6x7xf32>
// CHECK: drt.conv2d_grad_input %[[F]], {{.*}}filter_layout = "OIHW"}
// CHECK: %[[G:.*]] = drt.conv2d_grad_filter {{.*}}filter_layout = "OIHW"} : {{.*}} -> tensor<7x3x3x3xf32>
// CHECK: drt.fetch %[[G]]
drt.entry "step" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x5x6x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<2x5x6x7xf32>
  %f = drt.feed {name = "f"} : () -> tensor<7x3x3x3xf32>
  %e = tensor.empty() : tensor<3x3x3x7xf32>
  %t = linalg.generic {indexing_maps = [#oihw, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%f : tensor<7x3x3x3xf32>) outs(%e : tensor<3x3x3x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x3x3x7xf32>
  %y = drt.conv2d %x, %t {descriptor = array<i64: 2, 5, 6, 3, 3, 3, 7, 5, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x5x6x3xf32>, tensor<3x3x3x7xf32>) -> tensor<2x5x6x7xf32>
  %dx = drt.conv2d_grad_input %t, %dy {descriptor = array<i64: 2, 5, 6, 3, 3, 3, 7, 5, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<3x3x3x7xf32>, tensor<2x5x6x7xf32>) -> tensor<2x5x6x3xf32>
  %df = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 2, 5, 6, 3, 3, 3, 7, 5, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x5x6x3xf32>, tensor<2x5x6x7xf32>) -> tensor<3x3x3x7xf32>
  %ge = tensor.empty() : tensor<7x3x3x3xf32>
  %g = linalg.generic {indexing_maps = [#hwio, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%df : tensor<3x3x3x7xf32>) outs(%ge : tensor<7x3x3x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<7x3x3x3xf32>
  drt.fetch %g {name = "g", join = 0 : i32} : (tensor<7x3x3x3xf32>) -> ()
}

// Another order, and a gradient that is read as it is too, stay.
// CHECK-LABEL: drt.entry "stays"
// CHECK-NOT: OIHW
drt.entry "stays" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x5x6x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<2x5x6x7xf32>
  %f = drt.feed {name = "f"} : () -> tensor<3x3x3x7xf32>
  %e = tensor.empty() : tensor<3x3x3x7xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(h, w, i, o) -> (w, h, i, o)>, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%f : tensor<3x3x3x7xf32>) outs(%e : tensor<3x3x3x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x3x3x7xf32>
  %y = drt.conv2d %x, %t {descriptor = array<i64: 2, 5, 6, 3, 3, 3, 7, 5, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x5x6x3xf32>, tensor<3x3x3x7xf32>) -> tensor<2x5x6x7xf32>
  %df = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 2, 5, 6, 3, 3, 3, 7, 5, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x5x6x3xf32>, tensor<2x5x6x7xf32>) -> tensor<3x3x3x7xf32>
  %ge = tensor.empty() : tensor<7x3x3x3xf32>
  %g = linalg.generic {indexing_maps = [#hwio, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%df : tensor<3x3x3x7xf32>) outs(%ge : tensor<7x3x3x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<7x3x3x3xf32>
  drt.fetch %g {name = "g", join = 0 : i32} : (tensor<7x3x3x3xf32>) -> ()
  drt.fetch %df {name = "df", join = 0 : i32} : (tensor<3x3x3x7xf32>) -> ()
}

// CHECK-LABEL: drt.entry "pointwise"
// A window of one element: a row of the filter is an output's channels.
// POINTWISE-LABEL: drt.entry "pointwise"
// POINTWISE: drt.matmul {{.*}} {transpose_b} : (tensor<60x3xf32>, tensor<7x3xf32>) -> tensor<60x7xf32>
// POINTWISE: drt.matmul {{.*}} : (tensor<60x7xf32>, tensor<7x3xf32>) -> tensor<60x3xf32>
// POINTWISE: drt.matmul {{.*}} {transpose_a} : (tensor<60x7xf32>, tensor<60x3xf32>) -> tensor<7x3xf32>
drt.entry "pointwise" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x5x6x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<2x5x6x7xf32>
  %f = drt.feed {name = "f"} : () -> tensor<7x3x1x1xf32>
  %e = tensor.empty() : tensor<1x1x3x7xf32>
  %t = linalg.generic {indexing_maps = [#oihw, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%f : tensor<7x3x1x1xf32>) outs(%e : tensor<1x1x3x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x3x7xf32>
  %y = drt.conv2d %x, %t {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 5, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<2x5x6x3xf32>, tensor<1x1x3x7xf32>) -> tensor<2x5x6x7xf32>
  %dx = drt.conv2d_grad_input %t, %dy {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 5, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<1x1x3x7xf32>, tensor<2x5x6x7xf32>) -> tensor<2x5x6x3xf32>
  %df = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 2, 5, 6, 3, 1, 1, 7, 5, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<2x5x6x3xf32>, tensor<2x5x6x7xf32>) -> tensor<1x1x3x7xf32>
  %ge = tensor.empty() : tensor<7x3x1x1xf32>
  %g = linalg.generic {indexing_maps = [#hwio, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%df : tensor<1x1x3x7xf32>) outs(%ge : tensor<7x3x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<7x3x1x1xf32>
  drt.fetch %g {name = "g", join = 0 : i32} : (tensor<7x3x1x1xf32>) -> ()
  drt.fetch %dx {name = "dx", join = 0 : i32} : (tensor<2x5x6x3xf32>) -> ()
  drt.fetch %y {name = "y", join = 0 : i32} : (tensor<2x5x6x7xf32>) -> ()
}
