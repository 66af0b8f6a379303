// RUN: distc-opt %s --pass-pipeline="builtin.module(drt.entry(drt-split-reductions))" | FileCheck %s
// RUN: distc-opt %s --pass-pipeline="builtin.module(drt.entry(drt-split-reductions{cores=true}))" | FileCheck %s --check-prefix=CORES

// For cores: 16 parts at most, each of all results, which are added up part by part.
// CORES-LABEL: drt.entry "channels"
// CORES: %[[Y:.*]] = tensor.expand_shape {{.*}} into tensor<16x16x112x112x64xf32>
// CORES: %[[PARTS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction", "reduction", "parallel"]
// CORES-SAME: ins(%[[Y]] : {{.*}}) outs(%{{.*}} : tensor<16x64xf32>)
// CORES: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]
// CORES-SAME: ins(%[[PARTS]] : tensor<16x64xf32>) outs(%{{.*}} : tensor<64xf32>)
// A sum of everything is parts too; rows that are as many as parts are divided without.
// CORES-LABEL: drt.entry "whole"
// CORES: linalg.generic {{.*}} outs(%{{.*}} : tensor<6x2xf32>)
// CORES-LABEL: drt.entry "stays"
// CORES-NOT: tensor.expand_shape
// CORES-LABEL: drt.entry "beside_rows"
// CORES: tensor.expand_shape %{{.*}} {{\[}}[0, 1], [2]] output_shape [16, 128, 128]
// CORES-NOT: tensor.expand_shape

// Sums over images and pixels, a channel each: 64 results would be two blocks. Whole loops, the outermost first, then equal parts of one: 256 images, and halves
// of 112 rows.
// CHECK-LABEL: drt.entry "channels"
// CHECK: %[[X:.*]] = drt.feed
// CHECK: %[[Y:.*]] = tensor.expand_shape %[[X]] {{\[}}[0], [1, 2], [3], [4]] {{.*}} : tensor<256x112x112x64xf32> into tensor<256x2x56x112x64xf32>
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<64x256x2xf32>
// CHECK: %[[PARTS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction", "parallel"]
// CHECK-SAME: ins(%[[Y]] : {{.*}}) outs(%[[ZEROS]] :
// CHECK: math.absf
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction"]
// CHECK-SAME: ins(%[[PARTS]] : tensor<64x256x2xf32>) outs(%{{.*}} : tensor<64xf32>)
// CHECK: ^bb0(%[[PART:.*]]: f32, %[[SUM:.*]]: f32):
// CHECK-NEXT: arith.addf %[[SUM]], %[[PART]]
drt.entry "channels" {
  %x = drt.feed {name = "x"} : () -> tensor<256x112x112x64xf32>
  %empty = tensor.empty() : tensor<64xf32>
  %one = arith.constant 1.0 : f32
  // What it starts from is counted once.
  %start = linalg.fill ins(%one : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (c)>],
                         iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<256x112x112x64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.absf %a : f32
    %s = arith.addf %o, %b : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  drt.fetch %sum {name = "sum", join = 0 : i32} : (tensor<64xf32>) -> ()
}

// A norm: one result. 5087 is prime, so that each of 6 parts of the rows is parted again along the row. Maxima start from the least value.
// CHECK-LABEL: drt.entry "whole"
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<6x32xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "parallel", "reduction"]
// CHECK-SAME: tensor<6x5087x32x32xf32>
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]
// CHECK-SAME: ins(%{{.*}} : tensor<6x32xf32>) outs(%{{.*}} : tensor<f32>)
drt.entry "whole" {
  %x = drt.feed {name = "x"} : () -> tensor<30522x1024xf32>
  %empty = tensor.empty() : tensor<f32>
  %low = arith.constant 0xFF800000 : f32
  %start = linalg.fill ins(%low : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<30522x1024xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  drt.fetch %max {name = "max", join = 1 : i32} : (tensor<f32>) -> ()
}

// Whose elements depend on where the loop is keeps its loops' numbers: only whole ones are taken. Here there are none; and few elements, or many
// results, are one launch.
// CHECK-LABEL: drt.entry "stays"
// CHECK-NOT: tensor.expand_shape
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
drt.entry "stays" {
  %x = drt.feed {name = "x"} : () -> tensor<65536xf32>
  %y = drt.feed {name = "y"} : () -> tensor<128x64xf32>
  %z = drt.feed {name = "z"} : () -> tensor<4096x8192xf32>
  %zero = arith.constant 0.0 : f32
  %one = tensor.empty() : tensor<f32>
  %many = tensor.empty() : tensor<64xf32>
  %more = tensor.empty() : tensor<4096xf32>
  %start = linalg.fill ins(%zero : f32) outs(%one : tensor<f32>) -> tensor<f32>
  %starts = linalg.fill ins(%zero : f32) outs(%many : tensor<64xf32>) -> tensor<64xf32>
  %rows = linalg.fill ins(%zero : f32) outs(%more : tensor<4096xf32>) -> tensor<4096xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<65536xf32>) outs(%start : tensor<f32>) {
  ^bb0(%e: f32, %o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %w = arith.mulf %e, %f : f32
    %s = arith.addf %o, %w : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<128x64xf32>) outs(%starts : tensor<64xf32>) {
  ^bb0(%e: f32, %o: f32):
    %s = arith.addf %o, %e : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%z : tensor<4096x8192xf32>) outs(%rows : tensor<4096xf32>) {
  ^bb0(%e: f32, %o: f32):
    %s = arith.addf %o, %e : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32>
  drt.fetch %a {name = "a", join = 1 : i32} : (tensor<f32>) -> ()
  drt.fetch %b {name = "b", join = 0 : i32} : (tensor<64xf32>) -> ()
  drt.fetch %c {name = "c", join = 0 : i32} : (tensor<4096xf32>) -> ()
}

// What a kernel of rows reads as well: a part for each of its blocks, since it may have both (drt-fuse-rows).
// CHECK-LABEL: drt.entry "beside_rows"
// CHECK: tensor.expand_shape %{{.*}} {{\[}}[0, 1], [2]] output_shape [256, 8, 128]
drt.entry "beside_rows" {
  %x = drt.feed {name = "x"} : () -> tensor<2048x128xf32>
  %zero = arith.constant 0.0 : f32
  %c = tensor.empty() : tensor<128xf32>
  %r = tensor.empty() : tensor<2048xf32>
  %none = linalg.fill ins(%zero : f32) outs(%c : tensor<128xf32>) -> tensor<128xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%r : tensor<2048xf32>) -> tensor<2048xf32>
  %columns = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<2048x128xf32>) outs(%none : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2048x128xf32>) outs(%nothing : tensor<2048xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<2048xf32>
  drt.fetch %columns {name = "columns", join = 1 : i32} : (tensor<128xf32>) -> ()
  drt.fetch %rows {name = "rows", join = 1 : i32} : (tensor<2048xf32>) -> ()
}
