// RUN: distc-opt %s --split-input-file --verify-diagnostics

dfg.graph {
  %x = dfg.placeholder : () -> tensor<4xf32>
  // expected-error @below {{makes elements of type 'i32' (result 0) from 'f32'}}
  %y = dfg.tanh %x : (tensor<4xf32>) -> tensor<4xi32>
}

// -----

dfg.graph {
  %x = dfg.placeholder : () -> tensor<4xf32>
  %y = dfg.placeholder : () -> tensor<4xf64>
  // expected-error @below {{has elements of type 'f64' (operand 1) beside 'f32'}}
  %z = dfg.add_v2 %x, %y : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
}

// -----

dfg.graph {
  %x = dfg.placeholder : () -> tensor<4xf32>
  // expected-error @below {{has elements of type 'f32' in result 0, which are bool}}
  %y = dfg.greater %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
}

// -----

dfg.graph {
  // expected-error @below {{has 0 operands; number 0 gives its T}}
  %y = dfg.add_n : () -> tensor<4xf32>
}

// -----

// expected-error @below {{'table' of shape [9, 4] has no slice at [6, 0] of sizes [4, 4]}}
dfg.graph attributes {dfg.slices = {"table/part_1" = #dfg.slice<"table" [9, 4] at [6, 0] sizes [4, 4]>}} {
}

// -----

dfg.graph {
  // expected-error @below {{attribute 'control' is not an array of nodes' names}}
  dfg.group {control = [3]} : () -> ()
}

// -----

dfg.graph {
  // expected-error @below {{attribute 'tf' is not a dictionary}}
  dfg.group {tf = "x"} : () -> ()
}

// -----

// expected-error @below {{attribute 'dfg.trainop' is none of the dialect 'dfg'}}
dfg.graph attributes {dfg.trainop = "x"} {
}

// -----

// expected-error @below {{attribute 'dfg.entry' stands on a function only}}
dfg.graph attributes {dfg.entry = "step"} {
}
