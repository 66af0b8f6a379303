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

// -----

// expected-error @below {{is of type 'i32'; a variable is a tensor}}
dfg.variable @w : i32

// -----

// expected-error @below {{is of kind "reference"; it is "resource", "ref", "captured" or "local"}}
dfg.variable @w : tensor<4xf32> {kind = "reference"}

// -----

// expected-note @below {{it is this}}
dfg.variable @w : tensor<4xf32>
dfg.graph {
  // expected-error @below {{calls 'w', which is no function}}
  dfg.call @w() : () -> ()
}

// -----

dfg.func @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{gives 0 values of a function of 1}}
  dfg.return
}

// -----

func.func private @kernel(%x: f64) {
  // expected-error @below {{calls "bessel_i9", which the runtime has not}}
  %0 = dfg.special_function "bessel_i9"(%x) : (f64) -> f64
  return
}

// -----

func.func private @kernel(%x: f64) {
  // expected-error @below {{has 1 arguments; "zeta" has 2}}
  %0 = dfg.special_function "zeta"(%x) : (f64) -> f64
  return
}
