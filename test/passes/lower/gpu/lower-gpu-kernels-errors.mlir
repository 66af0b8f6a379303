// RUN: distc-opt %s --lower-gpu-kernels --split-input-file --verify-diagnostics

gpu.module @kernels {
  // expected-error @below {{needs three numbers in 'drt.grid', in the order x, y, z}}
  gpu.func @no_grid(%x: memref<4xf32>) kernel attributes {drt.block = array<i64: 4, 1, 1>} { gpu.return }
}

// -----

gpu.module @kernels {
  // expected-error @below {{needs arguments that are whole buffers of static shape, not 'memref<?xf32>'}}
  gpu.func @dynamic(%x: memref<?xf32>) kernel attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 4, 1, 1>} { gpu.return }
}

// -----

gpu.module @kernels {
  gpu.func @shared(%x: memref<4xindex>) kernel attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 4, 1, 1>} {
    %t = gpu.thread_id x
    // expected-error @below {{allocates shared memory of a size that is not known when compiling}}
    %s = memref.alloca(%t) : memref<?xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}
