// RUN: distc-opt %s --dfg-check-endpoints --split-input-file --verify-diagnostics

// expected-error @below {{operation 'trian' is not in the graph; did you mean 'train'?}}
dfg.graph attributes {train_op = "trian"} {
  dfg.group : () -> () loc("train")
}

// -----

dfg.graph attributes {loss = "loss:0", fetches = ["x:0"]} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  // What nothing needs is no error.
  dfg.opaque "SaveV2"(%x) : (tensor<f32>) -> () loc("save")
  // expected-error @below {{(op 'Squared') must run for 'loss:0' but distc has no code for it}}
  %squares = dfg.opaque "Squared"(%x) : (tensor<f32>) -> tensor<f32>
  %loss = dfg.identity %squares : (tensor<f32>) -> tensor<f32> loc("loss")
}
