// RUN: distc-opt %s --convert-drt-to-llvm | FileCheck %s

// What has no code on devices is a routine of the host's: its tensors, what is copied of each, how many are read.
module attributes {gpu.container_module} {
  drt.program "g.meta" strategy "AllReduce" target "cuda:sm_90" batch 8 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 256 variables 0
  drt.image "sm_90" "ELF"
  gpu.module @kernels {
  }
  // CHECK-LABEL: llvm.func internal @drt_entry_step
  // CHECK-SAME: (%[[REPLICA:.*]]: !llvm.ptr)
  drt.entry "step" {
    %x = drt.feed {name = "x", batched} : () -> tensor<4x4xf32>
    %holds = drt.feed {name = "holds"} : () -> tensor<i1>
    // CHECK: %[[INVERSE:.*]] = llvm.mlir.addressof @drt_routine_matrix_inverse
    // CHECK: llvm.call @drt_call_on_host(%[[REPLICA]], %[[INVERSE]],
    %inverse = drt.routine "matrix_inverse"(%x) {parameters = array<i64: 1, 1, 4, 0>, at = array<i64: 192>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: %[[ASSERT:.*]] = llvm.mlir.addressof @drt_routine_assert
    // CHECK: llvm.call @drt_call_on_host(%[[REPLICA]], %[[ASSERT]],
    drt.assert %holds, %x {message = "x was \01", summarize = 2 : i64} : (tensor<i1>, tensor<4x4xf32>) -> ()
    drt.fetch %inverse {name = "y:0", join = 0 : i32} : (tensor<4x4xf32>) -> ()
  }
}
// The routine's numbers and bytes. Of the assertion's tensors one byte of the condition, and the two elements that are put; the message is the host's.
// CHECK-DAG: ([1, 1, 4, 0])
// CHECK-DAG: ([64, 64])
// CHECK-DAG: ([2, 0, 1, {{[0-9]+}}, 16])
// CHECK-DAG: ([1, 8, 0])
