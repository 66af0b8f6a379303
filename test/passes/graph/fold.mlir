// RUN: distc-opt %s --dfg-fold | FileCheck %s
// RUN: distc-opt %s --dfg-fold=graph | FileCheck %s --check-prefix=GRAPH

// CHECK-LABEL: dfg.func @shape_arithmetic
dfg.func @shape_arithmetic() -> (tensor<32xf32>, tensor<i32>) {
  // CHECK-NEXT: %[[X:.*]] = dfg.placeholder
  // CHECK-NEXT: %[[SIZES:.*]] = dfg.const dense<32> : tensor<1xi32>
  // CHECK-NEXT: %[[Y:.*]] = dfg.reshape %[[X]], %[[SIZES]]
  // CHECK-NEXT: %[[COUNT:.*]] = dfg.const dense<32> : tensor<i32>
  // CHECK-NEXT: dfg.return %[[Y]], %[[COUNT]]
  %x = dfg.placeholder : () -> tensor<8x4xf32>
  %s = dfg.shape %x : (tensor<8x4xf32>) -> tensor<2xi32>
  %axes = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
  %sizes = dfg.prod %s, %axes {keep_dims = true} : (tensor<2xi32>, tensor<1xi32>) -> tensor<1xi32>
  %y = dfg.reshape %x, %sizes : (tensor<8x4xf32>, tensor<1xi32>) -> tensor<32xf32>
  %same = dfg.identity %y : (tensor<32xf32>) -> tensor<32xf32>
  %count = dfg.size %y : (tensor<32xf32>) -> tensor<i32>
  dfg.return %same, %count : tensor<32xf32>, tensor<i32>
}

// A graph leaves as its author wrote it, unless asked.
// CHECK-LABEL: dfg.graph
// GRAPH-LABEL: dfg.graph
dfg.graph {
  %x = dfg.placeholder : () -> tensor<8x4xf32>
  // CHECK: dfg.neg
  // GRAPH-NOT: dfg.neg
  %unused = dfg.neg %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
}

// The inverse of a permutation of axes, once the permutation is known.
// CHECK-LABEL: dfg.func @inverse
dfg.func @inverse() -> tensor<5x7x3xf32> {
  // CHECK-NEXT: %[[X:.*]] = dfg.placeholder
  // CHECK-NEXT: %[[PERM:.*]] = dfg.const dense<[2, 0, 1]> : tensor<3xi32>
  // CHECK-NEXT: dfg.transpose %[[X]], %[[PERM]]
  %x = dfg.placeholder : () -> tensor<7x3x5xf32>
  %yes = dfg.const dense<true> : tensor<i1> : tensor<i1>
  %p = dfg.const dense<[1, 2, 0]> : tensor<3xi32> : tensor<3xi32>
  %q = dfg.const dense<[0, 1, 2]> : tensor<3xi32> : tensor<3xi32>
  %perm = dfg.select_v2 %yes, %p, %q : (tensor<i1>, tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  %positions = dfg.const dense<[0, 1, 2]> : tensor<3xi32> : tensor<3xi32>
  %three = dfg.const dense<3> : tensor<i32> : tensor<i32>
  %inverse = dfg.unsorted_segment_sum %positions, %perm, %three : (tensor<3xi32>, tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %y = dfg.transpose %x, %inverse : (tensor<7x3x5xf32>, tensor<3xi32>) -> tensor<5x7x3xf32>
  dfg.return %y : tensor<5x7x3xf32>
}

// How many bins there are: at most and at least three.
// CHECK-LABEL: dfg.func @bins
dfg.func @bins() -> tensor<i32> {
  // CHECK: %[[BINS:.*]] = dfg.const dense<3> : tensor<i32>
  // CHECK-NEXT: dfg.return %[[BINS]]
  %labels = dfg.placeholder : () -> tensor<8xi32>
  %rows = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
  %three = dfg.const dense<3> : tensor<i32> : tensor<i32>
  %last = dfg.max %labels, %rows : (tensor<8xi32>, tensor<1xi32>) -> tensor<i32>
  %least = dfg.maximum %three, %last : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %bins = dfg.minimum %three, %least : (tensor<i32>, tensor<i32>) -> tensor<i32>
  dfg.return %bins : tensor<i32>
}

// Elements that are known are what the operations make of them: sums, quotients rounded towards zero, truth values.
// CHECK-LABEL: dfg.func @elements
dfg.func @elements() -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3x1xi32>) {
  %x = dfg.const dense<[3, -7, 2]> : tensor<3xi32> : tensor<3xi32>
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  // CHECK-DAG: %[[SUMS:.*]] = dfg.const dense<[-5, 2, 0]> : tensor<3xi32>
  %sums = dfg.cumsum %x, %zero {exclusive = true, reverse = true} : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  // CHECK-DAG: %[[HALVES:.*]] = dfg.const dense<[1, -3, 1]> : tensor<3xi32>
  %halves = dfg.truncate_div %x, %two : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  // CHECK-DAG: %[[TRUE:.*]] = dfg.const dense<1> : tensor<3xi32>
  %truth = dfg.cast %x : (tensor<3xi32>) -> tensor<3xi1>
  %ones = dfg.cast %truth : (tensor<3xi1>) -> tensor<3xi32>
  // What does not fit is not followed: it is computed as the program would.
  // CHECK-DAG: %[[NARROW:.*]] = dfg.cast %{{.*}} : (tensor<3xi32>) -> tensor<3xi8>
  // CHECK-DAG: %[[WRAPPED:.*]] = dfg.cast %[[NARROW]]
  %large = dfg.const dense<[300, 1, 2]> : tensor<3xi32> : tensor<3xi32>
  %narrow = dfg.cast %large : (tensor<3xi32>) -> tensor<3xi8>
  %wrapped = dfg.cast %narrow : (tensor<3xi8>) -> tensor<3xi32>
  // Nor are those of a scan of more axes.
  // CHECK-DAG: %[[SCANNED:.*]] = dfg.cumsum
  %column = dfg.const dense<[[3], [1], [2]]> : tensor<3x1xi32> : tensor<3x1xi32>
  %scanned = dfg.cumsum %column, %zero : (tensor<3x1xi32>, tensor<i32>) -> tensor<3x1xi32>
  // CHECK: dfg.return %[[SUMS]], %[[HALVES]], %[[TRUE]], %[[WRAPPED]], %[[SCANNED]]
  dfg.return %sums, %halves, %ones, %wrapped, %scanned : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3x1xi32>
}
