// RUN: distc-opt %s --dfg-inline-calls | FileCheck %s

// A convolution of a function that XLA compiles says so; others, and other operations, do not.
dfg.func @convolve(%x: tensor<?x8x8x4xf32>, %f: tensor<3x3x1x4xf32>) -> tensor<?x8x8x4xf32> {
  %y = dfg.conv_2d %x, %f {strides = [1, 1, 1, 1], padding = "SAME"} : (tensor<?x8x8x4xf32>, tensor<3x3x1x4xf32>) -> tensor<?x8x8x4xf32> loc("conv")
  %z = dfg.neg %y : (tensor<?x8x8x4xf32>) -> tensor<?x8x8x4xf32> loc("neg")
  dfg.return %z : tensor<?x8x8x4xf32>
}
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x8x8x4xf32> loc("x")
  %f = dfg.placeholder : () -> tensor<3x3x1x4xf32> loc("f")
  // CHECK: #[[COMPILED:.*]] = {_XlaMustCompile = true}
  // CHECK: dfg.conv_2d %{{.*}} {padding = "SAME", strides = [1, 1, 1, 1], tf = #[[COMPILED]]}
  // CHECK: dfg.neg %{{[^ ]*}} : (tensor
  %a = dfg.call @convolve(%x, %f) {tf = {_XlaMustCompile = true}} : (tensor<?x8x8x4xf32>, tensor<3x3x1x4xf32>) -> tensor<?x8x8x4xf32> loc("a")
  // CHECK: dfg.conv_2d %{{.*}} {padding = "SAME", strides = [1, 1, 1, 1]}
  %b = dfg.call @convolve(%x, %f) {tf = {_XlaMustCompile = false}} : (tensor<?x8x8x4xf32>, tensor<3x3x1x4xf32>) -> tensor<?x8x8x4xf32> loc("b")
}
