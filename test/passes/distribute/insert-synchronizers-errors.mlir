// RUN: distc-opt %s --split-input-file --dist-apply-strategy="replicas=2" --dist-replicate --dist-insert-synchronizers --verify-diagnostics

module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    // expected-note @below {{the value is made here}}
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-error @below {{variable 'w' cannot be synchronized}}
    dfg.apply_gradient_descent %w, %lr, %max : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

module {
  dfg.variable @table : tensor<9x4xf32> {trainable}
  dfg.graph {
    %g = dfg.placeholder : () -> tensor<?x4xf32>
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %h = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    // expected-error @below {{does not know the operation, so its sparse gradient cannot be synchronized}}
    dfg.opaque "ResourceScatterSub"(%h, %ids, %g) : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}
