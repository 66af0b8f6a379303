// RUN: split-file %s %t
// RUN: distc-opt %t/aggregator.mlir --dist-apply-strategy="replicas=2 strategy=AllReduce:aggregator=krum:1" --verify-diagnostics
// RUN: distc-opt %t/no-server.mlir --dist-apply-strategy="replicas=2 ps=1 strategy=%t/no-server.pbtxt" --verify-diagnostics
// RUN: distc-opt %t/cluster.mlir --dist-apply-strategy="replicas=2 strategy=AllReduce" --verify-diagnostics

//--- cluster.mlir
module {
  // expected-error @below {{variable 'cluster' has the name that the tasks of a distributed graph have: give it another one}}
  dfg.variable @cluster : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    %g = dfg.placeholder : () -> tensor<4xf32>
    %w = dfg.var_handle @cluster : !dfg.ref<tensor<4xf32>>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

//--- aggregator.mlir
// expected-error @below {{the strategy's entry of variable 'w' has aggregator krum:1, which needs at least 2f + 3 = 5 gradients, but there are 2 gradients}}
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
// expected-error-re @below {{no-server.pbtxt:1: the strategy's entry of variable 'w' is placed on 'ps:1', which the resources do not have; they have: ps:0; servers are asked for with --ps}}
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    %g = dfg.placeholder : () -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}
