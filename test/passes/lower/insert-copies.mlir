// RUN: distc-opt %s --drt-insert-copies --split-input-file | FileCheck %s

// A gradient that no arena operation made is copied where it is made; of two buckets with one gradient the first has a copy.
// CHECK-LABEL: drt.entry "buckets"
drt.entry "buckets" {
  // CHECK: %[[X:.*]] = drt.feed
  // CHECK-NEXT: %[[COPY:.*]] = drt.copy %[[X]]
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  // CHECK: %[[G:.*]] = drt.launch @g
  // CHECK-NEXT: %[[FIRST:.*]] = drt.copy %[[G]]
  %g = drt.launch @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: drt.all_reduce_start %[[COPY]], %[[FIRST]]
  drt.all_reduce_start %x, %g {bucket = 0 : i32, mean = true, names = ["a", "b"]} : (tensor<4xf32>, tensor<4xf32>) -> ()
  // CHECK: drt.all_reduce_start %[[G]]
  drt.all_reduce_start %g {bucket = 1 : i32, mean = true, names = ["b"]} : (tensor<4xf32>) -> ()
}

// -----

// A gradient that is used while it is reduced, in another shape too, stays; its copy is reduced.
// CHECK-LABEL: drt.entry "used_behind_start"
drt.entry "used_behind_start" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  // CHECK: %[[G:.*]] = drt.launch @g
  // CHECK-NEXT: %[[COPY:.*]] = drt.copy %[[G]]
  %g = drt.launch @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[SHAPED:.*]] = tensor.expand_shape %[[G]]
  %shaped = tensor.expand_shape %g [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  // CHECK: drt.all_reduce_start %[[COPY]]
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["b"]} : (tensor<4xf32>) -> ()
  // CHECK: @norm(%[[SHAPED]])
  %norm = drt.launch @norm(%shaped) : (tensor<2x2xf32>) -> tensor<f32>
}

// -----

// What is used before the start alone needs no copy.
// CHECK-LABEL: drt.entry "used_before_start"
// CHECK-NOT: drt.copy
drt.entry "used_before_start" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %g = drt.launch @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %norm = drt.launch @norm(%g) : (tensor<4xf32>) -> tensor<f32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["b"]} : (tensor<4xf32>) -> ()
  drt.all_reduce_wait 0
  %r = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<4xf32>
  %more = drt.launch @norm(%r) : (tensor<4xf32>) -> tensor<f32>
}

// -----

// Two variables exchange their values: the one that is written first is copied before.
drt.variable @a : tensor<64xf32>
drt.variable @b : tensor<64xf32>
// CHECK-LABEL: drt.entry "exchange"
drt.entry "exchange" {
  // CHECK: %[[A:.*]] = drt.read @a
  // CHECK-NEXT: %[[OLD:.*]] = drt.copy %[[A]]
  %a = drt.read @a : tensor<64xf32>
  // CHECK: %[[B:.*]] = drt.read @b
  // CHECK-NOT: drt.copy
  %b = drt.read @b : tensor<64xf32>
  // CHECK: drt.update %[[B]] {{.*}}variables = [@a]
  drt.update %b {count = 64 : i64, kernel = @assign, variables = [@a]} : (tensor<64xf32>) -> ()
  // CHECK: drt.update %[[OLD]] {{.*}}variables = [@b]
  drt.update %a {count = 64 : i64, kernel = @assign, variables = [@b]} : (tensor<64xf32>) -> ()
}

// -----

// An update that takes its variable's own old value: kernels take what they are given as distinct memory.
drt.variable @w : tensor<64xf32>
// CHECK-LABEL: drt.entry "own_value"
drt.entry "own_value" {
  // CHECK: %[[COPY:.*]] = drt.copy
  %w = drt.read @w : tensor<64xf32>
  // CHECK: drt.update %[[COPY]]
  drt.update %w {count = 64 : i64, kernel = @add, variables = [@w]} : (tensor<64xf32>) -> ()
}

// -----

// A fetch takes effect at the end: of the old value a copy, of the new one a copy too, since a fetch lies in the arena.
drt.variable @w : tensor<64xf32>
// CHECK-LABEL: drt.entry "fetches"
drt.entry "fetches" {
  %x = drt.feed {name = "x"} : () -> tensor<64xf32>
  // CHECK: %[[OLD:.*]] = drt.read @w
  // CHECK-NEXT: %[[OLDCOPY:.*]] = drt.copy %[[OLD]]
  %old = drt.read @w : tensor<64xf32>
  // CHECK: drt.update
  drt.update %x {count = 64 : i64, kernel = @assign, variables = [@w]} : (tensor<64xf32>) -> ()
  // CHECK: %[[NEW:.*]] = drt.read @w
  // CHECK-NEXT: %[[NEWCOPY:.*]] = drt.copy %[[NEW]]
  %new = drt.read @w : tensor<64xf32>
  // CHECK: drt.fetch %[[OLDCOPY]]
  drt.fetch %old {join = 2 : i32, name = "old:0"} : (tensor<64xf32>) -> ()
  // CHECK: drt.fetch %[[NEWCOPY]]
  drt.fetch %new {join = 2 : i32, name = "new:0"} : (tensor<64xf32>) -> ()
}
