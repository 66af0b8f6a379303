// RUN: distc-opt %s --dfg-infer-shapes=batch=8 | FileCheck %s

// How wide each of the parts is that the gradient of a concatenation is split into: TensorFlow's of more than 16 parts.
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x5xf32> loc("x")
  %a = dfg.placeholder : () -> tensor<?x3xf32> loc("a")
  %b = dfg.placeholder : () -> tensor<?x2xf32> loc("b")
  %axis = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %begin = dfg.const dense<[1, 0]> : tensor<2xi32> : tensor<2xi32>
  %size = dfg.const dense<[1, -1]> : tensor<2xi32> : tensor<2xi32>
  %shapes:2 = dfg.shape_n %a, %b : (tensor<?x3xf32>, tensor<?x2xf32>) -> (tensor<2xi32>, tensor<2xi32>)
  %stack = dfg.pack %shapes#0, %shapes#1 {axis = 1 : i64} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  %row = dfg.slice %stack, %begin, %size : (tensor<2x2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xi32>
  %sizes = dfg.squeeze %row : (tensor<?x?xi32>) -> tensor<?xi32>
  // CHECK: dfg.split_v {{.*}} -> (tensor<8x3xf32>, tensor<8x2xf32>)
  %parts:2 = dfg.split_v %x, %sizes, %axis : (tensor<?x5xf32>, tensor<?xi32>, tensor<i32>) -> (tensor<?x?xf32>, tensor<?x?xf32>)
}
