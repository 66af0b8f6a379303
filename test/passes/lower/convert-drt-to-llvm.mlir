// RUN: distc-opt %s --convert-drt-to-llvm --split-input-file | FileCheck %s
// RUN: distc-opt %s --convert-drt-to-llvm --split-input-file -o /dev/null

module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 8 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] global_step @step arena 256
  drt.variable @w : tensor<4x3xf32> {trainable, saved}
  drt.variable @step : tensor<i64> {saved}

  llvm.func @relu(%x: !llvm.ptr, %y: !llvm.ptr) { llvm.return }
  llvm.func @sgd(%begin: i64, %end: i64, %gradient: !llvm.ptr, %w: !llvm.ptr, %rate: !llvm.ptr) { llvm.return }
  llvm.func @count(%begin: i64, %end: i64, %step: !llvm.ptr) { llvm.return }

  // The array that the runtime passes through is unpacked: variables, then arguments.
  // CHECK-LABEL: llvm.func internal @sgd_range
  // CHECK-SAME: (%[[BEGIN:.*]]: i64{{.*}}, %[[END:.*]]: i64{{.*}}, %[[GRADIENT:.*]]: !llvm.ptr{{.*}}, %[[ARRAY:.*]]: !llvm.ptr{{.*}})
  // CHECK: %[[W:.*]] = llvm.load %[[ARRAY]]
  // CHECK: %[[RATE:.*]] = llvm.load
  // CHECK: llvm.call @sgd(%[[BEGIN]], %[[END]], %[[GRADIENT]], %[[W]], %[[RATE]])

  // CHECK-LABEL: llvm.func internal @drt_entry_step
  // CHECK-SAME: (%[[REPLICA:.*]]: !llvm.ptr{{.*}})
  drt.entry "step" {
    // CHECK: llvm.alloca
    %x = drt.feed {name = "x", batched} : () -> tensor<4x4xf32>
    %rate = drt.feed {name = "rate"} : () -> tensor<f32>
    %w = drt.read @w : tensor<4x3xf32>
    // CHECK: llvm.call @drt_scope_begin(%[[REPLICA]], %[[SCOPE:.*]])
    // CHECK: llvm.mlir.addressof @drt_descriptor_0
    // CHECK: llvm.call @drt_matmul(%[[REPLICA]],
    // CHECK: llvm.call @drt_scope_end(%[[REPLICA]], %[[SCOPE]])
    %h = drt.matmul %x, %w {at = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32> loc("hidden/MatMul")
    // CHECK: llvm.call @relu(
    %y = drt.launch @relu(%h) {at = array<i64: 64>} : (tensor<4x3xf32>) -> tensor<4x3xf32> loc(fused["hidden/MatMul", "hidden/Relu"])
    %g = drt.matmul %x, %y {transpose_a, at = array<i64: 128>} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32> loc("grad/MatMul")
    // CHECK: llvm.call @drt_all_reduce_start
    drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], at = array<i64: 128>} : (tensor<4x3xf32>) -> ()
    // CHECK: llvm.call @drt_all_reduce_wait
    drt.all_reduce_wait 0
    // CHECK: llvm.mlir.addressof @sgd_range
    // CHECK: llvm.call @drt_update(
    drt.update %rate {kernel = @sgd, variables = [@w], bucket = 0 : i32, member = 0 : i64, count = 12 : i64} : (tensor<f32>) -> ()
    // CHECK: llvm.call @drt_update_local(
    drt.update {kernel = @count, variables = [@step], count = 1 : i64} : () -> ()
    // CHECK: llvm.call @drt_barrier
    drt.barrier
    drt.fetch %y {name = "y:0", join = 0 : i32} : (tensor<4x3xf32>) -> ()
    // CHECK: llvm.return
  }

  // CHECK-DAG: llvm.mlir.global internal constant @{{.*}}("w\00")
  // CHECK-DAG: llvm.mlir.global internal constant @{{.*}}("hidden/MatMul+Relu\00")
  // CHECK-DAG: llvm.mlir.global internal constant @drt_variables() {{.*}} : !llvm.array<2 x struct<(ptr, struct<(i32, i32, ptr)>, i64, i32, ptr, ptr, i32, i32, i64, i32)>>
  // CHECK-DAG: llvm.mlir.global internal constant @drt_descriptor_0([1 : i32, 0 : i32, 0 : i32, 0 : i32, 0 : i32, 0 : i32, 1, 4, 3, 4, 0, 0, 0 : i32, 0 : i32])
  // CHECK-DAG: llvm.mlir.global external constant @drt_the_program()
}

// -----

// The operands of a product over the joined batch are addressed from replica 0's on.
module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 8 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 256
  drt.variable @w : tensor<4x3xf32>
  llvm.func @produce(%y: !llvm.ptr) { llvm.return }
  llvm.func @sgd(%begin: i64, %end: i64, %gradient: !llvm.ptr, %w: !llvm.ptr) { llvm.return }
  // CHECK-LABEL: llvm.func internal @drt_entry_step
  drt.entry "step" {
    %x = drt.feed {name = "x", batched} : () -> tensor<8x4xf32>
    %y = drt.launch @produce() {at = array<i64: 64>} : () -> tensor<8x3xf32>
    // CHECK: %[[MINUS:.*]] = llvm.mlir.constant(-128 : i64)
    // CHECK: llvm.mul {{.*}}, %[[MINUS]]
    // CHECK: %[[PLACE:.*]] = llvm.mlir.constant(64 : i64)
    // CHECK: llvm.getelementptr {{.*}}[%[[PLACE]]]
    // CHECK: llvm.call @drt_matmul_update
    drt.matmul_update %x, %y {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<8x4xf32>, tensor<8x3xf32>) -> ()
  }
}

// -----

// How a bucket's gradients are compressed and chosen from; accumulators; shares, which begin where the replica's do.
module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 8 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 256
  drt.variable @w : tensor<5x2xf32>
  drt.variable @m : tensor<5xf32> {shares = 2 : i64, full_shape = array<i64: 5, 2>}
  llvm.func @produce(%y: !llvm.ptr) { llvm.return }
  llvm.func @momentum(%begin: i64, %end: i64, %gradient: !llvm.ptr, %w: !llvm.ptr, %m: !llvm.ptr) { llvm.return }
  // CHECK-LABEL: llvm.func internal @drt_entry_step
  drt.entry "step" {
    %y = drt.launch @produce() {at = array<i64: 0>} : () -> tensor<5x2xf32>
    // CHECK: llvm.call @drt_accumulated
    %g = drt.accumulated %y {first = 0 : i32, scale = 5.000000e-01 : f64, steps = 2 : i64, at = array<i64: 64>} : (tensor<5x2xf32>) -> tensor<5x2xf32>
    drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], at = array<i64: 64>, compression = #dist.compression<top_k ratio 2.5e-01 : f64>} : (tensor<5x2xf32>) -> ()
    drt.all_reduce_wait 0
    // The replica's share of @w is 20 bytes, and so is that of @m, of which the task has its own replicas'.
    // CHECK: llvm.mlir.constant(20 : i64)
    // CHECK: llvm.mlir.constant(20 : i64)
    // CHECK: llvm.call @drt_update_share
    drt.update {kernel = @momentum, variables = [@w, @m], bucket = 0 : i32, member = 0 : i64, count = 10 : i64, share = 5 : i64} : () -> ()
    // CHECK: llvm.call @drt_all_reduce_start
    // CHECK: llvm.call @drt_all_reduce_wait
    drt.gather_start {bucket = 1 : i32, variables = [@w]} : () -> ()
    drt.all_reduce_wait 1
  }
  // Of ten elements top-k with a quarter sends three.
  // CHECK-DAG: llvm.mlir.global internal constant @drt_descriptor_{{[0-9]+}}([102 : i32, 0 : i32, 0 : i32, 0 : i32, 0 : i32])
  // CHECK-DAG: llvm.mlir.constant(3 : i64)
}

// -----

// What is packed goes beside the operand: to a replica's own matmul, and with its size to the one that replicas share.
module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 8 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 16384
  drt.variable @w : tensor<4x3xf32> {trainable, saved}

  // CHECK-LABEL: llvm.func internal @drt_entry_step
  drt.entry "step" {
    %x = drt.feed {name = "x", batched} : () -> tensor<4x4xf32>
    %w = drt.read @w : tensor<4x3xf32>
    // CHECK: llvm.call @drt_pack(%[[REPLICA:.*]], %{{.*}}, %{{.*}}, %[[PACKED:.*]])
    %p = drt.pack %w {at = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<6272xi8>
    // CHECK: llvm.call @drt_matmul_packed(%[[REPLICA]],
    %h = drt.matmul_packed %x, %w, %p {at = array<i64: 6272>} : (tensor<4x4xf32>, tensor<4x3xf32>, tensor<6272xi8>) -> tensor<4x3xf32>
    // CHECK: llvm.call @drt_pack(%[[REPLICA]],
    %j = drt.pack %w {joined, at = array<i64: 6464>} : (tensor<4x3xf32>) -> tensor<6272xi8>
    // CHECK: llvm.mlir.constant(6272 : i64)
    // CHECK: llvm.call @drt_matmul_joined(%[[REPLICA]],
    %y = drt.matmul_packed %x, %w, %j {joined, at = array<i64: 12736>} : (tensor<4x4xf32>, tensor<4x3xf32>, tensor<6272xi8>) -> tensor<4x3xf32>
    drt.fetch %h {name = "h:0", join = 0 : i32} : (tensor<4x3xf32>) -> ()
    drt.fetch %y {name = "y:0", join = 0 : i32} : (tensor<4x3xf32>) -> ()
  }
}
