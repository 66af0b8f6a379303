// RUN: distc-opt %s --pass-pipeline="builtin.module(drt.entry(drt-join-reductions))" | FileCheck %s

#all = affine_map<(n, c) -> (n, c)>
#column = affine_map<(n, c) -> (c)>

// The two sums of a batch normalization's gradient, each with its own rest: one reads the layer's gradient for both, in the place of the first. The third
// needs a result of the first, and stays behind it; the fourth goes through other elements.
// CHECK-LABEL: drt.entry "normalization"
// CHECK: %[[G:.*]] = drt.feed {{.*}}"g"
// CHECK: %[[X:.*]] = drt.feed {{.*}}"x"
// CHECK: %[[MEAN:.*]] = drt.feed {{.*}}"mean"
// CHECK: %[[SUMS:.*]]:2 = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]
// CHECK-SAME: ins(%[[G]], %[[X]], %[[MEAN]] : {{.*}}) outs(%{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64xf32>)
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[M:.*]]: f32, %[[FIRST:.*]]: f32, %[[SECOND:.*]]: f32):
// CHECK: %[[SUM:.*]] = arith.addf %[[FIRST]], %[[A]]
// CHECK: arith.subf %[[B]], %[[M]]
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[A]]
// CHECK: %[[OTHER:.*]] = arith.addf %[[SECOND]], %[[PRODUCT]]
// CHECK: linalg.yield %[[SUM]], %[[OTHER]]
// CHECK: linalg.generic {{.*}} ins(%[[G]], %[[SUMS]]#0 :
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<8192x64xf32>)
// CHECK: drt.fetch %[[SUMS]]#0
// CHECK: drt.fetch %[[SUMS]]#1
drt.entry "normalization" {
  %g = drt.feed {name = "g"} : () -> tensor<4096x64xf32>
  %x = drt.feed {name = "x"} : () -> tensor<4096x64xf32>
  %mean = drt.feed {name = "mean"} : () -> tensor<64xf32>
  %y = drt.feed {name = "y"} : () -> tensor<8192x64xf32>
  %empty = tensor.empty() : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %a = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%g : tensor<4096x64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%e: f32, %o: f32):
    %s = arith.addf %o, %e : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %null = arith.constant 0.0 : f32
  %again = linalg.fill ins(%null : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %b = linalg.generic {indexing_maps = [#all, #column, #all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x, %mean, %g : tensor<4096x64xf32>, tensor<64xf32>, tensor<4096x64xf32>) outs(%again : tensor<64xf32>) {
  ^bb0(%e: f32, %m: f32, %d: f32, %o: f32):
    %c = arith.subf %e, %m : f32
    %p = arith.mulf %d, %c : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %c = linalg.generic {indexing_maps = [#all, #column, #column], iterator_types = ["reduction", "parallel"]}
      ins(%g, %a : tensor<4096x64xf32>, tensor<64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%e: f32, %m: f32, %o: f32):
    %p = arith.mulf %e, %m : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<8192x64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%e: f32, %o: f32):
    %s = arith.addf %o, %e : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  drt.fetch %a {name = "a", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %b {name = "b", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %c {name = "c", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %d {name = "d", join = 0 : i32} : (tensor<64xf32>) -> ()
}

// A body may have regions of its own.
// CHECK-LABEL: drt.entry "regions"
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK: linalg.yield %{{.*}}, %{{.*}}
// CHECK-NOT: linalg.generic
drt.entry "regions" {
  %g = drt.feed {name = "g"} : () -> tensor<4096x64xf32>
  %empty = tensor.empty() : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %a = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%g : tensor<4096x64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%e: f32, %o: f32):
    %s = arith.addf %o, %e : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %b = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%g : tensor<4096x64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%e: f32, %o: f32):
    %positive = arith.cmpf ogt, %e, %zero : f32
    %p = scf.if %positive -> f32 {
      %square = arith.mulf %e, %e : f32
      scf.yield %square : f32
    } else {
      scf.yield %e : f32
    }
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  drt.fetch %a {name = "a", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %b {name = "b", join = 0 : i32} : (tensor<64xf32>) -> ()
}
