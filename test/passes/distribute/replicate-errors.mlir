// RUN: distc-opt %s --dist-replicate="replicas=2 strategy=AllReduce:compressor=HorovodCompressor" --verify-diagnostics

// expected-error @below {{the strategy's entry of variable 'w' asks for compressor HorovodCompressor, which is not supported yet; use NoneCompressor}}
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    %g = dfg.placeholder : () -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}
