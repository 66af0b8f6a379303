// RUN: distc-opt %s --dfg-infer-shapes --split-input-file --verify-diagnostics

// What TensorFlow refuses when it infers shapes, or when its kernels run.

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<2x3xf32> : tensor<2x3xf32>
  %a = dfg.const dense<2> : tensor<i32> : tensor<i32>
  // expected-error @below {{axis 2 is outside of a tensor of rank 2}}
  %0 = dfg.cumsum %x, %a : (tensor<2x3xf32>, tensor<i32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<2x3xf32> : tensor<2x3xf32>
  %a = dfg.const dense<[1, -1]> : tensor<2xi32> : tensor<2xi32>
  // expected-error @below {{names axis 1 twice}}
  %0 = dfg.reverse_v2 %x, %a : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<2x3xf32> : tensor<2x3xf32>
  %a = dfg.const dense<[0, 0]> : tensor<2xi32> : tensor<2xi32>
  // expected-error @below {{names axis 0 twice}}
  %0 = dfg.transpose %x, %a : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %a = dfg.const dense<[2, -3]> : tensor<2xi32> : tensor<2xi32>
  // expected-error @below {{makes a tensor with an axis of size -3}}
  %0 = dfg.fill %a, %x : (tensor<2xi32>, tensor<f32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %a = dfg.const dense<[2147483647, 2147483647, 2147483647]> : tensor<3xi32> : tensor<3xi32>
  // expected-error @below {{larger than memory can hold}}
  %0 = dfg.fill %a, %x : (tensor<3xi32>, tensor<f32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %a = dfg.const dense<1> : tensor<2x1xi32> : tensor<2x1xi32>
  // expected-error @below {{takes operand 0 of shape [2, 1], which must be a vector of sizes}}
  %0 = dfg.fill %a, %x : (tensor<2x1xi32>, tensor<f32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<2x3xf32> : tensor<2x3xf32>
  %a = dfg.const dense<1> : tensor<3000000000xi32> : tensor<3000000000xi32>
  // expected-error @below {{gives 3000000000 axes to a tensor, which can have 254}}
  %0 = dfg.reshape %x, %a : (tensor<2x3xf32>, tensor<3000000000xi32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<2x3xf32> : tensor<2x3xf32>
  %a = dfg.const dense<[3, 2]> : tensor<2xi32> : tensor<2xi32>
  // expected-error @below {{cannot broadcast shape [2, 3] to [3, 2]}}
  %0 = dfg.broadcast_to %x, %a : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<2x3xf32> : tensor<2x3xf32>
  %s = dfg.const dense<[2, 2]> : tensor<2xi32> : tensor<2xi32>
  %a = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // expected-error @below {{splits axis 1 of shape [2, 3] into parts of sizes [2, 2]}}
  %0:2 = dfg.split_v %x, %s, %a : (tensor<2x3xf32>, tensor<2xi32>, tensor<i32>) -> (tensor<*xf32>, tensor<*xf32>)
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32>
  %y = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32>
  // expected-error @below {{stacks shapes [2] and [3]}}
  %0 = dfg.pack %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32>
  // expected-error @below {{unstacks axis 0 of shape [3] as 2 tensors}}
  %0:2 = dfg.unpack %x : (tensor<3xf32>) -> (tensor<*xf32>, tensor<*xf32>)
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32>
  %b = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32>
  %s = dfg.const dense<[3]> : tensor<1xi32> : tensor<1xi32>
  // expected-error @below {{takes a slice that begins at [1] and is of shape [3] from shape [3]}}
  %0 = dfg.slice %x, %b, %s : (tensor<3xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32>
  %b = dfg.const dense<[3]> : tensor<1xi32> : tensor<1xi32>
  %e = dfg.const dense<[4]> : tensor<1xi32> : tensor<1xi32>
  %s = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32>
  // expected-error @below {{takes a slice that does not fit shape [3]}}
  %0 = dfg.strided_slice %x, %b, %e, %s {shrink_axis_mask = 1} : (tensor<3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<[3]> : tensor<1xi32> : tensor<1xi32>
  %b = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32>
  %e = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
  %s = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32>
  %dy = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32>
  // expected-error @below {{takes a gradient of shape [2] of a slice of shape [1]}}
  %0 = dfg.strided_slice_grad %x, %b, %e, %s, %dy : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<2xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32>
  %p = dfg.const dense<[[-1, 0]]> : tensor<1x2xi32> : tensor<1x2xi32>
  // expected-error @below {{makes a tensor with an axis of size -1}}
  %0 = dfg.pad %x, %p : (tensor<3xf32>, tensor<1x2xi32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<4x1xf32> : tensor<4x1xf32>
  %y = dfg.const dense<1.0> : tensor<4xf32> : tensor<4xf32>
  // expected-error @below {{takes operands of shapes [4, 1] and [4], which must be equal}}
  %0 = dfg.relu_grad %x, %y : (tensor<4x1xf32>, tensor<4xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %c = dfg.const dense<true> : tensor<i1> : tensor<i1>
  %x = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32>
  %y = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32>
  // expected-error @below {{chooses between shapes [2] and [3]}}
  %0 = dfg.select %c, %x, %y : (tensor<i1>, tensor<2xf32>, tensor<3xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<4x3xf32> : tensor<4x3xf32>
  %y = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32>
  // expected-error @below {{adds a bias of shape [2] to shape [4, 3]}}
  %0 = dfg.bias_add %x, %y : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<4x3xf32> : tensor<4x3xf32>
  %y = dfg.const dense<1> : tensor<3xi32> : tensor<3xi32>
  // expected-error @below {{takes labels of shape [3] for logits of shape [4, 3]}}
  %0:2 = dfg.sparse_softmax_cross_entropy_with_logits %x, %y : (tensor<4x3xf32>, tensor<3xi32>) -> (tensor<*xf32>, tensor<*xf32>)
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<1x4x4x1xf32> : tensor<1x4x4x1xf32>
  // expected-error @below {{attribute 'strides' has the entry 0, outside of}}
  %0 = dfg.max_pool %x {ksize = [1, 2, 2, 1], strides = [1, 0, 2, 1], padding = "SAME"} : (tensor<1x4x4x1xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %s = dfg.const dense<[1, 3, 3, 1]> : tensor<4xi32> : tensor<4xi32>
  %x = dfg.const dense<1.0> : tensor<1x2x2x1xf64> : tensor<1x2x2x1xf64>
  // expected-error @below {{takes a gradient of shape [1, 2, 2, 1] of pooling that makes shape [1, 1, 1, 1]}}
  %0 = dfg.avg_pool_grad %s, %x {ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1], padding = "VALID"} : (tensor<4xi32>, tensor<1x2x2x1xf64>) -> tensor<*xf64>
}

// -----

dfg.graph {
  %s = dfg.const dense<[1, 3, 3, 1]> : tensor<4xi32> : tensor<4xi32>
  %x = dfg.const dense<1.0> : tensor<1x1x1x1xf32> : tensor<1x1x1x1xf32>
  // expected-error @below {{takes a gradient of shape [1, 1, 1, 1] of pooling that makes shape [1, 2, 2, 1]}}
  %0 = dfg.avg_pool_grad %s, %x {ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1], padding = "SAME"} : (tensor<4xi32>, tensor<1x1x1x1xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<1x4x4x3xf32> : tensor<1x4x4x3xf32>
  %y = dfg.const dense<1.0> : tensor<2x2x2x4xf32> : tensor<2x2x2x4xf32>
  // expected-error @below {{filters images of shape [1, 4, 4, 3] by a filter of shape [2, 2, 2, 4]}}
  %0 = dfg.conv_2d %x, %y {strides = [1, 1, 1, 1], padding = "SAME"} : (tensor<1x4x4x3xf32>, tensor<2x2x2x4xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %s = dfg.const dense<[1, 4, 4, 3]> : tensor<4xi32> : tensor<4xi32>
  %x = dfg.const dense<1.0> : tensor<1x4x4x4xf32> : tensor<1x4x4x4xf32>
  %y = dfg.const dense<1.0> : tensor<2x2x3x4xf32> : tensor<2x2x3x4xf32>
  // expected-error @below {{takes a gradient of shape [1, 4, 4, 4] of a convolution that makes shape [1, 3, 3, 4]}}
  %0 = dfg.conv_2d_backprop_input %s, %y, %x {strides = [1, 1, 1, 1], padding = "VALID"} : (tensor<4xi32>, tensor<2x2x3x4xf32>, tensor<1x4x4x4xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %i = dfg.const dense<1> : tensor<2x1xi32> : tensor<2x1xi32>
  %x = dfg.const dense<1.0> : tensor<2x2xf32> : tensor<2x2xf32>
  %s = dfg.const dense<[4, 3]> : tensor<2xi32> : tensor<2xi32>
  // expected-error @below {{puts slices of shape [2, 2] at indices of shape [2, 1] into shape [4, 3]}}
  %0 = dfg.scatter_nd %i, %x, %s : (tensor<2x1xi32>, tensor<2x2xf32>, tensor<2xi32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %d = dfg.const dense<1.0> : tensor<2x5xf32> : tensor<2x5xf32>
  %b = dfg.const dense<1.0> : tensor<5x1xf32> : tensor<5x1xf32>
  // expected-error @below {{takes three diagonals, not a tensor of shape [2, 5]}}
  %0 = dfg.tridiagonal_solve %d, %b : (tensor<2x5xf32>, tensor<5x1xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %d = dfg.const dense<1.0> : tensor<3x5xf32> : tensor<3x5xf32>
  %b = dfg.const dense<1.0> : tensor<4x1xf32> : tensor<4x1xf32>
  // expected-error @below {{solves for sides of shape [4, 1] by diagonals of shape [3, 5]}}
  %0 = dfg.tridiagonal_solve %d, %b : (tensor<3x5xf32>, tensor<4x1xf32>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<6x4xf32> : tensor<6x4xf32>
  %s = dfg.const dense<1.0> : tensor<5xf32> : tensor<5xf32>
  %k = dfg.const dense<3> : tensor<i32> : tensor<i32>
  // expected-error @below {{takes boxes of shape [6, 4] with scores of shape [5]}}
  %0 = dfg.non_max_suppression %x, %s, %k : (tensor<6x4xf32>, tensor<5xf32>, tensor<i32>) -> tensor<*xi32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<5x2x3xf32> : tensor<5x2x3xf32>
  %n = dfg.const dense<5> : tensor<2xi32> : tensor<2xi32>
  // expected-error @below {{has class 3 of 3 as the blank}}
  %0:4 = dfg.ctc_greedy_decoder %x, %n {blank_index = 3 : i64} : (tensor<5x2x3xf32>, tensor<2xi32>) -> (tensor<*xi64>, tensor<*xi64>, tensor<2xi64>, tensor<*xf32>)
}

// -----

dfg.graph {
  %at = dfg.const dense<0> : tensor<3x2xi64> : tensor<3x2xi64>
  %v = dfg.const dense<1> : tensor<3xi64> : tensor<3xi64>
  %a = dfg.const dense<[2, 5]> : tensor<2xi64> : tensor<2xi64>
  %b = dfg.const dense<[2, 5, 1]> : tensor<3xi64> : tensor<3xi64>
  // expected-error @below {{compares sparse tensors of shapes [2, 5] and [2, 5, 1]}}
  %0 = dfg.edit_distance %at, %v, %a, %at, %v, %b : (tensor<3x2xi64>, tensor<3xi64>, tensor<2xi64>, tensor<3x2xi64>, tensor<3xi64>, tensor<3xi64>) -> tensor<*xf32>
}

// -----

dfg.graph {
  %x = dfg.const dense<1.0> : tensor<2x6x2x4xf32> : tensor<2x6x2x4xf32>
  %s = dfg.const dense<1.0> : tensor<2x6x3xf32> : tensor<2x6x3xf32>
  %k = dfg.const dense<3> : tensor<i32> : tensor<i32>
  %t = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  // expected-error @below {{takes boxes of shape [2, 6, 2, 4] with scores of shape [2, 6, 3]}}
  %0:4 = dfg.combined_non_max_suppression %x, %s, %k, %k, %t, %t
    : (tensor<2x6x2x4xf32>, tensor<2x6x3xf32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xi32>)
}
