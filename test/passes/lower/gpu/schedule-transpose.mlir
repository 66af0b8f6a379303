// RUN: distc-opt %s --drt-schedule-for-gpu --canonicalize --cse | FileCheck %s

// The two inner loops of an image are one: 2 x 3 x 7 tiles. What is not transposed is read where it is used.
// CHECK-LABEL: gpu.func @to_channels_first(
// CHECK-SAME: workgroup(%[[TILE:.*]] : memref<32x33xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME: drt.block = array<i64: 256, 1, 1>, drt.grid = array<i64: 42, 1, 1>, drt.schedule = "transpose"
// CHECK-COUNT-4: memref.store %{{.*}}, %[[TILE]]
// CHECK: gpu.barrier
// CHECK: %[[X:.*]] = memref.load %[[TILE]]
// CHECK: %[[BIAS:.*]] = memref.load %{{.*}} : memref<70xf32>
// CHECK: arith.addf %[[BIAS]], %[[X]]
drt.kernel @to_channels_first(%x: memref<2x14x14x70xf32>, %bias: memref<70xf32>, %y: memref<2x70x14x14xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, h, w, c)>, affine_map<(n, c, h, w) -> (c)>,
                                   affine_map<(n, c, h, w) -> (n, c, h, w)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %bias : memref<2x14x14x70xf32>, memref<70xf32>) outs(%y : memref<2x70x14x14xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %e = arith.addf %b, %a : f32
    linalg.yield %e : f32
  }
  drt.return
}

// A side that is too short for tiles.
// CHECK-LABEL: gpu.func @short(
// CHECK-SAME: drt.schedule = "elementwise"
drt.kernel @short(%x: memref<100x3xf32>, %y: memref<3x100xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<100x3xf32>) outs(%y : memref<3x100xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  drt.return
}
