// RUN: distc-opt %s --pass-pipeline='builtin.module(drt.entry(drt-draw-in-updates))' --split-input-file | FileCheck %s

// Numbers that an update alone reads, one for each of its elements, in whatever shape: it draws them.
drt.variable @table : tensor<4x8xf32> {saved, trainable}
// CHECK-LABEL: drt.entry "init"
drt.entry "init" {
  // CHECK-NOT: drt.random
  // CHECK: %[[U:.*]] = drt.draw {distribution = 0 : i32, {{.*}}seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<4x8xf32>
  // CHECK: drt.update %[[U]] {{.*}}variables = [@table]
  %uniform = drt.random {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<4x8xf32>
  drt.update %uniform {kernel = @assign, variables = [@table], count = 32 : i64} : (tensor<4x8xf32>) -> ()
  // CHECK: %[[KEY:.*]] = drt.feed
  // CHECK: %[[N:.*]] = drt.draw %[[KEY]] {distribution = 1 : i32, keyed, {{.*}}} : (tensor<3xi64>) -> tensor<32xf32>
  // CHECK: %[[SHAPED:.*]] = tensor.expand_shape %[[N]]
  // CHECK: drt.update %[[SHAPED]]
  %key = drt.feed {name = "key"} : () -> tensor<3xi64>
  %normal = drt.random_stateless %key {distribution = 1 : i32, keyed} : (tensor<3xi64>) -> tensor<32xf32>
  %shaped = tensor.expand_shape %normal [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  drt.update %shaped {kernel = @assign, variables = [@table], count = 32 : i64} : (tensor<4x8xf32>) -> ()
}
drt.kernel range @assign(%begin: i64, %end: i64, %w: memref<32xf32>, %x: memref<32xf32>) {
  drt.return
}

// -----

// What something else reads too, one number for all elements, and what an update of a bucket reads stay.
drt.variable @table : tensor<4x8xf32> {saved, trainable}
drt.variable @other : tensor<4x8xf32> {saved, trainable}
// CHECK-LABEL: drt.entry "init"
drt.entry "init" {
  // CHECK-NOT: drt.draw
  %twice = drt.random {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<4x8xf32>
  drt.update %twice {kernel = @assign, variables = [@table], count = 32 : i64} : (tensor<4x8xf32>) -> ()
  drt.update %twice {kernel = @assign, variables = [@other], count = 32 : i64} : (tensor<4x8xf32>) -> ()
  %one = drt.random {distribution = 0 : i32, seed = 3 : i64, seed2 = 4 : i64} : () -> tensor<1xf32>
  drt.update %one {kernel = @fill, variables = [@table], count = 32 : i64} : (tensor<1xf32>) -> ()
  %gradient = drt.feed {name = "g"} : () -> tensor<4x8xf32>
  %copy = drt.copy %gradient : (tensor<4x8xf32>) -> tensor<4x8xf32>
  drt.all_reduce_start %copy {bucket = 0 : i32, mean = true, names = ["table"]} : (tensor<4x8xf32>) -> ()
  drt.all_reduce_wait 0
  %noise = drt.random {distribution = 0 : i32, seed = 5 : i64, seed2 = 6 : i64} : () -> tensor<4x8xf32>
  drt.update %noise {kernel = @noisy, variables = [@table], bucket = 0 : i32, member = 0 : i64, count = 32 : i64} : (tensor<4x8xf32>) -> ()
}
drt.kernel range @assign(%begin: i64, %end: i64, %w: memref<32xf32>, %x: memref<32xf32>) {
  drt.return
}
drt.kernel range @fill(%begin: i64, %end: i64, %w: memref<32xf32>, %x: memref<1xf32>) {
  drt.return
}
drt.kernel range @noisy(%begin: i64, %end: i64, %g: memref<32xf32>, %w: memref<32xf32>, %x: memref<32xf32>) {
  drt.return
}
