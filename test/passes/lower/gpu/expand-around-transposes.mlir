// RUN: distc-opt %s --drt-expand-around-transposes | FileCheck %s

#id2 = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#id4 = affine_map<(b, h, t, d) -> (b, h, t, d)>
#swapped = affine_map<(b, h, t, d) -> (b, t, h, d)>

// CHECK-DAG: #[[SWAPPED:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
// The bias is added to heads, and what rounds the transposed gradient, and sums it, has their axes too.
// CHECK-LABEL: drt.entry "step"
// CHECK-DAG: %[[X:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2, 3]]
// CHECK-DAG: %[[BIAS:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1]]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[BIAS]] : tensor<2x4x4x16xf32>, tensor<4x16xf32>)
// CHECK: %[[BACK:.*]] = linalg.generic {{.*}}#[[SWAPPED]]{{.*}} ins(%[[SUM]]
// CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[BACK]] : tensor<2x4x4x16xf32>) outs(%{{.*}} : tensor<2x4x4x16xbf16>)
// CHECK: tensor.collapse_shape %[[ROUNDED]]
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<4x16xf32>
// CHECK: linalg.generic {{.*}}["reduction", "reduction", "parallel", "parallel"]{{.*}} ins(%[[BACK]] : tensor<2x4x4x16xf32>) outs(%[[ZERO]]
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8x64xf32>
  %bias = drt.feed {name = "bias"} : () -> tensor<64xf32>
  %empty = tensor.empty() : tensor<8x64xf32>
  %sum = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : tensor<8x64xf32>, tensor<64xf32>) outs(%empty : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x64xf32>
  %heads = tensor.expand_shape %sum [[0, 1], [2, 3]] output_shape [2, 4, 4, 16] : tensor<8x64xf32> into tensor<2x4x4x16xf32>
  %empty4 = tensor.empty() : tensor<2x4x4x16xf32>
  %swapped = linalg.generic {indexing_maps = [#swapped, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%heads : tensor<2x4x4x16xf32>) outs(%empty4 : tensor<2x4x4x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x4x4x16xf32>
  %flat = tensor.collapse_shape %swapped [[0, 1], [2, 3]] : tensor<2x4x4x16xf32> into tensor<8x64xf32>
  %narrow = tensor.empty() : tensor<8x64xbf16>
  %rounded = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%flat : tensor<8x64xf32>) outs(%narrow : tensor<8x64xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<8x64xbf16>
  %c0 = arith.constant 0.0 : f32
  %unset = tensor.empty() : tensor<64xf32>
  %zero = linalg.fill ins(%c0 : f32) outs(%unset : tensor<64xf32>) -> tensor<64xf32>
  %total = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["reduction", "parallel"]}
      ins(%flat : tensor<8x64xf32>) outs(%zero : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  drt.fetch %rounded {name = "rounded", join = 0 : i32} : (tensor<8x64xbf16>) -> ()
  drt.fetch %total {name = "total", join = 0 : i32} : (tensor<64xf32>) -> ()
}
