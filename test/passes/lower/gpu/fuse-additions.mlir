// RUN: distc-opt %s --drt-fuse-additions --split-input-file | FileCheck %s

#id = affine_map<(t, n) -> (t, n)>
#id3 = affine_map<(b, t, n) -> (b, t, n)>

// A residual connection: the other branch is added while the layer's matmul is made, behind the layer's own bias.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[X:.*]] = drt.feed {name = "x"}
// CHECK: %[[W:.*]] = drt.feed {name = "w"}
// CHECK: %[[B:.*]] = drt.feed {name = "b"}
// CHECK: %[[R:.*]] = drt.feed {name = "r"}
// CHECK-NOT: drt.matmul %
// CHECK: %[[Y:.*]] = drt.matmul_add %[[X]], %[[W]], %[[R]], %[[B]] {precision = "tf32", transpose_b}
// CHECK-NOT: linalg.generic
// CHECK: drt.fetch %[[Y]]
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<64x32xf32>
  %w = drt.feed {name = "w"} : () -> tensor<16x32xf32>
  %b = drt.feed {name = "b"} : () -> tensor<16xf32>
  %r = drt.feed {name = "r"} : () -> tensor<64x16xf32>
  %p = drt.matmul %x, %w, %b {transpose_b, precision = "tf32"} : (tensor<64x32xf32>, tensor<16x32xf32>, tensor<16xf32>) -> tensor<64x16xf32>
  %e = tensor.empty() : tensor<64x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %r : tensor<64x16xf32>, tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %0 = arith.addf %in, %other : f32
    linalg.yield %0 : f32
  } -> tensor<64x16xf32>
  drt.fetch %y {join = 0 : i32, name = "y"} : (tensor<64x16xf32>) -> ()
}

// -----

#id = affine_map<(t, n) -> (t, n)>
#id3 = affine_map<(b, t, n) -> (b, t, n)>

// The gradients of what three layers read: each is added to the ones before. One lies behind a reshape.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[P:.*]] = drt.matmul %{{.*}}, %{{.*}} :
// CHECK: %[[Q:.*]] = drt.matmul_add %{{.*}}, %{{.*}}, %[[P]] {transpose_b} :
// CHECK: %[[R:.*]] = drt.matmul_add %{{.*}}, %{{.*}}, %[[Q]] :
// CHECK: %[[R3:.*]] = tensor.expand_shape %[[R]]
// CHECK: drt.fetch %[[R3]]
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8x4xbf16>
  %w = drt.feed {name = "w"} : () -> tensor<4x4xbf16>
  %p = drt.matmul %x, %w : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xf32>
  %q = drt.matmul %x, %w {transpose_b} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xf32>
  %r = drt.matmul %x, %w : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xf32>
  %p3 = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  %q3 = tensor.expand_shape %q [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  %r3 = tensor.expand_shape %r [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  %e = tensor.empty() : tensor<2x4x4xf32>
  %y = linalg.generic {indexing_maps = [#id3, #id3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p3, %q3, %r3 : tensor<2x4x4xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) outs(%e : tensor<2x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x4xf32>
  drt.fetch %y {join = 0 : i32, name = "y"} : (tensor<2x4x4xf32>) -> ()
}

// -----

#id = affine_map<(t, n) -> (t, n)>

// What another operation reads too is a matmul as before, and so is one whose sum has an activation, or whose other term is part of the sum's own kernel.
// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: drt.matmul_add
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8x4xf32>
  %w = drt.feed {name = "w"} : () -> tensor<4x4xf32>
  %r = drt.feed {name = "r"} : () -> tensor<8x4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %read = drt.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%read, %r : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %0 = arith.addf %in, %other : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %active = drt.matmul %x, %w {epilogue = 1 : i32} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%active, %r : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %0 = arith.addf %in, %other : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %own = drt.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %square = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %v = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%own, %square : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %0 = arith.addf %in, %other : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  drt.fetch %read {join = 0 : i32, name = "read"} : (tensor<8x4xf32>) -> ()
  drt.fetch %y {join = 0 : i32, name = "y"} : (tensor<8x4xf32>) -> ()
  drt.fetch %z {join = 0 : i32, name = "z"} : (tensor<8x4xf32>) -> ()
  drt.fetch %v {join = 0 : i32, name = "v"} : (tensor<8x4xf32>) -> ()
}

// -----

#id = affine_map<(t, n) -> (t, n)>

// What is widened for the sum is not in memory as float32, and would be written for it: matmuls alone are added up, and what reads the sum adds it. One
// matmul stays as it is.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[P:.*]] = drt.matmul %
// CHECK: %[[Q:.*]] = drt.matmul_add %{{.*}}, %{{.*}}, %[[P]] {transpose_b} :
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[Q]], %
// CHECK: %[[ALONE:.*]] = drt.matmul %
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[ALONE]], %
// CHECK: drt.fetch %[[Y]]
// CHECK: drt.fetch %[[Z]]
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8x4xbf16>
  %w = drt.feed {name = "w"} : () -> tensor<4x4xbf16>
  %e = tensor.empty() : tensor<8x4xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x4xbf16>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: bf16, %out: f32):
    %0 = arith.extf %a : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %p = drt.matmul %x, %w : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xf32>
  %q = drt.matmul %x, %w {transpose_b} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %wide, %q : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<8x4xf32>
  %r = drt.matmul %x, %w : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%r, %wide : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  drt.fetch %y {join = 0 : i32, name = "y"} : (tensor<8x4xf32>) -> ()
  drt.fetch %z {join = 0 : i32, name = "z"} : (tensor<8x4xf32>) -> ()
}
