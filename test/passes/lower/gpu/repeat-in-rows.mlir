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

// A table's rows are read again, too, as long as it is the same table.
// CHECK-LABEL: drt.entry "table"
// CHECK: drt.rows = 0 : i64
// CHECK: tensor.extract %{{.*}} : tensor<1000x128xf32>
// CHECK: drt.rows = 0 : i64
// CHECK: %[[AGAIN:.*]] = linalg.generic {{.*}} attrs = {{[ ]*}}{drt.rows = 1 : i64}
// CHECK: tensor.extract %{{.*}} : tensor<1000x128xf32>
// CHECK: linalg.generic {{.*}} ins(%[[AGAIN]], %
// CHECK: drt.update
drt.kernel range @rule(i64, i64, memref<128000xf32>)
drt.variable @table : tensor<1000x128xf32> {checkpoint = "table"}
drt.entry "table" {
  %words = drt.feed {name = "words"} : () -> tensor<64xi32>
  %dy = drt.feed {name = "dy"} : () -> tensor<64x128xf32>
  %table = drt.read @table : tensor<1000x128xf32>
  %rows = tensor.empty() : tensor<64x128xf32>
  %row = tensor.empty() : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<64xf32>) -> tensor<64xf32>
  %taken = linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%rows : tensor<64x128xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %word = tensor.extract %words[%i] : tensor<64xi32>
    %at = arith.index_cast %word : i32 to index
    %v = tensor.extract %table[%at, %j] : tensor<1000x128xf32>
    linalg.yield %v : f32
  } -> tensor<64x128xf32>
  %mean = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%taken : tensor<64x128xf32>) outs(%zeros : tensor<64xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %dot = linalg.generic {indexing_maps = [#ij, #ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%taken, %dy : tensor<64x128xf32>, tensor<64x128xf32>) outs(%zeros : tensor<64xf32>) attrs = {drt.rows = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  drt.update {kernel = @rule, variables = [@table], count = 128000 : i64} : () -> ()
  drt.fetch %mean {name = "mean", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %dot {name = "dot", join = 0 : i32} : (tensor<64xf32>) -> ()
}

// Two of float32 are no fewer bytes; a variable has changed; what is fetched is written anyway.
// CHECK-LABEL: drt.entry "kept"
// CHECK-COUNT-4: drt.rows = 0 : i64
// CHECK-NOT: arith.addf
// CHECK: drt.rows = 1 : i64
// CHECK-NOT: drt.rows
// CHECK: drt.fetch
drt.kernel range @other_rule(i64, i64, memref<8192xf32>)
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
      ins(%h, %v : tensor<64x128xbf16>, tensor<64x128xf32>) outs(%rows : tensor<64x128xf32>) attrs = {drt.rows = 0 : i64} {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %w = arith.extf %a : bf16 to f32
    %s = arith.addf %w, %b : f32
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
  drt.update {kernel = @other_rule, variables = [@v], count = 8192 : i64} : () -> ()
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
