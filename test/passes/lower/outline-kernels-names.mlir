// RUN: distc-opt %s --drt-outline-kernels | FileCheck %s

#map = affine_map<(i) -> (i)>

// Variables are called as their author called them, and kernels otherwise.
// CHECK: drt.variable @kernel_0
drt.variable @kernel_0 : tensor<4xf32> {trainable, saved}
// CHECK: drt.launch @kernel_1(
// CHECK: drt.kernel @kernel_1(
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  drt.fetch %0 {name = "y", join = 0 : i32} : (tensor<4xf32>) -> ()
}
