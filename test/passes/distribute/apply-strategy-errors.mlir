// RUN: split-file %s %t
// RUN: distc-opt %t/compressor.mlir --dist-apply-strategy="replicas=2 strategy=AllReduce:compressor=HorovodCompressor" --verify-diagnostics
// RUN: distc-opt %t/no-server.mlir --dist-apply-strategy="replicas=2 ps=1 strategy=%t/no-server.pbtxt" --verify-diagnostics

//--- compressor.mlir
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

//--- no-server.pbtxt
node_config { var_name: "w" PSSynchronizer { reduction_destination: "ps:1" } }
//--- no-server.mlir
// expected-error @below {{the strategy's entry of variable 'w' places it on 'ps:1', which is no task of the topology}}
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    %g = dfg.placeholder : () -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}
