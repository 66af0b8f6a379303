// RUN: distc-opt %s --split-input-file --dfg-cancel-transposes | FileCheck %s

// A chain between two transpositions has the axes of what stands around it: biases are reshaped, axes of reductions are others.
// CHECK-LABEL: dfg.func @chain
dfg.func @chain() -> tensor<8x4x4x16xf32> attributes {dfg.entry = "step", dfg.fetches = ["y:0"], dfg.joins = ["concat"]} {
  // CHECK-NOT: dfg.transpose
  // CHECK: %[[X:.*]] = dfg.placeholder : () -> tensor<8x4x4x16xf32>
  %x = dfg.placeholder : () -> tensor<8x4x4x16xf32> loc("x")
  // CHECK: %[[BIAS:.*]] = dfg.placeholder : () -> tensor<16x1x1xf32>
  %bias = dfg.placeholder : () -> tensor<16x1x1xf32> loc("bias")
  %nchw = dfg.const dense<[0, 3, 1, 2]> : tensor<4xi32> : tensor<4xi32>
  %nhwc = dfg.const dense<[0, 2, 3, 1]> : tensor<4xi32> : tensor<4xi32>
  %axes = dfg.const dense<[0, 2, -1]> : tensor<3xi32> : tensor<3xi32>
  %1 = dfg.transpose %x, %nchw : (tensor<8x4x4x16xf32>, tensor<4xi32>) -> tensor<8x16x4x4xf32>
  // CHECK: %[[ROW:.*]] = dfg.reshape %[[BIAS]], {{.*}} -> tensor<1x1x1x16xf32>
  // CHECK: %[[SUM:.*]] = dfg.add_v2 %[[X]], %[[ROW]]
  %2 = dfg.add_v2 %1, %bias : (tensor<8x16x4x4xf32>, tensor<16x1x1xf32>) -> tensor<8x16x4x4xf32> loc("sum")
  // CHECK: dfg.const dense<[0, 1, 2]> : tensor<3xi32>
  // CHECK: dfg.mean %[[SUM]], {{.*}} {keep_dims = true} : (tensor<8x4x4x16xf32>, tensor<3xi32>) -> tensor<1x1x1x16xf32>
  %m = dfg.mean %2, %axes {keep_dims = true} : (tensor<8x16x4x4xf32>, tensor<3xi32>) -> tensor<1x16x1x1xf32> loc("mean")
  // CHECK: %[[Y:.*]] = dfg.sub %[[SUM]], {{.*}} -> tensor<8x4x4x16xf32>
  %3 = dfg.sub %2, %m : (tensor<8x16x4x4xf32>, tensor<1x16x1x1xf32>) -> tensor<8x16x4x4xf32> loc("sub")
  %4 = dfg.transpose %3, %nhwc : (tensor<8x16x4x4xf32>, tensor<4xi32>) -> tensor<8x4x4x16xf32>
  // CHECK: dfg.return %[[Y]]
  dfg.return %4 : tensor<8x4x4x16xf32>
}

// -----

// Paddings, slices and concatenations as well.
// CHECK-LABEL: dfg.func @layouts
dfg.func @layouts() -> tensor<2x5x4x6xf32> attributes {dfg.entry = "step", dfg.fetches = ["y:0"], dfg.joins = ["concat"]} {
  // CHECK-NOT: dfg.transpose
  %x = dfg.placeholder : () -> tensor<2x4x4x3xf32> loc("x")
  %nchw = dfg.const dense<[0, 3, 1, 2]> : tensor<4xi32> : tensor<4xi32>
  %nhwc = dfg.const dense<[0, 2, 3, 1]> : tensor<4xi32> : tensor<4xi32>
  %1 = dfg.transpose %x, %nchw : (tensor<2x4x4x3xf32>, tensor<4xi32>) -> tensor<2x3x4x4xf32>
  %pads = dfg.const dense<[[0, 0], [0, 0], [1, 2], [0, 0]]> : tensor<4x2xi32> : tensor<4x2xi32>
  // CHECK: dfg.const dense<[0, 0, 1, 2, 0, 0, 0, 0]>
  // CHECK: dfg.pad {{.*}} -> tensor<2x7x4x3xf32>
  %2 = dfg.pad %1, %pads : (tensor<2x3x4x4xf32>, tensor<4x2xi32>) -> tensor<2x3x7x4xf32> loc("pad")
  %begin = dfg.const dense<[0, 0, 2, 0]> : tensor<4xi32> : tensor<4xi32>
  %end = dfg.const dense<[0, 0, 7, 0]> : tensor<4xi32> : tensor<4xi32>
  %steps = dfg.const dense<1> : tensor<4xi32> : tensor<4xi32>
  // CHECK: dfg.const dense<[0, 2, 0, 0]>
  // CHECK: dfg.const dense<[0, 7, 0, 0]>
  // CHECK: dfg.strided_slice {{.*}} {begin_mask = 13 : i64, end_mask = 13 : i64} {{.*}} -> tensor<2x5x4x3xf32>
  %3 = dfg.strided_slice %2, %begin, %end, %steps {begin_mask = 11 : i64, end_mask = 11 : i64} : (tensor<2x3x7x4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<2x3x5x4xf32> loc("slice")
  %axis = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // CHECK: dfg.const dense<3> : tensor<i32>
  // CHECK: %[[Y:.*]] = dfg.concat_v2 {{.*}} -> tensor<2x5x4x6xf32>
  %4 = dfg.concat_v2 %3, %3, %axis : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<i32>) -> tensor<2x6x5x4xf32> loc("concat")
  %5 = dfg.transpose %4, %nhwc : (tensor<2x6x5x4xf32>, tensor<4xi32>) -> tensor<2x5x4x6xf32>
  // CHECK: dfg.return %[[Y]]
  dfg.return %5 : tensor<2x5x4x6xf32>
}

// -----

// A sum that keeps axes in another order is transposed, where that is less than what it is of; a vector's is not.
// CHECK-LABEL: dfg.func @reduced
dfg.func @reduced() -> tensor<16x4xf32> attributes {dfg.entry = "step", dfg.fetches = ["y:0"], dfg.joins = ["concat"]} {
  %x = dfg.placeholder : () -> tensor<8x4x4x16xf32> loc("x")
  %nchw = dfg.const dense<[0, 3, 1, 2]> : tensor<4xi32> : tensor<4xi32>
  %1 = dfg.transpose %x, %nchw : (tensor<8x4x4x16xf32>, tensor<4xi32>) -> tensor<8x16x4x4xf32>
  %2 = dfg.exp %1 : (tensor<8x16x4x4xf32>) -> tensor<8x16x4x4xf32> loc("exp")
  %axes = dfg.const dense<[0, 2]> : tensor<2xi32> : tensor<2xi32>
  // CHECK: dfg.const dense<[0, 1]>
  // CHECK: %[[SUM:.*]] = dfg.sum {{.*}} -> tensor<4x16xf32>
  // CHECK: dfg.transpose %[[SUM]], {{.*}} -> tensor<16x4xf32>
  %3 = dfg.sum %2, %axes : (tensor<8x16x4x4xf32>, tensor<2xi32>) -> tensor<16x4xf32> loc("total")
  dfg.return %3 : tensor<16x4xf32>
}

// -----

// What costs as much stays; so does Select of rows, whose condition names the first axis.
// CHECK-LABEL: dfg.func @stays
dfg.func @stays() -> tensor<4x16x4x8xf32> attributes {dfg.entry = "step", dfg.fetches = ["y:0"], dfg.joins = ["concat"]} {
  %x = dfg.placeholder : () -> tensor<4x4x8x16xf32> loc("x")
  %rows = dfg.placeholder : () -> tensor<4xi1> loc("rows")
  %nchw = dfg.const dense<[0, 3, 1, 2]> : tensor<4xi32> : tensor<4xi32>
  // CHECK: %[[T:.*]] = dfg.transpose
  %1 = dfg.transpose %x, %nchw : (tensor<4x4x8x16xf32>, tensor<4xi32>) -> tensor<4x16x4x8xf32>
  // CHECK: %[[E:.*]] = dfg.exp %[[T]]
  %2 = dfg.exp %1 : (tensor<4x16x4x8xf32>) -> tensor<4x16x4x8xf32> loc("exp")
  // CHECK: dfg.select %{{.*}}, %[[E]], %[[T]] : (tensor<4xi1>
  %3 = dfg.select %rows, %2, %1 : (tensor<4xi1>, tensor<4x16x4x8xf32>, tensor<4x16x4x8xf32>) -> tensor<4x16x4x8xf32>
  dfg.return %3 : tensor<4x16x4x8xf32>
}

// -----

// Two transpositions are one.
// CHECK-LABEL: dfg.func @joined
dfg.func @joined() -> tensor<4x3x2xf32> attributes {dfg.entry = "step", dfg.fetches = ["y:0"], dfg.joins = ["concat"]} {
  // CHECK: %[[X:.*]] = dfg.placeholder
  %x = dfg.placeholder : () -> tensor<2x3x4xf32> loc("x")
  %a = dfg.const dense<[1, 0, 2]> : tensor<3xi32> : tensor<3xi32>
  %b = dfg.const dense<[2, 0, 1]> : tensor<3xi32> : tensor<3xi32>
  %1 = dfg.transpose %x, %a : (tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<3x2x4xf32> loc("first")
  // CHECK: %[[ORDER:.*]] = dfg.const dense<[2, 1, 0]>
  // CHECK: %[[Y:.*]] = dfg.transpose %[[X]], %[[ORDER]]
  // CHECK-NEXT: dfg.return %[[Y]]
  %2 = dfg.transpose %1, %b : (tensor<3x2x4xf32>, tensor<3xi32>) -> tensor<4x3x2xf32> loc("second")
  dfg.return %2 : tensor<4x3x2xf32>
}
