// RUN: distc-opt %s --drt-set-precision=precision=bf16 | FileCheck %s

drt.variable @w : tensor<8x8xf32>
drt.variable @v : tensor<8x2xf32>
drt.variable @b : tensor<8xf32>

// A dense layer, its activation and the next layer: what products read is rounded once, behind the activation, and the
// gradient of the activation reads what was rounded. Weights are rounded for products alone.
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK: %[[FEED:.*]] = drt.feed
  %x = drt.feed {name = "x"} : () -> tensor<4x8xf32>
  // CHECK: %[[X:.*]] = linalg.generic {{.*}} ins(%[[FEED]] : tensor<4x8xf32>) outs({{.*}} : tensor<4x8xbf16>)
  // CHECK: arith.truncf
  // CHECK: %[[READ:.*]] = drt.read
  %w = drt.read @w : tensor<8x8xf32>
  // CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%[[READ]] : tensor<8x8xf32>) outs({{.*}} : tensor<8x8xbf16>)
  // CHECK: drt.matmul %[[X]], %[[W]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
  %0 = drt.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  // CHECK: %[[ACTIVATED:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<4x8xf32>)
  // CHECK: math.tanh
  %1 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  // CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[ACTIVATED]] : tensor<4x8xf32>) outs({{.*}} : tensor<4x8xbf16>)
  // CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[ROUNDED]] : tensor<4x8xbf16>) outs({{.*}} : tensor<4x8xf32>)
  // CHECK: arith.extf
  %v = drt.read @v : tensor<8x2xf32>
  // The logits are read by the loss, which is float32's.
  // CHECK: drt.matmul %[[ROUNDED]], %{{.*}} : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xf32>
  %2 = drt.matmul %1, %v : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[WIDE]] : tensor<4x8xf32>)
  // CHECK: arith.mulf
  %3 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
    ins(%1 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = arith.mulf %in, %in : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  drt.fetch %2 {join = 0 : i32, name = "logits"} : (tensor<4x2xf32>) -> ()
  drt.fetch %3 {join = 0 : i32, name = "square"} : (tensor<4x8xf32>) -> ()
}

// What only products read is the first product's own result, and so is its bias.
// CHECK-LABEL: drt.entry "eval"
drt.entry "eval" {
  %x = drt.feed {name = "x"} : () -> tensor<4x8xf32>
  %w = drt.feed {name = "w"} : () -> tensor<8x8xf32>
  // CHECK: %[[B:.*]] = drt.read @b
  %b = drt.read @b : tensor<8xf32>
  // CHECK: %[[BIAS:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<8xf32>) outs({{.*}} : tensor<8xbf16>)
  // CHECK: %[[FIRST:.*]] = drt.matmul %{{.*}}, %{{.*}}, %[[BIAS]] {epilogue = 1 : i32} : (tensor<4x8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>
  // CHECK: drt.matmul %[[FIRST]], %{{.*}} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
  %0 = drt.matmul %x, %w, %b {epilogue = 1 : i32} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %1 = drt.matmul %0, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  drt.fetch %1 {join = 0 : i32, name = "y"} : (tensor<4x8xf32>) -> ()
}

// A convolution has one type in all tensors. Gradients on their way to a collective are float32.
// CHECK-LABEL: drt.entry "update"
drt.entry "update" {
  %image = drt.feed {name = "image"} : () -> tensor<1x4x4x2xf32>
  %grad = drt.feed {name = "grad"} : () -> tensor<1x2x2x3xf32>
  // CHECK: %[[NARROW:.*]] = drt.conv2d_grad_filter {{.*}} : (tensor<1x4x4x2xbf16>, tensor<1x2x2x3xbf16>) -> tensor<3x3x3x2xbf16>
  // CHECK: %[[GRADIENT:.*]] = linalg.generic {{.*}} ins(%[[NARROW]] : tensor<3x3x3x2xbf16>) outs({{.*}} : tensor<3x3x3x2xf32>)
  // CHECK: drt.fetch %[[GRADIENT]]
  %0 = drt.conv2d_grad_filter %image, %grad {descriptor = array<i64: 1, 4, 4, 2, 3, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 1>, filter_layout = "OHWI"} : (tensor<1x4x4x2xf32>, tensor<1x2x2x3xf32>) -> tensor<3x3x3x2xf32>
  drt.fetch %0 {join = 0 : i32, name = "gradient"} : (tensor<3x3x3x2xf32>) -> ()
}
