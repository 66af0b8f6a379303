// RUN: distc-opt %s --drt-fuse-bias-gradients --split-input-file | FileCheck %s

#id = affine_map<(t, n) -> (t, n)>
#column = affine_map<(t, n) -> (n)>
#row = affine_map<(t, n) -> (t)>
#id4 = affine_map<(b, t, h, s) -> (b, t, h, s)>
#heads = affine_map<(b, t, h, s) -> (h, s)>

// The sums are in front of the product: both are made there.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[X:.*]] = drt.feed {name = "x"}
// CHECK: %[[G:.*]] = drt.feed {name = "g"}
// CHECK: %[[W:.*]], %[[B:.*]] = drt.matmul_bias_grad %[[X]], %[[G]] : (tensor<64x32xbf16>, tensor<64x16xbf16>) -> (tensor<32x16xf32>, tensor<16xf32>)
// CHECK-NEXT: drt.fetch %[[B]]
// CHECK-NEXT: drt.fetch %[[W]]
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<64x32xbf16>
  %g = drt.feed {name = "g"} : () -> tensor<64x16xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<64x16xbf16>) outs(%e : tensor<64x16xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<64x16xf32>
  %f = tensor.empty() : tensor<16xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%f : tensor<16xf32>) -> tensor<16xf32>
  %b = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%wide : tensor<64x16xf32>) outs(%fill : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<16xf32>
  drt.fetch %b {join = 0 : i32, name = "b"} : (tensor<16xf32>) -> ()
  %w = drt.matmul %x, %g {transpose_a} : (tensor<64x32xbf16>, tensor<64x16xbf16>) -> tensor<32x16xf32>
  drt.fetch %w {join = 0 : i32, name = "w"} : (tensor<32x16xf32>) -> ()
}

// -----

#id4 = affine_map<(b, t, h, s) -> (b, t, h, s)>
#heads = affine_map<(b, t, h, s) -> (h, s)>

// Heads and their size are the columns.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[W:.*]], %[[B:.*]] = drt.matmul_bias_grad
// CHECK: %[[H:.*]] = tensor.expand_shape %[[B]] {{\[}}[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
// CHECK: drt.fetch %[[H]]
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<64x32xbf16>
  %g = drt.feed {name = "g"} : () -> tensor<2x32x4x4xbf16>
  %zero = arith.constant 0.0 : f32
  %flat = tensor.collapse_shape %g [[0, 1], [2, 3]] : tensor<2x32x4x4xbf16> into tensor<64x16xbf16>
  %w = drt.matmul %x, %flat {transpose_a} : (tensor<64x32xbf16>, tensor<64x16xbf16>) -> tensor<32x16xf32>
  %e = tensor.empty() : tensor<2x32x4x4xf32>
  %wide = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%g : tensor<2x32x4x4xbf16>) outs(%e : tensor<2x32x4x4xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<2x32x4x4xf32>
  %f = tensor.empty() : tensor<4x4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.generic {indexing_maps = [#id4, #heads], iterator_types = ["reduction", "reduction", "parallel", "parallel"]} ins(%wide : tensor<2x32x4x4xf32>) outs(%fill : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  drt.fetch %b {join = 0 : i32, name = "b"} : (tensor<4x4xf32>) -> ()
  drt.fetch %w {join = 0 : i32, name = "w"} : (tensor<32x16xf32>) -> ()
}

// -----

#id = affine_map<(t, n) -> (t, n)>
#column = affine_map<(t, n) -> (n)>
#row = affine_map<(t, n) -> (t)>

// Sums of rows, sums of what is twice g, and a product that is rounded are something else.
// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: drt.matmul_bias_grad
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<16x32xbf16>
  %g = drt.feed {name = "g"} : () -> tensor<16x16xbf16>
  %h = drt.feed {name = "h"} : () -> tensor<16x16xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<16x16xbf16>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<16x16xf32>
  %twice = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<16x16xbf16>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    %1 = arith.addf %0, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16x16xf32>
  %f = tensor.empty() : tensor<16xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%f : tensor<16xf32>) -> tensor<16xf32>
  %a = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%wide : tensor<16x16xf32>) outs(%fill : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<16xf32>
  %b = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%twice : tensor<16x16xf32>) outs(%fill : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<16xf32>
  %c = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%h : tensor<16x16xbf16>) outs(%fill : tensor<16xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16xf32>
  %w = drt.matmul %x, %g {transpose_a} : (tensor<16x32xbf16>, tensor<16x16xbf16>) -> tensor<32x16xf32>
  %v = drt.matmul %x, %h {transpose_a} : (tensor<16x32xbf16>, tensor<16x16xbf16>) -> tensor<32x16xbf16>
  drt.fetch %a {join = 0 : i32, name = "a"} : (tensor<16xf32>) -> ()
  drt.fetch %b {join = 0 : i32, name = "b"} : (tensor<16xf32>) -> ()
  drt.fetch %c {join = 0 : i32, name = "c"} : (tensor<16xf32>) -> ()
  drt.fetch %w {join = 0 : i32, name = "w"} : (tensor<32x16xf32>) -> ()
  drt.fetch %v {join = 0 : i32, name = "v"} : (tensor<32x16xbf16>) -> ()
}
