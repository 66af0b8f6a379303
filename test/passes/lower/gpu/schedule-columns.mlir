// RUN: distc-opt %s --drt-schedule-for-gpu --canonicalize --cse | FileCheck %s

// Blocks of 32 columns; 32 threads walk down a column. The last block has one column.
// CHECK-LABEL: gpu.func @columns(
// CHECK-SAME: workgroup(%[[SHARED:.*]] : memref<16x32xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME: drt.block = array<i64: 1024, 1, 1>, drt.grid = array<i64: 9, 1, 1>, drt.schedule = "columns"
// Four rows at a time, then the rest one by one.
// CHECK: scf.for {{.*}} step %c128_i32
// CHECK-COUNT-4: memref.load
// CHECK: scf.for {{.*}} to %c300_i32 step %c32_i32
// A tree of 5 steps.
// CHECK: memref.store %{{.*}}, %[[SHARED]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[SHARED]]
// CHECK-COUNT-8: gpu.barrier
// CHECK-NOT: gpu.barrier
drt.kernel @columns(%x: memref<300x257xf32>, %y: memref<257xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<257xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<300x257xf32>) outs(%y : memref<257xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = arith.addf %o, %a : f32
    linalg.yield %e : f32
  }
  drt.return
}

// 3 columns in each of 7 groups: a block is 4 columns wide.
// CHECK-LABEL: gpu.func @narrow(
// CHECK-SAME: memref<16x4xi1, #gpu.address_space<workgroup>>
// CHECK-SAME: drt.block = array<i64: 128, 1, 1>, drt.grid = array<i64: 7, 1, 1>, drt.schedule = "columns"
drt.kernel @narrow(%x: memref<7x200x3xi1>, %y: memref<7x3xi1>) {
  %true = arith.constant true
  linalg.fill ins(%true : i1) outs(%y : memref<7x3xi1>)
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, k)>],
                  iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : memref<7x200x3xi1>) outs(%y : memref<7x3xi1>) {
  ^bb0(%a: i1, %o: i1):
    %e = arith.andi %o, %a : i1
    linalg.yield %e : i1
  }
  drt.return
}

// Columns of bfloat16 that lie side by side: a thread has eight of them, by loads of 16 bytes, and eight threads a line of the cache. Many blocks, each of
// 256 threads.
// CHECK-LABEL: gpu.func @lanes(
// CHECK-SAME: drt.block = array<i64: 256, 1, 1>, drt.grid = array<i64: 512, 1, 1>, drt.schedule = "columns"
// CHECK: scf.for
// CHECK-COUNT-4: vector.load {{.*}} vector<8xbf16>
// CHECK-NOT: vector.load
drt.kernel @lanes(%x: memref<512x1024x64xbf16>, %y: memref<64x512xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64x512xf32>)
  linalg.generic {indexing_maps = [affine_map<(s, i, j) -> (s, i, j)>, affine_map<(s, i, j) -> (j, s)>], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : memref<512x1024x64xbf16>) outs(%y : memref<64x512xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %w = arith.extf %a : bf16 to f32
    %e = arith.addf %o, %w : f32
    linalg.yield %e : f32
  }
  drt.return
}
