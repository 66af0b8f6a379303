// REQUIRES: ptxas
// RUN: distc-opt %s --lower-gpu-kernels --drt-make-images="target=cuda:sm_90,sm_80 verbose" 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=VERBOSE <%t

// Cubins are ELF; they come first.
// CHECK: drt.image "sm_80" "\7FELF{{.*}}"
// CHECK-NEXT: drt.image "sm_90" "\7FELF{{.*}}"
// CHECK-NEXT: drt.image "compute_90" "{{.*}}.target sm_90{{.*}}\00"
// VERBOSE: remark: {{.*}}Compiling entry function 'relu' for 'sm_80'
// VERBOSE: registers
// VERBOSE: Compiling entry function 'relu' for 'sm_90'
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @relu(%x: memref<32xf32>, %y: memref<32xf32>) kernel attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 32, 1, 1>} {
      %t = gpu.thread_id x
      %zero = arith.constant 0.0 : f32
      %v = memref.load %x[%t] : memref<32xf32>
      %r = arith.maximumf %v, %zero : f32
      memref.store %r, %y[%t] : memref<32xf32>
      gpu.return
    }
  }
}
