// RUN: distc-opt %s --dfg-divide-convolutions --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A channel a group: depthwise convolutions, by the same names.
dfg.graph {
  // CHECK: %[[X:.*]] = dfg.placeholder {{.*}}tensor<?x8x8x4xf32>
  %x = dfg.placeholder : () -> tensor<?x8x8x4xf32> loc("x")
  // CHECK: %[[F:.*]] = dfg.placeholder {{.*}}tensor<3x3x1x8xf32>
  %f = dfg.placeholder : () -> tensor<3x3x1x8xf32> loc("f")
  %dy = dfg.placeholder : () -> tensor<?x8x8x8xf32> loc("dy")
  // CHECK: %[[EACH:.*]] = dfg.reshape %[[F]], {{.*}} -> tensor<3x3x4x2xf32>
  // CHECK: dfg.depthwise_conv_2d_native %[[X]], %[[EACH]] {control = ["dy"], {{.*}}padding = "SAME"{{.*}}} {{.*}} -> tensor<?x8x8x8xf32> loc("y")
  %y = dfg.conv_2d %x, %f {control = ["dy"], strides = [1, 1, 1, 1], padding = "SAME", tf = {_XlaMustCompile = true}} : (tensor<?x8x8x4xf32>, tensor<3x3x1x8xf32>) -> tensor<?x8x8x8xf32> loc("y")
  %s = dfg.shape %x : (tensor<?x8x8x4xf32>) -> tensor<4xi32> loc("s")
  // CHECK: dfg.depthwise_conv_2d_native_backprop_input %{{.*}} -> tensor<?x8x8x4xf32> loc("dx")
  %dx = dfg.conv_2d_backprop_input %s, %f, %dy {strides = [1, 1, 1, 1], padding = "SAME", tf = {_XlaMustCompile = true}} : (tensor<4xi32>, tensor<3x3x1x8xf32>, tensor<?x8x8x8xf32>) -> tensor<?x8x8x4xf32> loc("dx")
  %fs = dfg.const dense<[3, 3, 1, 8]> : tensor<4xi32> : tensor<4xi32> loc("fs")
  // CHECK: dfg.const dense<[3, 3, 4, 2]>
  // CHECK: %[[DF:.*]] = dfg.depthwise_conv_2d_native_backprop_filter {{.*}} -> tensor<3x3x4x2xf32>
  // CHECK: dfg.reshape %[[DF]], {{.*}} -> tensor<3x3x1x8xf32> loc("df")
  %df = dfg.conv_2d_backprop_filter %x, %fs, %dy {strides = [1, 1, 1, 1], padding = "SAME", tf = {_XlaMustCompile = true}} : (tensor<?x8x8x4xf32>, tensor<4xi32>, tensor<?x8x8x8xf32>) -> tensor<3x3x1x8xf32> loc("df")
}

// Two channels a group: a convolution a group.
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x8x8x4xf32> loc("x")
  %f = dfg.placeholder : () -> tensor<3x3x2x6xf32> loc("f")
  %dy = dfg.placeholder : () -> tensor<?x8x8x6xf32> loc("dy")
  // CHECK: dfg.strided_slice {{.*}} -> tensor<3x3x2x3xf32>
  // CHECK: dfg.strided_slice {{.*}} -> tensor<?x8x8x2xf32>
  // CHECK: dfg.conv_2d {{.*}} -> tensor<?x8x8x3xf32>
  // CHECK: dfg.conv_2d {{.*}} -> tensor<?x8x8x3xf32>
  // CHECK: dfg.concat_v2 {{.*}} -> tensor<?x8x8x6xf32> loc("y")
  %y = dfg.conv_2d %x, %f {strides = [1, 1, 1, 1], padding = "SAME", tf = {_XlaMustCompile = true}} : (tensor<?x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<?x8x8x6xf32> loc("y")
  %s = dfg.shape %x : (tensor<?x8x8x4xf32>) -> tensor<4xi32> loc("s")
  // CHECK: dfg.floor_div
  // CHECK: dfg.conv_2d_backprop_input {{.*}} -> tensor<?x8x8x2xf32>
  // CHECK: dfg.concat_v2 {{.*}} loc("dx")
  %dx = dfg.conv_2d_backprop_input %s, %f, %dy {strides = [1, 1, 1, 1], padding = "SAME", tf = {_XlaMustCompile = true}} : (tensor<4xi32>, tensor<3x3x2x6xf32>, tensor<?x8x8x6xf32>) -> tensor<?x8x8x4xf32> loc("dx")
  %fs = dfg.const dense<[3, 3, 2, 6]> : tensor<4xi32> : tensor<4xi32> loc("fs")
  // CHECK-COUNT-2: dfg.conv_2d_backprop_filter {{.*}} -> tensor<3x3x2x3xf32>
  // CHECK: dfg.concat_v2 {{.*}} -> tensor<3x3x2x6xf32> loc("df")
  %df = dfg.conv_2d_backprop_filter %x, %fs, %dy {strides = [1, 1, 1, 1], padding = "SAME", tf = {_XlaMustCompile = true}} : (tensor<?x8x8x4xf32>, tensor<4xi32>, tensor<?x8x8x6xf32>) -> tensor<3x3x2x6xf32> loc("df")
  // What XLA was not to compile stays, and so does what has no groups.
  // CHECK: dfg.conv_2d %{{.*}} loc("gpu")
  %gpu = dfg.conv_2d %x, %f {strides = [1, 1, 1, 1], padding = "SAME"} : (tensor<?x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<?x8x8x6xf32> loc("gpu")
  %whole = dfg.placeholder : () -> tensor<3x3x4x6xf32> loc("whole")
  // CHECK: dfg.conv_2d %{{.*}} loc("plain")
  %plain = dfg.conv_2d %x, %whole {strides = [1, 1, 1, 1], padding = "SAME", tf = {_XlaMustCompile = true}} : (tensor<?x8x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<?x8x8x6xf32> loc("plain")
  // CHECK-NOT: _XlaMustCompile
}
