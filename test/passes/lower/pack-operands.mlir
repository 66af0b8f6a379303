// RUN: distc-opt %s --split-input-file --drt-pack-operands | FileCheck %s
// RUN: distc-opt %s --split-input-file --drt-pack-operands --drt-plan-memory --drt-verify-order -o /dev/null

module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 64 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
  drt.variable @w : tensor<256x1024xf32> {trainable, saved}
  drt.variable @seldom : tensor<256x1024xf32> {trainable, saved}

  // In front of the first matmul that takes it: once as it lies for three, once transposed for three others; not for two.
  // CHECK-LABEL: drt.entry "step"
  // CHECK: %[[W:.*]] = drt.read @w
  // CHECK: %[[SELDOM:.*]] = drt.read @seldom
  // CHECK: %[[F0:.*]] = drt.matmul %{{.*}}, %[[SELDOM]] :
  // CHECK-NEXT: %[[P:.*]] = drt.pack %[[W]] : (tensor<256x1024xf32>) -> tensor<1573184xi8>
  // CHECK-NEXT: %[[H0:.*]] = drt.matmul_packed %{{.*}}, %[[W]], %[[P]], %{{.*}} {epilogue = 1 : i32} :
  // CHECK-NEXT: %[[H1:.*]] = drt.matmul_packed %[[H0X:.*]], %[[W]], %[[P]] :
  // CHECK-NEXT: drt.matmul %{{.*}}, %[[SELDOM]] :
  // CHECK-NEXT: drt.matmul_packed %{{.*}}, %[[W]], %[[P]] :
  // CHECK-NEXT: %[[T:.*]] = drt.pack %[[W]] {transpose_b} : (tensor<256x1024xf32>) -> tensor<1573184xi8>
  // CHECK-NEXT: drt.matmul_packed %[[H1]], %[[W]], %[[T]] {transpose_b} :
  // CHECK-NEXT: drt.matmul_packed %[[H1]], %[[W]], %[[T]] {transpose_b} :
  // CHECK-NEXT: drt.matmul_packed %[[H1]], %[[W]], %[[T]] {transpose_b} :
  // CHECK-NOT: drt.pack
  drt.entry "step" {
    %x = drt.feed {batched, name = "x"} : () -> tensor<64x256xf32>
    %bias = drt.feed {name = "bias"} : () -> tensor<1024xf32>
    %w = drt.read @w : tensor<256x1024xf32>
    %seldom = drt.read @seldom : tensor<256x1024xf32>
    %s0 = drt.matmul %x, %seldom : (tensor<64x256xf32>, tensor<256x1024xf32>) -> tensor<64x1024xf32>
    %h0 = drt.matmul %x, %w, %bias {epilogue = 1 : i32} : (tensor<64x256xf32>, tensor<256x1024xf32>, tensor<1024xf32>) -> tensor<64x1024xf32>
    %h1 = drt.matmul %x, %w : (tensor<64x256xf32>, tensor<256x1024xf32>) -> tensor<64x1024xf32>
    %s1 = drt.matmul %x, %seldom : (tensor<64x256xf32>, tensor<256x1024xf32>) -> tensor<64x1024xf32>
    %h2 = drt.matmul %x, %w : (tensor<64x256xf32>, tensor<256x1024xf32>) -> tensor<64x1024xf32>
    %d0 = drt.matmul %h1, %w {transpose_b} : (tensor<64x1024xf32>, tensor<256x1024xf32>) -> tensor<64x256xf32>
    %d1 = drt.matmul %h1, %w {transpose_b} : (tensor<64x1024xf32>, tensor<256x1024xf32>) -> tensor<64x256xf32>
    %d2 = drt.matmul %h1, %w {transpose_b} : (tensor<64x1024xf32>, tensor<256x1024xf32>) -> tensor<64x256xf32>
  }

  // Of too few rows no machine packs anything; of many it is little. One right operand of each matrix of a batch is none
  // of several matmuls.
  // CHECK-LABEL: drt.entry "eval"
  // CHECK-NOT: drt.pack
  drt.entry "eval" {
    %few = drt.feed {name = "few"} : () -> tensor<32x256xf32>
    %many = drt.feed {name = "many"} : () -> tensor<4096x256xf32>
    %w = drt.read @w : tensor<256x1024xf32>
    %0 = drt.matmul %few, %w : (tensor<32x256xf32>, tensor<256x1024xf32>) -> tensor<32x1024xf32>
    %1 = drt.matmul %few, %w : (tensor<32x256xf32>, tensor<256x1024xf32>) -> tensor<32x1024xf32>
    %2 = drt.matmul %few, %w : (tensor<32x256xf32>, tensor<256x1024xf32>) -> tensor<32x1024xf32>
    %3 = drt.matmul %many, %w : (tensor<4096x256xf32>, tensor<256x1024xf32>) -> tensor<4096x1024xf32>
    %4 = drt.matmul %many, %w : (tensor<4096x256xf32>, tensor<256x1024xf32>) -> tensor<4096x1024xf32>
    %5 = drt.matmul %many, %w : (tensor<4096x256xf32>, tensor<256x1024xf32>) -> tensor<4096x1024xf32>
  }
}

// -----

module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 64 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
  drt.variable @w : tensor<256x1024xf32> {trainable, saved}

  // Where replicas share matmuls each packs the columns that it computes, and rows are those of all.
  // CHECK-LABEL: drt.entry "step"
  // CHECK: %[[W:.*]] = drt.read @w
  // CHECK-NEXT: %[[P:.*]] = drt.pack %[[W]] {joined} : (tensor<256x1024xf32>) -> tensor<786624xi8>
  // CHECK-NEXT: drt.matmul_packed %{{.*}}, %[[W]], %[[P]] {joined} :
  // CHECK-NEXT: drt.matmul_packed %{{.*}}, %[[W]], %[[P]] {joined} :
  // CHECK-NEXT: drt.matmul_packed %{{.*}}, %[[W]], %[[P]] {joined} :
  // CHECK-NEXT: drt.matmul %{{.*}}, %[[W]] :
  drt.entry "step" {
    %x = drt.feed {batched, name = "x"} : () -> tensor<32x256xf32>
    %w = drt.read @w : tensor<256x1024xf32>
    %0 = drt.matmul %x, %w {joined} : (tensor<32x256xf32>, tensor<256x1024xf32>) -> tensor<32x1024xf32>
    %1 = drt.matmul %x, %w {joined} : (tensor<32x256xf32>, tensor<256x1024xf32>) -> tensor<32x1024xf32>
    %2 = drt.matmul %x, %w {joined} : (tensor<32x256xf32>, tensor<256x1024xf32>) -> tensor<32x1024xf32>
    %3 = drt.matmul %x, %w : (tensor<32x256xf32>, tensor<256x1024xf32>) -> tensor<32x1024xf32>
  }
}
