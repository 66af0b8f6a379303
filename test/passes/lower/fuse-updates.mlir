// RUN: distc-opt %s --drt-fuse-updates --split-input-file | FileCheck %s

// A clipped gradient, with a decay: the range kernel reads the gradient, the scale, and the variable that it has anyway.
#element = affine_map<(i, j) -> (i, j)>
#scalar = affine_map<(i, j) -> ()>
drt.variable @w : tensor<4x8xf32> {saved, trainable}
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %g = drt.feed {name = "g"} : () -> tensor<4x8xf32>
  %scale = drt.feed {name = "scale"} : () -> tensor<f32>
  %w = drt.read @w : tensor<4x8xf32>
  %empty = tensor.empty() : tensor<4x8xf32>
  // CHECK-NOT: linalg.generic
  %clipped = linalg.generic {indexing_maps = [#element, #scalar, #element], iterator_types = ["parallel", "parallel"]}
      ins(%g, %scale : tensor<4x8xf32>, tensor<f32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%x: f32, %s: f32, %out: f32):
    %y = arith.mulf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  %decay = arith.constant 1.000000e-02 : f32
  %decayed = linalg.generic {indexing_maps = [#element, #element, #element], iterator_types = ["parallel", "parallel"]}
      ins(%clipped, %w : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%x: f32, %v: f32, %out: f32):
    %d = arith.mulf %v, %decay : f32
    %y = arith.addf %x, %d : f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  // CHECK: drt.update %{{.*}}, %{{.*}} {count = 32 : i64, kernel = @[[KERNEL:update_fused_.*]], variables = [@w]} : (tensor<4x8xf32>, tensor<f32>) -> ()
  drt.update %decayed {kernel = @sgd, variables = [@w], count = 32 : i64} : (tensor<4x8xf32>) -> ()
}
// CHECK-NOT: @sgd
// CHECK: drt.kernel range @[[KERNEL]](%{{.*}}: i64, %{{.*}}: i64, %[[W:.*]]: memref<32xf32>, %[[G:.*]]: memref<32xf32>, %[[SCALE:.*]]: memref<1xf32>)
// CHECK: %[[S:.*]] = memref.load %[[SCALE]]
// CHECK: scf.for %[[I:.*]] =
// CHECK-DAG: %[[X:.*]] = memref.load %[[G]][%[[I]]]
// CHECK-DAG: arith.mulf %[[X]], %[[S]]
// CHECK: memref.store %{{.*}}, %[[W]][%[[I]]]
drt.kernel range @sgd(%begin: i64, %end: i64, %w: memref<32xf32>, %g: memref<32xf32>) {
  %0 = arith.index_cast %begin : i64 to index
  %1 = arith.index_cast %end : i64 to index
  %c1 = arith.constant 1 : index
  scf.for %i = %0 to %1 step %c1 {
    %x = memref.load %w[%i] : memref<32xf32>
    %y = memref.load %g[%i] : memref<32xf32>
    %z = arith.subf %x, %y : f32
    memref.store %z, %w[%i] : memref<32xf32>
  }
  drt.return
}

// -----

// What something else reads too, what is transposed, what is read of a variable that changes in between, and what a
// reduction in place overwrites stays.
#element = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>
drt.variable @w : tensor<4x4xf32> {saved, trainable}
drt.variable @m : tensor<4x4xf32> {saved}
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %g = drt.feed {name = "g"} : () -> tensor<4x4xf32>
  %h = drt.feed {name = "h"} : () -> tensor<4x4xf32>
  %m = drt.read @m : tensor<4x4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  // CHECK-COUNT-4: linalg.generic
  %twice = linalg.generic {indexing_maps = [#element, #element], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<4x4xf32>
  %transposed = linalg.generic {indexing_maps = [#transposed, #element], iterator_types = ["parallel", "parallel"]}
      ins(%g : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<4x4xf32>
  %old = linalg.generic {indexing_maps = [#element, #element], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<4x4xf32>
  %raw = linalg.generic {indexing_maps = [#element, #element], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<4x4xf32>
  // CHECK-COUNT-5: kernel = @sgd
  drt.update %twice {kernel = @sgd, variables = [@w], count = 16 : i64} : (tensor<4x4xf32>) -> ()
  drt.update %transposed {kernel = @sgd, variables = [@w], count = 16 : i64} : (tensor<4x4xf32>) -> ()
  drt.update %twice {kernel = @sgd, variables = [@m], count = 16 : i64} : (tensor<4x4xf32>) -> ()
  drt.update %old {kernel = @sgd, variables = [@w], count = 16 : i64} : (tensor<4x4xf32>) -> ()
  drt.all_reduce_start %h {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4x4xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update %raw {kernel = @sgd, variables = [@w], count = 16 : i64} : (tensor<4x4xf32>) -> ()
}
drt.kernel range @sgd(%begin: i64, %end: i64, %w: memref<16xf32>, %g: memref<16xf32>) {
  %0 = arith.index_cast %begin : i64 to index
  %1 = arith.index_cast %end : i64 to index
  %c1 = arith.constant 1 : index
  scf.for %i = %0 to %1 step %c1 {
    %x = memref.load %w[%i] : memref<16xf32>
    %y = memref.load %g[%i] : memref<16xf32>
    %z = arith.subf %x, %y : f32
    memref.store %z, %w[%i] : memref<16xf32>
  }
  drt.return
}
