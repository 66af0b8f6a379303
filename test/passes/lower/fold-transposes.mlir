// RUN: distc-opt %s --drt-fold-transposes | FileCheck %s
// RUN: distc-opt %s --drt-fold-transposes --drt-convolutions-to-matmuls | FileCheck %s --check-prefix=POINTWISE
// RUN: distc-opt %s --drt-fold-transposes=filters=false | FileCheck %s --check-prefix=WITHOUT

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

#rows = affine_map<(r, c) -> (c, r)>
#matrix = affine_map<(r, c) -> (r, c)>

// A weight that is transposed for its product is read by columns, a product that is transposed is that of the turned factors.
// CHECK-LABEL: drt.entry "matrices"
// CHECK-NOT: linalg.generic
// CHECK: %[[X:.*]] = drt.feed {batched, name = "x"}
// CHECK: %[[W:.*]] = drt.feed {name = "w"}
// CHECK: %[[Y:.*]] = drt.matmul %[[X]], %[[W]] {transpose_b} : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
// CHECK: drt.matmul %[[Y]], %[[X]] {transpose_a} : (tensor<4x5xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
// With filters or without.
// WITHOUT-LABEL: drt.entry "step"
// WITHOUT-NOT: OIHW
// WITHOUT-LABEL: drt.entry "matrices"
// WITHOUT-NOT: linalg.generic
// WITHOUT: drt.matmul {{.*}} {transpose_b}
drt.entry "matrices" {
  %x = drt.feed {name = "x", batched} : () -> tensor<4x3xf32>
  %w = drt.feed {name = "w"} : () -> tensor<5x3xf32>
  %e = tensor.empty() : tensor<3x5xf32>
  %t = linalg.generic {indexing_maps = [#rows, #matrix], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<5x3xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x5xf32>
  %y = drt.matmul %x, %t : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %g = drt.matmul %x, %y {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %ge = tensor.empty() : tensor<5x3xf32>
  %gt = linalg.generic {indexing_maps = [#rows, #matrix], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<3x5xf32>) outs(%ge : tensor<5x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<5x3xf32>
  drt.fetch %gt {name = "g", join = 0 : i32} : (tensor<5x3xf32>) -> ()
}

#same3 = affine_map<(a, b, c) -> (a, b, c)>

// Heads that come in front stay a copy, whose last axis stays the last one; also behind a product. What keeps its last axis
// is no better otherwise.
// CHECK-LABEL: drt.entry "heads"
// CHECK: %[[Q:.*]] = drt.feed {batched, name = "q"}
// CHECK: %[[K:.*]] = drt.feed {batched, name = "k"}
// CHECK: %[[HEADS:.*]] = linalg.generic {{.*}} ins(%[[K]] : tensor<7x2x3xf32>) outs({{.*}} : tensor<2x7x3xf32>)
// CHECK: %[[S:.*]] = drt.matmul %[[Q]], %[[HEADS]] {transpose_b} : (tensor<2x4x3xf32>, tensor<2x7x3xf32>) -> tensor<2x4x7xf32>
// CHECK: %[[D:.*]] = drt.matmul %[[S]], %[[Q]] {transpose_a} : (tensor<2x4x7xf32>, tensor<2x4x3xf32>) -> tensor<2x7x3xf32>
// CHECK: %[[BACK:.*]] = linalg.generic {{.*}} ins(%[[D]] : tensor<2x7x3xf32>) outs({{.*}} : tensor<7x2x3xf32>)
// CHECK: drt.fetch %[[BACK]]
// CHECK: %[[LAST:.*]] = linalg.generic {{.*}} ins(%[[K]] : tensor<7x2x3xf32>)
// CHECK: drt.matmul %[[S]], %[[LAST]] : (tensor<2x4x7xf32>, tensor<2x7x3xf32>) -> tensor<2x4x3xf32>
drt.entry "heads" {
  %q = drt.feed {name = "q", batched} : () -> tensor<2x4x3xf32>
  %k = drt.feed {name = "k", batched} : () -> tensor<7x2x3xf32>
  %e = tensor.empty() : tensor<2x3x7xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(h, d, t) -> (t, h, d)>, #same3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%k : tensor<7x2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x3x7xf32>
  %s = drt.matmul %q, %t : (tensor<2x4x3xf32>, tensor<2x3x7xf32>) -> tensor<2x4x7xf32>
  %d = drt.matmul %q, %s {transpose_a} : (tensor<2x4x3xf32>, tensor<2x4x7xf32>) -> tensor<2x3x7xf32>
  %de = tensor.empty() : tensor<7x2x3xf32>
  %dt = linalg.generic {indexing_maps = [affine_map<(t, h, d) -> (h, d, t)>, #same3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%d : tensor<2x3x7xf32>) outs(%de : tensor<7x2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<7x2x3xf32>
  drt.fetch %dt {name = "d", join = 0 : i32} : (tensor<7x2x3xf32>) -> ()
  %le = tensor.empty() : tensor<2x7x3xf32>
  %l = linalg.generic {indexing_maps = [affine_map<(h, t, d) -> (t, h, d)>, #same3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%k : tensor<7x2x3xf32>) outs(%le : tensor<2x7x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x7x3xf32>
  %o = drt.matmul %s, %l : (tensor<2x4x7xf32>, tensor<2x7x3xf32>) -> tensor<2x4x3xf32>
  drt.fetch %o {name = "o", join = 0 : i32} : (tensor<2x4x3xf32>) -> ()
}
