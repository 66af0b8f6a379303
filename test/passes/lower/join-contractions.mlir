// RUN: distc-opt %s --drt-join-contractions="replicas=2 min-elements=1" | FileCheck %s
// RUN: distc-opt %s --drt-join-contractions="replicas=2" | FileCheck %s --check-prefix=SMALL

drt.variable @w : tensor<3x5xf32>
drt.variable @b : tensor<5xf32>
// The mean over two replicas is half of the product of the stacked operands; the bias' gradient stays in the bucket.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[X:.*]] = drt.feed {{.*}}name = "x"
// CHECK: %[[DY:.*]] = drt.feed {{.*}}name = "dy"
// CHECK-NOT: drt.matmul %
// CHECK: drt.all_reduce_start %{{.*}} {bucket = 0 : i32, mean = true, names = ["b"]}
// CHECK: drt.all_reduce_wait 0
// CHECK: drt.matmul_update %[[X]], %[[DY]] {kernel = @sgd, scale = 5.000000e-01 : f64, transpose_a, variables = [@w]}
// CHECK: drt.update {{.*}}member = 0 : i64, variables = [@b]
// SMALL-LABEL: drt.entry "step"
// SMALL: drt.matmul %
// SMALL: names = ["w", "b"]
drt.entry "step" {
  %x = drt.feed {name = "x", batched} : () -> tensor<4x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<4x5xf32>
  %gw = drt.matmul %x, %dy {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %gb = drt.launch @sum(%dy) : (tensor<4x5xf32>) -> tensor<5xf32>
  drt.all_reduce_start %gw, %gb {bucket = 0 : i32, mean = true, names = ["w", "b"]} : (tensor<3x5xf32>, tensor<5xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update {kernel = @sgd, variables = [@w], bucket = 0 : i32, member = 0 : i64, count = 15 : i64} : () -> ()
  drt.update {kernel = @sgd, variables = [@b], bucket = 0 : i32, member = 1 : i64, count = 5 : i64} : () -> ()
}

drt.variable @v : tensor<3x5xf32>
// A few rows of each replica and one variable: computed for all replicas together. A large share is not, nor is a product of
// two values that each replica has its own of.
// RUN: distc-opt %s --drt-join-contractions="replicas=2 min-shared=1 max-rows=4" | FileCheck %s --check-prefix=SHARED
// SHARED-LABEL: drt.entry "forward"
// SHARED: drt.matmul %{{.*}} {joined} : (tensor<4x3xf32>
// SHARED: drt.matmul %{{[0-9]+}}, %{{[0-9]+}} : (tensor<8x3xf32>
// SHARED: drt.matmul %{{[0-9]+}}, %{{[0-9]+}} : (tensor<4x3xf32>
drt.entry "forward" {
  %few = drt.feed {name = "few", batched} : () -> tensor<4x3xf32>
  %many = drt.feed {name = "many", batched} : () -> tensor<8x3xf32>
  %own = drt.feed {name = "own", batched} : () -> tensor<3x5xf32>
  %v = drt.read @v : tensor<3x5xf32>
  %0 = drt.matmul %few, %v : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %1 = drt.matmul %many, %v : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
  %2 = drt.matmul %few, %own : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
}

// Where each replica's own gradient is compressed nothing is joined.
// CHECK-LABEL: drt.entry "compressed"
// CHECK: %[[G:.*]] = drt.matmul
// CHECK: drt.all_reduce_start %[[G]]
// CHECK-NOT: drt.matmul_update
drt.entry "compressed" {
  %x = drt.feed {name = "x", batched} : () -> tensor<4x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<4x5xf32>
  %gw = drt.matmul %x, %dy {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], compression = #dist.compression<fp16>} : (tensor<3x5xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update {kernel = @sgd, variables = [@w], bucket = 0 : i32, member = 0 : i64, count = 15 : i64} : () -> ()
}

drt.variable @f : tensor<2x3x5xf32>
drt.variable @long : tensor<1x3x5xf32>
// A filter's gradient is a product with its axes together. One that goes over more rows of images than it has itself is each
// replica's own.
// CHECK-LABEL: drt.entry "filters"
// CHECK: %[[LONG:.*]] = drt.matmul %{{.*}} {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
// CHECK: %[[G:.*]] = tensor.expand_shape %[[LONG]]
// CHECK-NOT: drt.matmul %
// CHECK: drt.all_reduce_start %[[G]] {bucket = 0 : i32, mean = true, names = ["long"]}
// CHECK: drt.matmul_update %{{.*}} {kernel = @sgd, scale = 5.000000e-01 : f64, transpose_a, variables = [@f]} : (tensor<4x6xf32>, tensor<4x5xf32>) -> ()
// CHECK: drt.update {{.*}}member = 0 : i64, variables = [@long]
drt.entry "filters" {
  %windows = drt.feed {name = "windows", batched} : () -> tensor<4x6xf32>
  %pixels = drt.feed {name = "pixels", batched} : () -> tensor<4x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<4x5xf32>
  %0 = drt.matmul %windows, %dy {transpose_a} : (tensor<4x6xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %gf = tensor.expand_shape %0 [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %1 = drt.matmul %pixels, %dy {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %gl = tensor.expand_shape %1 [[0, 1], [2]] output_shape [1, 3, 5] : tensor<3x5xf32> into tensor<1x3x5xf32>
  drt.all_reduce_start %gf, %gl {bucket = 0 : i32, mean = true, names = ["f", "long"]} : (tensor<2x3x5xf32>, tensor<1x3x5xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update {kernel = @sgd, variables = [@f], bucket = 0 : i32, member = 0 : i64, count = 30 : i64} : () -> ()
  drt.update {kernel = @sgd, variables = [@long], bucket = 0 : i32, member = 1 : i64, count = 15 : i64} : () -> ()
}

// ---- A task's only replica ---------------------------------------------------------------------------------
// RUN: distc-opt %s --drt-join-contractions="replicas=1 min-elements=1" | FileCheck %s --check-prefix=ONE

drt.variable @o : tensor<3x5xf32>
// The gradient is the update's second argument; its kernel takes it first, from element `begin` on.
drt.kernel range @own(%begin: i64, %end: i64, %v: memref<15xf32>, %rate: memref<1xf32>, %gradient: memref<15xf32>) {
  %b = arith.index_cast %begin : i64 to index
  %e = arith.index_cast %end : i64 to index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = memref.load %rate[%zero] : memref<1xf32>
  scf.for %i = %b to %e step %one {
    %g = memref.load %gradient[%i] : memref<15xf32>
    %old = memref.load %v[%i] : memref<15xf32>
    %scaled = arith.mulf %r, %g : f32
    %new = arith.subf %old, %scaled : f32
    memref.store %new, %v[%i] : memref<15xf32>
  }
  drt.return
}
// Elements of other places than its own: it wants the whole gradient.
drt.kernel range @reversed(%begin: i64, %end: i64, %v: memref<15xf32>, %gradient: memref<15xf32>) {
  %b = arith.index_cast %begin : i64 to index
  %e = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  %last = arith.constant 14 : index
  scf.for %i = %b to %e step %one {
    %j = arith.subi %last, %i : index
    %g = memref.load %gradient[%j] : memref<15xf32>
    memref.store %g, %v[%i] : memref<15xf32>
  }
  drt.return
}
// ONE: drt.kernel range @own_of_matmul(%[[BEGIN:.*]]: i64, %{{.*}}: i64, %[[G:.*]]: memref<15xf32>, %{{.*}}: memref<15xf32>, %{{.*}}: memref<1xf32>)
// ONE: scf.for %[[I:.*]] =
// ONE: %[[AT:.*]] = arith.subi %[[I]], %
// ONE: memref.load %[[G]][%[[AT]]]
// ONE-LABEL: drt.entry "own"
// ONE-NOT: drt.matmul %
// ONE: %[[RATE:.*]] = drt.feed {{.*}}name = "rate"
// ONE: drt.matmul_update %{{.*}}, %{{.*}}, %[[RATE]] {kernel = @own_of_matmul, scale = 1.000000e+00 : f64, transpose_a, variables = [@o]}
drt.entry "own" {
  %x = drt.feed {name = "x", batched} : () -> tensor<4x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<4x5xf32>
  %g = drt.matmul %x, %dy {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %rate = drt.feed {name = "rate"} : () -> tensor<f32>
  drt.update %rate, %g {kernel = @own, variables = [@o], count = 15 : i64} : (tensor<f32>, tensor<3x5xf32>) -> ()
}
// Left: what the kernel reads elsewhere, what something else reads as well, and (as above) what a bucket holds.
// ONE-LABEL: drt.entry "left"
// ONE: %[[G:.*]] = drt.matmul
// ONE: drt.update %[[G]] {{.*}}kernel = @reversed
// ONE: %[[READ:.*]] = drt.matmul
// ONE: drt.update %{{.*}}, %[[READ]] {{.*}}kernel = @own
// ONE-NOT: drt.matmul_update
drt.entry "left" {
  %x = drt.feed {name = "x", batched} : () -> tensor<4x3xf32>
  %dy = drt.feed {name = "dy", batched} : () -> tensor<4x5xf32>
  %rate = drt.feed {name = "rate"} : () -> tensor<f32>
  %g = drt.matmul %x, %dy {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  drt.update %g {kernel = @reversed, variables = [@o], count = 15 : i64} : (tensor<3x5xf32>) -> ()
  %h = drt.matmul %x, %dy {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  drt.update %rate, %h {kernel = @own, variables = [@o], count = 15 : i64} : (tensor<f32>, tensor<3x5xf32>) -> ()
  drt.fetch %h {name = "h", join = 0 : i32} : (tensor<3x5xf32>) -> ()
}
