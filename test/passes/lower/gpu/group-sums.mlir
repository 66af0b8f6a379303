// RUN: distc-opt %s --drt-group-sums --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#scalar = affine_map<() -> ()>

// One block for each begun 16,384 elements: 1 + 1 + 1 + 2 + 3 + 1 + 1 + 1. They stand behind the last tensor that is summed.
// CHECK-LABEL: drt.entry "step"
// CHECK: drt.feed {name = "g7"}
// CHECK: %[[PARTS:.*]] = drt.launch @sums_parts_0(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : {{.*}} -> tensor<11xf32>
// CHECK-NEXT: %[[SUMS:.*]]:8 = drt.launch @sums_whole_1(%[[PARTS]])
// CHECK-NOT: linalg.generic
// CHECK: drt.fetch %[[SUMS]]#0
// CHECK: drt.fetch %[[SUMS]]#7
// CHECK: gpu.func @sums_parts_0
// CHECK-SAME: drt.block = array<i64: 256, 1, 1>, drt.grid = array<i64: 11, 1, 1>
// CHECK: gpu.func @sums_whole_1
// CHECK-SAME: drt.grid = array<i64: 1, 1, 1>
drt.entry "step" {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 5.0e-01 : f32
  %empty = tensor.empty() : tensor<f32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %g0 = drt.feed {name = "g0"} : () -> tensor<1xf32>
  %s0 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g0 : tensor<1xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %n0 = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s0 : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %half : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %g1 = drt.feed {name = "g1"} : () -> tensor<3xf32>
  %s1 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g1 : tensor<3xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %n1 = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s1 : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %half : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %g2 = drt.feed {name = "g2"} : () -> tensor<16384xf32>
  %s2 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g2 : tensor<16384xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %n2 = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s2 : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %half : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %g3 = drt.feed {name = "g3"} : () -> tensor<16385xf32>
  %s3 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g3 : tensor<16385xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %n3 = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s3 : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %half : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %g4 = drt.feed {name = "g4"} : () -> tensor<40000xf32>
  %s4 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g4 : tensor<40000xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %n4 = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s4 : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %half : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %g5 = drt.feed {name = "g5"} : () -> tensor<5xf32>
  %s5 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g5 : tensor<5xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %n5 = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s5 : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %half : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %g6 = drt.feed {name = "g6"} : () -> tensor<6xf32>
  %s6 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g6 : tensor<6xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %n6 = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s6 : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %half : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %g7 = drt.feed {name = "g7"} : () -> tensor<7xf32>
  %s7 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g7 : tensor<7xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %n7 = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%s7 : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %half : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  drt.fetch %n0 {join = 1 : i32, name = "n0"} : (tensor<f32>) -> ()
  drt.fetch %n1 {join = 1 : i32, name = "n1"} : (tensor<f32>) -> ()
  drt.fetch %n2 {join = 1 : i32, name = "n2"} : (tensor<f32>) -> ()
  drt.fetch %n3 {join = 1 : i32, name = "n3"} : (tensor<f32>) -> ()
  drt.fetch %n4 {join = 1 : i32, name = "n4"} : (tensor<f32>) -> ()
  drt.fetch %n5 {join = 1 : i32, name = "n5"} : (tensor<f32>) -> ()
  drt.fetch %n6 {join = 1 : i32, name = "n6"} : (tensor<f32>) -> ()
  drt.fetch %n7 {join = 1 : i32, name = "n7"} : (tensor<f32>) -> ()
}

// -----

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#scalar = affine_map<() -> ()>

// Of nine sums one is read before the last tensor is there: it stays as it is, and so does one by another rule.
// CHECK-LABEL: drt.entry "step"
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: drt.launch @sums_parts_0
// CHECK-NEXT: drt.launch @sums_whole_1
// CHECK: linalg.generic
// CHECK-NOT: drt.launch
drt.entry "step" {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 5.0e-01 : f32
  %empty = tensor.empty() : tensor<f32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %g0 = drt.feed {name = "g0"} : () -> tensor<4xf32>
  %s0 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g0 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  drt.fetch %s0 {join = 1 : i32, name = "s0"} : (tensor<f32>) -> ()
  %g1 = drt.feed {name = "g1"} : () -> tensor<4xf32>
  %s1 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g1 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g2 = drt.feed {name = "g2"} : () -> tensor<4xf32>
  %s2 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g2 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g3 = drt.feed {name = "g3"} : () -> tensor<4xf32>
  %s3 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g3 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g4 = drt.feed {name = "g4"} : () -> tensor<4xf32>
  %s4 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g4 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g5 = drt.feed {name = "g5"} : () -> tensor<4xf32>
  %s5 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g5 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g6 = drt.feed {name = "g6"} : () -> tensor<4xf32>
  %s6 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g6 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g7 = drt.feed {name = "g7"} : () -> tensor<4xf32>
  %s7 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g7 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g8 = drt.feed {name = "g8"} : () -> tensor<4xf32>
  %s8 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g8 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g9 = drt.feed {name = "g9"} : () -> tensor<4xf32>
  %s9 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g9 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  drt.fetch %s1 {join = 1 : i32, name = "s1"} : (tensor<f32>) -> ()
  drt.fetch %s2 {join = 1 : i32, name = "s2"} : (tensor<f32>) -> ()
  drt.fetch %s3 {join = 1 : i32, name = "s3"} : (tensor<f32>) -> ()
  drt.fetch %s4 {join = 1 : i32, name = "s4"} : (tensor<f32>) -> ()
  drt.fetch %s5 {join = 1 : i32, name = "s5"} : (tensor<f32>) -> ()
  drt.fetch %s6 {join = 1 : i32, name = "s6"} : (tensor<f32>) -> ()
  drt.fetch %s7 {join = 1 : i32, name = "s7"} : (tensor<f32>) -> ()
  drt.fetch %s8 {join = 1 : i32, name = "s8"} : (tensor<f32>) -> ()
  drt.fetch %s9 {join = 1 : i32, name = "s9"} : (tensor<f32>) -> ()
}

// -----

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#scalar = affine_map<() -> ()>

// Seven are left alone.
// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: drt.launch
drt.entry "step" {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 5.0e-01 : f32
  %empty = tensor.empty() : tensor<f32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %g0 = drt.feed {name = "g0"} : () -> tensor<4xf32>
  %s0 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g0 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g1 = drt.feed {name = "g1"} : () -> tensor<4xf32>
  %s1 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g1 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g2 = drt.feed {name = "g2"} : () -> tensor<4xf32>
  %s2 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g2 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g3 = drt.feed {name = "g3"} : () -> tensor<4xf32>
  %s3 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g3 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g4 = drt.feed {name = "g4"} : () -> tensor<4xf32>
  %s4 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g4 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g5 = drt.feed {name = "g5"} : () -> tensor<4xf32>
  %s5 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g5 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g6 = drt.feed {name = "g6"} : () -> tensor<4xf32>
  %s6 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g6 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  drt.fetch %s0 {join = 1 : i32, name = "s0"} : (tensor<f32>) -> ()
  drt.fetch %s1 {join = 1 : i32, name = "s1"} : (tensor<f32>) -> ()
  drt.fetch %s2 {join = 1 : i32, name = "s2"} : (tensor<f32>) -> ()
  drt.fetch %s3 {join = 1 : i32, name = "s3"} : (tensor<f32>) -> ()
  drt.fetch %s4 {join = 1 : i32, name = "s4"} : (tensor<f32>) -> ()
  drt.fetch %s5 {join = 1 : i32, name = "s5"} : (tensor<f32>) -> ()
  drt.fetch %s6 {join = 1 : i32, name = "s6"} : (tensor<f32>) -> ()
}

// -----

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#scalar = affine_map<() -> ()>

// What a variable holds is summed before it is updated.
// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: drt.launch
drt.variable @v0 : tensor<4xf32>
drt.variable @v1 : tensor<4xf32>
drt.variable @v2 : tensor<4xf32>
drt.variable @v3 : tensor<4xf32>
drt.variable @v4 : tensor<4xf32>
drt.variable @v5 : tensor<4xf32>
drt.variable @v6 : tensor<4xf32>
drt.variable @v7 : tensor<4xf32>
drt.entry "step" {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 5.0e-01 : f32
  %empty = tensor.empty() : tensor<f32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %g0 = drt.read @v0 : tensor<4xf32>
  %s0 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g0 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g1 = drt.read @v1 : tensor<4xf32>
  %s1 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g1 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g2 = drt.read @v2 : tensor<4xf32>
  %s2 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g2 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g3 = drt.read @v3 : tensor<4xf32>
  %s3 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g3 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g4 = drt.read @v4 : tensor<4xf32>
  %s4 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g4 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g5 = drt.read @v5 : tensor<4xf32>
  %s5 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g5 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g6 = drt.read @v6 : tensor<4xf32>
  %s6 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g6 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %g7 = drt.read @v7 : tensor<4xf32>
  %s7 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%g7 : tensor<4xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  drt.fetch %s0 {join = 1 : i32, name = "s0"} : (tensor<f32>) -> ()
  drt.fetch %s1 {join = 1 : i32, name = "s1"} : (tensor<f32>) -> ()
  drt.fetch %s2 {join = 1 : i32, name = "s2"} : (tensor<f32>) -> ()
  drt.fetch %s3 {join = 1 : i32, name = "s3"} : (tensor<f32>) -> ()
  drt.fetch %s4 {join = 1 : i32, name = "s4"} : (tensor<f32>) -> ()
  drt.fetch %s5 {join = 1 : i32, name = "s5"} : (tensor<f32>) -> ()
  drt.fetch %s6 {join = 1 : i32, name = "s6"} : (tensor<f32>) -> ()
  drt.fetch %s7 {join = 1 : i32, name = "s7"} : (tensor<f32>) -> ()
}
