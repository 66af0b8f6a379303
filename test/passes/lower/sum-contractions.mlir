// RUN: distc-opt %s --drt-sum-contractions | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// A loop's sum, which began with zeros: one operation of all iterations' operands, in their order.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[X0:.*]] = drt.feed
// CHECK: %[[X1:.*]] = drt.feed
// CHECK: %[[X2:.*]] = drt.feed
// CHECK: %[[Y0:.*]] = drt.feed
// CHECK: %[[Y1:.*]] = drt.feed
// CHECK: %[[Y2:.*]] = drt.feed
// CHECK-NOT: drt.matmul %
// CHECK: %[[G:.*]] = drt.matmul_sum %[[X0]], %[[X1]], %[[X2]], %[[Y0]], %[[Y1]], %[[Y2]]
// CHECK-NEXT: drt.fetch %[[G]]
drt.entry "step" {
  %x0 = drt.feed {name = "x0"} : () -> tensor<4x3xf32>
  %x1 = drt.feed {name = "x1"} : () -> tensor<4x3xf32>
  %x2 = drt.feed {name = "x2"} : () -> tensor<4x3xf32>
  %y0 = drt.feed {name = "y0"} : () -> tensor<4x5xf32>
  %y1 = drt.feed {name = "y1"} : () -> tensor<4x5xf32>
  %y2 = drt.feed {name = "y2"} : () -> tensor<4x5xf32>
  %empty = tensor.empty() : tensor<3x5xf32>
  %p0 = drt.matmul %x0, %y0 {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p0 : tensor<3x5xf32>) outs(%empty : tensor<3x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %sum = arith.addf %zero, %a : f32
    linalg.yield %sum : f32
  } -> tensor<3x5xf32>
  %p1 = drt.matmul %x1, %y1 {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %p2 = drt.matmul %x2, %y2 {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %p1, %p2 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) outs(%empty : tensor<3x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %two = arith.addf %a, %b : f32
    %sum = arith.addf %two, %c : f32
    linalg.yield %sum : f32
  } -> tensor<3x5xf32>
  drt.fetch %1 {join = 0 : i32, name = "1"} : (tensor<3x5xf32>) -> ()
}

// Other terms are added to it: a penalty's gradient, a product of other shapes, one that something else reads.
// CHECK-LABEL: drt.entry "update"
// CHECK: %[[W:.*]] = drt.feed {name = "w"}
// CHECK-DAG: %[[READ:.*]] = drt.matmul %{{.*}}, %{{.*}} {transpose_a} : (tensor<4x3xf32>
// CHECK-DAG: %[[LONG:.*]] = drt.matmul %{{.*}}, %{{.*}} {transpose_a} : (tensor<8x3xf32>
// CHECK: %[[G:.*]] = drt.matmul_sum
// CHECK-SAME: (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
// CHECK: linalg.generic {{.*}} ins(%[[W]], %[[READ]] :
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[G]] :
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[LONG]] :
drt.entry "update" {
  %x = drt.feed {name = "x"} : () -> tensor<4x3xf32>
  %y = drt.feed {name = "y"} : () -> tensor<4x5xf32>
  %l = drt.feed {name = "l"} : () -> tensor<8x3xf32>
  %m = drt.feed {name = "m"} : () -> tensor<8x5xf32>
  %w = drt.feed {name = "w"} : () -> tensor<3x5xf32>
  %empty = tensor.empty() : tensor<3x5xf32>
  %p0 = drt.matmul %x, %y {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %p1 = drt.matmul %x, %y {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %p2 = drt.matmul %x, %y {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %p3 = drt.matmul %l, %m {transpose_a} : (tensor<8x3xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %p0, %p1, %p2, %p3 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) outs(%empty : tensor<3x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32, %out: f32):
    %1 = arith.addf %a, %b : f32
    %2 = arith.addf %1, %c : f32
    %3 = arith.addf %2, %d : f32
    %4 = arith.addf %3, %e : f32
    linalg.yield %4 : f32
  } -> tensor<3x5xf32>
  drt.fetch %0 {join = 0 : i32, name = "0"} : (tensor<3x5xf32>) -> ()
  drt.fetch %p2 {join = 0 : i32, name = "p2"} : (tensor<3x5xf32>) -> ()
}

// No sums of gradients: a bias, a forward product, a difference.
// CHECK-LABEL: drt.entry "eval"
// CHECK-NOT: drt.matmul_sum
// CHECK: drt.fetch
drt.entry "eval" {
  %x = drt.feed {name = "x"} : () -> tensor<4x3xf32>
  %y = drt.feed {name = "y"} : () -> tensor<4x5xf32>
  %w = drt.feed {name = "w"} : () -> tensor<3x5xf32>
  %b = drt.feed {name = "b"} : () -> tensor<5xf32>
  %empty = tensor.empty() : tensor<3x5xf32>
  %p0 = drt.matmul %x, %y {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%p0, %b : tensor<3x5xf32>, tensor<5xf32>) outs(%empty : tensor<3x5xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %sum = arith.addf %a, %c : f32
    linalg.yield %sum : f32
  } -> tensor<3x5xf32>
  %rows = tensor.empty() : tensor<4x5xf32>
  %f0 = drt.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %f1 = drt.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%f0, %f1 : tensor<4x5xf32>, tensor<4x5xf32>) outs(%rows : tensor<4x5xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %sum = arith.addf %a, %c : f32
    linalg.yield %sum : f32
  } -> tensor<4x5xf32>
  %p1 = drt.matmul %x, %y {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %p2 = drt.matmul %x, %y {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p1, %p2 : tensor<3x5xf32>, tensor<3x5xf32>) outs(%empty : tensor<3x5xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %difference = arith.subf %a, %c : f32
    linalg.yield %difference : f32
  } -> tensor<3x5xf32>
  drt.fetch %0 {join = 0 : i32, name = "0"} : (tensor<3x5xf32>) -> ()
  drt.fetch %1 {join = 0 : i32, name = "1"} : (tensor<4x5xf32>) -> ()
  drt.fetch %2 {join = 0 : i32, name = "2"} : (tensor<3x5xf32>) -> ()
}
