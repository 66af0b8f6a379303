// RUN: distc-opt %s --drt-recompute-values=max-bytes=8448 --split-input-file --verify-diagnostics | FileCheck %s

// What the backward pass reads is computed again where it reads it: the first value, from the feed. A view of it is made anew.
drt.program "m.meta" strategy "AllReduce" target "cpu" batch 32 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
// CHECK-LABEL: drt.entry "step"
// expected-remark @+1 {{--max-memory: 1 values are computed again when they are read, so that 'step' takes 8.3 kB a replica and not 12.4 kB; about}}
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<32x32xf32>
  // CHECK: %[[A:.*]] = drt.launch @twice(%[[X:.*]]) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  // CHECK: %[[B:.*]] = drt.launch @twice(%[[A]])
  // CHECK-NEXT: %[[C:.*]] = drt.launch @twice(%[[B]])
  // CHECK-NEXT: %[[SUM:.*]] = drt.launch @sum(%[[C]])
  // CHECK-NEXT: %[[AGAIN:.*]] = drt.launch @twice(%[[X]])
  // CHECK-NEXT: %[[VIEW:.*]] = tensor.collapse_shape %[[AGAIN]]
  // CHECK-NEXT: drt.launch @gradient(%[[SUM]], %[[VIEW]])
  %a = drt.launch @twice(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %view = tensor.collapse_shape %a [[0, 1]] : tensor<32x32xf32> into tensor<1024xf32>
  %b = drt.launch @twice(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = drt.launch @twice(%b) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %sum = drt.launch @sum(%c) : (tensor<32x32xf32>) -> tensor<f32>
  %d = drt.launch @gradient(%sum, %view) : (tensor<f32>, tensor<1024xf32>) -> tensor<1024xf32>
  drt.fetch %sum {name = "sum:0", join = 2 : i32} : (tensor<f32>) -> ()
}
drt.kernel @twice(memref<32x32xf32>, memref<32x32xf32>)
drt.kernel @sum(memref<32x32xf32>, memref<f32>)
drt.kernel @gradient(memref<f32>, memref<1024xf32>, memref<1024xf32>)

// -----

// Of a variable that is written in between, the same cannot be computed again; nor can what has drawn on.
drt.program "m.meta" strategy "AllReduce" target "cpu" batch 32 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
drt.variable @w : tensor<1xf32> {saved, trainable}
// expected-error @+1 {{--max-memory=8448 is too little: a task has 4 B of variables, and 'step' takes 12.4 kB more for each of its 1 replicas, with 0 values computed again (12356 bytes in all); the largest that are kept at once are }}
drt.entry "step" {
  %w = drt.read @w : tensor<1xf32>
  %a = drt.launch @wide(%w) : (tensor<1xf32>) -> tensor<32x32xf32>
  %one = drt.launch @narrow(%a) : (tensor<32x32xf32>) -> tensor<1xf32>
  drt.update %one {kernel = @assign, variables = [@w], count = 1 : i64} : (tensor<1xf32>) -> ()
  %b = drt.random {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<32x32xf32>
  %c = drt.launch @twice(%b) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %sum = drt.launch @narrow(%c) : (tensor<32x32xf32>) -> tensor<1xf32>
  %d = drt.launch @three(%a, %b, %sum) : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<1xf32>) -> tensor<1xf32>
  drt.fetch %d {name = "d:0", join = 2 : i32} : (tensor<1xf32>) -> ()
}
drt.kernel @wide(memref<1xf32>, memref<32x32xf32>)
drt.kernel @narrow(memref<32x32xf32>, memref<1xf32>)
drt.kernel @twice(memref<32x32xf32>, memref<32x32xf32>)
drt.kernel @three(memref<32x32xf32>, memref<32x32xf32>, memref<1xf32>, memref<1xf32>)
drt.kernel range @assign(i64, i64, memref<1xf32>, memref<1xf32>)

// -----

// What was packed for several matmuls is given up first: nothing is computed again.
drt.program "m.meta" strategy "AllReduce" target "cpu" batch 4 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
drt.variable @w : tensor<4x3xf32> {saved, trainable}
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[W:.*]] = drt.read @w
// CHECK-NEXT: drt.matmul %{{.*}}, %[[W]], %{{.*}} {epilogue = 1 : i32} : (tensor<400x4xf32>, tensor<4x3xf32>, tensor<3xf32>)
// CHECK-NEXT: drt.fetch
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<400x4xf32>
  %bias = drt.feed {name = "bias"} : () -> tensor<3xf32>
  %w = drt.read @w : tensor<4x3xf32>
  %p = drt.pack %w : (tensor<4x3xf32>) -> tensor<6272xi8>
  %y = drt.matmul_packed %x, %w, %p, %bias {epilogue = 1 : i32} : (tensor<400x4xf32>, tensor<4x3xf32>, tensor<6272xi8>, tensor<3xf32>) -> tensor<400x3xf32>
  drt.fetch %y {name = "y:0", join = 0 : i32} : (tensor<400x3xf32>) -> ()
}
