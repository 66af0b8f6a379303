// RUN: distc-opt %s --lower-gpu-kernels --split-input-file | FileCheck %s

// One bare pointer a buffer, with its bytes; the block's size bounds thread ids; 128 bits at once. What is distinct is said by who made
// the kernel: threads may exchange elements of a buffer across a barrier.
// CHECK-LABEL: gpu.module @kernels
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK: llvm.func @exp_of_quotient(%{{.*}}: !llvm.ptr {llvm.dereferenceable = 4096 : i64, llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr {llvm.dereferenceable = 4096 : i64})
    // CHECK-SAME: drt.block = array<i64: 128, 1, 1>, drt.grid = array<i64: 2, 1, 1>
    // CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>
    gpu.func @exp_of_quotient(%x: memref<1024xf32> {llvm.noalias, llvm.readonly}, %y: memref<1024xf32>) kernel attributes {drt.grid = array<i64: 2, 1, 1>, drt.block = array<i64: 128, 1, 1>} {
      // CHECK: nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 2>
      %b = gpu.block_id x
      // CHECK: nvvm.read.ptx.sreg.tid.x range <i32, 0, 128>
      %t = gpu.thread_id x
      %c128 = arith.constant 128 : index
      %c4 = arith.constant 4 : index
      %w = arith.muli %b, %c128 : index
      %thread = arith.addi %w, %t : index
      %i = arith.muli %thread, %c4 : index
      // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
      %v = vector.load %x[%i] {alignment = 16 : i64} : memref<1024xf32>, vector<4xf32>
      // CHECK: llvm.fdiv %{{[^ ]*}}, %{{[^ ]*}} : vector<4xf32>
      %one = arith.constant dense<1.0> : vector<4xf32>
      %d = arith.divf %one, %v : vector<4xf32>
      // CHECK-COUNT-4: llvm.call @__nv_expf
      %e = math.exp %d : vector<4xf32>
      // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
      vector.store %e, %y[%i] {alignment = 16 : i64} : memref<1024xf32>, vector<4xf32>
      // CHECK: llvm.return
      gpu.return
    }
  }
}

// -----

// Sums over a warp, then over the block's shared memory.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK: llvm.mlir.global internal @[[GIVEN:__wg_sum_0]]() {addr_space = 3 : i32} : !llvm.array<32 x f32>
    // CHECK: llvm.mlir.global internal @[[ALLOCATED:__wg_sum_1]]() {addr_space = 3 : i32} : !llvm.array<8 x f32>
    // CHECK-LABEL: llvm.func @sum
    gpu.func @sum(%x: memref<256xf32>, %y: memref<f32>) workgroup(%given: memref<32xf32, #gpu.address_space<workgroup>>) kernel
        attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 256, 1, 1>} {
      %allocated = memref.alloca() : memref<8xf32, #gpu.address_space<workgroup>>
      %t = gpu.thread_id x
      %c32 = arith.constant 32 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %zero = arith.constant 0.0 : f32
      %step = arith.constant 16 : i32
      %width = arith.constant 32 : i32
      %v = memref.load %x[%t] : memref<256xf32>
      // CHECK: nvvm.shfl.sync bfly
      %other, %valid = gpu.shuffle xor %v, %step, %width : f32
      %partial = arith.addf %v, %other : f32
      %warp = arith.floordivsi %t, %c32 : index
      memref.store %partial, %allocated[%warp] : memref<8xf32, #gpu.address_space<workgroup>>
      // CHECK: nvvm.barrier0
      gpu.barrier
      %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %zero) -> f32 {
        %p = memref.load %allocated[%i] : memref<8xf32, #gpu.address_space<workgroup>>
        %n = arith.addf %a, %p : f32
        scf.yield %n : f32
      }
      memref.store %sum, %given[%warp] : memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %sum, %y[] : memref<f32>
      gpu.return
    }
  }
}

// -----

// Constants lie in the module.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK: llvm.mlir.global private constant @table(dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>)
    memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
    // CHECK-LABEL: llvm.func @read
    gpu.func @read(%y: memref<2xf32>) kernel attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 2, 1, 1>} {
      %t = gpu.thread_id x
      // CHECK: llvm.mlir.addressof @table
      %table = memref.get_global @table : memref<2xf32>
      %v = memref.load %table[%t] : memref<2xf32>
      memref.store %v, %y[%t] : memref<2xf32>
      gpu.return
    }
  }
}

// -----

// A power of integers is a loop, one round a bit of the exponent; what is left of mathematics are instructions.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @power
    gpu.func @power(%x: memref<4xi64>, %n: memref<4xi64>, %y: memref<4xi64>) kernel attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 4, 1, 1>} {
      %t = gpu.thread_id x
      %a = memref.load %x[%t] : memref<4xi64>
      %b = memref.load %n[%t] : memref<4xi64>
      // CHECK: llvm.cond_br
      // CHECK: llvm.lshr
      // CHECK: llvm.br
      %p = math.ipowi %a, %b : i64
      // CHECK: llvm.intr.abs
      %s = math.absi %p : i64
      memref.store %s, %y[%t] : memref<4xi64>
      gpu.return
    }
  }
}
