//===- Passes.td - From the distributed graph to the runtime's plan and objects ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PASSES
#define DISTC_PASSES_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def PlanMemory : Pass<"drt-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor of an entry its place in the arena";
  let description = [{
    Tensors whose lives overlap lie apart, others may share memory; every place is aligned to 64 bytes. A result never shares memory with an
    operand of its own operation: kernels take their addresses as distinct. A bucket's members lie side by side, in order. What other
    replicas read (buckets, operands of `drt.matmul_update`) and what is fetched keeps its memory until the end of the entry, since replicas
    are not in step. A bucket's member that is no result of an arena operation, or is a member twice, is copied.

    ```mlir
    %0 = drt.launch @relu(%x) : (tensor<32x8xf32>) -> tensor<32x8xf32>
    ```
    becomes
    ```mlir
    %0 = drt.launch @relu(%x) {at = array<i64: 0>} : (tensor<32x8xf32>) -> tensor<32x8xf32>
    ```
    and the module carries `drt.arena_bytes`, the largest entry's need.
  }];
  let dependentDialects = ["::distc::drt::DRTDialect"];
}

def ConvertDrtToLLVM : Pass<"convert-drt-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Makes LLVM functions of the entries, and the tables that describe the program";
  let description = [{
    Every entry becomes `llvm.func @drt_entry_NAME(ptr replica)`: calls of kernels and of the functions in drt.h, each between
    `drt_scope_begin` and `drt_scope_end`. Kernels are LLVM functions already, with one bare pointer a tensor, operands before results.
    `drt_the_program` and its tables become constants. The module's dictionary `drt.program` says what they say of the plan:
    `{graph, strategy, target : string, global_batch, num_replicas : i64, tasks = [{job, host : string, index, first_replica,
    num_replicas : i64}], global_step : symbol (optional)}`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // DISTC_PASSES_LOWER_PASSES
