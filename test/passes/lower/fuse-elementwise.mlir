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

#reduced = affine_map<(i) -> ()>

// What starts from its filled result is not fused: the result would become one of the sum's operation, read and written
// at each of its iterations.
// CHECK-LABEL: @starts_from_result
func.func @starts_from_result() attributes {drt.entry = "step"} {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %scalar = tensor.empty() : tensor<f32>
  %zero = arith.constant 0.0 : f32
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  // CHECK: %[[COPY:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%filled : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // CHECK: %{{.*}} = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[COPY]] : tensor<4xf32>) outs(%{{.*}} : tensor<f32>)
  %1 = linalg.generic {indexing_maps = [#map, #reduced], iterator_types = ["reduction"]} ins(%0 : tensor<4xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  drt.fetch %1 {name = "s", join = 0 : i32} : (tensor<f32>) -> ()
  return
}

// Nor is the only operand that says how far the loops go.
// CHECK-LABEL: @only_extent
func.func @only_extent() attributes {drt.entry = "step"} {
  %empty = tensor.empty() : tensor<4xf32>
  %scalar = tensor.empty() : tensor<f32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  // CHECK: %[[POSITIONS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]
  %0 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%empty : tensor<4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %v = arith.sitofp %n : i32 to f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // CHECK: %{{.*}} = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[POSITIONS]] : tensor<4xf32>) outs(%{{.*}} : tensor<f32>)
  %1 = linalg.generic {indexing_maps = [#map, #reduced], iterator_types = ["reduction"]} ins(%0 : tensor<4xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  drt.fetch %1 {name = "s", join = 0 : i32} : (tensor<f32>) -> ()
  return
}
