// RUN: distc-opt %s --dfg-decompose=last --split-input-file --verify-diagnostics

dfg.func @size(%x: tensor<1x2x2x1xf32>, %n: tensor<2xi32>) -> tensor<*xf32> {
  // expected-error@unknown {{node 'resized' (resize_bilinear) has no code here: an operand that says sizes, axes or counts is not constant}}
  %y = dfg.resize_bilinear %x, %n : (tensor<1x2x2x1xf32>, tensor<2xi32>) -> tensor<*xf32> loc("resized")
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @segments(%x: tensor<4x2xf32>, %ids: tensor<4xi32>) -> tensor<*xf32> {
  // expected-error@+1 {{(segment_sum) has no code here: the number of segments depends on the data; say it by the operation's form with num_segments, or unsorted_segment_*}}
  %y = dfg.segment_sum %x, %ids : (tensor<4x2xf32>, tensor<4xi32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.graph attributes {fetches = ["bn:1"]} {
  %x = dfg.placeholder : () -> tensor<?x4x4x8xf32> loc("x")
  %c = dfg.const dense<1.0> : tensor<8xf32> : tensor<8xf32> loc("c")
  // expected-error@unknown {{'bn:1' is an output beside the first of a node (fused_batch_norm) that is compiled as several; fetch an Identity of it}}
  %y:5 = dfg.fused_batch_norm %x, %c, %c, %c, %c {is_training = false}
    : (tensor<?x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    -> (tensor<?x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) loc("bn")
}
