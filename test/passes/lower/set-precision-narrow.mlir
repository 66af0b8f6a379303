// RUN: distc-opt %s --drt-set-precision | FileCheck %s
// RUN: distc-opt %s --drt-set-precision=device=true | FileCheck %s --check-prefix=DEVICE

// Products of a graph that is made of bfloat16 itself: what was widened for the product alone is taken as it is, and the
// library rounds what nothing else than a rounding reads.
#id = affine_map<(a, b) -> (a, b)>

// CHECK-LABEL: drt.entry "step"
// CHECK: %[[X:.*]] = drt.feed {name = "x"}
// CHECK: %[[W:.*]] = drt.feed {name = "w"}
// CHECK: %[[FIRST:.*]] = drt.matmul %[[X]], %[[W]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
// CHECK: %[[RESHAPED:.*]] = tensor.expand_shape %[[FIRST]] {{.*}} : tensor<4x8xbf16> into tensor<2x2x8xbf16>
// CHECK: drt.matmul %[[RESHAPED]], %{{.*}} : (tensor<2x2x8xbf16>, tensor<1x8x8xbf16>) -> tensor<2x2x8xf32>
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<4x8xbf16>
  %w = drt.feed {name = "w"} : () -> tensor<8x8xbf16>
  %ex = tensor.empty() : tensor<4x8xf32>
  %ew = tensor.empty() : tensor<8x8xf32>
  %en = tensor.empty() : tensor<4x8xbf16>
  %wide_x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xbf16>) outs(%ex : tensor<4x8xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %t = arith.extf %in : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %wide_w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8x8xbf16>) outs(%ew : tensor<8x8xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %t = arith.extf %in : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  %0 = drt.matmul %wide_x, %wide_w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x8xf32>) outs(%en : tensor<4x8xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4x8xbf16>
  %wide_1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x8xbf16>) outs(%ex : tensor<4x8xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %t = arith.extf %in : bf16 to f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %2 = tensor.expand_shape %wide_1 [[0, 1], [2]] output_shape [2, 2, 8] : tensor<4x8xf32> into tensor<2x2x8xf32>
  %3 = tensor.expand_shape %wide_w [[0, 1], [2]] output_shape [1, 8, 8] : tensor<8x8xf32> into tensor<1x8x8xf32>
  // A result that is read as float32 stays that.
  %4 = drt.matmul %2, %3 : (tensor<2x2x8xf32>, tensor<1x8x8xf32>) -> tensor<2x2x8xf32>
  drt.fetch %4 {join = 0 : i32, name = "y"} : (tensor<2x2x8xf32>) -> ()
}

// float16 has products on devices alone; and one operand that is float32's own keeps the product.
// CHECK-LABEL: drt.entry "eval"
// CHECK: drt.matmul {{.*}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: drt.matmul {{.*}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// DEVICE-LABEL: drt.entry "eval"
// DEVICE: drt.matmul {{.*}} : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf32>
// DEVICE: drt.matmul {{.*}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
drt.entry "eval" {
  %x = drt.feed {name = "x"} : () -> tensor<4x8xf16>
  %w = drt.feed {name = "w"} : () -> tensor<8x8xf16>
  %own = drt.feed {name = "own"} : () -> tensor<8x8xf32>
  %ex = tensor.empty() : tensor<4x8xf32>
  %ew = tensor.empty() : tensor<8x8xf32>
  %wide_x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf16>) outs(%ex : tensor<4x8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %t = arith.extf %in : f16 to f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %wide_w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8x8xf16>) outs(%ew : tensor<8x8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %t = arith.extf %in : f16 to f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  %0 = drt.matmul %wide_x, %wide_w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = drt.matmul %wide_x, %own : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  drt.fetch %0 {join = 0 : i32, name = "y"} : (tensor<4x8xf32>) -> ()
  drt.fetch %1 {join = 0 : i32, name = "z"} : (tensor<4x8xf32>) -> ()
}
