// RUN: distc-opt %s --drt-schedule-for-gpu --canonicalize --cse | FileCheck %s

#i = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>

// 4 float32 a thread.
// CHECK-LABEL: gpu.func @line(
// CHECK-SAME: %[[X:[^:]*]]: memref<64x64xf32>
// CHECK-SAME: drt.block = array<i64: 128, 1, 1>, drt.grid = array<i64: 8, 1, 1>, drt.schedule = "elementwise"
// CHECK-NOT: scf.if
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
// CHECK-COUNT-4: arith.mulf
// CHECK: vector.store {{.*}} {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
drt.kernel @line(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = arith.mulf %a, %a : f32
    linalg.yield %e : f32
  }
  drt.return
}

// 250 vectors, and 3 elements behind them.
// CHECK-LABEL: gpu.func @tail(
// CHECK: arith.cmpi ult, %{{.*}}, %c250_i32
// CHECK: vector.store
// CHECK: arith.cmpi ult, %{{.*}}, %c3_i32
// CHECK: arith.addi %{{.*}}, %c1000_i32
// CHECK: memref.store
drt.kernel @tail(%x: memref<1003xf32>, %y: memref<1003xf32>) {
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : memref<1003xf32>) outs(%y : memref<1003xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = arith.mulf %a, %a : f32
    linalg.yield %e : f32
  }
  drt.return
}

// A bias by vectors, what a row or all elements share once; bits lie in a byte each and are stored alone.
// CHECK-LABEL: gpu.func @broadcast(
// CHECK: vector.load {{.*}} : memref<1920xf32>, vector<4xf32>
// CHECK: vector.load %{{.*}} : memref<64xf32>, vector<4xf32>
// CHECK: memref.load {{.*}} : memref<30xf32>
// CHECK: memref.load {{.*}} : memref<1xf32>
// CHECK-NOT: load
// CHECK: vector.store
// CHECK-COUNT-4: memref.store {{.*}} : memref<1920xi1>
drt.kernel @broadcast(%x: memref<30x64xf32>, %bias: memref<64xf32>, %row: memref<30x1xf32>, %all: memref<f32>,
                             %y: memref<30x64xf32>, %positive: memref<30x64xi1>) {
  linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> ()>, #ij, #ij],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias, %row, %all : memref<30x64xf32>, memref<64xf32>, memref<30x1xf32>, memref<f32>)
      outs(%y, %positive : memref<30x64xf32>, memref<30x64xi1>) {
  ^bb0(%a: f32, %b: f32, %r: f32, %s: f32, %o: f32, %p: i1):
    %zero = arith.constant 0.0 : f32
    %0 = arith.addf %a, %b : f32
    %1 = arith.mulf %0, %r : f32
    %2 = arith.mulf %1, %s : f32
    %3 = arith.cmpf ogt, %2, %zero : f32
    linalg.yield %2, %3 : f32, i1
  }
  drt.return
}

// Rows whose size is even only.
// CHECK-LABEL: gpu.func @even_rows(
// CHECK: vector.load {{.*}} {alignment = 8 : i64} : memref<70xf32>, vector<2xf32>
drt.kernel @even_rows(%x: memref<7x10xf32>, %bias: memref<10xf32>, %y: memref<7x10xf32>) {
  linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (j)>, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : memref<7x10xf32>, memref<10xf32>) outs(%y : memref<7x10xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %e = arith.addf %a, %b : f32
    linalg.yield %e : f32
  }
  drt.return
}

// 128 bits are 2 float64 and 8 float16.
// CHECK-LABEL: gpu.func @wide(
// CHECK: vector.store {{.*}} : memref<64xf64>, vector<2xf64>
drt.kernel @wide(%x: memref<64xf32>, %y: memref<64xf64>) {
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : memref<64xf32>) outs(%y : memref<64xf64>) {
  ^bb0(%a: f32, %o: f64):
    %e = arith.extf %a : f32 to f64
    linalg.yield %e : f64
  }
  drt.return
}
// CHECK-LABEL: gpu.func @narrow(
// CHECK: vector.store {{.*}} : memref<64xf16>, vector<8xf16>
drt.kernel @narrow(%x: memref<64xf16>, %y: memref<64xf16>) {
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : memref<64xf16>) outs(%y : memref<64xf16>) {
  ^bb0(%a: f16, %o: f16):
    %e = arith.negf %a : f16
    linalg.yield %e : f16
  }
  drt.return
}

// A scalar; a fill; what a result holds before.
// CHECK-LABEL: gpu.func @scalar(
// CHECK-SAME: drt.grid = array<i64: 1, 1, 1>
// CHECK: arith.cmpi {{.*}}, %c{{[01]}}_i32
// CHECK: memref.store
drt.kernel @scalar(%x: memref<i64>, %y: memref<i64>) {
  linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%x : memref<i64>) outs(%y : memref<i64>) {
  ^bb0(%a: i64, %o: i64):
    %e = arith.addi %a, %a : i64
    linalg.yield %e : i64
  }
  drt.return
}
// CHECK-LABEL: gpu.func @fill(
// CHECK: vector.store %{{.*}} : memref<400xf32>, vector<4xf32>
drt.kernel @fill(%y: memref<20x20xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%y : memref<20x20xf32>)
  drt.return
}
// CHECK-LABEL: gpu.func @accumulate(
// CHECK-SAME: %[[Y:[^:]*]]: memref<64xf32> {llvm.noalias})
// CHECK: vector.load %[[Y]]
// CHECK: vector.store %{{.*}}, %[[Y]]
drt.kernel @accumulate(%x: memref<64xf32>, %y: memref<64xf32>) {
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = arith.addf %a, %o : f32
    linalg.yield %e : f32
  }
  drt.return
}

// Positions of the loops of the operation, behind those of the kernel.
// CHECK-LABEL: gpu.func @positions(
// CHECK: %[[AT:.*]] = arith.muli %{{.*}}, %c4_i32
// CHECK: arith.divui %[[AT]], %c20_i32
// CHECK: arith.remui %[[AT]], %c20_i32
drt.kernel @positions(%y: memref<5x20xi32>) {
  linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%y : memref<5x20xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.subi %i, %j : index
    %e = arith.index_cast %s : index to i32
    linalg.yield %e : i32
  }
  drt.return
}

// Where there is nothing to make a thread must not write, though one block is launched.
// CHECK-LABEL: gpu.func @nothing(
// CHECK-SAME: drt.block = array<i64: 32, 1, 1>, drt.grid = array<i64: 1, 1, 1>
// CHECK-NOT: store
// CHECK: gpu.return
drt.kernel @nothing(%x: memref<0x3xf32>, %y: memref<0x3xf32>) {
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%x : memref<0x3xf32>) outs(%y : memref<0x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = arith.mulf %a, %a : f32
    linalg.yield %e : f32
  }
  drt.return
}
