// RUN: distc-opt %s --drt-accumulate-in-variables | FileCheck %s

drt.variable @w : tensor<6xf32> {trainable, saved}
// CHECK: drt.variable @w
// CHECK-NEXT: drt.variable @accumulator_0 : tensor<2x3xf32>{{$}}
// CHECK-NEXT: drt.variable @accumulator_1 : tensor<i32>{{$}}
// CHECK-NEXT: drt.variable @accumulator_2 : tensor<18xf32>{{$}}

// CHECK-LABEL: drt.entry "accumulate"
drt.entry "accumulate" {
  // CHECK: %[[G:.*]] = drt.feed {{.*}}name = "g"
  // CHECK: %[[C:.*]] = drt.feed {{.*}}name = "c"
  %g = drt.feed {name = "g"} : () -> tensor<2x3xf32>
  %c = drt.feed {name = "c"} : () -> tensor<i32>
  // CHECK: drt.update %[[G]] {count = 6 : i64, kernel = @accumulate_0, variables = [@accumulator_0]}
  // CHECK: drt.update %[[C]] {count = 1 : i64, kernel = @accumulate_1, variables = [@accumulator_1]}
  // CHECK: drt.accumulate {first = 0 : i32, steps = 4 : i64} : () -> ()
  drt.accumulate %g, %c {first = 0 : i32, steps = 4 : i64} : (tensor<2x3xf32>, tensor<i32>) -> ()
}

// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK: %[[G:.*]] = drt.feed {{.*}}name = "g"
  %g = drt.feed {name = "g"} : () -> tensor<2x3xf32>
  // CHECK: %[[SUM:.*]] = drt.read @accumulator_0
  // CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[SUM]], %[[G]]
  // CHECK: arith.addf
  // CHECK: arith.mulf
  %mean = drt.accumulated %g {first = 0 : i32, steps = 4 : i64, scale = 0.25 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: drt.fetch %[[MEAN]]
  drt.fetch %mean {name = "mean", join = 0 : i32} : (tensor<2x3xf32>) -> ()
  // The sum is read before it is forgotten, also by kernels that are fused.
  // CHECK-NEXT: drt.update {count = 6 : i64, kernel = @forget_2, variables = [@accumulator_0]}
  // CHECK-NEXT: }
}

// Rows of a sparse gradient are joined, not added: three batches are kept, and move up by one.
// CHECK-LABEL: drt.entry "keep"
drt.entry "keep" {
  %g = drt.feed {name = "g"} : () -> tensor<2x3xf32>
  // CHECK: %[[KEPT:.*]] = drt.read @accumulator_2 : tensor<18xf32>
  // CHECK: %[[LINE:.*]] = tensor.collapse_shape
  // CHECK: %[[MOVED:.*]] = linalg.generic
  // CHECK: tensor.extract %[[KEPT]]
  // CHECK: tensor.extract %[[LINE]]
  // CHECK: drt.update %[[MOVED]] {count = 18 : i64, kernel = @accumulate_3, variables = [@accumulator_2]}
  // CHECK: drt.accumulate {first = 2 : i32, steps = 4 : i64} : () -> ()
  drt.accumulate %g {first = 2 : i32, steps = 4 : i64, slices} : (tensor<2x3xf32>) -> ()
}

// CHECK-LABEL: drt.entry "sparse"
drt.entry "sparse" {
  %g = drt.feed {name = "g"} : () -> tensor<2x3xf32>
  // CHECK: drt.read @accumulator_2
  // CHECK: linalg.generic
  // CHECK: arith.mulf
  // CHECK: tensor.expand_shape {{.*}} into tensor<8x3xf32>
  // CHECK-NOT: drt.update
  // CHECK: drt.fetch
  %rows = drt.accumulated %g {first = 2 : i32, steps = 4 : i64, scale = 0.25 : f64, slices} : (tensor<2x3xf32>) -> tensor<8x3xf32>
  drt.fetch %rows {name = "rows", join = 0 : i32} : (tensor<8x3xf32>) -> ()
}

// CHECK: drt.kernel range @accumulate_0(%{{.*}}: i64, %{{.*}}: i64, %[[A:.*]]: memref<6xf32>, %[[X:.*]]: memref<6xf32>)
// CHECK: memref.store %{{.*}}, %[[A]]
// CHECK: @accumulate_1
// CHECK: arith.addi
// CHECK: drt.kernel range @forget_2(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: memref<6xf32>) {
// CHECK: arith.constant 0.000000e+00
