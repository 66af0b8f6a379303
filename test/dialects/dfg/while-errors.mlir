// RUN: distc-opt %s --split-input-file --verify-diagnostics

dfg.func @alike(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{has variable 0 of type 'tensor<f32>', and of type 'tensor<i32>'}}
  %w = dfg.while(%x) {
  ^bb0(%v: tensor<f32>):
    %goes_on = dfg.const dense<true> : tensor<i1> : tensor<i1>
    dfg.yield %goes_on : tensor<i1>
  } do {
  ^bb0(%v: tensor<f32>):
    %n = dfg.cast %v : (tensor<f32>) -> tensor<i32>
    dfg.yield %n : tensor<i32>
  } : (tensor<f32>) -> tensor<f32>
  dfg.return %w : tensor<f32>
}

// -----

dfg.func @condition(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{must have a condition that yields one scalar bool}}
  %w = dfg.while(%x) {
  ^bb0(%v: tensor<f32>):
    dfg.yield %v : tensor<f32>
  } do {
  ^bb0(%v: tensor<f32>):
    dfg.yield %v : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  dfg.return %w : tensor<f32>
}

// -----

dfg.func @counts(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{has 1 variables, but its body yields 2, and it gives 1}}
  %w = dfg.while(%x) {
  ^bb0(%v: tensor<f32>):
    %goes_on = dfg.const dense<true> : tensor<i1> : tensor<i1>
    dfg.yield %goes_on : tensor<i1>
  } do {
  ^bb0(%v: tensor<f32>):
    dfg.yield %v, %v : tensor<f32>, tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  dfg.return %w : tensor<f32>
}

// -----

dfg.func @effects(%x: tensor<f32>) -> tensor<f32> {
  %w = dfg.while(%x) {
  ^bb0(%v: tensor<f32>):
    %goes_on = dfg.const dense<true> : tensor<i1> : tensor<i1>
    dfg.yield %goes_on : tensor<i1>
  } do {
  ^bb0(%v: tensor<f32>):
    %shape = dfg.const dense<[]> : tensor<0xi32> : tensor<0xi32>
    // expected-error @below {{is inside of a loop, where there is nothing but values of dfg without effects}}
    %r = dfg.random_uniform %shape : (tensor<0xi32>) -> tensor<f32>
    dfg.yield %r : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  dfg.return %w : tensor<f32>
}
