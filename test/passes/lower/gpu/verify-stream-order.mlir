// RUN: distc-opt %s --drt-verify-stream-order | FileCheck %s

drt.variable @w : tensor<16xf32>
drt.variable @b : tensor<16xf32>
drt.variable @v : tensor<16xf32>
// The first bucket is waited for by the wait for the second one, which the communication stream reduces behind it. Work beside a reduction
// has places of its own; behind the wait it may read the result and take the place.
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<16xf32>
  %w = drt.read @w : tensor<16xf32>
  %ga = drt.launch @kernel_0(%x, %w) {at = array<i64: 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  drt.all_reduce_start %ga {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
  %gb:2 = drt.launch @kernel_1(%x) {at = array<i64: 64, 128>} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<4x4xf32>)
  %flat = tensor.collapse_shape %gb#1 [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  drt.all_reduce_start %gb#0, %flat {bucket = 1 : i32, mean = true, names = ["b", "c"], at = array<i64: 64>} : (tensor<16xf32>, tensor<16xf32>) -> ()
  %loss = drt.launch @kernel_2(%x) {at = array<i64: 192>} : (tensor<16xf32>) -> tensor<f32>
  drt.all_reduce_wait 1
  %a = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<16xf32>
  %norm = drt.launch @kernel_2(%a) {at = array<i64: 256>} : (tensor<16xf32>) -> tensor<f32>
  drt.update_group %norm reads(%w, %a : tensor<16xf32>, tensor<16xf32>) {bucket = 1 : i32, members = array<i64: 0, 1>, kernel = @update_group_0, variables = [[@w], [@b]]} : (tensor<f32>) -> ()
  %new = drt.read @w : tensor<16xf32>
  %copy = drt.copy %new {at = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  drt.fetch %copy {join = 2 : i32, name = "w:0"} : (tensor<16xf32>) -> ()
  // Says how many batches an update has; what is kept of them are variables.
  drt.accumulate {first = 0 : i32, steps = 4 : i64} : () -> ()
  drt.fetch %loss {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

drt.variable @slot : tensor<8xf32> {full_shape = array<i64: 16>, shares = 2 : i64, whole = "slot"}
// A replica has its share of the gradient behind the wait, updates its share of the variable and its own slot, and all of the variable is there
// behind the gather's wait. The end waits for what nobody reads.
// CHECK-LABEL: drt.entry "shares"
drt.entry "shares" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  %index = drt.replica_index : () -> tensor<i32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = false, names = ["w"], at = array<i64: 0>, scatter, room = array<i64: 16>} : (tensor<16xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update_group %index {bucket = 0 : i32, members = array<i64: 0>, kernel = @update_group_0, shares = array<i64: 8>, variables = [[@w, @slot]]} : (tensor<i32>) -> ()
  drt.gather_start {bucket = 1 : i32, variables = [@w], room = array<i64: 16>} : () -> ()
  %slot = drt.read @slot : tensor<8xf32>
  %own = drt.copy %slot {at = array<i64: 64>} : (tensor<8xf32>) -> tensor<8xf32>
  drt.update_group %index {kernel = @update_group_1, shares = array<i64: 8>, variables = [[@v]]} : (tensor<i32>) -> ()
  drt.all_reduce_wait 1
  %w = drt.read @w : tensor<16xf32>
  %copy = drt.copy %w {at = array<i64: 128>} : (tensor<16xf32>) -> tensor<16xf32>
  drt.gather_start {bucket = 2 : i32, variables = [@v], room = array<i64: 16>} : () -> ()
}
