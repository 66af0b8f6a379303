// RUN: distc-opt %s --drt-group-updates --split-input-file --verify-diagnostics

// expected-error @below {{has no places for tensors and variables of a device; run drt-plan-memory{device}}}
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64

// -----

module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 64 variables 256
drt.variable @w : tensor<8xi64> {at = 0 : i64}
drt.entry "step" {
  drt.update {kernel = @number, variables = [@w], count = 8 : i64} : () -> ()
}
// expected-error @+1 {{updates an element by its number, which has no code for GPUs}}
drt.kernel range @number(%begin: i64, %end: i64, %w: memref<8xi64>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  scf.for %i = %from to %to step %one {
    %value = arith.index_cast %i : index to i64
    memref.store %value, %w[%i] : memref<8xi64>
  }
  drt.return
}
}

// -----

module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 64 variables 256
drt.variable @w : tensor<8xf32>
drt.entry "step" {
  // expected-error @+1 {{uses variable 'w', which has no place in the block of variables; run drt-plan-memory{device}}}
  drt.update {kernel = @zero, variables = [@w], count = 8 : i64} : () -> ()
}
drt.kernel range @zero(%begin: i64, %end: i64, %w: memref<8xf32>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  %value = arith.constant 0.0 : f32
  scf.for %i = %from to %to step %one {
    memref.store %value, %w[%i] : memref<8xf32>
  }
  drt.return
}
}

// -----

module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 64 variables 256
drt.variable @w : tensor<8xf32> {at = 0 : i64}
drt.entry "step" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<4xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], at = array<i64: 0>} : (tensor<4xf32>) -> ()
  // expected-error @+1 {{updates 8 elements from a gradient of type 'tensor<4xf32>'}}
  drt.update {kernel = @assign, variables = [@w], bucket = 0 : i32, member = 0 : i64, count = 8 : i64} : () -> ()
}
drt.kernel range @assign(%begin: i64, %end: i64, %g: memref<8xf32>, %w: memref<8xf32>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  scf.for %i = %from to %to step %one {
    %at = arith.subi %i, %from : index
    %value = memref.load %g[%at] : memref<8xf32>
    memref.store %value, %w[%i] : memref<8xf32>
  }
  drt.return
}
}

// -----

module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>] arena 64 variables 256
drt.variable @w : tensor<8x2xf32> {at = 0 : i64}
drt.entry "step" {
  %ids = drt.feed {name = "ids"} : () -> tensor<4xi64>
  %g = drt.feed {name = "g"} : () -> tensor<4x2xf32>
  // expected-error @below {{has rows in no order that threads know; run drt-row-kernels}}
  drt.sparse_update %ids, %g {kernel = @k, variables = [@w], depth = 1 : i64} : (tensor<4xi64>, tensor<4x2xf32>) -> ()
}
}
