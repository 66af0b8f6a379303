// RUN: distc-opt %s --drt-fuse-epilogues | FileCheck %s
// RUN: distc-opt %s --drt-fuse-epilogues=activations=relu | FileCheck %s --check-prefix=RELU
// RUN: not distc-opt %s --drt-fuse-epilogues=activations=elu 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: drt-fuse-epilogues knows no activation 'elu': relu, tanh

// Where the library has relu alone, a bias is its own still and tanh is a kernel.
// RELU-LABEL: drt.entry "bias_and_tanh"
// RELU: drt.matmul {{%[^ ]*}}, {{%[^ ]*}}, {{%[^ ]*}} : (
// RELU: math.tanh

#whole = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>

// CHECK-LABEL: drt.entry "bias_and_tanh"
drt.entry "bias_and_tanh" {
  // CHECK: %[[A:.*]] = drt.feed {{.*}}name = "a"
  // CHECK: %[[B:.*]] = drt.feed {{.*}}name = "b"
  // CHECK: %[[BIAS:.*]] = drt.feed {{.*}}name = "bias"
  %a = drt.feed {name = "a"} : () -> tensor<4x3xf32>
  %b = drt.feed {name = "b"} : () -> tensor<3x5xf32>
  %bias = drt.feed {name = "bias"} : () -> tensor<5xf32>
  // CHECK: %[[Y:.*]] = drt.matmul %[[A]], %[[B]], %[[BIAS]] {epilogue = 2 : i32}
  // CHECK-NOT: linalg.generic
  %y = drt.matmul %a, %b : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %empty = tensor.empty() : tensor<4x5xf32>
  %sum = linalg.generic {indexing_maps = [#whole, #columns, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%y, %bias : tensor<4x5xf32>, tensor<5xf32>) outs(%empty : tensor<4x5xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x5xf32>
  %tanh = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<4x5xf32>) outs(%empty : tensor<4x5xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.tanh %p : f32
    linalg.yield %s : f32
  } -> tensor<4x5xf32>
  // CHECK: drt.fetch %[[Y]]
  drt.fetch %tanh {name = "y", join = 0 : i32} : (tensor<4x5xf32>) -> ()
}

// What else uses the product needs it as it is.
// CHECK-LABEL: drt.entry "used_twice"
drt.entry "used_twice" {
  %a = drt.feed {name = "a"} : () -> tensor<4x3xf32>
  %b = drt.feed {name = "b"} : () -> tensor<3x5xf32>
  // CHECK: drt.matmul %{{[^,]*}}, %{{[^,]*}} : (
  %y = drt.matmul %a, %b : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %empty = tensor.empty() : tensor<4x5xf32>
  // CHECK: linalg.generic
  %tanh = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x5xf32>) outs(%empty : tensor<4x5xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.tanh %p : f32
    linalg.yield %s : f32
  } -> tensor<4x5xf32>
  drt.fetch %y {name = "y", join = 0 : i32} : (tensor<4x5xf32>) -> ()
  drt.fetch %tanh {name = "t", join = 0 : i32} : (tensor<4x5xf32>) -> ()
}
