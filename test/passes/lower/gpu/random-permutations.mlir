// RUN: distc-opt %s --drt-random-kernels --split-input-file | FileCheck %s

// A permutation is drawn by one thread: each swap follows from those before.
module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %positions = arith.constant dense<2> : tensor<i64>
  // CHECK-NOT: drt.routine
  // CHECK: %[[STATE:.*]] = drt.random_state {seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<7xi32>
  // CHECK: drt.launch @[[KERNEL:random_[0-9]+]](%[[STATE]]) {{.*}} -> tensor<6xi32>
  %state = drt.random %positions {distribution = 4 : i32, seed = 1 : i64, seed2 = 2 : i64} : (tensor<i64>) -> tensor<6xi32>
  %order = drt.routine "random_permutation"(%state) {parameters = array<i64: 6>} : (tensor<6xi32>) -> tensor<6xi32>
  drt.fetch %order {join = 0 : i32, name = "order"} : (tensor<6xi32>) -> ()
}
// CHECK: gpu.func @[[KERNEL]](
// CHECK-SAME: drt.block = array<i64: 1, 1, 1>, drt.grid = array<i64: 1, 1, 1>
// CHECK-COUNT-4: arith.remui
}

// -----

// Candidates are drawn on the host, from the state that lies on the device.
module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %positions = arith.constant dense<3> : tensor<i64>
  %true = arith.constant dense<[[1], [4]]> : tensor<2x1xi64>
  // CHECK: %[[STATE:.*]] = drt.random_state {seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<7xi32>
  // CHECK: drt.routine "sample_candidates"(%[[STATE]], %{{.*}})
  %state = drt.random %positions {distribution = 4 : i32, seed = 1 : i64, seed2 = 2 : i64} : (tensor<i64>) -> tensor<6xi32>
  %sampled:3 = drt.routine "sample_candidates"(%state, %true) {parameters = array<i64: 1, 2, 3, 50, 1>} : (tensor<6xi32>, tensor<2x1xi64>) -> (tensor<3xi64>, tensor<2x1xf32>, tensor<3xf32>)
  drt.fetch %sampled#0 {join = 0 : i32, name = "sampled"} : (tensor<3xi64>) -> ()
  // As does whatever draws from a state.
  // CHECK: %[[WINDOWS:.*]] = drt.random_state {seed = 3 : i64, seed2 = 4 : i64}
  // CHECK: drt.routine "fractional_sequences"(%[[WINDOWS]])
  %drawn = drt.random %positions {distribution = 4 : i32, seed = 3 : i64, seed2 = 4 : i64} : (tensor<i64>) -> tensor<6xi32>
  %windows:2 = drt.routine "fractional_sequences"(%drawn) {parameters = array<i64: 7, 5, 4, 3, 0, 1>} : (tensor<6xi32>) -> (tensor<5xi64>, tensor<4xi64>)
  drt.fetch %windows#0 {join = 0 : i32, name = "windows"} : (tensor<5xi64>) -> ()
  // CHECK: drt.random_advance @{{.*}}(%[[STATE]], %[[WINDOWS]])
}
}
