// RUN: distc-opt %s --pass-pipeline="builtin.module(drt.entry(drt-repeat-in-rows))" | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>

// A bfloat16 residual and a float32 matmul's result are 6 bytes an element, their sum 8 that are written and read.
// CHECK-LABEL: drt.entry "residual"
// CHECK: %[[RESIDUAL:.*]] = drt.feed {{.*}}"residual"
// CHECK: %[[MADE:.*]] = drt.feed {{.*}}"made"
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[RESIDUAL]], %[[MADE]] : {{.*}}) {{.*}} attrs = {{[ ]*}}{drt.rows = 0 : i64}
// CHECK: linalg.generic {{.*}} ins(%[[SUM]] : {{.*}}) {{.*}} attrs = {{[ ]*}}{drt.rows = 0 : i64}
// CHECK: %[[AGAIN:.*]] = linalg.generic {{.*}} ins(%[[RESIDUAL]], %[[MADE]] : {{.*}}) {{.*}} attrs = {{[ ]*}}{drt.rows = 1 : i64}
// CHECK: %[[SHAPED:.*]] = tensor.expand_shape %[[AGAIN]]
// CHECK: linalg.generic {{.*}} ins(%[[SHAPED]], {{.*}} attrs = {{[ ]*}}{drt.rows = 1 : i64}
// CHECK: linalg.generic {{.*}} ins(%[[AGAIN]], {{[^ ]*}} : {{.*}} attrs = {{[ ]*}}{drt.rows = 1 : i64}
drt.entry "residual" {
  %residual = drt.feed {name = "residual"} : () -> tensor<64x128xbf16>
  %y = drt.feed {name = "made"} : () -> tensor<64x128xf32>
  %dy = drt.feed {name = "dy"} : () -> tensor<64x128xf32>
  %rows = tensor.empty() : tensor<64x128xf32>
  %row = tensor.empty() : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%residual, %y : tensor<64x128xbf16>, tensor<64x128xf32>) outs(%rows : tensor<64x128xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %w = arith.extf %a : bf16 to f32
    %s = arith.addf %w, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %mean = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%sum : tensor<64x128xf32>) outs(%zeros : tensor<64xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %shaped = tensor.expand_shape %sum [[0, 1], [2]] output_shape [16, 4, 128] : tensor<64x128xf32> into tensor<16x4x128xf32>
  %dy3 = tensor.expand_shape %dy [[0, 1], [2]] output_shape [16, 4, 128] : tensor<64x128xf32> into tensor<16x4x128xf32>
  %zeros3 = tensor.expand_shape %zeros [[0, 1]] output_shape [16, 4] : tensor<64xf32> into tensor<16x4xf32>
  %dot = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%shaped, %dy3 : tensor<16x4x128xf32>, tensor<16x4x128xf32>) outs(%zeros3 : tensor<16x4xf32>) attrs = {drt.rows = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<16x4xf32>
  %dots = tensor.collapse_shape %dot [[0, 1]] : tensor<16x4xf32> into tensor<64xf32>
  %dx = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %dots : tensor<64x128xf32>, tensor<64xf32>) outs(%rows : tensor<64x128xf32>) attrs = {drt.rows = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<64x128xf32>
  drt.fetch %mean {name = "mean", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %dx {name = "dx", join = 0 : i32} : (tensor<64x128xf32>) -> ()
  drt.fetch %residual {name = "residual", join = 0 : i32} : (tensor<64x128xbf16>) -> ()
}

// Two of float32 are no fewer bytes; a variable may have changed; what is fetched is written anyway.
// CHECK-LABEL: drt.entry "kept"
// CHECK-COUNT-4: drt.rows = 0 : i64
// CHECK-NOT: arith.addf
// CHECK: drt.rows = 1 : i64
// CHECK-NOT: drt.rows
// CHECK: drt.fetch
drt.variable @v : tensor<64x128xf32> {checkpoint = "v"}
drt.entry "kept" {
  %x = drt.feed {name = "x"} : () -> tensor<64x128xf32>
  %y = drt.feed {name = "y"} : () -> tensor<64x128xf32>
  %z = drt.feed {name = "z"} : () -> tensor<64x128xf32>
  %h = drt.feed {name = "h"} : () -> tensor<64x128xbf16>
  %v = drt.read @v : tensor<64x128xf32>
  %rows = tensor.empty() : tensor<64x128xf32>
  %row = tensor.empty() : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<64xf32>) -> tensor<64xf32>
  %wide = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<64x128xf32>, tensor<64x128xf32>) outs(%rows : tensor<64x128xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %changed = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%wide, %v : tensor<64x128xf32>, tensor<64x128xf32>) outs(%rows : tensor<64x128xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %fetched = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<64x128xbf16>) outs(%rows : tensor<64x128xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%a: bf16, %o: f32):
    %s = arith.extf %a : bf16 to f32
    linalg.yield %s : f32
  } -> tensor<64x128xf32>
  %most = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%fetched : tensor<64x128xf32>) outs(%zeros : tensor<64xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %least = linalg.generic {indexing_maps = [#ij, #ij, #ij, #ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%wide, %changed, %fetched, %z : tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>) outs(%zeros : tensor<64xf32>) attrs = {drt.rows = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
    %p = arith.subf %a, %b : f32
    %q = arith.subf %c, %d : f32
    %r = arith.mulf %p, %q : f32
    %s = arith.maximumf %r, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  drt.fetch %most {name = "most", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %least {name = "least", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %x {name = "x", join = 0 : i32} : (tensor<64x128xf32>) -> ()
  drt.fetch %y {name = "y", join = 0 : i32} : (tensor<64x128xf32>) -> ()
  drt.fetch %fetched {name = "fetched", join = 0 : i32} : (tensor<64x128xf32>) -> ()
}
