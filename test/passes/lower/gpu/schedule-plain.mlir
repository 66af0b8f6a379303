// RUN: distc-opt %s --drt-schedule-for-gpu --canonicalize --cse | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>

// Constants that a kernel reads lie in the image.
// CHECK: gpu.module @kernels
// CHECK: memref.global "private" constant @weights
memref.global "private" constant @weights : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>

// Rows by index: 20 * 8 elements are 160 threads, the rest of the block has nothing to do.
// CHECK-LABEL: gpu.func @gather(
// CHECK-SAME: %[[TABLE:[^:]*]]: memref<100x8xf32> {llvm.noalias, llvm.readonly}, %[[INDICES:[^:]*]]: memref<20xi32>
// CHECK-SAME: drt.block = array<i64: 256, 1, 1>, drt.grid = array<i64: 1, 1, 1>, drt.schedule = "plain"
// CHECK: %[[WEIGHTS:.*]] = memref.get_global @weights
// CHECK: arith.cmpi ult, %{{.*}}, %c160_i32
// CHECK: scf.if
// CHECK: %[[ROW:.*]] = memref.load %[[INDICES]]
// CHECK: memref.load %[[TABLE]]
// CHECK: memref.store
// CHECK-NOT: func.func
drt.kernel @gather(%table: memref<100x8xf32>, %indices: memref<20xi32>, %y: memref<20x8xf32>) {
  %weights = memref.get_global @weights : memref<4xf32>
  linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%y : memref<20x8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %at = memref.load %indices[%i] : memref<20xi32>
    %row = arith.index_cast %at : i32 to index
    %rows = arith.constant 100 : index
    %inside = arith.cmpi ult, %row, %rows : index
    %four = arith.constant 4 : index
    %k = arith.remui %j, %four : index
    %e = scf.if %inside -> f32 {
      %x = memref.load %table[%row, %j] : memref<100x8xf32>
      %w = memref.load %weights[%k] : memref<4xf32>
      %p = arith.mulf %x, %w : f32
      scf.yield %p : f32
    } else {
      %zero = arith.constant 0.0 : f32
      scf.yield %zero : f32
    }
    linalg.yield %e : f32
  }
  drt.return
}

// A body that does not say how two partial results are joined: the thread walks over the reduced elements.
// CHECK-LABEL: gpu.func @horner(
// CHECK-SAME: drt.schedule = "plain"
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %cst{{.*}})
// CHECK: %[[TWICE:.*]] = arith.mulf %[[ACC]]
// CHECK: arith.addf %[[TWICE]]
// CHECK: memref.store %[[SUM]]
drt.kernel @horner(%x: memref<300x5xf32>, %y: memref<300xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%y : memref<300xf32>)
  linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<300x5xf32>) outs(%y : memref<300xf32>) {
  ^bb0(%a: f32, %o: f32):
    %two = arith.constant 2.0 : f32
    %t = arith.mulf %o, %two : f32
    %e = arith.addf %t, %a : f32
    linalg.yield %e : f32
  }
  drt.return
}

// Addresses that are no linear function of the loops.
// CHECK-LABEL: gpu.func @nonlinear(
// CHECK-SAME: drt.schedule = "plain"
drt.kernel @nonlinear(%x: memref<5xf32>, %y: memref<10xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i floordiv 2)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<5xf32>) outs(%y : memref<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  drt.return
}

// A sum down the columns and, beside it, an element for each row: the sum alone is carried from row to row, the element
// is read and written at each.
// CHECK-LABEL: gpu.func @sum_and_elements(
// CHECK-SAME: %[[X:[^:]*]]: memref<300x5xf32> {{[^,]*}}, llvm.readonly}, %[[Y:[^:]*]]: memref<300x5xf32> {{.*}}, %[[Z:[^:]*]]: memref<5xf32>
// CHECK-SAME: drt.schedule = "plain"
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[ACC:.*]] = %cst{{.*}}) -> (f32)
// CHECK: %[[E:.*]] = memref.load %[[X]]
// CHECK: %[[TWICE:.*]] = arith.addf %[[E]], %[[E]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[TWICE]]
// CHECK: memref.store %[[TWICE]], %[[Y]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: memref.store %[[SUM]], %[[Z]]
drt.kernel @sum_and_elements(%x: memref<300x5xf32>, %y: memref<300x5xf32>, %z: memref<5xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%z : memref<5xf32>)
  linalg.generic {indexing_maps = [#ij, #ij, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<300x5xf32>) outs(%y, %z : memref<300x5xf32>, memref<5xf32>) {
  ^bb0(%a: f32, %o: f32, %p: f32):
    %t = arith.addf %a, %a : f32
    %s = arith.addf %p, %t : f32
    linalg.yield %t, %s : f32, f32
  }
  drt.return
}

// Two sums are no two sums where the first has an element for each row.
// CHECK-LABEL: gpu.func @not_reduced(
// CHECK-SAME: drt.schedule = "plain"
// CHECK: scf.for {{.*}} iter_args(%{{[^,]*}}) -> (f32)
drt.kernel @not_reduced(%x: memref<300x5xf32>, %y: memref<300x5xf32>, %z: memref<5xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<300x5xf32>)
  linalg.fill ins(%zero : f32) outs(%z : memref<5xf32>)
  linalg.generic {indexing_maps = [#ij, #ij, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<300x5xf32>) outs(%y, %z : memref<300x5xf32>, memref<5xf32>) {
  ^bb0(%a: f32, %o: f32, %p: f32):
    %t = arith.addf %o, %a : f32
    %s = arith.addf %p, %a : f32
    linalg.yield %t, %s : f32, f32
  }
  drt.return
}
