// RUN: distc-opt %s --dfg-infer-shapes --split-input-file --verify-diagnostics

// A sum would add padding.
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  // expected-error@unknown {{node 'total' (sum) needs the true size of 'unique', which depends on the data}}
  %total = dfg.sum %y, %axis : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("total")
  dfg.return
}

// -----

// A count that is used as a number.
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  %size = dfg.size %y : (tensor<*xi32>) -> tensor<i32> loc("size")
  %number = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("number")
  // expected-error@unknown {{node 'root' (sqrt) needs the true value of 'number'}}
  %root = dfg.sqrt %number : (tensor<f32>) -> tensor<f32> loc("root")
  dfg.return
}
