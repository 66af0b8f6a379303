// RUN: distc-opt %s --split-input-file --drt-merge-loops | FileCheck %s

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// One loop over all elements.
// CHECK-LABEL: @elements
// CHECK-SAME: %[[X:.*]]: memref<2x3x5xf32>, %[[Y:.*]]: memref<2x3x5xf32>
// CHECK-DAG: %[[A:.*]] = memref.collapse_shape %[[X]] {{\[}}[0, 1, 2]] : memref<2x3x5xf32> into memref<30xf32>
// CHECK-DAG: %[[B:.*]] = memref.collapse_shape %[[Y]] {{\[}}[0, 1, 2]] : memref<2x3x5xf32> into memref<30xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["parallel"]} ins(%[[A]] : memref<30xf32>) outs(%[[B]] : memref<30xf32>)
drt.kernel @elements(%x: memref<2x3x5xf32>, %y: memref<2x3x5xf32>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<2x3x5xf32>) outs(%y : memref<2x3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  }
  drt.return
}

// -----

#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (0, d3)>

// A number for each channel is read again in every row: rows are one loop, channels another.
// CHECK-DAG: #[[CHANNEL:.*]] = affine_map<(d0, d1) -> (0, d1)>
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: @channels
// CHECK-SAME: %[[X:.*]]: memref<2x3x5x7xf32>, %[[C:.*]]: memref<1x7xf32>
// CHECK-DAG: memref.collapse_shape %{{.*}} {{\[}}[0, 1, 2], [3]] : memref<2x3x5x7xf32> into memref<30x7xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], #[[CHANNEL]], #[[ALL]]], iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %[[C]] : memref<30x7xf32>, memref<1x7xf32>)
drt.kernel @channels(%x: memref<2x3x5x7xf32>, %c: memref<1x7xf32>, %y: memref<2x3x5x7xf32>) {
  linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %c : memref<2x3x5x7xf32>, memref<1x7xf32>) outs(%y : memref<2x3x5x7xf32>) {
  ^bb0(%in: f32, %scale: f32, %out: f32):
    %0 = arith.mulf %in, %scale : f32
    linalg.yield %0 : f32
  }
  drt.return
}

// -----

#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#kept = affine_map<(d0, d1, d2, d3) -> (d0, d1)>

// Sums are added up in the order that they had.
// CHECK-LABEL: @sums
// CHECK: %[[FILLED:.*]] = memref.collapse_shape %{{.*}} {{\[}}[0, 1]] : memref<2x3xf32> into memref<6xf32>
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[FILLED]] : memref<6xf32>)
// CHECK: memref.collapse_shape %{{.*}} {{\[}}[0, 1], [2], [3]] : memref<2x3x5x7xf32> into memref<6x5x7xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction"]
drt.kernel @sums(%x: memref<2x3x5x7xf32>, %y: memref<2x3xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<2x3xf32>)
  linalg.generic {indexing_maps = [#all, #kept], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : memref<2x3x5x7xf32>) outs(%y : memref<2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  drt.return
}

// -----

#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#column = affine_map<(d0, d1, d2, d3) -> (d3)>

// Of columns whole rows are added up, in the same order.
// CHECK-LABEL: @columns
// CHECK: memref.collapse_shape %{{.*}} {{\[}}[0, 1, 2], [3]] : memref<2x3x5x7xf32> into memref<30x7xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]
drt.kernel @columns(%x: memref<2x3x5x7xf32>, %y: memref<7xf32>) {
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "reduction", "reduction", "parallel"]} ins(%x : memref<2x3x5x7xf32>) outs(%y : memref<7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  drt.return
}

// -----

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#turned = affine_map<(d0, d1, d2) -> (d2, d0, d1)>
#diagonal = affine_map<(d0, d1, d2) -> (d0, d0, d1, d2)>

// What is read in another order has the loops of that order, those side by side in both are one.
// CHECK-LABEL: @turned
// CHECK-DAG: memref.collapse_shape %{{.*}} {{\[}}[0], [1, 2]] : memref<5x2x3xf32> into memref<5x6xf32>
// CHECK-DAG: memref.collapse_shape %{{.*}} {{\[}}[0, 1], [2]] : memref<2x3x5xf32> into memref<6x5xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// A diagonal is no longer axis; what asks for a counter has its loop.
// CHECK: memref.collapse_shape %{{.*}} {{\[}}[0], [1], [2, 3]] : memref<2x2x3x5xf32> into memref<2x2x15xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: linalg.index 1
drt.kernel @turned(%x: memref<5x2x3xf32>, %d: memref<2x2x3x5xf32>, %y: memref<2x3x5xf32>, %z: memref<2x3x5xf32>, %n: memref<2x3x5xi64>) {
  linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<5x2x3xf32>) outs(%y : memref<2x3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#diagonal, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%d : memref<2x2x3x5xf32>) outs(%z : memref<2x3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]} outs(%n : memref<2x3x5xi64>) {
  ^bb0(%out: i64):
    %place = linalg.index 2 : index
    %0 = arith.index_cast %place : index to i64
    linalg.yield %0 : i64
  }
  drt.return
}
