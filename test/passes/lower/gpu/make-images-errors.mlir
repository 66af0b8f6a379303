// RUN: not distc-opt %s --drt-make-images="target=cuda:sm_1" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not distc-opt %s --drt-make-images="target=cpu" 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not distc-opt %s --drt-make-images="ptx-only" 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: not distc-opt %s --drt-make-images="target=cuda:emulated" 2>&1 | FileCheck %s --check-prefix=EMULATED

// CHIP: unknown chip 'sm_1' in target 'cuda:sm_1': name chips that LLVM knows
// CPU: target 'cpu' has no images: name one of GPUs, cuda:sm_90 or cuda:emulated
// FUNCTION: a kernel calls 'drt_special_zeta', which has no code for GPUs yet; compile the graph for --target=cpu
// EMULATED: the emulated GPU has no 'llvm.nvvm.read.ptx.sreg.clock', which the kernel 'clock' uses
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @drt_special_zeta(f64, f64) -> f64
    llvm.func @clock(%y: !llvm.ptr) attributes {nvvm.kernel, drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 32, 1, 1>} {
      %x = llvm.mlir.constant(1.0 : f64) : f64
      %z = llvm.call @drt_special_zeta(%x, %x) : (f64, f64) -> f64
      %c = nvvm.read.ptx.sreg.clock : i32
      llvm.store %z, %y : f64, !llvm.ptr
      llvm.store %c, %y : i32, !llvm.ptr
      llvm.return
    }
  }
}
