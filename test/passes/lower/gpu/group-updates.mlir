// RUN: distc-opt %s --drt-group-updates --split-input-file | FileCheck %s

// Two variables of one bucket by one rule: one launch, which takes the mean over two replicas. A variable of one element reads its rate as
// others do.
module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 4096 variables 8192
drt.variable @a : tensor<2050xf32> {at = 0 : i64}
drt.variable @b : tensor<1xf32> {at = 7936 : i64}

// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK: %[[RATE:.*]] = drt.feed {{.*}}name = "rate"
  %rate = drt.feed {name = "rate"} : () -> tensor<f32>
  %ga = drt.launch @kernel_0() {at = array<i64: 64>} : () -> tensor<2050xf32>
  %gb = drt.launch @kernel_1() {at = array<i64: 8320>} : () -> tensor<1xf32>
  // CHECK: drt.all_reduce_start {{.*}}mean = false
  drt.all_reduce_start %ga, %gb {bucket = 0 : i32, mean = true, names = ["a", "b"], at = array<i64: 64>} : (tensor<2050xf32>, tensor<1xf32>) -> ()
  drt.all_reduce_wait 0
  // CHECK: drt.update_group %[[RATE]] {bucket = 0 : i32, kernel = @update_group_0, members = array<i64: 0, 1>, scale = 5.000000e-01 : f64,
  // CHECK-SAME: variables = {{\[}}[@a], [@b]]} : (tensor<f32>) -> ()
  // CHECK-NOT: drt.barrier
  // CHECK-NOT: drt.update
  drt.update %rate {kernel = @sgd_a, variables = [@a], bucket = 0 : i32, member = 0 : i64, count = 2050 : i64} : (tensor<f32>) -> ()
  drt.barrier
  drt.update %rate {kernel = @sgd_b, variables = [@b], bucket = 0 : i32, member = 1 : i64, count = 1 : i64} : (tensor<f32>) -> ()
}

// CHECK-NOT: drt.kernel
drt.kernel range @sgd_a(%begin: i64, %end: i64, %g: memref<2050xf32>, %a: memref<2050xf32>, %rate: memref<1xf32>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %r = memref.load %rate[%zero] : memref<1xf32>
  scf.for %i = %from to %to step %one {
    %old = memref.load %a[%i] : memref<2050xf32>
    %at = arith.subi %i, %from : index
    %d = memref.load %g[%at] : memref<2050xf32>
    %s = arith.mulf %r, %d : f32
    %new = arith.subf %old, %s : f32
    memref.store %new, %a[%i] : memref<2050xf32>
  }
  drt.return
}
drt.kernel range @sgd_b(%begin: i64, %end: i64, %g: memref<1xf32>, %b: memref<1xf32>, %rate: memref<1xf32>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  scf.for %i = %from to %to step %one {
    %old = memref.load %b[%i] : memref<1xf32>
    %r = memref.load %rate[%i] : memref<1xf32>
    %at = arith.subi %i, %from : index
    %d = memref.load %g[%at] : memref<1xf32>
    %s = arith.mulf %r, %d : f32
    %new = arith.subf %old, %s : f32
    memref.store %new, %b[%i] : memref<1xf32>
  }
  drt.return
}
}
// 2050 elements are three blocks of 256 threads with four elements each; rows: first block, count, gradient, variable.
// CHECK: gpu.module @kernels
// CHECK: memref.global "private" constant @update_group_0_table : memref<2x4xi64, 4> = dense<{{\[}}[0, 2050, 64, 0], [3, 1, 8320, 7936]]>
// CHECK: gpu.func @update_group_0(%[[ARENA:.*]]: memref<4096xi8> {llvm.noalias}, %[[VARIABLES:.*]]: memref<8192xi8> {llvm.noalias}, %[[RATE:.*]]: memref<1xf32> {llvm.noalias}) kernel
// CHECK-SAME: drt.block = array<i64: 256, 1, 1>, drt.grid = array<i64: 4, 1, 1>
// CHECK: %[[G:.*]] = memref.view %[[ARENA]]
// CHECK: %[[V:.*]] = memref.view %[[VARIABLES]]
// CHECK: %[[R:.*]] = memref.load %[[RATE]]
// CHECK: scf.if
// CHECK: %[[GS:.*]] = vector.load %[[G]]{{.*}} {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
// CHECK: %[[VS:.*]] = vector.load %[[V]]
// CHECK: %[[G0:.*]] = vector.extract %[[GS]][0]
// CHECK: %[[V0:.*]] = vector.extract %[[VS]][0]
// CHECK: %[[MEAN:.*]] = arith.mulf %[[G0]], %{{.*}} : f32
// CHECK: %[[STEP:.*]] = arith.mulf %[[R]], %[[MEAN]] : f32
// CHECK: arith.subf %[[V0]], %[[STEP]] : f32
// CHECK: vector.store %{{.*}}, %[[V]]{{.*}} {alignment = 16 : i64}
// CHECK: } else {
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %[[V]]

// -----

// Something else reads the bucket, so that the communication takes the mean. The update reads the result, which lies in the bucket's place,
// and is no member of the other's group, which has a bucket. What it reads of another variable has a place too.
module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 4096 variables 8192
drt.variable @a : tensor<8xi64> {at = 0 : i64}
drt.variable @old : tensor<8xi64> {at = 256 : i64}
drt.variable @fed : tensor<8xi64> {at = 512 : i64}

// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8xi64>
  %g = drt.launch @kernel_0() {at = array<i64: 64>} : () -> tensor<8xi64>
  // CHECK: drt.all_reduce_start {{.*}}mean = true
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 64>} : (tensor<8xi64>) -> ()
  drt.all_reduce_wait 0
  %mean = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<8xi64>
  %y = drt.launch @kernel_1(%mean) {at = array<i64: 1024>} : (tensor<8xi64>) -> tensor<8xi64>
  // CHECK: %[[OLD:.*]] = drt.read @old
  %old = drt.read @old : tensor<8xi64>
  // The two read elements from different bases: two groups. What is fed has an address of its own.
  // CHECK: drt.update_group reads(%{{.*}} : tensor<8xi64>) {kernel = @update_group_0, variables = {{\[}}[@a]]}
  // CHECK: drt.update_group reads(%{{.*}} : tensor<8xi64>) {kernel = @update_group_1, variables = {{\[}}[@old]]}
  // CHECK: drt.update_group %{{.*}} {kernel = @update_group_2, variables = {{\[}}[@fed]]} : (tensor<8xi64>)
  drt.update %mean {kernel = @add, variables = [@a], count = 8 : i64} : (tensor<8xi64>) -> ()
  %a = drt.read @a : tensor<8xi64>
  drt.update %a {kernel = @add, variables = [@old], count = 8 : i64} : (tensor<8xi64>) -> ()
  drt.update %x {kernel = @add, variables = [@fed], count = 8 : i64} : (tensor<8xi64>) -> ()
}
drt.kernel range @add(%begin: i64, %end: i64, %a: memref<8xi64>, %x: memref<8xi64>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  scf.for %i = %from to %to step %one {
    %old = memref.load %a[%i] : memref<8xi64>
    %d = memref.load %x[%i] : memref<8xi64>
    %new = arith.addi %old, %d : i64
    memref.store %new, %a[%i] : memref<8xi64>
  }
  drt.return
}
}
// CHECK-DAG: @update_group_0_table : {{.*}} dense<{{\[\[}}0, 8, 0, 64]]>
// CHECK-DAG: @update_group_1_table : {{.*}} dense<{{\[\[}}0, 8, 256, 0]]>
// CHECK-DAG: @update_group_2_table : {{.*}} dense<{{\[\[}}0, 8, 512]]>
// 128 bits are two numbers of 64.
// CHECK-DAG: vector.load {{.*}} memref<?xi64>, vector<2xi64>

// -----

// The order of updates stays where they depend on each other: @b is read by the update of @c, and written before and behind it. A feed
// that is read in between moves up.
module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 0 variables 1024
drt.variable @a : tensor<f32> {at = 0 : i64}
drt.variable @b : tensor<f32> {at = 256 : i64}
drt.variable @c : tensor<f32> {at = 512 : i64}
drt.variable @d : tensor<f32> {at = 768 : i64}

// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK: %[[X:.*]] = drt.feed {{.*}}name = "x"
  // CHECK: %[[AGAIN:.*]] = drt.feed
  // CHECK: drt.update_group %[[X]] {{.*}}variables = {{\[}}[@a], [@b], [@d]]
  // CHECK: %[[B:.*]] = drt.read @b
  // CHECK: drt.update_group %[[B]] {{.*}}variables = {{\[}}[@c]]
  // CHECK: drt.update_group %{{.*}} {{.*}}variables = {{\[}}[@b]]
  // CHECK: drt.launch @kernel_0
  // CHECK: drt.update_group %{{.*}} {{.*}}variables = {{\[}}[@a]]
  %x = drt.feed {name = "x"} : () -> tensor<f32>
  drt.update %x {kernel = @add, variables = [@a], count = 1 : i64} : (tensor<f32>) -> ()
  drt.update %x {kernel = @add, variables = [@b], count = 1 : i64} : (tensor<f32>) -> ()
  %b = drt.read @b : tensor<f32>
  drt.update %b {kernel = @add, variables = [@c], count = 1 : i64} : (tensor<f32>) -> ()
  %again = drt.feed {name = "x"} : () -> tensor<f32>
  drt.update %again {kernel = @add, variables = [@d], count = 1 : i64} : (tensor<f32>) -> ()
  drt.update %x {kernel = @add, variables = [@b], count = 1 : i64} : (tensor<f32>) -> ()
  %read = drt.launch @kernel_0(%b) {at = array<i64: 0>} : (tensor<f32>) -> tensor<f32>
  drt.update %x {kernel = @add, variables = [@a], count = 1 : i64} : (tensor<f32>) -> ()
}
drt.kernel range @add(%begin: i64, %end: i64, %a: memref<1xf32>, %x: memref<1xf32>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  scf.for %i = %from to %to step %one {
    %old = memref.load %a[%i] : memref<1xf32>
    %d = memref.load %x[%i] : memref<1xf32>
    %new = arith.addf %old, %d : f32
    memref.store %new, %a[%i] : memref<1xf32>
  }
  drt.return
}
}
// CHECK: gpu.func @update_group_0({{.*}}) kernel attributes {drt.block = array<i64: 32, 1, 1>, drt.grid = array<i64: 3, 1, 1>}

// -----

// Of three replicas each updates its share, 8 of 18 elements, the last one 2: where it begins follows from the replica's number. The gradient
// is reduced in its place, the whole variable's part is written, and the slot is the share itself.
module {
drt.program "g.meta" strategy "ShardedUpdate" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 3 from 0>] arena 4096 variables 8192
drt.variable @shared : tensor<18xf32> {at = 256 : i64}
drt.variable @trace : tensor<8xf32> {at = 512 : i64, full_shape = array<i64: 18>, shares = 3 : i64, whole = "trace"}
// CHECK-LABEL: drt.entry "shares"
drt.entry "shares" {
  %g = drt.launch @kernel_0() {at = array<i64: 64>} : () -> tensor<18xf32>
  // CHECK: drt.all_reduce_start {{.*}}mean = false
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["shared"], at = array<i64: 64>, scatter, room = array<i64: 24>} : (tensor<18xf32>) -> ()
  drt.all_reduce_wait 0
  // CHECK: %[[INDEX:.*]] = drt.replica_index : () -> tensor<i32>
  // CHECK: drt.update_group %[[INDEX]] {bucket = 0 : i32, kernel = @update_group_0, members = array<i64: 0>, scale = 0.333{{.*}}shares = array<i64: 8>, variables = {{\[}}[@shared, @trace]]}
  drt.update {kernel = @momentum, variables = [@shared, @trace], bucket = 0 : i32, member = 0 : i64, count = 18 : i64, share = 8 : i64} : () -> ()
  drt.gather_start {bucket = 1 : i32, variables = [@shared], room = array<i64: 24>} : () -> ()
}
drt.kernel range @momentum(%begin: i64, %end: i64, %g: memref<8xf32>, %w: memref<8xf32>, %m: memref<8xf32>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  scf.for %i = %from to %to step %one {
    %old = memref.load %w[%i] : memref<8xf32>
    %trace = memref.load %m[%i] : memref<8xf32>
    %at = arith.subi %i, %from : index
    %d = memref.load %g[%at] : memref<8xf32>
    %s = arith.addf %trace, %d : f32
    %new = arith.subf %old, %s : f32
    memref.store %new, %w[%i] : memref<8xf32>
    memref.store %s, %m[%i] : memref<8xf32>
  }
  drt.return
}
}
// First block, count, share, gradient, variable, slot.
// CHECK: memref.global "private" constant @update_group_0_table : memref<1x6xi64, 4> = dense<{{\[}}[0, 18, 8, 64, 256, 512]]>
// CHECK: gpu.func @update_group_0(%[[ARENA:.*]]: memref<4096xi8> {llvm.noalias}, %[[VARIABLES:.*]]: memref<8192xi8> {llvm.noalias}, %[[INDEX:.*]]: memref<1xi32>
// CHECK-SAME: drt.grid = array<i64: 1, 1, 1>
// CHECK: %[[I:.*]] = memref.load %[[INDEX]]
// CHECK: %[[R:.*]] = arith.index_cast %[[I]]
// CHECK: %[[AT:.*]] = arith.muli %[[R]], %[[SHARE:.*]] : index
// CHECK: %[[BEGIN:.*]] = arith.minui %[[AT]], %[[ALL:.*]] : index
// CHECK: %[[LEFT:.*]] = arith.subi %[[ALL]], %[[BEGIN]] : index
// CHECK: arith.minui %[[LEFT]], %[[SHARE]] : index
// CHECK: %[[BYTES:.*]] = arith.muli %[[BEGIN]]
// CHECK: memref.view %[[ARENA]]
// CHECK: memref.view %[[VARIABLES]]
// CHECK: memref.view %[[VARIABLES]]
