// RUN: distc-opt %s --dfg-infer-shapes --dfg-fold --convert-dfg-to-drt=asserts=true --verify-diagnostics

// Constants are known when compiling.
dfg.variable @w : tensor<10x2xf32> {trainable}
dfg.func @step() -> tensor<2x2xf32> attributes {dfg.fetches = ["rows:0"], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %ids = dfg.const dense<[3, 10]> : tensor<2xi32> : tensor<2xi32> loc("ids")
  // expected-error @+1 {{has the index 10, which is outside of [0, 10)}}
  %rows = dfg.resource_gather %w, %ids : (!dfg.ref<tensor<10x2xf32>>, tensor<2xi32>) -> tensor<2x2xf32>
  dfg.return %rows : tensor<2x2xf32>
}
