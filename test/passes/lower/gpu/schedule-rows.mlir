// RUN: distc-opt %s --drt-schedule-for-gpu --canonicalize --cse | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>

// A warp a row, 4 rows a block, 2 vectors of 4 elements a thread.
// CHECK-LABEL: gpu.func @warp(
// CHECK-SAME: drt.block = array<i64: 128, 1, 1>, drt.grid = array<i64: 75, 1, 1>, drt.schedule = "rows"
// CHECK: scf.for {{.*}} step %c32_i32
// CHECK: vector.load
// CHECK-COUNT-4: arith.addf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: scf.if
// CHECK: memref.store
drt.kernel @warp(%x: memref<300x256xf32>, %y: memref<300xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<300xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<300x256xf32>) outs(%y : memref<300xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = arith.addf %o, %a : f32
    linalg.yield %e : f32
  }
  drt.return
}

// Short rows: 16 threads each, 8 a block; the last block has 5 rows. Lanes exchange 32 bits.
// CHECK-LABEL: gpu.func @part_of_a_warp(
// CHECK-SAME: drt.block = array<i64: 128, 1, 1>, drt.grid = array<i64: 38, 1, 1>, drt.schedule = "rows"
// CHECK: arith.cmpi ult, %{{.*}}, %c301_i32
// CHECK: arith.select
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: gpu.shuffle xor %[[WIDE]], %c8_i32
// CHECK-COUNT-3: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
drt.kernel @part_of_a_warp(%x: memref<301x10xf16>, %y: memref<301xf16>) {
  %least = arith.constant 0xFC00 : f16
  linalg.fill ins(%least : f16) outs(%y : memref<301xf16>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<301x10xf16>) outs(%y : memref<301xf16>) {
  ^bb0(%a: f16, %o: f16):
    %e = arith.maximumf %o, %a : f16
    linalg.yield %e : f16
  }
  drt.return
}

// Everything, into two results: a block; its 32 warps exchange through shared memory.
// CHECK-LABEL: gpu.func @all(
// CHECK-SAME: workgroup(%[[SUMS:.*]] : memref<32xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<32xi64, #gpu.address_space<workgroup>>)
// CHECK-SAME: drt.block = array<i64: 1024, 1, 1>, drt.grid = array<i64: 1, 1, 1>, drt.schedule = "rows"
// CHECK: scf.for {{.*}} step %c1024_i32
// CHECK: memref.store %{{.*}}, %[[SUMS]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[SUMS]]
// CHECK: gpu.shuffle xor
// What lay in the result before counts too.
// CHECK: memref.load %{{.*}} : memref<1xf32>
// CHECK: arith.addf
drt.kernel @all(%x: memref<64x1000xf32>, %sum: memref<f32>, %last: memref<i64>) {
  linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> ()>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<64x1000xf32>) outs(%sum, %last : memref<f32>, memref<i64>) {
  ^bb0(%a: f32, %o: f32, %p: i64):
    %s = arith.mulf %a, %a : f32
    %e = arith.addf %o, %s : f32
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %m = arith.maxsi %p, %k : i64
    linalg.yield %e, %m : f32, i64
  }
  drt.return
}
