// RUN: distc-opt %s --convert-drt-to-llvm | FileCheck %s

// A slot's share lies behind whole variables, though the table has it first: the block of variables, which a group of updates takes, begins
// at the table's second.
module attributes {gpu.container_module} {
  drt.program "g.meta" strategy "ShardedUpdate" target "cuda:sm_90" batch 8 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 256 variables 512
  drt.image "compute_90" "PTX\00"
  drt.variable @a_slot : tensor<6xf32> {saved, at = 256 : i64, full_shape = array<i64: 12>, shares = 2 : i64, whole = "a_slot"}
  drt.variable @w : tensor<12xf32> {trainable, saved, at = 0 : i64}
  gpu.module @kernels {
    llvm.func @update(%arena: !llvm.ptr, %variables: !llvm.ptr, %index: !llvm.ptr) attributes {nvvm.kernel, drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 256, 1, 1>} {
      llvm.return
    }
  }

  // CHECK-LABEL: llvm.func internal @drt_entry_step
  drt.entry "step" {
    %index = drt.replica_index : () -> tensor<i32>
    // CHECK: %[[FIELD:.*]] = llvm.getelementptr %{{.*}}[0, 3]
    // CHECK: %[[TABLE:.*]] = llvm.load %[[FIELD]]
    // CHECK: %[[SECOND:.*]] = llvm.mlir.constant(8 : i64)
    // CHECK: %[[AT:.*]] = llvm.getelementptr %[[TABLE]][%[[SECOND]]]
    // CHECK: %[[BLOCK:.*]] = llvm.load %[[AT]]
    // CHECK: llvm.store %[[BLOCK]]
    // CHECK: llvm.call @drt_launch
    drt.update_group %index {kernel = @update, shares = array<i64: 6>, variables = [[@w, @a_slot]]} : (tensor<i32>) -> ()
  }
}
