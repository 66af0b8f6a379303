// RUN: distc-opt %s --drt-verify-stream-order --split-input-file --verify-diagnostics

drt.variable @w : tensor<16xf32>
// Joined rows lie behind the replica's own, which it may not read any more either; behind the wait a kernel reads them.
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<3x4xf32>
  %rows = drt.launch @kernel_0(%x) {at = array<i64: 0>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  drt.all_reduce_start %rows {bucket = 0 : i32, mean = false, names = ["w"], at = array<i64: 0>, gather = 2 : i64} : (tensor<3x4xf32>) -> ()
  %beside = drt.launch @kernel_0(%x) {at = array<i64: 192>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  drt.all_reduce_wait 0
  %all = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<6x4xf32>
  drt.update_group %all, %beside {kernel = @update_rows_0, variables = [[@w]]} : (tensor<6x4xf32>, tensor<3x4xf32>) -> ()
}

// -----

drt.variable @w : tensor<16xf32>
drt.entry "read_before_the_wait" {
  %x = drt.feed {name = "x"} : () -> tensor<3x4xf32>
  %rows = drt.launch @kernel_0(%x) {at = array<i64: 0>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-note @below {{the reduction starts here}}
  drt.all_reduce_start %rows {bucket = 0 : i32, mean = false, names = ["w"], at = array<i64: 0>, gather = 2 : i64} : (tensor<3x4xf32>) -> ()
  %all = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<6x4xf32>
  // expected-error @below {{reads bytes [64, 160) of the arena while the communication stream reduces bucket 0 there: drt.all_reduce_wait has to stand between}}
  drt.update_group %all {kernel = @update_rows_0, variables = [[@w]]} : (tensor<6x4xf32>) -> ()
}

// -----

drt.variable @w : tensor<16xf32>
drt.entry "written_since" {
  %x = drt.feed {name = "x"} : () -> tensor<3x4xf32>
  %rows = drt.launch @kernel_0(%x) {at = array<i64: 0>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  drt.all_reduce_start %rows {bucket = 0 : i32, mean = false, names = ["w"], at = array<i64: 0>, gather = 2 : i64} : (tensor<3x4xf32>) -> ()
  drt.all_reduce_wait 0
  %all = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<6x4xf32>
  // expected-note @below {{is written here}}
  %other = drt.launch @kernel_0(%x) {at = array<i64: 128>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-error @below {{reads bytes [64, 160) of the arena}}
  drt.update_group %all, %other {kernel = @update_rows_0, variables = [[@w]]} : (tensor<6x4xf32>, tensor<3x4xf32>) -> ()
}

// -----

drt.variable @w : tensor<16xf32>
// An index's rows, sorted, lie in the arena as well.
drt.entry "sorted" {
  %ids = drt.feed {name = "ids"} : () -> tensor<3xi32>
  %x = drt.feed {name = "x"} : () -> tensor<3x4xf32>
  %sorted = drt.launch @rows_sort_0(%ids) {at = array<i64: 0>} : (tensor<3xi32>) -> tensor<2x3xi32>
  // expected-note @below {{is written here}}
  %values = drt.launch @kernel_0(%x) {at = array<i64: 0>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-error @below {{reads bytes [0, 24) of the arena}}
  drt.update_group %sorted, %values {kernel = @update_rows_0, variables = [[@w]]} : (tensor<2x3xi32>, tensor<3x4xf32>) -> ()
}

// -----

drt.variable @w : tensor<16xf32>
drt.entry "other_size" {
  %x = drt.feed {name = "x"} : () -> tensor<3x4xf32>
  %rows = drt.launch @kernel_0(%x) {at = array<i64: 0>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  drt.all_reduce_start %rows {bucket = 0 : i32, mean = false, names = ["w"], at = array<i64: 0>, gather = 2 : i64} : (tensor<3x4xf32>) -> ()
  drt.all_reduce_wait 0
  %all = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<4x4xf32>
  // expected-error @below {{takes 'tensor<4x4xf32>' for the joined rows of bucket 0, which have 96 bytes}}
  drt.update_group %all {kernel = @update_rows_0, variables = [[@w]]} : (tensor<4x4xf32>) -> ()
}
