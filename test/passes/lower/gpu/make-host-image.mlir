// RUN: distc-opt %s --lower-gpu-kernels --drt-make-images="target=cuda:emulated" | FileCheck %s

// Kernels for the emulated driver are a shared object.
// CHECK: drt.image "host" "\7FELF
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @exp_of_root(%x: memref<1024xf32>, %y: memref<1024xf32>) kernel attributes {drt.grid = array<i64: 2, 1, 1>, drt.block = array<i64: 128, 1, 1>} {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %c128 = arith.constant 128 : index
      %c4 = arith.constant 4 : index
      %w = arith.muli %b, %c128 : index
      %thread = arith.addi %w, %t : index
      %i = arith.muli %thread, %c4 : index
      %v = vector.load %x[%i] {alignment = 16 : i64} : memref<1024xf32>, vector<4xf32>
      %three = arith.constant dense<3.0> : vector<4xf32>
      %d = arith.divf %three, %v : vector<4xf32>
      %q = math.sqrt %d : vector<4xf32>
      %e = math.exp %q : vector<4xf32>
      vector.store %e, %y[%i] {alignment = 16 : i64} : memref<1024xf32>, vector<4xf32>
      gpu.return
    }
  }
}
