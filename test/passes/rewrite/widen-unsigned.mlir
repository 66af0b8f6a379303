// RUN: distc-opt %s --dfg-widen-unsigned --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A feed of bytes is one of bytes still, its numbers are cut to what they are; what may go beyond them wraps around.
// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder {dfg.unsigned} : () -> tensor<?x6xi8> loc("x")
// CHECK: %[[WIDE:.*]] = dfg.cast %[[X]] : (tensor<?x6xi8>) -> tensor<?x6xi32> loc("x/wide")
// CHECK: %[[BYTES:.*]] = dfg.bitwise_and %[[WIDE]], %{{.*}} : (tensor<?x6xi32>, tensor<i32>) -> tensor<?x6xi32> loc("x/unsigned")
// CHECK: %[[C:.*]] = dfg.const dense<200> : tensor<i32>
// CHECK: %[[SUM:.*]] = dfg.add_v2 %[[BYTES]], %[[C]] : (tensor<?x6xi32>, tensor<i32>) -> tensor<?x6xi32> loc("sum")
// CHECK: %[[LOW:.*]] = dfg.bitwise_and %[[SUM]], %{{.*}} loc("sum/unsigned")
// CHECK: %[[MOST:.*]] = dfg.maximum %[[LOW]], %[[BYTES]] : (tensor<?x6xi32>, tensor<?x6xi32>) -> tensor<?x6xi32>
// CHECK: dfg.cast %[[MOST]] : (tensor<?x6xi32>) -> tensor<?x6xf32>
// CHECK: dfg.less %[[BYTES]], %[[C]] : (tensor<?x6xi32>, tensor<i32>) -> tensor<?x6xi1>
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x6xui8> loc("x")
  %c = dfg.const dense<200> : tensor<ui8> : tensor<ui8> loc("c")
  %sum = dfg.add_v2 %x, %c : (tensor<?x6xui8>, tensor<ui8>) -> tensor<?x6xui8> loc("sum")
  %most = dfg.maximum %sum, %x : (tensor<?x6xui8>, tensor<?x6xui8>) -> tensor<?x6xui8> loc("most")
  %y = dfg.cast %most : (tensor<?x6xui8>) -> tensor<?x6xf32> loc("y")
  %l = dfg.less %x, %c : (tensor<?x6xui8>, tensor<ui8>) -> tensor<?x6xi1> loc("l")
}

// -----

// 32 bits are held by 64.
// CHECK-LABEL: dfg.graph
// CHECK: %[[CAST:.*]] = dfg.cast %{{.*}} : (tensor<4xf32>) -> tensor<4xi64> loc("u")
// CHECK: dfg.const dense<4294967295> : tensor<i64>
// CHECK: %[[U:.*]] = dfg.bitwise_and %[[CAST]]
// CHECK: dfg.cast %[[U]] : (tensor<4xi64>) -> tensor<4xf32>
dfg.graph {
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  %u = dfg.cast %x : (tensor<4xf32>) -> tensor<4xui32> loc("u")
  %y = dfg.cast %u : (tensor<4xui32>) -> tensor<4xf32> loc("y")
}

// -----

// What is not known, and all that it is made of with no conversion between, stays.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.placeholder : () -> tensor<4xui8>
// CHECK: dfg.opaque "Population"{{.*}} : (tensor<4xui8>) -> tensor<4xui8>
// CHECK: dfg.cast {{.*}} : (tensor<4xui8>) -> tensor<4xi32>
dfg.graph {
  %x = dfg.placeholder : () -> tensor<4xui8> loc("x")
  %p = dfg.opaque "Population"(%x) : (tensor<4xui8>) -> tensor<4xui8> loc("p")
  %y = dfg.cast %p : (tensor<4xui8>) -> tensor<4xi32> loc("y")
}

// -----

// What arranges elements, adds them up, or looks at them alone.
// CHECK-LABEL: dfg.graph
// CHECK: %[[BYTES:.*]] = dfg.bitwise_and {{.*}} loc("x/unsigned")
// CHECK: dfg.resize_bilinear %[[BYTES]], %{{.*}} : (tensor<?x4x4x3xi32>, tensor<2xi32>) -> tensor<?x8x8x3xf32>
// CHECK: dfg.space_to_depth %[[BYTES]] {{.*}} : (tensor<?x4x4x3xi32>) -> tensor<?x2x2x12xi32>
// CHECK: %[[SUM:.*]] = dfg.sum %[[BYTES]]
// CHECK: dfg.bitwise_and %[[SUM]]
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x4x4x3xui8> loc("x")
  %size = dfg.const dense<8> : tensor<2xi32> : tensor<2xi32>
  %large = dfg.resize_bilinear %x, %size {align_corners = false, half_pixel_centers = true} : (tensor<?x4x4x3xui8>, tensor<2xi32>) -> tensor<?x8x8x3xf32> loc("large")
  %deep = dfg.space_to_depth %x {block_size = 2 : i64, data_format = "NHWC"} : (tensor<?x4x4x3xui8>) -> tensor<?x2x2x12xui8> loc("deep")
  %axes = dfg.const dense<3> : tensor<1xi32> : tensor<1xi32>
  %sum = dfg.sum %x, %axes : (tensor<?x4x4x3xui8>, tensor<1xi32>) -> tensor<?x4x4xui8> loc("sum")
}

// -----

// In every form that an operation has.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.concat %{{.*}}, %{{.*}} : (tensor<i32>, tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x8xi32>
// CHECK: dfg.matrix_diag_part %{{.*}} : (tensor<4x4xi32>) -> tensor<4xi32>
// CHECK: dfg.unique_with_counts %{{.*}} : (tensor<4xi32>) -> (tensor<?xi32>, tensor<4xi32>, tensor<?xi32>)
// CHECK: dfg.batch_to_space_nd %{{.*}} : (tensor<4x4xi32>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<2x8xi32>
dfg.graph {
  %x = dfg.placeholder : () -> tensor<4x4xui8> loc("x")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %joined = dfg.concat %one, %x, %x : (tensor<i32>, tensor<4x4xui8>, tensor<4x4xui8>) -> tensor<4x8xui8> loc("joined")
  %diagonal = dfg.matrix_diag_part %x : (tensor<4x4xui8>) -> tensor<4xui8> loc("diagonal")
  %y, %idx, %count = dfg.unique_with_counts %diagonal : (tensor<4xui8>) -> (tensor<?xui8>, tensor<4xi32>, tensor<?xi32>) loc("distinct")
  %block = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32>
  %crops = dfg.const dense<0> : tensor<1x2xi32> : tensor<1x2xi32>
  %space = dfg.batch_to_space_nd %x, %block, %crops : (tensor<4x4xui8>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<2x8xui8> loc("space")
}

// -----

// Counts of bits are small numbers, whatever the bits are of.
// CHECK-LABEL: dfg.graph
// CHECK: %[[A:.*]] = dfg.population_count %{{.*}} : (tensor<4xi16>) -> tensor<4xi32> loc("a")
// CHECK: %[[WIDE:.*]] = dfg.bitwise_and {{.*}} loc("bytes/unsigned")
// CHECK: %[[B:.*]] = dfg.population_count %[[WIDE]] : (tensor<4xi32>) -> tensor<4xi32> loc("b")
// CHECK: %[[MOST:.*]] = dfg.maximum %[[A]], %[[B]] : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK: dfg.cast %[[MOST]] : (tensor<4xi32>) -> tensor<4xf32>
dfg.graph {
  %x = dfg.placeholder : () -> tensor<4xi16> loc("x")
  %a = dfg.population_count %x : (tensor<4xi16>) -> tensor<4xui8> loc("a")
  %bytes = dfg.placeholder : () -> tensor<4xui8> loc("bytes")
  %b = dfg.population_count %bytes : (tensor<4xui8>) -> tensor<4xui8> loc("b")
  %most = dfg.maximum %a, %b : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8> loc("most")
  %y = dfg.cast %most : (tensor<4xui8>) -> tensor<4xf32> loc("y")
}
