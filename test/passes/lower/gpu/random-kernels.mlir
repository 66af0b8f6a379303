// RUN: distc-opt %s --drt-random-kernels | FileCheck %s

module {
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]

// CHECK-LABEL: drt.entry "init"
drt.entry "init" {
  %low = arith.constant dense<3> : tensor<i32>
  %high = arith.constant dense<17> : tensor<i32>
  // CHECK: %[[S0:.*]] = drt.random_state {seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<7xi32>
  // CHECK: drt.launch @random_0(%[[S0]]) : (tensor<7xi32>) -> tensor<10x25xf32>
  %uniform = drt.random {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<10x25xf32>
  // Equal draws are one kernel, whatever the shape; each has its own state.
  // CHECK: %[[S1:.*]] = drt.random_state {seed = 1 : i64, seed2 = 3 : i64}
  // CHECK: drt.launch @random_0(%[[S1]]) : (tensor<7xi32>) -> tensor<250xf32>
  %other = drt.random {distribution = 0 : i32, seed = 1 : i64, seed2 = 3 : i64} : () -> tensor<250xf32>
  // CHECK: %[[S2:.*]] = drt.random_state
  // CHECK: drt.launch @random_1(%[[S2]])
  %integers = drt.random %low, %high {distribution = 3 : i32, seed = 1 : i64, seed2 = 4 : i64} : (tensor<i32>, tensor<i32>) -> tensor<9xi32>
  drt.fetch %uniform {name = "uniform", join = 0 : i32} : (tensor<10x25xf32>) -> ()
  // CHECK: drt.random_advance @random_advance_0(%[[S0]], %[[S1]], %[[S2]])
  // CHECK-NEXT: }
}

// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK: %[[SEED:.*]] = drt.feed {{.*}}name = "seed"
  // CHECK: %[[LOW:.*]] = drt.feed {{.*}}name = "low"
  %seed = drt.feed {name = "seed"} : () -> tensor<2xi64>
  %low = drt.feed {name = "low"} : () -> tensor<i64>
  // CHECK: %[[S0:.*]] = drt.random_state
  // CHECK: drt.launch @random_2(%[[S0]])
  %truncated = drt.random {distribution = 2 : i32, seed = 0 : i64, seed2 = 0 : i64, per_replica} : () -> tensor<6xf32>
  // The replica's number lies in a state.
  // CHECK: %[[S1:.*]] = drt.random_state {seed = 0 : i64, seed2 = 0 : i64}
  // CHECK: drt.launch @random_3(%[[SEED]], %[[S1]]) : (tensor<2xi64>, tensor<7xi32>) -> tensor<5xf64>
  %normal = drt.random_stateless %seed {distribution = 1 : i32, per_replica} : (tensor<2xi64>) -> tensor<5xf64>
  // CHECK: drt.launch @random_4(%[[SEED]], %[[LOW]], %[[LOW]]) : (tensor<2xi64>, tensor<i64>, tensor<i64>) -> tensor<5xi64>
  %integers = drt.random_stateless %seed, %low, %low {distribution = 3 : i32} : (tensor<2xi64>, tensor<i64>, tensor<i64>) -> tensor<5xi64>
  // Stateless ones leave nothing behind.
  // CHECK: drt.random_advance @random_advance_1(%[[S0]]) : tensor<7xi32>
}
}

// A thread a group of four, the last one not whole.
// CHECK: gpu.module @kernels
// CHECK: gpu.func @random_0(%[[STATE:.*]]: memref<7xi32> {llvm.noalias}, %[[OUT:.*]]: memref<250xf32> {llvm.noalias}) kernel attributes {drt.block = array<i64: 256, 1, 1>, drt.grid = array<i64: 1, 1, 1>}
// CHECK: arith.constant 63 : i64
// CHECK: vector.store {{.*}} {alignment = 16 : i64} : memref<250xf32>, vector<4xf32>
// CHECK: memref.store {{.*}} : memref<250xf32>

// Constant bounds are numbers.
// CHECK: gpu.func @random_1(%{{.*}}: memref<7xi32> {{.*}}, %{{.*}}: memref<9xi32> {{.*}})
// CHECK: arith.constant 3 : i32
// CHECK: arith.constant 17 : i32
// CHECK: arith.remui

// A block a state. Of 250 elements, 256 positions each.
// CHECK: gpu.func @random_advance_0({{.*}}) kernel attributes {drt.block = array<i64: 1, 1, 1>, drt.grid = array<i64: 3, 1, 1>}
// CHECK: arith.constant 64000 : i64

// Six a replica: the second one's begin within a group, so there is a thread more and no vector.
// CHECK: gpu.func @random_2(
// CHECK: arith.constant 3 : i64
// CHECK: memref.load %{{.*}} : memref<7xi32>
// CHECK: scf.while
// CHECK: math.log
// CHECK-NOT: vector.store
// CHECK: gpu.func @random_3(%{{.*}}: memref<2xi64> {{.*}}, %{{.*}}: memref<7xi32> {{.*}}, %{{.*}}: memref<5xf64> {{.*}})
// CHECK: gpu.func @random_4(%{{.*}}: memref<2xi64> {{.*}}, %{{.*}}: memref<1xi64> {{.*}}, %{{.*}}: memref<1xi64> {{.*}}, %{{.*}}: memref<5xi64> {{.*}})
// Both replicas' elements are drawn from one stream: 12 * 256.
// CHECK: gpu.func @random_advance_1(
// CHECK: arith.constant 3072 : i64
