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
