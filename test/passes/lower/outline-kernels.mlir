// RUN: distc-opt %s --drt-outline-kernels | FileCheck %s

#map = affine_map<(i) -> (i)>

// Equal kernels are one, in whatever entry they stand; what differs in a constant is another.
// CHECK-LABEL: drt.entry "first"
// CHECK: %[[X:.*]] = drt.feed
// CHECK: %[[Y:.*]] = drt.launch @[[DOUBLE:.*]](%[[X]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: drt.launch @[[HALF:.*]](%[[Y]])
drt.entry "first" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant 2.0 : f32
    %v = arith.mulf %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%0 : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant 0.5 : f32
    %v = arith.mulf %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  drt.fetch %1 {name = "y", join = 0 : i32} : (tensor<4xf32>) -> ()
}
// CHECK-LABEL: drt.entry "second"
// CHECK: drt.launch @[[DOUBLE]](
drt.entry "second" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant 2.0 : f32
    %v = arith.mulf %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  drt.fetch %0 {name = "y", join = 0 : i32} : (tensor<4xf32>) -> ()
}
// CHECK: drt.kernel @[[DOUBLE]](%[[IN:.*]]: memref<4xf32>, %[[OUT:.*]]: memref<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[IN]] : memref<4xf32>) outs(%[[OUT]] : memref<4xf32>)
// CHECK: arith.constant 2.000000e+00
// CHECK: drt.kernel @[[HALF]](
// CHECK: arith.constant 5.000000e-01
// CHECK-NOT: drt.kernel
