// RUN: distc-opt %s --drt-plan-memory --split-input-file | FileCheck %s

// The result of @b may not lie where its operand does; that of @c may lie where @a's did.
// CHECK: drt.program {{.*}} arena 128
// CHECK-NOT: variables
// CHECK-LABEL: drt.entry "reuse"
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
drt.entry "reuse" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  // CHECK: @a({{.*}}at = array<i64: [[A:[0-9]+]]>
  %0 = drt.launch @a(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: @b({{.*}}at = array<i64: [[B:[0-9]+]]>
  %1 = drt.launch @b(%0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: @c({{.*}}at = array<i64: [[A]]>
  %2 = drt.launch @c(%1) : (tensor<4xf32>) -> tensor<4xf32>
  drt.fetch %2 {name = "y", join = 0 : i32} : (tensor<4xf32>) -> ()
}

// -----

// Members side by side and aligned, though the second is written first; nothing lies on them later.
// CHECK: drt.program {{.*}} arena 256
// CHECK-LABEL: drt.entry "bucket"
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
drt.entry "bucket" {
  %x = drt.feed {name = "x"} : () -> tensor<17xf32>
  // CHECK: @second({{.*}}at = array<i64: 128>
  %1 = drt.launch @second(%x) : (tensor<17xf32>) -> tensor<3xf32>
  // CHECK: @first({{.*}}at = array<i64: 0>
  %0 = drt.launch @first(%x) : (tensor<17xf32>) -> tensor<17xf32>
  // CHECK: all_reduce_start{{.*}}at = array<i64: 0>
  drt.all_reduce_start %0, %1 {bucket = 0 : i32, mean = true, names = ["a", "b"]} : (tensor<17xf32>, tensor<3xf32>) -> ()
  // CHECK: @later({{.*}}at = array<i64: 192>
  %2 = drt.launch @later(%x) : (tensor<17xf32>) -> tensor<2xf32>
  drt.all_reduce_wait 0
}

// -----

// The operands of a product over the joined batch are read by replicas that are behind: nothing lies on them until
// the replicas have met.
// CHECK: drt.program {{.*}} arena 192
// CHECK-LABEL: drt.entry "joined"
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
drt.variable @w : tensor<4x3xf32>
drt.entry "joined" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x4xf32>
  %a = drt.launch @a(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = drt.launch @b(%x) : (tensor<2x4xf32>) -> tensor<2x3xf32>
  drt.barrier
  drt.matmul_update %a, %b {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<2x4xf32>, tensor<2x3xf32>) -> ()
  // CHECK: @c({{.*}}at = array<i64: 128>
  %c = drt.launch @c(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: drt.barrier
  // CHECK-NEXT: @d({{.*}}at = array<i64: {{0|64}}>
  drt.barrier
  %d = drt.launch @d(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %e = drt.launch @d(%c) : (tensor<2x4xf32>) -> tensor<2x4xf32>
}

// -----

// Of one replica nobody else reads anything.
// CHECK: drt.program {{.*}} arena 128
// CHECK-LABEL: drt.entry "alone"
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
drt.variable @w : tensor<4x3xf32>
drt.entry "alone" {
  %x = drt.feed {name = "x", batched} : () -> tensor<2x4xf32>
  %a = drt.launch @a(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = drt.launch @b(%x) : (tensor<2x4xf32>) -> tensor<2x3xf32>
  drt.matmul_update %a, %b {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<2x4xf32>, tensor<2x3xf32>) -> ()
  // CHECK: @c({{.*}}at = array<i64: {{0|64}}>
  %c = drt.launch @c(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
}

// -----

// A reshape moves nothing, and keeps what it shows alive.
// CHECK-LABEL: drt.entry "reshape"
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
drt.entry "reshape" {
  %x = drt.feed {name = "x"} : () -> tensor<2x2xf32>
  // CHECK: @a({{.*}}at = array<i64: 0>
  %0 = drt.launch @a(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  // CHECK: @b({{.*}}at = array<i64: 64>
  %2 = drt.launch @b(%x) : (tensor<2x2xf32>) -> tensor<4xf32>
  %3 = drt.launch @c(%1, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
}
