// RUN: distc-opt %s --convert-drt-to-llvm --split-input-file --verify-diagnostics

module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64 variables 0
  drt.entry "no_kernel" {
    // expected-error @below {{calls @relu, which gpu.module @kernels does not have; run drt-schedule-for-gpu}}
    %y = drt.launch @relu() {at = array<i64: 0>} : () -> tensor<4xf32>
  }
}

// -----

module attributes {gpu.container_module} {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64 variables 0
  gpu.module @kernels {
    llvm.func @relu(%x: !llvm.ptr, %y: !llvm.ptr) attributes {nvvm.kernel, drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 1, 1, 1>} { llvm.return }
  }
  drt.entry "arguments" {
    // expected-error @below {{has 1 tensors, the kernel @relu 2}}
    %y = drt.launch @relu() {at = array<i64: 0>} : () -> tensor<4xf32>
  }
}

// -----

module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64 variables 256
  drt.variable @w : tensor<4xf32> {at = 0 : i64}
  drt.entry "not_grouped" {
    // expected-error @below {{has no code for GPUs; run drt-group-updates}}
    drt.update {kernel = @sgd, variables = [@w], count = 4 : i64} : () -> ()
  }
}

// -----

// expected-error @below {{has kernels for devices and no images of them; run drt-make-images}}
module attributes {gpu.container_module} {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64 variables 0
  gpu.module @kernels {
    llvm.func @relu() attributes {nvvm.kernel, drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 1, 1, 1>} { llvm.return }
  }
}

// -----

module attributes {gpu.container_module} {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64 variables 0
  gpu.module @kernels {
    // expected-error @below {{needs three numbers in 'drt.block', in the order x, y, z}}
    llvm.func @relu() attributes {nvvm.kernel, drt.grid = array<i64: 1, 1, 1>} { llvm.return }
  }
}
