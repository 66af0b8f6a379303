// RUN: distc-opt %s --split-input-file --drt-stack-contractions='stack-rows=96' | FileCheck %s
// RUN: distc-opt %s --split-input-file --drt-stack-contractions='stack-rows=96' --drt-outline-kernels --drt-plan-memory --drt-verify-order -o /dev/null

#id = affine_map<(d0, d1) -> (d0, d1)>

module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 32 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
  drt.variable @w : tensor<64x64xf32> {trainable, saved}
  drt.variable @u : tensor<64x64xf32> {trainable, saved}

  // A layer's inputs do not wait for its states: three fit in a stack, and what takes the first ones' products is behind it. Each state waits for the
  // one before.
  // CHECK-LABEL: drt.entry "step"
  // CHECK-DAG: %[[X:.*]] = drt.feed
  // CHECK-DAG: %[[W:.*]] = drt.read @w
  // CHECK-DAG: %[[U:.*]] = drt.read @u
  // CHECK: %[[Y:.*]]:3 = drt.matmul_stacked %[[X]], %[[X]], %[[X]] by %[[W]], %[[BIAS:.*]] {epilogue = 1 : i32} :
  // CHECK: %[[H0:.*]] = drt.matmul %[[Y]]#0, %[[U]] :
  // CHECK: %[[S1:.*]] = linalg.generic {{.*}} ins(%[[Y]]#1, %[[H0]] :
  // CHECK: %[[H1:.*]] = drt.matmul %[[S1]], %[[U]] :
  // CHECK: %[[S2:.*]] = linalg.generic {{.*}} ins(%[[Y]]#2, %[[H1]] :
  // CHECK: %[[H2:.*]] = drt.matmul %[[S2]], %[[U]] :
  // CHECK: %[[Y3:.*]] = drt.matmul %[[X]], %[[W]], %[[BIAS]] {epilogue = 1 : i32} :
  // CHECK: linalg.generic {{.*}} ins(%[[Y3]], %[[H2]] :
  drt.entry "step" {
    %x = drt.feed {batched, name = "x"} : () -> tensor<32x64xf32>
    %bias = drt.feed {name = "bias"} : () -> tensor<64xf32>
    %w = drt.read @w : tensor<64x64xf32>
    %u = drt.read @u : tensor<64x64xf32>
    %empty = tensor.empty() : tensor<32x64xf32>
    %y0 = drt.matmul %x, %w, %bias {epilogue = 1 : i32} : (tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
    %h0 = drt.matmul %y0, %u : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %y1 = drt.matmul %x, %w, %bias {epilogue = 1 : i32} : (tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
    %s1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y1, %h0 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %sum = arith.addf %a, %b : f32
      linalg.yield %sum : f32
    } -> tensor<32x64xf32>
    %h1 = drt.matmul %s1, %u : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %y2 = drt.matmul %x, %w, %bias {epilogue = 1 : i32} : (tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
    %s2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y2, %h1 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %sum = arith.addf %a, %b : f32
      linalg.yield %sum : f32
    } -> tensor<32x64xf32>
    %h2 = drt.matmul %s2, %u : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %y3 = drt.matmul %x, %w, %bias {epilogue = 1 : i32} : (tensor<32x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
    %s3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y3, %h2 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %sum = arith.addf %a, %b : f32
      linalg.yield %sum : f32
    } -> tensor<32x64xf32>
    drt.fetch %s3 {join = 0 : i32, name = "y"} : (tensor<32x64xf32>) -> ()
  }
}

// -----

module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 32 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
  drt.variable @w : tensor<64x64xf32> {trainable, saved}
  drt.variable @u : tensor<64x64xf32> {trainable, saved}

  // %b0 waits for %a0, and %a1 for %b1: both pairs would wait for each other as stacks. One of them is.
  // CHECK-LABEL: drt.entry "step"
  // CHECK: %[[A0:.*]] = drt.matmul %[[X:.*]], %[[W:.*]] :
  // CHECK-NEXT: %[[B:.*]]:2 = drt.matmul_stacked %[[A0]], %[[X]] by %{{.*}} :
  // CHECK-NEXT: drt.matmul %[[B]]#1, %[[W]] :
  drt.entry "step" {
    %x = drt.feed {batched, name = "x"} : () -> tensor<32x64xf32>
    %w = drt.read @w : tensor<64x64xf32>
    %u = drt.read @u : tensor<64x64xf32>
    %a0 = drt.matmul %x, %w : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %b0 = drt.matmul %a0, %u : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %b1 = drt.matmul %x, %u : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %a1 = drt.matmul %b1, %w : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    drt.fetch %b0 {join = 0 : i32, name = "b0"} : (tensor<32x64xf32>) -> ()
    drt.fetch %a1 {join = 0 : i32, name = "a1"} : (tensor<32x64xf32>) -> ()
  }

  // Nothing is stacked of other directions, other shapes, many rows or a small matrix; a fetch stands between two.
  // CHECK-LABEL: drt.entry "eval"
  // CHECK-NOT: drt.matmul_stacked
  drt.entry "eval" {
    %x = drt.feed {batched, name = "x"} : () -> tensor<32x64xf32>
    %few = drt.feed {name = "few"} : () -> tensor<8x64xf32>
    %many = drt.feed {name = "many"} : () -> tensor<193x64xf32>
    %narrow = drt.feed {name = "narrow"} : () -> tensor<64x8xf32>
    %w = drt.read @w : tensor<64x64xf32>
    %0 = drt.matmul %x, %w : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %1 = drt.matmul %x, %w {transpose_b} : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %2 = drt.matmul %few, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %3 = drt.matmul %many, %w : (tensor<193x64xf32>, tensor<64x64xf32>) -> tensor<193x64xf32>
    %4 = drt.matmul %many, %w : (tensor<193x64xf32>, tensor<64x64xf32>) -> tensor<193x64xf32>
    %5 = drt.matmul %x, %narrow : (tensor<32x64xf32>, tensor<64x8xf32>) -> tensor<32x8xf32>
    %6 = drt.matmul %x, %narrow : (tensor<32x64xf32>, tensor<64x8xf32>) -> tensor<32x8xf32>
    drt.fetch %0 {join = 0 : i32, name = "0"} : (tensor<32x64xf32>) -> ()
    %7 = drt.matmul %x, %w : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    drt.fetch %7 {join = 0 : i32, name = "7"} : (tensor<32x64xf32>) -> ()
  }
}
