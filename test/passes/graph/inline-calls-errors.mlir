// RUN: distc-opt %s --dfg-inline-calls --split-input-file --verify-diagnostics

dfg.func @forever(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{calls function 'forever', which calls itself}}
  %y = dfg.call @forever(%x) : (tensor<f32>) -> tensor<f32>
  dfg.return %y : tensor<f32>
}

// -----

dfg.func @one(%x: tensor<f32>) -> tensor<f32> {
  dfg.return %x : tensor<f32>
}
dfg.graph {
  // expected-error @below {{with 0 operands for 1 results, but it has 1 arguments and 1 results}}
  %y = dfg.call @one() : () -> tensor<f32>
}
