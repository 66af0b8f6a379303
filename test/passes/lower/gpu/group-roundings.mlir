// RUN: distc-opt %s --drt-group-roundings | FileCheck %s

#id = affine_map<(i) -> (i)>
drt.variable @v0 : tensor<5xf32>
drt.variable @v1 : tensor<6xf32>
drt.variable @v2 : tensor<7xf32>
drt.variable @v3 : tensor<9000xf32>
drt.variable @v4 : tensor<9xf32>
drt.variable @v5 : tensor<10xf32>
drt.variable @v6 : tensor<11xf32>
drt.variable @v7 : tensor<12xf32>
drt.variable @v8 : tensor<13xf32>
drt.variable @v9 : tensor<14xf32>

// One block for each begun 8,192 elements.
// CHECK-LABEL: drt.entry "eval"
// CHECK-COUNT-8: drt.read
// CHECK: %[[R:.*]]:8 = drt.launch @round_variables_0(
// CHECK-NOT: arith.truncf {{.*}} bf16
// CHECK: drt.fetch %[[R]]#0
// CHECK: drt.fetch %[[R]]#7
drt.entry "eval" {
  %v0 = drt.read @v0 : tensor<5xf32>
  %e0 = tensor.empty() : tensor<5xbf16>
  %r0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v0 : tensor<5xf32>) outs(%e0 : tensor<5xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<5xbf16>
  %v1 = drt.read @v1 : tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xbf16>
  %r1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v1 : tensor<6xf32>) outs(%e1 : tensor<6xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<6xbf16>
  %v2 = drt.read @v2 : tensor<7xf32>
  %e2 = tensor.empty() : tensor<7xbf16>
  %r2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v2 : tensor<7xf32>) outs(%e2 : tensor<7xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<7xbf16>
  %v3 = drt.read @v3 : tensor<9000xf32>
  %e3 = tensor.empty() : tensor<9000xbf16>
  %r3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v3 : tensor<9000xf32>) outs(%e3 : tensor<9000xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<9000xbf16>
  %v4 = drt.read @v4 : tensor<9xf32>
  %e4 = tensor.empty() : tensor<9xbf16>
  %r4 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v4 : tensor<9xf32>) outs(%e4 : tensor<9xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<9xbf16>
  %v5 = drt.read @v5 : tensor<10xf32>
  %e5 = tensor.empty() : tensor<10xbf16>
  %r5 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v5 : tensor<10xf32>) outs(%e5 : tensor<10xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<10xbf16>
  %v6 = drt.read @v6 : tensor<11xf32>
  %e6 = tensor.empty() : tensor<11xbf16>
  %r6 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v6 : tensor<11xf32>) outs(%e6 : tensor<11xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<11xbf16>
  %v7 = drt.read @v7 : tensor<12xf32>
  %e7 = tensor.empty() : tensor<12xbf16>
  %r7 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v7 : tensor<12xf32>) outs(%e7 : tensor<12xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<12xbf16>
  drt.fetch %r0 {join = 0 : i32, name = "r0"} : (tensor<5xbf16>) -> ()
  drt.fetch %r1 {join = 0 : i32, name = "r1"} : (tensor<6xbf16>) -> ()
  drt.fetch %r2 {join = 0 : i32, name = "r2"} : (tensor<7xbf16>) -> ()
  drt.fetch %r3 {join = 0 : i32, name = "r3"} : (tensor<9000xbf16>) -> ()
  drt.fetch %r4 {join = 0 : i32, name = "r4"} : (tensor<9xbf16>) -> ()
  drt.fetch %r5 {join = 0 : i32, name = "r5"} : (tensor<10xbf16>) -> ()
  drt.fetch %r6 {join = 0 : i32, name = "r6"} : (tensor<11xbf16>) -> ()
  drt.fetch %r7 {join = 0 : i32, name = "r7"} : (tensor<12xbf16>) -> ()
}

// What is read behind something that writes may be another value: seven before it, and two behind it.
// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: drt.launch
// CHECK-LABEL: drt.entry "accumulate"
// CHECK-NOT: drt.launch
// CHECK: gpu.func @round_variables_0
// CHECK-SAME: drt.grid = array<i64: 9, 1, 1>
drt.entry "step" {
  %v0 = drt.read @v0 : tensor<5xf32>
  %e0 = tensor.empty() : tensor<5xbf16>
  %r0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v0 : tensor<5xf32>) outs(%e0 : tensor<5xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<5xbf16>
  %v1 = drt.read @v1 : tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xbf16>
  %r1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v1 : tensor<6xf32>) outs(%e1 : tensor<6xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<6xbf16>
  %v2 = drt.read @v2 : tensor<7xf32>
  %e2 = tensor.empty() : tensor<7xbf16>
  %r2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v2 : tensor<7xf32>) outs(%e2 : tensor<7xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<7xbf16>
  %v3 = drt.read @v3 : tensor<9000xf32>
  %e3 = tensor.empty() : tensor<9000xbf16>
  %r3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v3 : tensor<9000xf32>) outs(%e3 : tensor<9000xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<9000xbf16>
  %v4 = drt.read @v4 : tensor<9xf32>
  %e4 = tensor.empty() : tensor<9xbf16>
  %r4 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v4 : tensor<9xf32>) outs(%e4 : tensor<9xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<9xbf16>
  %v5 = drt.read @v5 : tensor<10xf32>
  %e5 = tensor.empty() : tensor<10xbf16>
  %r5 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v5 : tensor<10xf32>) outs(%e5 : tensor<10xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<10xbf16>
  %v6 = drt.read @v6 : tensor<11xf32>
  %e6 = tensor.empty() : tensor<11xbf16>
  %r6 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v6 : tensor<11xf32>) outs(%e6 : tensor<11xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<11xbf16>
  drt.fetch %r0 {join = 0 : i32, name = "r0"} : (tensor<5xbf16>) -> ()
  %v7 = drt.read @v7 : tensor<12xf32>
  %e7 = tensor.empty() : tensor<12xbf16>
  %r7 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v7 : tensor<12xf32>) outs(%e7 : tensor<12xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<12xbf16>
  %v8 = drt.read @v8 : tensor<13xf32>
  %e8 = tensor.empty() : tensor<13xbf16>
  %r8 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v8 : tensor<13xf32>) outs(%e8 : tensor<13xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<13xbf16>
  drt.fetch %r1 {join = 0 : i32, name = "r1"} : (tensor<6xbf16>) -> ()
  drt.fetch %r2 {join = 0 : i32, name = "r2"} : (tensor<7xbf16>) -> ()
  drt.fetch %r3 {join = 0 : i32, name = "r3"} : (tensor<9000xbf16>) -> ()
  drt.fetch %r4 {join = 0 : i32, name = "r4"} : (tensor<9xbf16>) -> ()
  drt.fetch %r5 {join = 0 : i32, name = "r5"} : (tensor<10xbf16>) -> ()
  drt.fetch %r6 {join = 0 : i32, name = "r6"} : (tensor<11xbf16>) -> ()
  drt.fetch %r7 {join = 0 : i32, name = "r7"} : (tensor<12xbf16>) -> ()
  drt.fetch %r8 {join = 0 : i32, name = "r8"} : (tensor<13xbf16>) -> ()
}

// The variables are read before something writes, and rounded behind it: their old values.
drt.entry "accumulate" {
  %v0 = drt.read @v0 : tensor<5xf32>
  %v1 = drt.read @v1 : tensor<6xf32>
  %v2 = drt.read @v2 : tensor<7xf32>
  %v3 = drt.read @v3 : tensor<9000xf32>
  %v4 = drt.read @v4 : tensor<9xf32>
  %v5 = drt.read @v5 : tensor<10xf32>
  %v6 = drt.read @v6 : tensor<11xf32>
  %v7 = drt.read @v7 : tensor<12xf32>
  %w = drt.feed {name = "w"} : () -> tensor<5xf32>
  drt.fetch %w {join = 0 : i32, name = "w"} : (tensor<5xf32>) -> ()
  %e0 = tensor.empty() : tensor<5xbf16>
  %r0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v0 : tensor<5xf32>) outs(%e0 : tensor<5xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<5xbf16>
  %e1 = tensor.empty() : tensor<6xbf16>
  %r1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v1 : tensor<6xf32>) outs(%e1 : tensor<6xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<6xbf16>
  %e2 = tensor.empty() : tensor<7xbf16>
  %r2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v2 : tensor<7xf32>) outs(%e2 : tensor<7xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<7xbf16>
  %e3 = tensor.empty() : tensor<9000xbf16>
  %r3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v3 : tensor<9000xf32>) outs(%e3 : tensor<9000xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<9000xbf16>
  %e4 = tensor.empty() : tensor<9xbf16>
  %r4 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v4 : tensor<9xf32>) outs(%e4 : tensor<9xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<9xbf16>
  %e5 = tensor.empty() : tensor<10xbf16>
  %r5 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v5 : tensor<10xf32>) outs(%e5 : tensor<10xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<10xbf16>
  %e6 = tensor.empty() : tensor<11xbf16>
  %r6 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v6 : tensor<11xf32>) outs(%e6 : tensor<11xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<11xbf16>
  %e7 = tensor.empty() : tensor<12xbf16>
  %r7 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v7 : tensor<12xf32>) outs(%e7 : tensor<12xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<12xbf16>
  drt.fetch %r0 {join = 0 : i32, name = "r0"} : (tensor<5xbf16>) -> ()
  drt.fetch %r1 {join = 0 : i32, name = "r1"} : (tensor<6xbf16>) -> ()
  drt.fetch %r2 {join = 0 : i32, name = "r2"} : (tensor<7xbf16>) -> ()
  drt.fetch %r3 {join = 0 : i32, name = "r3"} : (tensor<9000xbf16>) -> ()
  drt.fetch %r4 {join = 0 : i32, name = "r4"} : (tensor<9xbf16>) -> ()
  drt.fetch %r5 {join = 0 : i32, name = "r5"} : (tensor<10xbf16>) -> ()
  drt.fetch %r6 {join = 0 : i32, name = "r6"} : (tensor<11xbf16>) -> ()
  drt.fetch %r7 {join = 0 : i32, name = "r7"} : (tensor<12xbf16>) -> ()
}
