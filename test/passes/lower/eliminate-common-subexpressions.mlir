// RUN: distc-opt %s --drt-eliminate-common-subexpressions | FileCheck %s

#map = affine_map<(i) -> (i)>
drt.variable @w : tensor<32xf32>
drt.kernel range @rule(i64, i64, memref<32xf32>)

// Kernels of the same operands are equal where their bodies are; a variable is read again behind an update.
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK: %[[X:.*]] = drt.feed
  %x = drt.feed {name = "x"} : () -> tensor<32xf32>
  %same = drt.feed {name = "x"} : () -> tensor<32xf32>
  %empty = tensor.empty() : tensor<32xf32>
  // CHECK: %[[W:.*]] = drt.read @w
  // CHECK-NOT: drt.read
  %old = drt.read @w : tensor<32xf32>
  %again = drt.read @w : tensor<32xf32>
  // CHECK: %[[TWO:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[W]] :
  // CHECK: %[[THREE:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[W]] :
  // CHECK-NOT: linalg.generic
  %0 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%x, %old : tensor<32xf32>, tensor<32xf32>) outs(%empty : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.constant 2.0 : f32
    %v = arith.mulf %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%x, %old : tensor<32xf32>, tensor<32xf32>) outs(%empty : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.constant 3.0 : f32
    %v = arith.mulf %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%same, %again : tensor<32xf32>, tensor<32xf32>) outs(%empty : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.constant 2.0 : f32
    %v = arith.mulf %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  // Operands that may be exchanged are, always and not where a table of addresses happens to show it.
  %10 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%same, %again : tensor<32xf32>, tensor<32xf32>) outs(%empty : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.constant 2.0 : f32
    %v = arith.mulf %c, %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%same, %again : tensor<32xf32>, tensor<32xf32>) outs(%empty : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.constant 3.0 : f32
    %v = arith.mulf %c, %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  // CHECK: drt.update
  drt.update {kernel = @rule, variables = [@w], count = 32 : i64} : () -> ()
  // CHECK: %[[NEW:.*]] = drt.read @w
  %new = drt.read @w : tensor<32xf32>
  // CHECK: drt.fetch %[[TWO]] {{.*}}"a"
  // CHECK: drt.fetch %[[THREE]] {{.*}}"b"
  // CHECK: drt.fetch %[[TWO]] {{.*}}"c"
  // CHECK: drt.fetch %[[NEW]]
  drt.fetch %0 {name = "a", join = 0 : i32} : (tensor<32xf32>) -> ()
  drt.fetch %1 {name = "b", join = 0 : i32} : (tensor<32xf32>) -> ()
  drt.fetch %2 {name = "c", join = 0 : i32} : (tensor<32xf32>) -> ()
  drt.fetch %new {name = "w", join = 0 : i32} : (tensor<32xf32>) -> ()
}
