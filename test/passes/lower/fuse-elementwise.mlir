// RUN: distc-opt %s --drt-fuse-elementwise | FileCheck %s

#map = affine_map<(i) -> (i)>

// A chain is one operation; work that two need is done once.
// CHECK-LABEL: @chain
func.func @chain() attributes {drt.entry = "step"} {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  // CHECK: %[[EXP:.*]] = linalg.generic
  // CHECK: math.exp
  // CHECK-NOT: arith
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // CHECK: %[[SQUARE:.*]] = linalg.generic {{.*}} ins(%[[EXP]] :
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: arith.negf
  // CHECK-NEXT: arith.mulf
  // CHECK-NEXT: linalg.yield
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%0 : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // CHECK-NOT: linalg.generic
  drt.fetch %0 {name = "e", join = 0 : i32} : (tensor<4xf32>) -> ()
  drt.fetch %2 {name = "s", join = 0 : i32} : (tensor<4xf32>) -> ()
  return
}
