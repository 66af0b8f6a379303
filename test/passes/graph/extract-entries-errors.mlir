// RUN: distc-opt %s --dfg-extract-entries --split-input-file --verify-diagnostics

// expected-error @below {{operation 'trian' is not in the graph; did you mean 'train'?}}
dfg.graph attributes {train_op = "trian"} {
  dfg.group : () -> () loc("train")
}

// -----

// expected-error @below {{tensor 'loss' is not in the graph; did you mean 'model/loss'?}}
dfg.graph attributes {loss = "loss:0"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("model/loss")
}

// -----

// expected-error @below {{has no endpoint: name the operation that trains (--train-op) or a tensor to fetch (--loss, --fetch); candidates for loss: 'a:0' 'b:0'}}
dfg.graph attributes {candidates = {loss = ["a:0", "b:0"]}} {
}

// -----

dfg.graph attributes {loss = "y:0"} {
  // One error, although it must run twice.
  // expected-error @below {{(op 'Mystery') must run for 'y:0' but distc has no code for it}}
  // expected-note @below {{operation 'Mystery' has no code: nodes '', ''; needed by 'y:0'}}
  %x = dfg.opaque "Mystery"() : () -> tensor<f32>
  %z = dfg.opaque "Mystery"() : () -> tensor<f32>
  %y = dfg.add_v2 %x, %z : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("y")
}

// -----

// expected-warning @below {{names several operations that train, so the program can only evaluate: name one with --train-op; candidates for train_op: 'first' 'second'}}
dfg.graph attributes {candidates = {train_op = ["first", "second"]}, loss = "loss:0"} {
  %loss = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("loss")
  dfg.group : () -> () loc("first")
  dfg.group : () -> () loc("second")
}
