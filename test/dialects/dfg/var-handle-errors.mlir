// RUN: distc-opt %s --split-input-file --verify-diagnostics

dfg.graph {
  // expected-error @below {{names variable 'w', which does not exist}}
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
}

// -----

dfg.variable @w : tensor<3xf32>
dfg.graph {
  // expected-error @below {{is a handle of 'tensor<4xf32>', but variable 'w' is 'tensor<3xf32>'}}
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
}
