// RUN: distc-opt %s --drt-divide-kernels --split-input-file | FileCheck %s

drt.program "mlp.meta" strategy "AllReduce" target "cpu" batch 64 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] cores 4

// The outermost loop.
// CHECK: drt.kernel @add(%[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %{{.*}}: memref<64x256xf32>, %{{.*}}: memref<64x256xf32>)
// CHECK-SAME: divided = array<i64: 64, 32>
// CHECK: %[[B:.*]] = arith.index_cast %[[BEGIN]]
// CHECK: %[[E:.*]] = arith.index_cast %[[END]]
// CHECK: scf.for %{{.*}} = %[[B]] to %[[E]]
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c256
drt.kernel @add(%a: memref<64x256xf32>, %b: memref<64x256xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<64x256xf32>) outs(%b : memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %x : f32
    linalg.yield %z : f32
  }
  drt.return
}

// Sums of columns: the columns, and the same ones of what the sums start from.
// CHECK: drt.kernel @columns
// CHECK-SAME: divided
// CHECK: scf.for %[[I:.*]] = %[[FIRST:.*]] to %[[LAST:.*]] step
// CHECK: memref.store %{{.*}}, %{{.*}} : memref<256xf32>
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c64
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
drt.kernel @columns(%a: memref<64x256xf32>, %b: memref<256xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%b : memref<256xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<64x256xf32>) outs(%b : memref<256xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  }
  drt.return
}

// As many images as parts that cores get evenly.
// CHECK: drt.kernel @even
// CHECK-SAME: divided = array<i64: 4
drt.kernel @even(%a: memref<4x128xf32>, %b: memref<4x128xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x128xf32>) outs(%b : memref<4x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  drt.return
}

// Few images, many channels: a loop that is short is left to those within it.
// CHECK: drt.kernel @images
// CHECK-SAME: divided = array<i64: 128
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c2
// CHECK: scf.for %{{.*}} = %{{[0-9]+}} to %{{[0-9]+}}
drt.kernel @images(%a: memref<2x128xf32>, %b: memref<2x128xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<2x128xf32>) outs(%b : memref<2x128xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  drt.return
}

// No sum is divided, nor what one result has of it.
// CHECK: drt.kernel @sum(%{{[^:]*}}: memref<64x256xf32>
// CHECK-NOT: divided
// CHECK: linalg.generic
drt.kernel @sum(%a: memref<64x256xf32>, %b: memref<f32>, %c: memref<64x256xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["reduction", "reduction"]}
      ins(%a : memref<64x256xf32>) outs(%b, %c : memref<f32>, memref<64x256xf32>) {
  ^bb0(%x: f32, %y: f32, %w: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z, %x : f32, f32
  }
  drt.return
}

// -----

// One core, or none said: kernels are whole.
drt.program "mlp.meta" strategy "AllReduce" target "cpu" batch 64 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
// CHECK: drt.kernel @copy(%{{[^:]*}}: memref<64xf32>
// CHECK-NOT: divided
drt.kernel @copy(%a: memref<64xf32>, %b: memref<64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<64xf32>) outs(%b : memref<64xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  drt.return
}
