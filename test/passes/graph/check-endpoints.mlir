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

// -----

// A Python function is not in the graph: writing it with other operations is not the way out, feeding what it gives is.
dfg.graph attributes {loss = "loss:0"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  // expected-error @below {{(op 'EagerPyFunc') must run for 'loss:0' but distc has no code for it, for any target; it calls a Python function}}
  %y = dfg.opaque "EagerPyFunc"(%x) : (tensor<f32>) -> tensor<f32>
  %loss = dfg.identity %y : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// One report names every operation, its nodes, and who needs them.
dfg.graph attributes {train_op = "train", loss = "loss:0"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  // expected-error @unknown {{(op 'Squared') must run for 'train' but distc has no code for it, for any target}}
  // expected-note @unknown {{operation 'Squared' has no code: nodes 'a', 'b'; needed by 'train', 'loss:0'}}
  %a = dfg.opaque "Squared"(%x) : (tensor<f32>) -> tensor<f32> loc("a")
  %b = dfg.opaque "Squared"(%a) : (tensor<f32>) -> tensor<f32> loc("b")
  // expected-note @unknown {{operation 'Rooted' has no code: node 'c'; needed by 'train'}}
  %c = dfg.opaque "Rooted"(%b) : (tensor<f32>) -> tensor<f32> loc("c")
  dfg.group {control = ["c"]} : () -> () loc("train")
  %loss = dfg.identity %b : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// Who fetches a reference variable is told its read, and not the nameless one that the import puts in front of it.
dfg.variable @w : tensor<2xf32> {kind = "ref"}
dfg.graph attributes {fetches = ["w:0"]} {
  // expected-error @unknown {{'w:0' is a variable, which is no tensor: name the node that reads it ('w/read')}}
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("w")
  %value = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("")
  %read = dfg.identity %value : (tensor<2xf32>) -> tensor<2xf32> loc("w/read")
}
