// RUN: distc-opt %s --drt-set-precision="precision=bf16 device=true" | FileCheck %s
// RUN: distc-opt %s --drt-set-precision=precision=bf16 | FileCheck %s --check-prefix=PROCESSOR

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
// On processors channels stay as they are, and the library sums a filter's gradient up in float32.
// CHECK-LABEL: drt.entry "update"
// PROCESSOR-LABEL: drt.entry "update"
// PROCESSOR: %[[GRADIENT:.*]] = drt.conv2d_grad_filter {{.*}}descriptor = array<i64: 1, 4, 4, 2, {{.*}} : (tensor<1x4x4x2xbf16>, tensor<1x2x2x3xbf16>) -> tensor<3x3x3x2xf32>
// PROCESSOR: drt.fetch %[[GRADIENT]]
drt.entry "update" {
  %image = drt.feed {name = "image"} : () -> tensor<1x4x4x2xf32>
  %grad = drt.feed {name = "grad"} : () -> tensor<1x2x2x3xf32>
  // Two channels are filled up to eight, which matrix units take.
  // CHECK: %[[NARROW:.*]] = drt.conv2d_grad_filter {{.*}}descriptor = array<i64: 1, 4, 4, 8, {{.*}} : (tensor<1x4x4x8xbf16>, tensor<1x2x2x3xbf16>) -> tensor<3x3x3x8xbf16>
  // CHECK: %[[OWN:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<3x3x3x2xbf16>)
  // CHECK: tensor.extract %[[NARROW]]
  // CHECK: %[[GRADIENT:.*]] = linalg.generic {{.*}} ins(%[[OWN]] : tensor<3x3x3x2xbf16>) outs({{.*}} : tensor<3x3x3x2xf32>)
  // CHECK: drt.fetch %[[GRADIENT]]
  %0 = drt.conv2d_grad_filter %image, %grad {descriptor = array<i64: 1, 4, 4, 2, 3, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 1>, filter_layout = "OHWI"} : (tensor<1x4x4x2xf32>, tensor<1x2x2x3xf32>) -> tensor<3x3x3x2xf32>
  drt.fetch %0 {join = 0 : i32, name = "gradient"} : (tensor<3x3x3x2xf32>) -> ()
}

// Between products: scores that softmax takes on their way to the next product are bfloat16, behind their reshape; what the loss reads is not. The gradient of a
// rectifier that products read is bfloat16, too, and maxima of what is rounded are those of the rounded.
// CHECK-LABEL: drt.entry "between"
drt.entry "between" {
  %x = drt.feed {name = "x"} : () -> tensor<4x8xf32>
  %w = drt.feed {name = "w"} : () -> tensor<8x8xf32>
  %g = drt.feed {name = "g"} : () -> tensor<2x2x8xf32>
  // CHECK: %[[SCORES:.*]] = drt.matmul {{.*}} -> tensor<4x8xbf16>
  %0 = drt.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[EXPANDED:.*]] = tensor.expand_shape %[[SCORES]] {{.*}} : tensor<4x8xbf16> into tensor<2x2x8xbf16>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [2, 2, 8] : tensor<4x8xf32> into tensor<2x2x8xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[EXPANDED]] : tensor<2x2x8xbf16>) outs({{.*}} : tensor<2x2x8xf32>)
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: arith.extf
  %e = tensor.empty() : tensor<2x2x8xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%1 : tensor<2x2x8xf32>) outs(%e : tensor<2x2x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %t = arith.maximumf %in, %zero : f32
    linalg.yield %t : f32
  } -> tensor<2x2x8xf32>
  // CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<2x2x8xbf16>)
  // CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[ROUNDED]] : tensor<2x2x8xbf16>) outs({{.*}} : tensor<2x2x8xf32>)
  // CHECK: %[[MASKED:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[WIDE]] :
  // CHECK: arith.mulf
  // CHECK: linalg.generic {{.*}} ins(%[[MASKED]] : tensor<2x2x8xf32>) outs({{.*}} : tensor<2x2x8xbf16>)
  %3 = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%g, %2 : tensor<2x2x8xf32>, tensor<2x2x8xf32>) outs(%e : tensor<2x2x8xf32>) {
  ^bb0(%in: f32, %y: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %positive = arith.cmpf olt, %zero, %y : f32
    %one = arith.uitofp %positive : i1 to f32
    %t = arith.mulf %in, %one : f32
    linalg.yield %t : f32
  } -> tensor<2x2x8xf32>
  %4 = tensor.collapse_shape %2 [[0, 1], [2]] : tensor<2x2x8xf32> into tensor<4x8xf32>
  // CHECK: drt.matmul {{.*}} -> tensor<4x8xf32>
  %5 = drt.matmul %4, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %6 = tensor.collapse_shape %3 [[0, 1], [2]] : tensor<2x2x8xf32> into tensor<4x8xf32>
  %7 = drt.matmul %6, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  drt.fetch %7 {join = 0 : i32, name = "gradient"} : (tensor<4x8xf32>) -> ()
  drt.fetch %5 {join = 0 : i32, name = "logits"} : (tensor<4x8xf32>) -> ()
}

// CHECK-LABEL: drt.entry "pool"
// PROCESSOR-LABEL: drt.entry "pool"
// PROCESSOR: drt.pool {{.*}} : (tensor<1x4x4x8xf32>) -> tensor<1x2x2x8xf32>
drt.entry "pool" {
  %image = drt.feed {name = "image"} : () -> tensor<1x4x4x8xf32>
  %w = drt.feed {name = "w"} : () -> tensor<8x2xf32>
  // CHECK: drt.pool {{.*}} : (tensor<1x4x4x8xbf16>) -> tensor<1x2x2x8xbf16>
  %0 = drt.pool %image {descriptor = array<i64: 1, 4, 4, 8, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0>, kind = 0 : i32} : (tensor<1x4x4x8xf32>) -> tensor<1x2x2x8xf32>
  %1 = tensor.collapse_shape %0 [[0, 1, 2], [3]] : tensor<1x2x2x8xf32> into tensor<4x8xf32>
  %2 = drt.matmul %1, %w : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  drt.fetch %2 {join = 0 : i32, name = "y"} : (tensor<4x2xf32>) -> ()
}

// Padding on the way to a product takes what is rounded before it: the activation is bfloat16 and nothing else. Of a table only the rows that are taken are rounded.
// CHECK-LABEL: drt.entry "moved"
drt.entry "moved" {
  %x = drt.feed {name = "x"} : () -> tensor<4x8xf32>
  %w = drt.feed {name = "w"} : () -> tensor<10x2xf32>
  %ids = drt.feed {name = "ids"} : () -> tensor<4xi32>
  %table = drt.read @w : tensor<8x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %p = tensor.empty() : tensor<4x10xf32>
  // CHECK: math.tanh
  // CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<4x8xbf16>)
  %0 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  // CHECK: %[[PADDED:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<4x10xbf16>)
  // CHECK: tensor.extract %[[ROUNDED]]
  // CHECK: drt.matmul %[[PADDED]]
  %1 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} outs(%p : tensor<4x10xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %eight = arith.constant 8 : index
    %inside = arith.cmpi ult, %j, %eight : index
    %t = scf.if %inside -> f32 {
      %v = tensor.extract %0[%i, %j] : tensor<4x8xf32>
      scf.yield %v : f32
    } else {
      %zero = arith.constant 0.0 : f32
      scf.yield %zero : f32
    }
    linalg.yield %t : f32
  } -> tensor<4x10xf32>
  %2 = drt.matmul %1, %w : (tensor<4x10xf32>, tensor<10x2xf32>) -> tensor<4x2xf32>
  // CHECK: %[[TAKEN:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<4x8xf32>)
  // CHECK: tensor.extract {{.*}} : tensor<8x8xf32>
  // CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} ins(%[[TAKEN]] : tensor<4x8xf32>) outs({{.*}} : tensor<4x8xbf16>)
  // CHECK: drt.matmul %[[ROWS]]
  %3 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %id = tensor.extract %ids[%i] : tensor<4xi32>
    %row = arith.index_cast %id : i32 to index
    %v = tensor.extract %table[%row, %j] : tensor<8x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %4 = drt.matmul %3, %table : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  drt.fetch %2 {join = 0 : i32, name = "padded"} : (tensor<4x2xf32>) -> ()
  drt.fetch %4 {join = 0 : i32, name = "taken"} : (tensor<4x8xf32>) -> ()
}

// A residual connection reads in another shape what a layer's product does: the rounded elements, too.
// CHECK-LABEL: drt.entry "shapes"
// CHECK: %[[MADE:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<2x4x8xf32>)
// CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[MADE]] : tensor<2x4x8xf32>) outs({{.*}} : tensor<2x4x8xbf16>)
// CHECK-DAG: %[[FLAT:.*]] = tensor.collapse_shape %[[ROUNDED]] {{\[\[}}0, 1], [2]]
// CHECK-DAG: %[[LINE:.*]] = tensor.collapse_shape %[[ROUNDED]] {{\[\[}}0, 1, 2]]
// CHECK-DAG: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[LINE]] : tensor<64xbf16>) outs({{.*}} : tensor<64xf32>)
// CHECK: drt.matmul %[[FLAT]]
// CHECK: linalg.generic {{.*}} ins(%[[WIDE]] : tensor<64xf32>)
// CHECK: arith.negf
drt.entry "shapes" {
  %x = drt.feed {name = "x"} : () -> tensor<2x4x8xf32>
  %w = drt.read @w : tensor<8x8xf32>
  %e = tensor.empty() : tensor<2x4x8xf32>
  %l = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%x : tensor<2x4x8xf32>) outs(%e : tensor<2x4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  } -> tensor<2x4x8xf32>
  %flat = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<2x4x8xf32> into tensor<8x8xf32>
  %line = tensor.collapse_shape %0 [[0, 1, 2]] : tensor<2x4x8xf32> into tensor<64xf32>
  %1 = drt.matmul %flat, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
    ins(%line : tensor<64xf32>) outs(%l : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  drt.fetch %1 {name = "y", join = 0 : i32} : (tensor<8x8xf32>) -> ()
  drt.fetch %2 {name = "z", join = 0 : i32} : (tensor<64xf32>) -> ()
}
