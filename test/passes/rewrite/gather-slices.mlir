// RUN: distc-opt %s --dfg-gather-slices --split-input-file | FileCheck %s

// Of images the second axis alone: of the examples all are taken.
// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder
// CHECK: %[[BEGIN:.*]] = dfg.placeholder
// CHECK: %[[PLACE:.*]] = dfg.strided_slice %[[BEGIN]]
// CHECK: %[[POSITIONS:.*]] = dfg.add_v2 %[[PLACE]], {{.*}} -> tensor<4xi32>
// CHECK: dfg.gather_v2 %[[X]], %[[POSITIONS]], {{.*}} -> tensor<?x4xf32>
// CHECK-NOT: dfg.slice
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<?x8xf32> loc("x")
  %begin = dfg.placeholder : () -> tensor<2xi32> loc("begin")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %four = dfg.const dense<4> : tensor<i32> : tensor<i32> loc("four")
  %shape = dfg.shape %x : (tensor<?x8xf32>) -> tensor<2xi32> loc("shape")
  %n = dfg.gather_v2 %shape, %zero, %zero : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("n")
  %size = dfg.pack %n, %four : (tensor<i32>, tensor<i32>) -> tensor<2xi32> loc("size")
  %y = dfg.slice %x, %begin, %size : (tensor<?x8xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32> loc("y")
}

// -----

// A size that data decide, too, stays.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.slice
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
  %begin = dfg.placeholder : () -> tensor<1xi32> loc("begin")
  %size = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("size")
  %y = dfg.slice %x, %begin, %size : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32> loc("y")
}
