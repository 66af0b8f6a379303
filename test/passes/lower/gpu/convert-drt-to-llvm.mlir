// RUN: distc-opt %s --convert-drt-to-llvm | FileCheck %s
// RUN: distc-opt %s --convert-drt-to-llvm | FileCheck %s --check-prefix=IMAGES

// The entry enqueues: a launch is a call with the kernel's number, in the order of gpu.module @kernels.
module attributes {gpu.container_module} {
  drt.program "g.meta" strategy "AllReduce" target "cuda:sm_90" batch 8 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 256 variables 512
  drt.image "sm_90" "ELF"
  drt.image "compute_90" "PTX\00"
  drt.variable @w : tensor<4x3xf32> {trainable, saved, at = 0 : i64}
  drt.variable @b : tensor<3xf32> {trainable, saved, at = 256 : i64}
  // CHECK-NOT: gpu.module
  gpu.module @kernels {
    gpu.func @negate(%x: memref<12xf32>, %y: memref<12xf32>) kernel attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 32, 1, 1>} {
      gpu.return
    }
    llvm.func @helper(!llvm.ptr)
    llvm.func @relu(%x: !llvm.ptr, %y: !llvm.ptr) attributes {nvvm.kernel, drt.grid = array<i64: 7, 2, 1>, drt.block = array<i64: 128, 1, 1>} {
      llvm.return
    }
  }

  // CHECK-LABEL: llvm.func internal @drt_entry_step
  // CHECK-SAME: (%[[REPLICA:.*]]: !llvm.ptr)
  drt.entry "step" {
    // CHECK: %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
    // CHECK: %[[ARRAY:.*]] = llvm.alloca %[[TWO]] x !llvm.ptr
    %x = drt.feed {name = "x", batched} : () -> tensor<4x4xf32>
    %w = drt.read @w : tensor<4x3xf32>
    // CHECK: llvm.call @drt_matmul(%[[REPLICA]],
    %h = drt.matmul %x, %w {at = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    // CHECK: llvm.store %{{.*}}, %[[ARRAY]]
    // CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[ARRAY]]
    // CHECK: llvm.store %{{.*}}, %[[SECOND]]
    // CHECK: %[[RELU:.*]] = llvm.mlir.constant(1 : i32)
    // CHECK: llvm.call @drt_launch(%[[REPLICA]], %[[RELU]], %[[ARRAY]]) : (!llvm.ptr, i32, !llvm.ptr) -> ()
    %y = drt.launch @relu(%h) {at = array<i64: 64>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    // CHECK: %[[BYTES:.*]] = llvm.mlir.constant(48 : i64)
    // CHECK: llvm.call @drt_copy(%[[REPLICA]], %{{.*}}, %{{.*}}, %[[BYTES]])
    %z = drt.copy %y {at = array<i64: 128>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    drt.fetch %z {name = "y:0", join = 0 : i32} : (tensor<4x3xf32>) -> ()
  }

  // CHECK: @drt_kernels() {{.*}} !llvm.array<2 x struct<(ptr, i32, i32, i32, i32, i32, i32, i32)>>
  // CHECK-DAG: llvm.mlir.constant(7 : i32)
  // CHECK-DAG: llvm.mlir.constant(128 : i32)
  // CHECK: @drt_variables()
  // CHECK: llvm.mlir.constant(256 : i64)
  // CHECK: llvm.mlir.global external constant @drt_the_program()
}

// Images are as aligned as any type needs.
// IMAGES: @drt_image_0("ELF") {addr_space = 0 : i32, alignment = 16 : i64}
// IMAGES: @drt_image_1("PTX\00")
// IMAGES: @drt_images() {{.*}} !llvm.array<2 x struct<(ptr, ptr, i64)>>
// IMAGES: llvm.mlir.constant(4 : i64)
