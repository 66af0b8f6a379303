// RUN: distc-opt %s --drt-divide-kernels --split-input-file | FileCheck %s

drt.program "mlp.meta" strategy "AllReduce" target "cpu" batch 64 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] cores 4

// The outermost loop.
// CHECK: func.func private @add(%[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %{{.*}}: memref<64x256xf32>, %{{.*}}: memref<64x256xf32>)
// CHECK-SAME: drt.divided = array<i64: 64, 32>
// CHECK: %[[B:.*]] = arith.index_cast %[[BEGIN]]
// CHECK: %[[E:.*]] = arith.index_cast %[[END]]
// CHECK: scf.for %{{.*}} = %[[B]] to %[[E]]
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c256
func.func private @add(%a: memref<64x256xf32>, %b: memref<64x256xf32>) attributes {drt.kernel} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<64x256xf32>) outs(%b : memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %x : f32
    linalg.yield %z : f32
  }
  return
}

// Sums of columns: the columns, and the same ones of what the sums start from.
// CHECK: func.func private @columns
// CHECK-SAME: drt.divided
// CHECK: scf.for %[[I:.*]] = %[[FIRST:.*]] to %[[LAST:.*]] step
// CHECK: memref.store %{{.*}}, %{{.*}} : memref<256xf32>
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c64
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
func.func private @columns(%a: memref<64x256xf32>, %b: memref<256xf32>) attributes {drt.kernel} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%b : memref<256xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<64x256xf32>) outs(%b : memref<256xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  }
  return
}

// Few images, many channels: a loop that is short is left to those within it.
// CHECK: func.func private @images
// CHECK-SAME: drt.divided = array<i64: 128
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c2
// CHECK: scf.for %{{.*}} = %{{[0-9]+}} to %{{[0-9]+}}
func.func private @images(%a: memref<2x128xf32>, %b: memref<2x128xf32>) attributes {drt.kernel} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<2x128xf32>) outs(%b : memref<2x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// No sum is divided, nor what one result has of it.
// CHECK: func.func private @sum(%{{[^:]*}}: memref<64x256xf32>
// CHECK-NOT: drt.divided
// CHECK: linalg.generic
func.func private @sum(%a: memref<64x256xf32>, %b: memref<f32>, %c: memref<64x256xf32>) attributes {drt.kernel} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["reduction", "reduction"]}
      ins(%a : memref<64x256xf32>) outs(%b, %c : memref<f32>, memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32, %w: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z, %x : f32, f32
  }
  return
}

// -----

// One core, or none said: kernels are whole.
drt.program "mlp.meta" strategy "AllReduce" target "cpu" batch 64 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
// CHECK: func.func private @copy(%{{[^:]*}}: memref<64xf32>
// CHECK-NOT: drt.divided
func.func private @copy(%a: memref<64xf32>, %b: memref<64xf32>) attributes {drt.kernel} {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<64xf32>) outs(%b : memref<64xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}
