// RUN: distc-opt %s --drt-insert-barriers --split-input-file | FileCheck %s

// A kernel reads the whole variable, then each replica updates its range.
drt.variable @w : tensor<64x64xf32>
// CHECK-LABEL: drt.entry "read_then_update"
drt.entry "read_then_update" {
  %w = drt.read @w : tensor<64x64xf32>
  // CHECK: drt.launch @norm
  %norm = drt.launch @norm(%w) : (tensor<64x64xf32>) -> tensor<f32>
  // CHECK-NEXT: drt.barrier
  // CHECK-NEXT: drt.update
  drt.update %norm {count = 4096 : i64, kernel = @sgd, variables = [@w]} : (tensor<f32>) -> ()
}

// -----

// The other way round.
drt.variable @w : tensor<64x64xf32>
// CHECK-LABEL: drt.entry "update_then_read"
drt.entry "update_then_read" {
  // CHECK: drt.update
  drt.update {count = 4096 : i64, kernel = @zero, variables = [@w]} : () -> ()
  // CHECK-NEXT: drt.read
  %w = drt.read @w : tensor<64x64xf32>
  // CHECK-NEXT: drt.barrier
  // CHECK-NEXT: drt.launch @norm
  %norm = drt.launch @norm(%w) : (tensor<64x64xf32>) -> tensor<f32>
}

// -----

// The wait for a bucket that was started behind the read is a meeting; a read behind the start needs one more.
drt.variable @w : tensor<64xf32>
// CHECK-LABEL: drt.entry "bucket"
drt.entry "bucket" {
  %x = drt.feed {name = "x"} : () -> tensor<64xf32>
  %w = drt.read @w : tensor<64xf32>
  %g = drt.launch @g(%x, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<64xf32>) -> ()
  // CHECK: drt.all_reduce_wait 0
  // CHECK-NEXT: drt.update
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 64 : i64, kernel = @sgd, variables = [@w]} : () -> ()
}
// CHECK-LABEL: drt.entry "read_behind_start"
drt.entry "read_behind_start" {
  %x = drt.feed {name = "x"} : () -> tensor<64xf32>
  %w = drt.read @w : tensor<64xf32>
  %g = drt.launch @g(%x) : (tensor<64xf32>) -> tensor<64xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<64xf32>) -> ()
  %norm = drt.launch @norm(%w) : (tensor<64xf32>) -> tensor<f32>
  // CHECK: drt.all_reduce_wait 0
  // CHECK-NEXT: drt.barrier
  // CHECK-NEXT: drt.update
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 64 : i64, kernel = @sgd, variables = [@w]} : () -> ()
}

// -----

// Ranges of one variable are cut alike: no replica touches another's. Rows by index are cut otherwise.
drt.variable @t : tensor<8x8xf32>
// CHECK-LABEL: drt.entry "ranges_and_rows"
drt.entry "ranges_and_rows" {
  %i = drt.feed {name = "i"} : () -> tensor<4xi32>
  %v = drt.feed {name = "v"} : () -> tensor<4x8xf32>
  // CHECK: drt.update {{.*}}@decay
  // CHECK-NEXT: drt.update {{.*}}@scale
  // CHECK-NEXT: drt.barrier
  // CHECK-NEXT: drt.sparse_update
  // CHECK-NEXT: drt.sparse_update
  // CHECK-NEXT: drt.barrier
  // CHECK-NEXT: drt.update
  drt.update {count = 64 : i64, kernel = @decay, variables = [@t]} : () -> ()
  drt.update {count = 64 : i64, kernel = @scale, variables = [@t]} : () -> ()
  drt.sparse_update %i, %v {depth = 1 : i64, kernel = @add, variables = [@t]} : (tensor<4xi32>, tensor<4x8xf32>) -> ()
  drt.sparse_update %i, %v {depth = 1 : i64, kernel = @add, variables = [@t]} : (tensor<4xi32>, tensor<4x8xf32>) -> ()
  drt.update {count = 64 : i64, kernel = @decay, variables = [@t]} : () -> ()
}

// -----

// The whole result of a bucket takes the place of a contribution that an update may still be reading.
drt.variable @w : tensor<64xf32>
// CHECK-LABEL: drt.entry "update_then_result"
drt.entry "update_then_result" {
  %x = drt.feed {name = "x"} : () -> tensor<64xf32>
  %g = drt.launch @g(%x) : (tensor<64xf32>) -> tensor<64xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<64xf32>) -> ()
  drt.all_reduce_wait 0
  // CHECK: drt.update
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 64 : i64, kernel = @sgd, variables = [@w]} : () -> ()
  // CHECK-NEXT: drt.barrier
  // CHECK-NEXT: drt.all_reduce_result
  %r = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<64xf32>
}

// -----

// A task with one replica has nobody to meet.
module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>, #drt.task<"worker" 1 on "localhost" replicas 1 from 1>]
  drt.variable @w : tensor<64xf32>
  // CHECK-LABEL: drt.entry "alone"
  // CHECK-NOT: drt.barrier
  drt.entry "alone" {
    %w = drt.read @w : tensor<64xf32>
    %norm = drt.launch @norm(%w) : (tensor<64xf32>) -> tensor<f32>
    drt.update %norm {count = 64 : i64, kernel = @sgd, variables = [@w]} : (tensor<f32>) -> ()
  }
}
