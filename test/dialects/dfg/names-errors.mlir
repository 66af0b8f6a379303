// RUN: distc-opt %s --split-input-file --verify-diagnostics

// A name that is referred to is one node's.
dfg.graph {
  dfg.group : () -> () loc("before")
  // expected-error @below {{must run behind "behind", which is no node of the graph}}
  dfg.group {control = ["before", "behind"]} : () -> ()
}

// -----

// What runs again may have its name, as long as none refers to it.
dfg.graph {
  %a = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("twice")
  %b = dfg.neg %a : (tensor<f32>) -> tensor<f32> loc("twice")
  // expected-error @below {{must run behind "twice", which a 'dfg.const' and a 'dfg.neg' are called}}
  dfg.group {control = ["twice"]} : () -> ()
}

// -----

// expected-error @below {{loss is "loss", which a 'dfg.const' and a 'dfg.neg' are called}}
dfg.graph attributes {loss = "loss:0"} {
  %a = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("loss")
  %b = dfg.neg %a : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// expected-error @below {{fetch is "y", which a 'dfg.const' and a 'dfg.neg' are called}}
dfg.graph attributes {fetches = ["x:0", "y"]} {
  %a = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("y")
  %b = dfg.neg %a : (tensor<f32>) -> tensor<f32> loc("y")
}

// -----

dfg.graph {
  // expected-error @unknown {{has no name: its location is the node's name}}
  %a = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc(unknown)
}

// -----

// Of a fused location the first name is the node's; a read that a reference makes by itself has none.
dfg.variable @w : tensor<f32>
dfg.graph attributes {loss = "fused"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %a = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc(unknown)
  %b = dfg.neg %a : (tensor<f32>) -> tensor<f32> loc(fused["fused", "other"])
  dfg.group {control = ["fused"]} : () -> () loc(callsite("call" at "caller"))
}
