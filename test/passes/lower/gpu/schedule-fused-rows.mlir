// RUN: distc-opt %s --drt-schedule-for-gpu --canonicalize --cse | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#l = affine_map<(i) -> (i)>

// 4 rows a block of 4 warps. Threads hold the row, four neighbours each, which are read once; what is read by index lies in shared memory
// too, and before another thread's element of it is read, all have written theirs.
// CHECK-LABEL: gpu.func @warps(
// CHECK-SAME: workgroup(%[[ROWS:.*]] : memref<400xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME: drt.block = array<i64: 128, 1, 1>, drt.grid = array<i64: 3, 1, 1>, drt.schedule = "fused-rows"
// Groups behind the last row read the first one, threads behind its last column its first.
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c10_i32
// CHECK: %[[ROW:.*]] = arith.select %[[INSIDE]], %{{.*}}, %c0_i32
// CHECK: %[[ELEMENT:.*]] = arith.cmpi ult, %{{.*}}, %c100_i32
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK: arith.maximumf
// CHECK-NEXT: arith.select %[[ELEMENT]]
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: vector.load
// CHECK-COUNT-4: arith.subf
// CHECK: %[[BOTH:.*]] = arith.andi %[[INSIDE]], %[[ELEMENT]]
// CHECK: scf.if %[[BOTH]]
// CHECK-COUNT-4: memref.store %{{.*}}, %[[ROWS]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[ROWS]]
// CHECK: memref.store %{{.*}} : memref<10xf32>
drt.kernel @warps(%x: memref<10x100xf32>, %labels: memref<10xi32>, %y: memref<10xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %max = memref.alloc() : memref<10xf32>
  %shifted = memref.alloc() : memref<10x100xf32>
  linalg.fill ins(%low : f32) outs(%max : memref<10xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<10x100xf32>) outs(%max : memref<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  }
  linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : memref<10x100xf32>, memref<10xf32>) outs(%shifted : memref<10x100xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#l], iterator_types = ["parallel"]} outs(%y : memref<10xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %label = memref.load %labels[%i] : memref<10xi32>
    %j = arith.index_cast %label : i32 to index
    %v = memref.load %shifted[%i, %j] : memref<10x100xf32>
    linalg.yield %v : f32
  }
  drt.return
}

// A block a row: its 8 warps exchange the sum through shared memory. The row itself is a result and needs none; 2,000 columns are 250
// threads' eight.
// CHECK-LABEL: gpu.func @block(
// CHECK-SAME: workgroup(%[[WARPS:.*]] : memref<8xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME: drt.block = array<i64: 256, 1, 1>, drt.grid = array<i64: 10, 1, 1>, drt.schedule = "fused-rows"
// CHECK-COUNT-2: vector.load {{.*}} vector<4xf32>
// CHECK: memref.store %{{.*}}, %[[WARPS]]
// CHECK: gpu.barrier
// CHECK-NOT: vector.load
// CHECK: vector.store
// CHECK: scf.if
// CHECK: vector.store
drt.kernel @block(%x: memref<10x2000xf32>, %y: memref<10x2000xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<10xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<10xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<10x2000xf32>) outs(%sum : memref<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.addf %o, %a : f32
    linalg.yield %m : f32
  }
  linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : memref<10x2000xf32>, memref<10xf32>) outs(%y : memref<10x2000xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.divf %a, %m : f32
    linalg.yield %s : f32
  }
  drt.return
}

// A row that is too long for registers is gone through by each operation.
// CHECK-LABEL: gpu.func @long(
// CHECK-SAME: drt.block = array<i64: 512, 1, 1>
// CHECK: scf.for {{.*}} step %c512_i32
// CHECK: gpu.barrier
// CHECK: scf.for {{.*}} step %c512_i32
drt.kernel @long(%x: memref<10x50000xf32>, %y: memref<10x50000xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<10xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<10xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<10x50000xf32>) outs(%sum : memref<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.addf %o, %a : f32
    linalg.yield %m : f32
  }
  linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : memref<10x50000xf32>, memref<10xf32>) outs(%y : memref<10x50000xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.divf %a, %m : f32
    linalg.yield %s : f32
  }
  drt.return
}

// A vocabulary's row takes all threads of a block, twenty elements each.
// CHECK-LABEL: gpu.func @vocabulary(
// CHECK-SAME: drt.block = array<i64: 1024, 1, 1>
// CHECK-NOT: scf.for
// CHECK-COUNT-20: memref.load %reinterpret_cast[
// CHECK-NOT: memref.load %reinterpret_cast[
// CHECK: gpu.return
drt.kernel @vocabulary(%x: memref<10x20001xf32>, %y: memref<10x20001xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<10xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<10xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<10x20001xf32>) outs(%sum : memref<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.addf %o, %a : f32
    linalg.yield %m : f32
  }
  linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : memref<10x20001xf32>, memref<10xf32>) outs(%y : memref<10x20001xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.divf %a, %m : f32
    linalg.yield %s : f32
  }
  drt.return
}

// A thread holds 32 elements of the row, and no others: what is made and not read again is written neighbours by neighbours.
// CHECK-LABEL: gpu.func @written_at_once(
// CHECK-SAME: drt.block = array<i64: 1024, 1, 1>, drt.grid = array<i64: 8, 1, 1>, drt.schedule = "fused-rows"
// CHECK-COUNT-8: vector.load {{.*}} vector<4xf32>
// CHECK-COUNT-7: vector.store {{.*}} vector<4xf32>
// CHECK-NOT: vector.load
// CHECK: return
drt.kernel @written_at_once(%x: memref<8x30000xf32>, %max: memref<8xf32>, %y: memref<8x30000xf32>) {
  %low = arith.constant 0xFF800000 : f32
  linalg.fill ins(%low : f32) outs(%max : memref<8xf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : memref<8x30000xf32>) outs(%max : memref<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  }
  linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : memref<8x30000xf32>, memref<8xf32>) outs(%y : memref<8x30000xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  }
  drt.return
}
